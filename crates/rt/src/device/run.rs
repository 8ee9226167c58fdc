//! One run of a program on a device: memory, host loops and launches.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use systola_ir::kernel::{Buffer, BufferKind};

use super::array::{DeviceArray, download, upload};
use super::driver::{Driver, Launch, LaunchArgument, Queue};
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

/// The maximum number of blocks along x.
const MOST_BLOCKS: i64 = (1 << 31) - 1;

/// The maximum number of rows in a layer of a grid.
const MOST_ROWS: i64 = (1 << 16) - 1;

/// The caller's arrays.
pub(super) enum Given<'a, 'i, 'n, 'o, D: Driver> {
    Host {
        inputs: &'a [(&'i str, View<'i>)],
        outputs: &'a mut [(&'n str, ViewMut<'o>)],
    },
    Device {
        inputs: &'a [D::Location],
        outputs: &'a [D::Location],
    },
}

/// A run whose sizes and arrays were checked.
pub(super) struct Run<'a, D: Driver> {
    pub(super) owner: &'a DeviceProgram<D>,
    pub(super) loaded: Arc<Loaded<D>>,
    pub(super) width: Width,
    pub(super) sizes: &'a [i64],
    /// The sizes as `i128`, for forms.
    pub(super) params: Vec<i128>,
    /// The layout of each buffer.
    pub(super) layouts: Vec<Layout>,
    pub(super) bound: Vec<Bound>,
}

/// All arrays are on this device, and no output shares memory with anything.
pub(super) fn check_locations<D: Driver>(
    gpu: &Arc<Gpu<D>>,
    inputs: &[(&str, &DeviceArray<D>)],
    outputs: &[(&str, &mut DeviceArray<D>)],
) -> Result<(), Error> {
    let read = inputs
        .iter()
        .map(|(name, a)| (*name, a.gpu(), a.location()));
    let written = outputs
        .iter()
        .map(|(name, a)| (*name, a.gpu(), a.location()));
    let all: Vec<_> = read.chain(written).collect();
    for (name, own, _) in &all {
        if !Arc::ptr_eq(own, gpu) {
            let name = (*name).to_string();
            return Err(Error::OtherDevice { name });
        }
    }
    for n in inputs.len()..all.len() {
        let (output, _, location) = all[n];
        if let Some((other, ..)) = all[..n].iter().find(|(_, _, p)| D::overlap(*p, location)) {
            return Err(Error::Aliasing {
                output: output.to_string(),
                other: (*other).to_string(),
            });
        }
    }
    Ok(())
}

/// Memory owned by the run, returned to the pool at its end.
struct Own<'a, D: Driver> {
    gpu: &'a Gpu<D>,
    pieces: Vec<D::Memory>,
}

impl<D: Driver> Own<'_, D> {
    fn location(&mut self, bytes: usize, what: &str) -> Result<D::Location, Error> {
        let memory = self.gpu.allocate(bytes, what)?;
        let location = D::location(&memory);
        self.pieces.push(memory);
        Ok(location)
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
        self.back_to_back(given, 1, &mut Vec::new())
    }

    /// Runs `times` times without waiting in between, and adds the seconds of each. A launch on an
    /// idle GPU starts some microseconds late, which is not part of the kernel's time.
    pub(super) fn back_to_back(
        &self,
        given: &mut Given<'_, '_, '_, '_, D>,
        times: usize,
        seconds: &mut Vec<f64>,
    ) -> Result<Stats, Error> {
        let gpu = &self.owner.gpu;
        // Two runs of one program must not overwrite each other's constant memory.
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
            let locations = self.locations(given, &mut own)?;
            let mut events = Vec::new();
            let mut values = None;
            for _ in 0..times {
                self.fill(given, &locations, queue)?;
                // Inputs do not change between runs.
                let values = match &mut values {
                    Some(values) => values,
                    none => none.insert(self.values(&locations, queue)?),
                };
                let begin = gpu.driver.record_event(queue)?;
                stats = Stats::default();
                let mut host = Launcher {
                    run: self,
                    queue,
                    locations: &locations,
                    values,
                    arguments: Vec::new(),
                    stats: &mut stats,
                };
                run_host(&self.owner.program, &self.params, &mut |kernel, args| {
                    host.launch(kernel, args)
                })?;
                events.push((begin, gpu.driver.record_event(queue)?));
            }
            queue.wait()?;
            for (begin, end) in &events {
                stats.kernel_seconds = gpu.driver.seconds(begin, end)?;
                seconds.push(stats.kernel_seconds);
            }
            self.check_faults(&locations, queue)?;
            if let Given::Host { outputs, .. } = given {
                for (location, bound) in locations.iter().zip(&self.bound) {
                    if let Bound::Output(n) = bound {
                        download(queue, &mut outputs[*n].1, *location)?;
                    }
                }
            }
            Ok(stats)
        })
    }

    /// The location of every buffer.
    fn locations(
        &self,
        given: &Given<'_, '_, '_, '_, D>,
        own: &mut Own<'_, D>,
    ) -> Result<Vec<D::Location>, Error> {
        let mut locations = Vec::new();
        for (at, buffer) in self.owner.program.buffers.iter().enumerate() {
            let bytes = self.layouts[at].len() * size(buffer.ty);
            let location = match (self.bound[at], given) {
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
            locations.push(match location {
                Some(location) => location,
                None => own.location(bytes, &buffer.name)?,
            });
        }
        Ok(locations)
    }

    /// Initialises every buffer before the first launch.
    fn fill(
        &self,
        given: &Given<'_, '_, '_, '_, D>,
        locations: &[D::Location],
        queue: &D::Queue,
    ) -> Result<(), Error> {
        let buffers = self.owner.program.buffers.iter().zip(locations);
        for (at, (buffer, location)) in buffers.enumerate() {
            let (n, size) = (self.layouts[at].len(), size(buffer.ty));
            match (&buffer.kind, self.bound[at], given) {
                (BufferKind::Input { .. }, Bound::Input(k), Given::Host { inputs, .. }) => {
                    upload(queue, *location, &inputs[k].1)?;
                }
                (BufferKind::Input { .. }, Bound::Input(_), Given::Device { .. }) => {
                    if let Some(constant) = self.constant(at) {
                        queue.copy(constant, *location, n * size)?;
                    }
                }
                (BufferKind::Input { .. }, Bound::Own | Bound::Output(_), _) => {
                    self.upload_table(queue, at, *location)?;
                }
                (BufferKind::Output { fill }, Bound::Output(k), _) => match (fill, given) {
                    (Some(literal), _) => {
                        let element = encode(buffer.ty, *literal);
                        queue.fill(*location, size, n, element)?;
                    }
                    // An element that no launch writes keeps its value.
                    (None, Given::Host { outputs, .. }) => {
                        upload(queue, *location, &outputs[k].1.as_view())?;
                    }
                    (None, Given::Device { .. }) => {}
                },
                (BufferKind::Output { .. }, Bound::Own | Bound::Input(_), _) => {
                    unreachable!("a missing output was refused")
                }
                (BufferKind::Temporary, ..) => {}
                (BufferKind::Flags | BufferKind::Faults { .. }, ..) => {
                    queue.fill(*location, 1, n * size, [0; 8])?;
                }
            }
        }
        Ok(())
    }

    /// Did an equation have no value at some point, in the last of the runs?
    fn check_faults(&self, locations: &[D::Location], queue: &D::Queue) -> Result<(), Error> {
        let program = &self.owner.program;
        let is_faults = |b: &Buffer| b.kind.fault_sites().is_some();
        let Some(at) = program.buffers.iter().position(is_faults) else {
            return Ok(());
        };
        let mut recorded = vec![0; self.layouts[at].len() * size(program.buffers[at].ty)];
        queue.download(&mut recorded, locations[at])?;
        no_fault(program, &recorded, &self.params)
    }

    /// The elements of buffers that kernels take by value, read back from the device.
    fn values(
        &self,
        locations: &[D::Location],
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
                queue.download(&mut value, locations[*b])?;
                values.insert(*b, value);
            }
        }
        Ok(values)
    }

    /// The location of a buffer in constant memory, if the compiler kept it.
    fn constant(&self, buffer: usize) -> Option<D::Location> {
        let constants = &self.owner.source.constants;
        let at = constants.iter().position(|(b, _)| *b == buffer)?;
        D::constant(&self.loaded.code, at)
    }

    /// Uploads the contents of a buffer from the program.
    fn upload_table(&self, queue: &D::Queue, at: usize, to: D::Location) -> Result<(), Error> {
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

/// The common state of the launches of a run.
struct Launcher<'a, D: Driver> {
    run: &'a Run<'a, D>,
    queue: &'a D::Queue,
    locations: &'a [D::Location],
    /// Contents of buffers that are passed by value.
    values: &'a BTreeMap<usize, Vec<u8>>,
    /// Arguments of the current launch.
    arguments: Vec<LaunchArgument<'a, D::Location>>,
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
        self.arguments.clear();
        for argument in &kernel.arguments {
            self.arguments.push(match argument {
                KernelArgument::Buffer(b) => LaunchArgument::Buffer(self.locations[*b]),
                KernelArgument::Value(b) => LaunchArgument::Value(&self.values[b]),
                KernelArgument::Size(n) => LaunchArgument::Index(run.sizes[*n]),
                KernelArgument::Host(n) => LaunchArgument::Index(args[*n]),
                KernelArgument::Shared => LaunchArgument::Shared(dynamic),
            });
        }
        // Rows are numbered across layers of `MOST_ROWS`.
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
            arguments: &self.arguments,
        };
        let driver = &run.owner.gpu.driver;
        driver.launch(self.queue, &run.loaded.code, &launch)
    }
}
