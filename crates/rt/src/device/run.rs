//! One run of a program on a device: memory, host loops and launches.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use systola_ir::kernel::{Buffer, BufferKind};

use super::array::{DeviceArray, download, upload};
use super::driver::{Driver, Launch, Queue, Word};
use super::gpu::Gpu;
use super::program::{DeviceProgram, Loaded};
use super::source::KernelArgument;
use super::width::Width;
use crate::bind::Bound;
use crate::buffer::{View, ViewMut};
use crate::cpu::Stats;
use crate::error::Error;
use crate::layout::Layout;
use crate::literal::{encode, size};
use crate::plan::{blocks, run_host};
use crate::raw::bytes_of;
use crate::run::no_fault;

/// Blocks along x.
const MOST_BLOCKS: i64 = (1 << 31) - 1;

/// Of a layer of a grid.
const MOST_ROWS: i64 = (1 << 16) - 1;

/// The caller's arrays.
pub(super) enum Given<'a, 'i, 'n, 'o, D: Driver> {
    Host {
        inputs: &'a [(&'i str, View<'i>)],
        outputs: &'a mut [(&'n str, ViewMut<'o>)],
    },
    Device {
        inputs: &'a [D::Place],
        outputs: &'a [D::Place],
    },
}

/// A run whose sizes and arrays were checked.
pub(super) struct Run<'a, D: Driver> {
    pub(super) owner: &'a DeviceProgram<D>,
    pub(super) loaded: Arc<Loaded<D>>,
    pub(super) width: Width,
    pub(super) sizes: &'a [i64],
    /// The same, for forms.
    pub(super) params: Vec<i128>,
    /// Of each buffer.
    pub(super) layouts: Vec<Layout>,
    pub(super) bound: Vec<Bound>,
}

/// All arrays are on this device, and no output shares memory with anything.
pub(super) fn check_places<D: Driver>(
    gpu: &Arc<Gpu<D>>,
    inputs: &[(&str, &DeviceArray<D>)],
    outputs: &[(&str, &mut DeviceArray<D>)],
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
        if let Some((other, ..)) = all[..n].iter().find(|(_, _, p)| D::overlap(*p, place)) {
            return Err(Error::Aliasing {
                output: output.to_string(),
                other: (*other).to_string(),
            });
        }
    }
    Ok(())
}

/// Memory of the run's own, given back to the pool at its end.
struct Own<'a, D: Driver> {
    gpu: &'a Gpu<D>,
    pieces: Vec<D::Memory>,
}

impl<D: Driver> Own<'_, D> {
    fn place(&mut self, bytes: usize, what: &str) -> Result<D::Place, Error> {
        let memory = self.gpu.allocate(bytes, what)?;
        let place = D::place(&memory);
        self.pieces.push(memory);
        Ok(place)
    }
}

impl<D: Driver> Drop for Own<'_, D> {
    fn drop(&mut self) {
        for memory in self.pieces.drain(..) {
            self.gpu.give_back(memory);
        }
    }
}

impl<D: Driver> Run<'_, D> {
    pub(super) fn execute(&self, given: &mut Given<'_, '_, '_, '_, D>) -> Result<Stats, Error> {
        self.in_a_row(given, 1, &mut Vec::new())
    }

    /// So many runs one after the other, without waiting for one before the next is asked for; adds the seconds of each.
    /// A GPU that has nothing to do when a launch is asked for begins some microseconds late, and that is no part of
    /// the kernel's time.
    pub(super) fn in_a_row(
        &self,
        given: &mut Given<'_, '_, '_, '_, D>,
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
        gpu.with_queue(|queue| {
            let mut stats = Stats::default();
            let places = self.places(given, &mut own)?;
            let mut moments = Vec::new();
            let mut values = None;
            for _ in 0..times {
                self.fill(given, &places, queue)?;
                // Inputs stay what they are from run to run.
                let values = match &mut values {
                    Some(values) => values,
                    none => none.insert(self.values(&places, queue)?),
                };
                let begin = gpu.driver.moment(queue)?;
                stats = Stats::default();
                let mut host = Launcher {
                    run: self,
                    queue,
                    places: &places,
                    values,
                    words: Vec::new(),
                    stats: &mut stats,
                };
                run_host(&self.owner.program, &self.params, &mut |kernel, args| {
                    host.launch(kernel, args)
                })?;
                moments.push((begin, gpu.driver.moment(queue)?));
            }
            queue.wait()?;
            for (begin, end) in &moments {
                stats.kernel_seconds = gpu.driver.seconds(begin, end)?;
                seconds.push(stats.kernel_seconds);
            }
            self.check_faults(&places, queue)?;
            if let Given::Host { outputs, .. } = given {
                for (place, bound) in places.iter().zip(&self.bound) {
                    if let Bound::Output(n) = bound {
                        download(queue, &mut outputs[*n].1, *place)?;
                    }
                }
            }
            Ok(stats)
        })
    }

    /// Where every buffer is.
    fn places(
        &self,
        given: &Given<'_, '_, '_, '_, D>,
        own: &mut Own<'_, D>,
    ) -> Result<Vec<D::Place>, Error> {
        let mut places = Vec::new();
        for (at, buffer) in self.owner.program.buffers.iter().enumerate() {
            let bytes = self.layouts[at].len() * size(buffer.ty);
            let place = match (self.bound[at], given) {
                (Bound::Input(k), Given::Device { inputs, .. }) => Some(inputs[k]),
                (Bound::Output(k), Given::Device { outputs, .. }) => Some(outputs[k]),
                (Bound::Input(_) | Bound::Own, _) => match buffer.kind {
                    BufferKind::Input { .. } => self.constant(at),
                    BufferKind::Output { .. }
                    | BufferKind::Temporary
                    | BufferKind::Flags
                    | BufferKind::Faults { .. } => None,
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
        given: &Given<'_, '_, '_, '_, D>,
        places: &[D::Place],
        queue: &D::Queue,
    ) -> Result<(), Error> {
        let buffers = self.owner.program.buffers.iter().zip(places);
        for (at, (buffer, place)) in buffers.enumerate() {
            let (n, size) = (self.layouts[at].len(), size(buffer.ty));
            match (&buffer.kind, self.bound[at], given) {
                (BufferKind::Input { .. }, Bound::Input(k), Given::Host { inputs, .. }) => {
                    upload(queue, *place, &inputs[k].1)?;
                }
                (BufferKind::Input { .. }, Bound::Input(_), Given::Device { .. }) => {
                    if let Some(constant) = self.constant(at) {
                        queue.copy(constant, *place, n * size)?;
                    }
                }
                (BufferKind::Input { .. }, Bound::Own | Bound::Output(_), _) => {
                    self.upload_table(queue, at, *place)?;
                }
                (BufferKind::Output { fill }, Bound::Output(k), _) => match (fill, given) {
                    (Some(literal), _) => {
                        let element = encode(buffer.ty, *literal);
                        queue.fill(*place, size, n, element)?;
                    }
                    // An element that no launch writes keeps its value.
                    (None, Given::Host { outputs, .. }) => {
                        upload(queue, *place, &outputs[k].1.as_view())?;
                    }
                    (None, Given::Device { .. }) => {}
                },
                (BufferKind::Output { .. }, Bound::Own | Bound::Input(_), _) => {
                    unreachable!("a missing output was refused")
                }
                (BufferKind::Temporary, ..) => {}
                (BufferKind::Flags | BufferKind::Faults { .. }, ..) => {
                    queue.fill(*place, 1, n * size, [0; 8])?;
                }
            }
        }
        Ok(())
    }

    /// Did an equation have no value at some point, in the last of the runs?
    fn check_faults(&self, places: &[D::Place], queue: &D::Queue) -> Result<(), Error> {
        let program = &self.owner.program;
        let is_faults = |b: &Buffer| b.kind.fault_sites().is_some();
        let Some(at) = program.buffers.iter().position(is_faults) else {
            return Ok(());
        };
        let mut recorded = vec![0; self.layouts[at].len() * size(program.buffers[at].ty)];
        queue.download(&mut recorded, places[at])?;
        no_fault(program, &recorded, &self.params)
    }

    /// The elements of buffers that kernels take by value, read back from where they lie.
    fn values(
        &self,
        places: &[D::Place],
        queue: &D::Queue,
    ) -> Result<BTreeMap<usize, Vec<u8>>, Error> {
        let kernels = self.owner.source.kernels.iter();
        let taken = kernels.flat_map(|kernel| &kernel.arguments);
        let mut values = BTreeMap::new();
        for argument in taken {
            if let KernelArgument::Value(b) = argument
                && !values.contains_key(b)
            {
                let bytes = self.layouts[*b].len() * size(self.owner.program.buffers[*b].ty);
                let mut value = vec![0; bytes];
                queue.download(&mut value, places[*b])?;
                values.insert(*b, value);
            }
        }
        Ok(values)
    }

    /// Where a buffer lies in constant memory, if the compiler left it there.
    fn constant(&self, buffer: usize) -> Option<D::Place> {
        let constants = &self.owner.source.constants;
        let at = constants.iter().position(|(b, _)| *b == buffer)?;
        D::constant(&self.loaded.code, at)
    }

    /// The contents that the program states for a buffer.
    fn upload_table(&self, queue: &D::Queue, at: usize, to: D::Place) -> Result<(), Error> {
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
        queue.upload(to, bytes_of(table))
    }
}

/// What launches of a run have in common.
struct Launcher<'a, D: Driver> {
    run: &'a Run<'a, D>,
    queue: &'a D::Queue,
    places: &'a [D::Place],
    /// Of buffers that are taken by value.
    values: &'a BTreeMap<usize, Vec<u8>>,
    /// Arguments of the current launch.
    words: Vec<Word<'a, D::Place>>,
    stats: &'a mut Stats,
}

impl<D: Driver> Launcher<'_, D> {
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
        let dynamic = kernel.dynamic_bytes(&run.params)?;
        let wanted = dynamic.saturating_add(kernel.static_shared);
        let most = run.owner.gpu.driver.shared_per_block();
        if wanted > most {
            return Err(Error::SharedMemory {
                kernel: name.clone(),
                wanted,
                most,
            });
        }
        self.words.clear();
        for argument in &kernel.arguments {
            self.words.push(match argument {
                KernelArgument::Buffer(b) => Word::Place(self.places[*b]),
                KernelArgument::Value(b) => Word::Value(&self.values[b]),
                KernelArgument::Size(n) => Word::Index(run.sizes[*n]),
                KernelArgument::Host(n) => Word::Index(args[*n]),
                KernelArgument::Shared => Word::Shared(dynamic),
            });
        }
        // Rows are numbered through layers of so many.
        let (x, rows) = grid.split_last();
        let y = rows.min(MOST_ROWS);
        let z = (rows + y - 1) / y;
        let launch = Launch {
            kernel: at,
            grid: [x as u32, y as u32, z as u32],
            threads: kernel.threads,
            dynamic_shared: dynamic,
            static_shared: kernel.static_shared,
            width: run.width,
            arguments: &self.words,
        };
        let driver = &run.owner.gpu.driver;
        driver.launch(self.queue, &run.loaded.code, &launch)
    }
}
