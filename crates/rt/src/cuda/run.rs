//! One run of a program on a GPU: memory, host loops and launches.

use std::sync::{Arc, PoisonError};

use systola_ir::kernel::BufferKind;

use super::device::Gpu;
use super::device_array::{DeviceArray, download, upload};
use super::driver::{Event, Memory, Place, Stream};
use super::program::{CudaProgram, Loaded};
use super::source::CudaArgument;
use super::width::Width;
use crate::bind::Bound;
use crate::buffer::{View, ViewMut};
use crate::cpu::Stats;
use crate::error::Error;
use crate::layout::Layout;
use crate::literal::{encode, size};
use crate::plan::{blocks, run_host};
use crate::raw::bytes_of;

/// What every kernel may have of shared memory without asking for more.
const USUAL_SHARED: u64 = 48 << 10;

/// Blocks along x.
const MOST_BLOCKS: i64 = (1 << 31) - 1;

/// Of a layer of a grid.
const MOST_ROWS: i64 = (1 << 16) - 1;

/// The caller's arrays.
pub(super) enum Given<'a, 'i, 'n, 'o> {
    Host {
        inputs: &'a [(&'i str, View<'i>)],
        outputs: &'a mut [(&'n str, ViewMut<'o>)],
    },
    Device {
        inputs: &'a [Place],
        outputs: &'a [Place],
    },
}

/// A run whose sizes and arrays were checked.
pub(super) struct Run<'a> {
    pub(super) owner: &'a CudaProgram,
    pub(super) loaded: Arc<Loaded>,
    pub(super) width: Width,
    pub(super) sizes: &'a [i64],
    /// The same, for forms.
    pub(super) params: Vec<i128>,
    /// Of each buffer.
    pub(super) layouts: Vec<Layout>,
    pub(super) bound: Vec<Bound>,
}

/// All arrays are on this device, and no output shares memory with anything.
pub(super) fn check_places(
    gpu: &Arc<Gpu>,
    inputs: &[(&str, &DeviceArray)],
    outputs: &[(&str, &mut DeviceArray)],
) -> Result<(), Error> {
    let read = inputs.iter().map(|(name, a)| (*name, a.gpu(), a.place()));
    let written = outputs.iter().map(|(name, a)| (*name, a.gpu(), a.place()));
    let all: Vec<_> = read.chain(written).collect();
    for (name, own, _) in &all {
        if !Arc::ptr_eq(own, gpu) {
            let name = (*name).to_string();
            return Err(Error::OtherDevice { name });
        }
    }
    for n in inputs.len()..all.len() {
        let (output, _, place) = all[n];
        if let Some((other, ..)) = all[..n].iter().find(|(_, _, p)| p.overlaps(place)) {
            return Err(Error::Aliasing {
                output: output.to_string(),
                other: (*other).to_string(),
            });
        }
    }
    Ok(())
}

/// Memory of the run's own, given back to the pool at its end.
struct Own<'a> {
    gpu: &'a Gpu,
    pieces: Vec<Memory>,
}

impl Own<'_> {
    fn place(&mut self, bytes: usize, what: &str) -> Result<Place, Error> {
        let memory = self.gpu.allocate(bytes, what)?;
        let place = memory.place();
        self.pieces.push(memory);
        Ok(place)
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        for memory in self.pieces.drain(..) {
            self.gpu.give_back(memory);
        }
    }
}

impl Run<'_> {
    pub(super) fn execute(&self, given: &mut Given<'_, '_, '_, '_>) -> Result<Stats, Error> {
        self.in_a_row(given, 1, &mut Vec::new())
    }

    /// So many runs one after the other, without waiting for one before the next is asked for; adds the seconds of each.
    /// A GPU that has nothing to do when a launch is asked for begins some microseconds late, and that is no part of
    /// the kernel's time.
    pub(super) fn in_a_row(
        &self,
        given: &mut Given<'_, '_, '_, '_>,
        times: usize,
        seconds: &mut Vec<f64>,
    ) -> Result<Stats, Error> {
        let gpu = &self.owner.gpu;
        // Two runs of one program must not fill the constant memory for each other.
        let _alone = (!self.owner.source.constants.is_empty()).then(|| {
            self.loaded
                .in_use
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        });
        let mut own = Own {
            gpu,
            pieces: Vec::new(),
        };
        gpu.with_stream(|stream| {
            let mut stats = Stats::default();
            let places = self.places(given, &mut own)?;
            let mut events = Vec::new();
            for _ in 0..times {
                self.fill(given, &places, stream)?;
                let (begin, end) = (Event::new(gpu.context)?, Event::new(gpu.context)?);
                begin.record(stream)?;
                stats = Stats::default();
                let mut host = Launcher {
                    run: self,
                    stream,
                    places: &places,
                    words: Vec::new(),
                    stats: &mut stats,
                };
                run_host(&self.owner.program, &self.params, &mut |kernel, args| {
                    host.launch(kernel, args)
                })?;
                end.record(stream)?;
                events.push((begin, end));
            }
            stream.wait()?;
            for (begin, end) in &events {
                stats.kernel_seconds = end.since(begin)?;
                seconds.push(stats.kernel_seconds);
            }
            if let Given::Host { outputs, .. } = given {
                for (place, bound) in places.iter().zip(&self.bound) {
                    if let Bound::Output(n) = bound {
                        download(stream, &mut outputs[*n].1, *place)?;
                    }
                }
            }
            Ok(stats)
        })
    }

    /// Where every buffer is.
    fn places(
        &self,
        given: &Given<'_, '_, '_, '_>,
        own: &mut Own<'_>,
    ) -> Result<Vec<Place>, Error> {
        let mut places = Vec::new();
        for (at, buffer) in self.owner.program.buffers.iter().enumerate() {
            let bytes = self.layouts[at].len() * size(buffer.ty);
            let place = match (self.bound[at], given) {
                (Bound::Input(k), Given::Device { inputs, .. }) => Some(inputs[k]),
                (Bound::Output(k), Given::Device { outputs, .. }) => Some(outputs[k]),
                (Bound::Input(_) | Bound::Own, _) => match buffer.kind {
                    BufferKind::Input { .. } => self.constant(at),
                    BufferKind::Output { .. } | BufferKind::Temporary | BufferKind::Flags => None,
                },
                (Bound::Output(_), Given::Host { .. }) => None,
            };
            places.push(match place {
                Some(place) => place,
                None => own.place(bytes, &buffer.name)?,
            });
        }
        Ok(places)
    }

    /// Makes every buffer what it is before the first launch.
    fn fill(
        &self,
        given: &Given<'_, '_, '_, '_>,
        places: &[Place],
        stream: &Stream,
    ) -> Result<(), Error> {
        let buffers = self.owner.program.buffers.iter().zip(places);
        for (at, (buffer, place)) in buffers.enumerate() {
            let (n, size) = (self.layouts[at].len(), size(buffer.ty));
            match (&buffer.kind, self.bound[at], given) {
                (BufferKind::Input { .. }, Bound::Input(k), Given::Host { inputs, .. }) => {
                    upload(stream, *place, &inputs[k].1)?;
                }
                (BufferKind::Input { .. }, Bound::Input(_), Given::Device { .. }) => {
                    if let Some(constant) = self.constant(at) {
                        stream.copy(constant, *place, n * size)?;
                    }
                }
                (BufferKind::Input { .. }, Bound::Own | Bound::Output(_), _) => {
                    self.upload_table(stream, at, *place)?;
                }
                (BufferKind::Output { fill }, Bound::Output(k), _) => match (fill, given) {
                    (Some(literal), _) => {
                        stream.fill(*place, size, n, encode(buffer.ty, *literal))?;
                    }
                    // An element that no launch writes keeps its value.
                    (None, Given::Host { outputs, .. }) => {
                        upload(stream, *place, &outputs[k].1.as_view())?;
                    }
                    (None, Given::Device { .. }) => {}
                },
                (BufferKind::Output { .. }, Bound::Own | Bound::Input(_), _) => {
                    unreachable!("a missing output was refused")
                }
                (BufferKind::Temporary, ..) => {}
                (BufferKind::Flags, ..) => stream.fill(*place, 1, n * size, [0; 8])?,
            }
        }
        Ok(())
    }

    /// Where a buffer lies in constant memory, if the compiler left it there.
    fn constant(&self, buffer: usize) -> Option<Place> {
        let constants = &self.owner.source.constants;
        let at = constants.iter().position(|(b, _)| *b == buffer)?;
        self.loaded.constants[at]
    }

    /// The contents that the program states for a buffer.
    fn upload_table(&self, stream: &Stream, at: usize, to: Place) -> Result<(), Error> {
        let Some(table) = &self.owner.tables[at] else {
            unreachable!("a missing input was refused")
        };
        let size = size(self.owner.program.buffers[at].ty);
        if table.len() != self.layouts[at].len() * size {
            return Err(Error::WrongLength {
                shape: self.layouts[at].shape.clone(),
                expected: self.layouts[at].len(),
                got: table.len() / size,
            });
        }
        stream.upload(to, bytes_of(table))
    }
}

/// What launches of a run have in common.
struct Launcher<'a> {
    run: &'a Run<'a>,
    stream: &'a Stream,
    places: &'a [Place],
    /// Arguments of the current launch.
    words: Vec<u64>,
    stats: &'a mut Stats,
}

impl Launcher<'_> {
    fn launch(&mut self, at: usize, args: &[i64]) -> Result<(), Error> {
        let run = self.run;
        let program = &run.owner.program;
        let grid = blocks(&program.kernels[at], &run.params, args)?;
        let blocks = grid.count;
        self.stats.launches += 1;
        if blocks == 0 {
            return Ok(());
        }
        let name = &program.kernels[at].name;
        if blocks > MOST_BLOCKS {
            let what = format!("the grid of `{name}`, {blocks} blocks for at most {MOST_BLOCKS},");
            return Err(Error::overflow(what));
        }
        self.stats.blocks = self.stats.blocks.saturating_add(blocks.unsigned_abs());
        let kernel = &run.owner.source.kernels[at];
        let function = &run.loaded.functions[at];
        let dynamic = kernel.dynamic_bytes(&run.params)?;
        let wanted = dynamic.saturating_add(kernel.static_shared);
        let most = run.owner.gpu.info.shared_per_block;
        if wanted > most {
            return Err(Error::SharedMemory {
                kernel: name.clone(),
                wanted,
                most,
            });
        }
        if wanted > USUAL_SHARED {
            function.allow_shared(dynamic)?;
        }
        self.words.clear();
        for argument in &kernel.arguments {
            self.words.push(match argument {
                CudaArgument::Buffer(b) => self.places[*b].start(),
                CudaArgument::Size(n) => run.width.encode(run.sizes[*n]),
                CudaArgument::Host(n) => run.width.encode(args[*n]),
            });
        }
        // Rows are numbered through layers of so many.
        let (x, rows) = grid.split_last();
        let y = rows.min(MOST_ROWS);
        let z = (rows + y - 1) / y;
        self.stream.launch(
            function,
            [x as u32, y as u32, z as u32],
            kernel.threads,
            dynamic as u32,
            &self.words,
        )
    }
}
