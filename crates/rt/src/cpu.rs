//! A program that runs on the CPU of this machine.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use systola_ir::kernel::bounds::{WIDE, largest};
use systola_ir::kernel::{Buffer, BufferKind, Program};

use crate::aligned::AlignedBytes;
use crate::bind::bind;
use crate::buffer::{View, ViewMut};
use crate::compile::{CompileOptions, Note, Origin, load};
use crate::error::Error;
use crate::library::Kernel;
use crate::literal::{encode, size};
use crate::per_sizes::PerSizes;
use crate::plan::{check_sizes, check_source, layout};
use crate::pool::{MOST_THREADS, Order, available_threads};
use crate::raw::bytes_of_mut;
use crate::run::{Run, Workspace};
use crate::source::{ScratchPart, Source};
use crate::timing::{Repeats, Timing, measure_reported};

/// A compiled program. It can be run any number of times, also from several threads at once.
pub struct CpuProgram {
    pub(crate) program: Program,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) scratch: Vec<Vec<ScratchPart>>,
    /// Contents in the program, for each buffer that has some.
    pub(crate) tables: Vec<Option<AlignedBytes>>,
    pub(crate) order: Order,
    origin: Origin,
    notes: Vec<Note>,
    /// Sizes at which all index arithmetic fits.
    fitting: PerSizes<()>,
    /// Memory of earlier runs: fresh pages cost more time than many kernels.
    spare: Mutex<Vec<Workspace>>,
}

/// Options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// 0: one for each CPU that this process may use. At most 1024.
    pub threads: usize,
}

/// The cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Seconds from the first launch to the end of the last.
    pub kernel_seconds: f64,
    /// Seconds including checks, allocation, filling and packing.
    pub total_seconds: f64,
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Bytes copied because an array was not dense.
    pub packed_bytes: u64,
}

impl CpuProgram {
    /// Compiles and loads the source of a program, or finds it in the cache.
    pub fn compile(
        program: Program,
        source: Source,
        options: &CompileOptions,
    ) -> Result<CpuProgram, Error> {
        check_source(&program, &source)?;
        let tables = program.buffers.iter().map(table);
        let tables = tables.collect::<Result<Vec<_>, Error>>()?;
        let loaded = load(&source, options)?;
        let kernels = source.symbols.iter().map(|s| loaded.library.kernel(s));
        let kernels = kernels.collect::<Result<Vec<_>, Error>>()?;
        let flagged = |buffer: &Buffer| matches!(buffer.kind, BufferKind::Flags);
        let order = if program.buffers.iter().any(flagged) {
            Order::Increasing
        } else {
            Order::Chunks
        };
        Ok(CpuProgram {
            program,
            kernels,
            scratch: source.scratch,
            tables,
            order,
            origin: loaded.origin,
            notes: loaded.notes,
            fitting: PerSizes::default(),
            spare: Mutex::default(),
        })
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Was the code compiled or cached?
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Notes for the user about the compilation.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Frees the memory kept for later runs.
    pub fn release_memory(&self) {
        self.spare().clear();
    }

    /// Runs the program at the given sizes. Inputs without contents in the program, and all
    /// outputs, are given by name.
    pub fn run(
        &self,
        sizes: &[i64],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        options: &RunOptions,
    ) -> Result<Stats, Error> {
        let start = Instant::now();
        let params = check_sizes(&self.program, sizes)?;
        self.fitting.get(&params, || {
            let largest = largest(&self.program, &params, WIDE);
            let fits = largest.map(|_| ());
            fits.map_err(|excess| Error::index_too_large(&self.program, &params, excess))
        })?;
        let layouts = self.program.buffers.iter().map(|b| layout(b, &params));
        let layouts = layouts.collect::<Result<Vec<_>, Error>>()?;
        let bound = bind(&self.program, &layouts, inputs, outputs)?;
        let threads = match options.threads {
            0 => available_threads(),
            n => n.min(MOST_THREADS),
        };
        let run = Run {
            owner: self,
            sizes,
            params,
            layouts,
            bound,
            threads,
        };
        let mut workspace = self.spare().pop().unwrap_or_default();
        let result = run.execute(inputs, outputs, &mut workspace);
        self.spare().push(workspace);
        let mut stats = result?;
        stats.total_seconds = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    /// The same several times; the seconds of each run in the kernels.
    pub fn time(
        &self,
        sizes: &[i64],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        options: &RunOptions,
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        measure_reported(repeats, || {
            let stats = self.run(sizes, inputs, outputs, options)?;
            Ok(stats.kernel_seconds)
        })
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CpuProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuProgram({})", self.program.name)
    }
}

/// The contents of an input in the program.
pub(crate) fn table(buffer: &Buffer) -> Result<Option<AlignedBytes>, Error> {
    let data = match &buffer.kind {
        BufferKind::Input { data: Some(data) } => data,
        BufferKind::Input { data: None }
        | BufferKind::Output { .. }
        | BufferKind::Temporary
        | BufferKind::Flags
        | BufferKind::Faults { .. } => return Ok(None),
    };
    let size = size(buffer.ty);
    let mut memory = AlignedBytes::zeroed(data.len() * size, &buffer.name)?;
    let elements = bytes_of_mut(&mut memory).chunks_exact_mut(size);
    for (to, literal) in elements.zip(data) {
        to.copy_from_slice(&encode(buffer.ty, *literal)[..size]);
    }
    Ok(Some(memory))
}
