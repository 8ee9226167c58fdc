//! A program that runs on a GPU.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use systola_ir::kernel::Program;

use super::compile::{CudaCompileOptions, compile};
use super::device::Gpu;
use super::device_array::DeviceArray;
use super::driver::{Function, Module, Place};
use super::nvrtc;
use super::run::{self, Given, Run};
use super::source::CudaSource;
use super::width::{Width, needed};
use crate::aligned::AlignedBytes;
use crate::bind::{Bound, bind, bind_shapes};
use crate::buffer::{View, ViewMut};
use crate::compile::{Note, Origin};
use crate::cpu::{Stats, table};
use crate::error::Error;
use crate::layout::Layout;
use crate::plan::{check_host, check_sizes, layout};

/// A program compiled for a GPU. It can be run any number of times.
pub struct CudaProgram {
    pub(super) program: Program,
    pub(super) source: CudaSource,
    pub(super) gpu: Arc<Gpu>,
    /// Contents that the program states, for each buffer that has some.
    pub(super) tables: Vec<Option<AlignedBytes>>,
    options: CudaCompileOptions,
    /// By the width of indices.
    loaded: Mutex<BTreeMap<Width, Arc<Loaded>>>,
}

/// Older ones lack functions that are called here.
const OLDEST_DRIVER: (u32, u32) = (12, 8);

/// Machine code on the device.
pub(super) struct Loaded {
    pub(super) functions: Vec<Function>,
    /// Where the constant arrays are, in the order of the source.
    pub(super) constants: Vec<Option<Place>>,
    /// Held by the run that has filled them.
    pub(super) in_use: Mutex<()>,
    origin: Origin,
    notes: Vec<Note>,
}

impl CudaProgram {
    /// Compiles and loads the source of a program, or finds it in the cache.
    pub fn compile(
        program: Program,
        source: CudaSource,
        gpu: &Arc<Gpu>,
        options: &CudaCompileOptions,
    ) -> Result<CudaProgram, Error> {
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
        let (driver, version) = (gpu.info.driver, nvrtc::version()?);
        let least = OLDEST_DRIVER.max((version.0, 0));
        if driver < least {
            return Err(Error::DriverTooOld {
                driver,
                nvrtc: version,
                least,
            });
        }
        let tables = program.buffers.iter().map(table);
        let tables = tables.collect::<Result<Vec<_>, Error>>()?;
        let made = CudaProgram {
            program,
            source,
            gpu: Arc::clone(gpu),
            tables,
            options: options.clone(),
            loaded: Mutex::default(),
        };
        let fixed: Option<Vec<i128>> = made.program.params.iter().map(|p| p.fixed).collect();
        // Without sizes it is compiled for what is usual.
        let width = fixed.map_or(Width::Narrow, |sizes| needed(&made.program, &sizes));
        made.load(width)?;
        Ok(made)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Was all of it found in the cache?
    pub fn origin(&self) -> Origin {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = loaded.values().any(|l| l.origin == Origin::Compiler);
        if compiled {
            Origin::Compiler
        } else {
            Origin::Cache
        }
    }

    /// What the user may want to know about the compilation.
    pub fn notes(&self) -> Vec<Note> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.values().flat_map(|l| l.notes.clone()).collect()
    }

    /// Registers of a thread and bytes of local memory, for each kernel.
    pub fn resources(&self) -> Result<Vec<(u32, u32)>, Error> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let first = loaded.values().next();
        let functions = first.map_or(&[][..], |l| &l.functions);
        functions.iter().map(Function::resources).collect()
    }

    fn load(&self, width: Width) -> Result<Arc<Loaded>, Error> {
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = all.get(&width) {
            return Ok(Arc::clone(loaded));
        }
        let arch = self.gpu.info.arch();
        let made = compile(&self.source.code, &arch, width, &self.options)?;
        let module = Module::load(self.gpu.context, &made.cubin)?;
        let functions = self
            .source
            .kernels
            .iter()
            .map(|k| module.function(&k.symbol));
        let constants = self.source.constants.iter().map(|(_, s)| module.global(s));
        let loaded = Arc::new(Loaded {
            functions: functions.collect::<Result<_, _>>()?,
            constants: constants.collect::<Result<_, _>>()?,
            in_use: Mutex::new(()),
            origin: made.origin,
            notes: made.notes,
        });
        all.insert(width, Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Runs the program at the given sizes on arrays of the host. Inputs that the program does not state itself, and
    /// all outputs, are given by name.
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

    /// Runs the program on arrays that are on the GPU and stay there.
    pub fn run_on_device(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray)],
        outputs: &mut [(&str, &mut DeviceArray)],
    ) -> Result<Stats, Error> {
        let start = Instant::now();
        let mut stats = self.repeat(sizes, inputs, outputs, 1, &mut Vec::new())?;
        stats.total_seconds = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    /// The same so many times in a row, without waiting on the host in between: the seconds of each run on the GPU.
    pub fn time_on_device(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray)],
        outputs: &mut [(&str, &mut DeviceArray)],
        times: usize,
    ) -> Result<Vec<f64>, Error> {
        let mut seconds = Vec::new();
        self.repeat(sizes, inputs, outputs, times, &mut seconds)?;
        Ok(seconds)
    }

    fn repeat(
        &self,
        sizes: &[i64],
        inputs: &[(&str, &DeviceArray)],
        outputs: &mut [(&str, &mut DeviceArray)],
        times: usize,
        seconds: &mut Vec<f64>,
    ) -> Result<Stats, Error> {
        let run = self.checked(sizes, |layouts| {
            let read = inputs.iter().map(|(name, a)| (*name, a.ty(), a.shape()));
            let written = outputs.iter().map(|(name, a)| (*name, a.ty(), a.shape()));
            let bound = bind_shapes(&self.program, layouts, read, written)?;
            run::check_places(&self.gpu, inputs, outputs)?;
            Ok(bound)
        })?;
        let inputs: Vec<Place> = inputs.iter().map(|(_, a)| a.place()).collect();
        let outputs: Vec<Place> = outputs.iter().map(|(_, a)| a.place()).collect();
        let mut given = Given::Device {
            inputs: &inputs,
            outputs: &outputs,
        };
        run.in_a_row(&mut given, times, seconds)
    }

    /// A run at sizes that suit, of arrays that are bound to the buffers.
    fn checked<'a>(
        &'a self,
        sizes: &'a [i64],
        bind: impl FnOnce(&[Layout]) -> Result<Vec<Bound>, Error>,
    ) -> Result<Run<'a>, Error> {
        let params = check_sizes(&self.program, sizes)?;
        let layouts = self.program.buffers.iter().map(|b| layout(b, &params));
        let layouts = layouts.collect::<Result<Vec<_>, Error>>()?;
        let bound = bind(&layouts)?;
        let width = needed(&self.program, &params);
        Ok(Run {
            owner: self,
            loaded: self.load(width)?,
            width,
            sizes,
            params,
            layouts,
            bound,
        })
    }
}

impl fmt::Debug for CudaProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaProgram({})", self.program.name)
    }
}
