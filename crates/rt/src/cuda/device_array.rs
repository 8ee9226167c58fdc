//! Arrays that stay on a GPU between runs.

use std::fmt;
use std::sync::Arc;

use systola_ir::Scalar;

use super::device::Gpu;
use super::driver::{Event, Memory, Place, Stream};
use crate::aligned::AlignedBytes;
use crate::buffer::{View, ViewMut};
use crate::error::Error;
use crate::layout::element_count;
use crate::literal::size;
use crate::raw::{bytes_of, bytes_of_mut, bytes_of_view, bytes_of_view_mut, gather, scatter};

/// Elements that lie row by row in the memory of a GPU.
pub struct DeviceArray {
    gpu: Arc<Gpu>,
    memory: Option<Memory>,
    place: Place,
    ty: Scalar,
    shape: Vec<usize>,
}

impl DeviceArray {
    /// With undefined contents.
    pub fn new(gpu: &Arc<Gpu>, ty: Scalar, shape: &[usize]) -> Result<DeviceArray, Error> {
        let what = || format!("an array of shape {shape:?}");
        let n = element_count(shape).ok_or_else(|| Error::overflow(what()))?;
        let memory = gpu.allocate(n * size(ty), &what())?;
        Ok(DeviceArray {
            gpu: Arc::clone(gpu),
            place: memory.place(),
            memory: Some(memory),
            ty,
            shape: shape.to_vec(),
        })
    }

    /// A copy of an array of the host.
    pub fn from_view(gpu: &Arc<Gpu>, view: &View<'_>) -> Result<DeviceArray, Error> {
        let array = DeviceArray::new(gpu, view.ty(), view.shape())?;
        gpu.with_stream(|stream| upload(stream, array.place, view))?;
        Ok(array)
    }

    /// The array at an address of the device, which stays the caller's.
    ///
    /// Refused if the address is not a multiple of 16 bytes.
    ///
    /// # Safety
    ///
    /// There is memory of the device for all elements as long as the array lives, and nobody else writes to it while
    /// a run has it.
    #[expect(unsafe_code, reason = "the caller vouches for the address")]
    pub unsafe fn from_raw(
        gpu: &Arc<Gpu>,
        start: u64,
        ty: Scalar,
        shape: &[usize],
    ) -> Result<DeviceArray, Error> {
        let too_large = || Error::overflow(format!("an array of shape {shape:?}"));
        let n = element_count(shape).ok_or_else(too_large)?;
        if !start.is_multiple_of(16) {
            return Err(Error::Misaligned { start });
        }
        Ok(DeviceArray {
            gpu: Arc::clone(gpu),
            memory: None,
            // SAFETY: the caller's promise.
            place: unsafe { Place::new(start, n * size(ty)) },
            ty,
            shape: shape.to_vec(),
        })
    }

    pub fn ty(&self) -> Scalar {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The address of the first element on the device.
    pub fn pointer(&self) -> u64 {
        self.place.start()
    }

    pub(crate) fn place(&self) -> Place {
        self.place
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
            .with_stream(|stream| download(stream, view, self.place))
    }

    /// Copies another array of this device with as many bytes, so many times in a row; the seconds of each copy.
    pub fn time_copies(&mut self, other: &DeviceArray, times: usize) -> Result<Vec<f64>, Error> {
        if other.ty != self.ty || other.shape != self.shape {
            return Err(Error::WrongShape {
                name: "the array".to_string(),
                expected: self.shape.clone(),
                got: other.shape.clone(),
            });
        }
        let context = self.gpu.context;
        self.gpu.with_stream(|stream| {
            let mut events = Vec::new();
            for _ in 0..times {
                let (begin, end) = (Event::new(context)?, Event::new(context)?);
                begin.record(stream)?;
                stream.copy(self.place, other.place, other.bytes())?;
                end.record(stream)?;
                events.push((begin, end));
            }
            stream.wait()?;
            events.iter().map(|(begin, end)| end.since(begin)).collect()
        })
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.gpu.give_back(memory);
        }
    }
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceArray({} {:?})", self.ty, self.shape)
    }
}

/// Copies an array of the host to memory that was allocated for it.
pub(super) fn upload(stream: &Stream, to: Place, view: &View<'_>) -> Result<(), Error> {
    if view.is_dense() {
        return stream.upload(to, bytes_of_view(view));
    }
    let mut packed = AlignedBytes::zeroed(view.layout.len() * size(view.ty), "an array")?;
    gather(view, &mut packed);
    stream.upload(to, bytes_of(&packed))
}

/// Copies memory of the device to an array of the host.
pub(super) fn download(stream: &Stream, view: &mut ViewMut<'_>, from: Place) -> Result<(), Error> {
    if view.is_dense() {
        return stream.download(bytes_of_view_mut(view), from);
    }
    let mut packed = AlignedBytes::zeroed(view.layout.len() * size(view.ty), "an array")?;
    stream.download(bytes_of_mut(&mut packed), from)?;
    scatter(&packed, view);
    Ok(())
}
