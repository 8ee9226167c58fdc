//! A program that runs on a device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use systola_ir::kernel::Program;

use super::array::DeviceArray;
use super::driver::{Driver, Made};
use super::gpu::Gpu;
use super::run::{self, Given, Run};
use super::source::DeviceSource;
use super::variant::Variant;
use crate::aligned::AlignedBytes;
use crate::bind::{Bound, bind, bind_shapes};
use crate::buffer::{View, ViewMut};
use crate::compile::{Note, Origin};
use crate::cpu::{Stats, table};
use crate::error::Error;
use crate::layout::Layout;
use crate::per_sizes::PerSizes;
use crate::plan::{check_host, check_sizes, layout};
use crate::timing::{Repeats, Timing};

/// A program compiled for a device. It can be run any number of times.
pub struct DeviceProgram<D: Driver> {
    pub(super) program: Program,
    pub(super) source: DeviceSource,
    pub(super) gpu: Arc<Gpu<D>>,
    /// Contents in the program, for each buffer that has some.
    pub(super) tables: Vec<Option<AlignedBytes>>,
    options: D::Options,
    variants: PerSizes<Variant>,
    /// Variants in the order of first use.
    loaded: Mutex<Vec<(Variant, Arc<Loaded<D>>)>>,
}

/// Machine code on the device.
pub(crate) struct Loaded<D: Driver> {
    pub(crate) code: D::Code,
    /// Held by the run that has filled its constant memory.
    pub(super) in_use: Mutex<()>,
    origin: Origin,
    notes: Vec<Note>,
}

impl<D: Driver> DeviceProgram<D> {
    /// Compiles and loads the source of a program, or finds it in the cache. `sizes`: those of the
    /// first run, if known; other sizes may need other code, which is compiled on first use.
    pub fn compile(
        program: Program,
        source: DeviceSource,
        gpu: &Arc<Gpu<D>>,
        options: &D::Options,
        sizes: Option<&[i128]>,
    ) -> Result<DeviceProgram<D>, Error> {
        check_host(&program)?;
        if source.kernels.len() != program.kernels.len() {
            return Err(Error::SourceMismatch {
                reason: format!(
                    "{} kernels, {} functions",
                    program.kernels.len(),
                    source.kernels.len()
                ),
            });
        }
        let tables = program.buffers.iter().map(table);
        let tables = tables.collect::<Result<Vec<_>, Error>>()?;
        let made = DeviceProgram {
            program,
            source,
            gpu: Arc::clone(gpu),
            tables,
            options: options.clone(),
            variants: PerSizes::default(),
            loaded: Mutex::default(),
        };
        let fixed: Option<Vec<i128>> = made.program.params.iter().map(|p| p.fixed).collect();
        let variant = match sizes.or(fixed.as_deref()) {
            Some(sizes) => made.variant(sizes)?,
            // The common case.
            None => Arc::new(Variant::narrow()),
        };
        made.load(&variant)?;
        Ok(made)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn gpu(&self) -> &Arc<Gpu<D>> {
        &self.gpu
    }

    /// Was all of it found in the cache?
    pub fn origin(&self) -> Origin {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = loaded.iter().any(|(_, l)| l.origin == Origin::Compiler);
        if compiled {
            Origin::Compiler
        } else {
            Origin::Cache
        }
    }

    /// Notes for the user about the compilation.
    pub fn notes(&self) -> Vec<Note> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().flat_map(|(_, l)| l.notes.clone()).collect()
    }

    /// The code that was loaded first.
    pub(crate) fn first_loaded(&self) -> Option<Arc<Loaded<D>>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.first().map(|(_, loaded)| Arc::clone(loaded))
    }

    /// Is the code for these sizes loaded?
    pub fn is_loaded(&self, sizes: &[i128]) -> bool {
        let Ok(variant) = self.variant(sizes) else {
            return false;
        };
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().any(|(own, _)| *own == *variant)
    }

    fn variant(&self, sizes: &[i128]) -> Result<Arc<Variant>, Error> {
        let kernels = &self.source.kernels;
        self.variants
            .get(sizes, || Variant::at(&self.program, kernels, sizes))
    }

    fn load(&self, variant: &Variant) -> Result<Arc<Loaded<D>>, Error> {
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, loaded)) = all.iter().find(|(own, _)| own == variant) {
            return Ok(Arc::clone(loaded));
        }
        let Made {
            code,
            origin,
            notes,
        } = self.gpu.driver.load(&self.source, variant, &self.options)?;
        let loaded = Arc::new(Loaded {
            code,
            in_use: Mutex::new(()),
            origin,
            notes,
        });
        all.push((variant.clone(), Arc::clone(&loaded)));
        Ok(loaded)
    }

    /// Runs the program at the given sizes on arrays of the host. Inputs without contents in the
    /// program, and all outputs, are given by name.
    pub fn run(
        &self,
        sizes: &[i64],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let start = Instant::now();
        let run = self.checked(sizes, |layouts| {
            bind(&self.program, layouts, inputs, outputs)
        })?;
        let mut stats = run.execute(&mut Given::Host { inputs, outputs })?;
        stats.total_seconds = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    /// Runs the program on arrays on the device.
    pub fn run_on_device(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray<D>)],
        outputs: &mut [(&str, &mut DeviceArray<D>)],
    ) -> Result<Stats, Error> {
        let start = Instant::now();
        let mut stats = self.repeat(sizes, inputs, outputs, 1, &mut Vec::new())?;
        stats.total_seconds = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    /// The same several times, without waiting on the host in between; the seconds of each run on
    /// the device, which is idle before the first.
    pub fn time_on_device(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray<D>)],
        outputs: &mut [(&str, &mut DeviceArray<D>)],
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        let Repeats { warm_up, timed } = repeats;
        let mut samples = Vec::new();
        let times = warm_up + timed.max(1);
        self.repeat(sizes, inputs, outputs, times, &mut samples)?;
        samples.drain(..warm_up);
        Ok(Timing { samples })
    }

    fn repeat(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray<D>)],
        outputs: &mut [(&str, &mut DeviceArray<D>)],
        times: usize,
        seconds: &mut Vec<f64>,
    ) -> Result<Stats, Error> {
        let run = self.checked(sizes, |layouts| {
            let read = inputs.iter().map(|(name, a)| (*name, a.ty(), a.shape()));
            let written = outputs.iter().map(|(name, a)| (*name, a.ty(), a.shape()));
            let bound = bind_shapes(&self.program, layouts, read, written)?;
            run::check_locations(&self.gpu, inputs, outputs)?;
            Ok(bound)
        })?;
        let inputs: Vec<D::Location> = inputs.iter().map(|(_, a)| a.location()).collect();
        let outputs: Vec<D::Location> = outputs.iter().map(|(_, a)| a.location()).collect();
        let mut given = Given::Device {
            inputs: &inputs,
            outputs: &outputs,
        };
        run.back_to_back(&mut given, times, seconds)
    }

    /// A run at checked sizes, on arrays bound to the buffers.
    fn checked<'a>(
        &'a self,
        sizes: &'a [i64],
        bind: impl FnOnce(&[Layout]) -> Result<Vec<Bound>, Error>,
    ) -> Result<Run<'a, D>, Error> {
        let params = check_sizes(&self.program, sizes)?;
        let variant = self.variant(&params)?;
        let layouts = self.program.buffers.iter().map(|b| layout(b, &params));
        let layouts = layouts.collect::<Result<Vec<_>, Error>>()?;
        let bound = bind(&layouts)?;
        Ok(Run {
            owner: self,
            width: variant.width,
            loaded: self.load(&variant)?,
            sizes,
            params,
            layouts,
            bound,
        })
    }
}

impl<D: Driver> fmt::Debug for DeviceProgram<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceProgram({})", self.program.name)
    }
}
