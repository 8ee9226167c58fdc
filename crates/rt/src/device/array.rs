//! Arrays that stay on a device between runs.

use std::fmt;
use std::sync::Arc;

use systola_ir::Scalar;

use super::driver::{Driver, Queue};
use super::gpu::Gpu;
use crate::aligned::AlignedBytes;
use crate::buffer::{View, ViewMut};
use crate::error::Error;
use crate::layout::element_count;
use crate::literal::size;
use crate::raw::{bytes_of, bytes_of_mut, bytes_of_view, bytes_of_view_mut, gather, scatter};
use crate::timing::Timing;

/// A row-major array in the memory of a device.
pub struct DeviceArray<D: Driver> {
    gpu: Arc<Gpu<D>>,
    memory: Option<D::Memory>,
    location: D::Location,
    ty: Scalar,
    shape: Vec<usize>,
}

impl<D: Driver> DeviceArray<D> {
    /// With undefined contents.
    pub fn new(gpu: &Arc<Gpu<D>>, ty: Scalar, shape: &[usize]) -> Result<DeviceArray<D>, Error> {
        let what = || format!("an array of shape {shape:?}");
        let n = element_count(shape).ok_or_else(|| Error::overflow(what()))?;
        let memory = gpu.allocate(n * size(ty), &what())?;
        Ok(DeviceArray {
            gpu: Arc::clone(gpu),
            location: D::location(&memory),
            memory: Some(memory),
            ty,
            shape: shape.to_vec(),
        })
    }

    /// A copy of an array of the host.
    pub fn from_view(gpu: &Arc<Gpu<D>>, view: &View<'_>) -> Result<DeviceArray<D>, Error> {
        let array = DeviceArray::new(gpu, view.ty(), view.shape())?;
        gpu.with_queue(|queue| upload(queue, array.location, view))?;
        Ok(array)
    }

    /// The array at a location that the caller owns.
    pub(crate) fn at(
        gpu: &Arc<Gpu<D>>,
        location: D::Location,
        ty: Scalar,
        shape: &[usize],
    ) -> DeviceArray<D> {
        DeviceArray {
            gpu: Arc::clone(gpu),
            memory: None,
            location,
            ty,
            shape: shape.to_vec(),
        }
    }

    pub fn ty(&self) -> Scalar {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn gpu(&self) -> &Arc<Gpu<D>> {
        &self.gpu
    }

    pub(crate) fn location(&self) -> D::Location {
        self.location
    }

    pub fn bytes(&self) -> usize {
        element_count(&self.shape).unwrap_or(0) * size(self.ty)
    }

    /// Copies the elements to an array of the host of the same type and shape.
    pub fn copy_to(&self, view: &mut ViewMut<'_>) -> Result<(), Error> {
        if view.ty() != self.ty {
            return Err(Error::WrongType {
                name: "the array".to_string(),
                expected: self.ty,
                got: view.ty(),
            });
        }
        if view.shape() != self.shape {
            return Err(Error::WrongShape {
                name: "the array".to_string(),
                expected: self.shape.clone(),
                got: view.shape().to_vec(),
            });
        }
        self.gpu
            .with_queue(|queue| download(queue, view, self.location))
    }

    /// Copies another array of this device with as many bytes `times` times; returns the seconds of
    /// each copy.
    pub fn time_copies(&mut self, other: &DeviceArray<D>, times: usize) -> Result<Timing, Error> {
        if other.ty != self.ty || other.shape != self.shape {
            return Err(Error::WrongShape {
                name: "the array".to_string(),
                expected: self.shape.clone(),
                got: other.shape.clone(),
            });
        }
        let driver = &self.gpu.driver;
        self.gpu.with_queue(|queue| {
            let mut events = Vec::new();
            for _ in 0..times {
                let begin = driver.record_event(queue)?;
                queue.copy(self.location, other.location, other.bytes())?;
                events.push((begin, driver.record_event(queue)?));
            }
            queue.wait()?;
            let between = events.iter();
            let seconds = between.map(|(begin, end)| driver.seconds(begin, end));
            let samples = seconds.collect::<Result<_, _>>()?;
            Ok(Timing { samples })
        })
    }
}

impl<D: Driver> Drop for DeviceArray<D> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.gpu.give_back(memory);
        }
    }
}

impl<D: Driver> fmt::Debug for DeviceArray<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceArray({} {:?})", self.ty, self.shape)
    }
}

/// Copies an array of the host to memory that was allocated for it.
pub(super) fn upload<P>(queue: &impl Queue<P>, to: P, view: &View<'_>) -> Result<(), Error> {
    if view.is_dense() {
        return queue.upload(to, bytes_of_view(view));
    }
    let mut packed = AlignedBytes::zeroed(view.layout.len() * size(view.ty), "an array")?;
    gather(view, &mut packed);
    queue.upload(to, bytes_of(&packed))
}

/// Copies memory of the device to an array of the host.
pub(super) fn download<P>(
    queue: &impl Queue<P>,
    view: &mut ViewMut<'_>,
    from: P,
) -> Result<(), Error> {
    if view.is_dense() {
        return queue.download(bytes_of_view_mut(view), from);
    }
    let mut packed = AlignedBytes::zeroed(view.layout.len() * size(view.ty), "an array")?;
    queue.download(bytes_of_mut(&mut packed), from)?;
    scatter(&packed, view);
    Ok(())
}
