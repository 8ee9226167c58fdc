//! One run of a program: memory, host loops and launches.

use std::time::Instant;

use systola_ir::kernel::{Buffer, BufferKind, Program, RaisedFault};

use crate::aligned::AlignedBytes;
use crate::bind::Bound;
use crate::buffer::{View, ViewMut};
use crate::cpu::{CpuProgram, Stats};
use crate::error::Error;
use crate::layout::Layout;
use crate::library::Arguments;
use crate::literal::{encode, size};
use crate::plan::{blocks, run_host};
use crate::pool::Pool;
use crate::raw::{Address, bytes_of, fill, fill_memory, gather, scatter};
use crate::source::scratch_bytes;

/// The memory of a run, reused by the next.
#[derive(Default)]
pub(crate) struct Workspace {
    /// Memory owned by the run, for each buffer: temporaries, flags and packed arrays.
    buffers: Vec<AlignedBytes>,
    /// Scratch memory of each thread.
    scratch: Vec<AlignedBytes>,
}

/// A run whose sizes and arrays were checked.
pub(crate) struct Run<'a> {
    pub(crate) owner: &'a CpuProgram,
    pub(crate) sizes: &'a [i64],
    /// The sizes as `i128`, for forms.
    pub(crate) params: Vec<i128>,
    /// The layout of each buffer.
    pub(crate) layouts: Vec<Layout>,
    pub(crate) bound: Vec<Bound>,
    pub(crate) threads: usize,
}

impl Run<'_> {
    pub(crate) fn execute(
        &self,
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        workspace: &mut Workspace,
    ) -> Result<Stats, Error> {
        let mut stats = Stats::default();
        let own = &mut workspace.buffers;
        let buffers = self.prepare(inputs, outputs, own, &mut stats)?;
        let start = Instant::now();
        let mut host = Launcher {
            run: self,
            buffers: &buffers,
            scratch: &mut workspace.scratch,
            addresses: Vec::new(),
            stats: &mut stats,
        };
        run_host(&self.owner.program, &self.params, &mut |kernel, args| {
            host.launch(kernel, args)
        })?;
        stats.kernel_seconds = start.elapsed().as_secs_f64();
        self.check_faults(&workspace.buffers)?;
        for (memory, bound) in workspace.buffers.iter().zip(&self.bound) {
            if let Bound::Output(n) = bound
                && !outputs[*n].1.is_dense()
            {
                scatter(memory, &mut outputs[*n].1);
            }
        }
        Ok(stats)
    }

    /// Initialises every buffer before the first launch, and returns the addresses.
    fn prepare(
        &self,
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        own: &mut Vec<AlignedBytes>,
        stats: &mut Stats,
    ) -> Result<Vec<Address>, Error> {
        let program = &self.owner.program;
        own.resize_with(program.buffers.len(), || AlignedBytes::EMPTY);
        let mut addresses = Vec::with_capacity(program.buffers.len());
        for (at, buffer) in program.buffers.iter().enumerate() {
            let bytes = self.layouts[at].len() * size(buffer.ty);
            let memory = &mut own[at];
            let address = match (&buffer.kind, self.bound[at]) {
                (BufferKind::Input { .. }, Bound::Input(n)) => {
                    let view = &inputs[n].1;
                    if view.is_dense() {
                        view.data
                    } else {
                        memory.ensure(bytes, &buffer.name)?;
                        gather(view, memory);
                        stats.packed_bytes += bytes as u64;
                        Address::new(memory.start())
                    }
                }
                (BufferKind::Output { fill: with }, Bound::Output(n)) => {
                    let view = &mut outputs[n].1;
                    let with = with.map(|literal| encode(buffer.ty, literal));
                    if view.is_dense() {
                        if let Some(element) = with {
                            fill(view, element, self.threads);
                        }
                        view.data
                    } else {
                        memory.ensure(bytes, &buffer.name)?;
                        match with {
                            Some(element) => {
                                fill_memory(memory, size(buffer.ty), element, self.threads);
                            }
                            // An element that no launch writes keeps its value, as it does in a
                            // dense array.
                            None => gather(&view.as_view(), memory),
                        }
                        stats.packed_bytes += bytes as u64;
                        Address::new(memory.start_mut())
                    }
                }
                (BufferKind::Temporary, _) => {
                    memory.ensure(bytes, &buffer.name)?;
                    Address::new(memory.start_mut())
                }
                (BufferKind::Flags, _) => {
                    memory.ensure(bytes, &buffer.name)?;
                    fill_memory(memory, 1, [0; 8], self.threads);
                    Address::new(memory.start_mut())
                }
                (BufferKind::Faults { .. }, _) => {
                    // The fault record, which is read after the run.
                    *memory = AlignedBytes::zeroed(bytes, &buffer.name)?;
                    Address::new(memory.start_mut())
                }
                (BufferKind::Input { .. }, Bound::Own | Bound::Output(_)) => {
                    self.table(at, bytes)?
                }
                (BufferKind::Output { .. }, Bound::Own | Bound::Input(_)) => {
                    unreachable!("a missing output was refused")
                }
            };
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// Did an equation have no value at some point?
    fn check_faults(&self, own: &[AlignedBytes]) -> Result<(), Error> {
        let program = &self.owner.program;
        let is_faults = |b: &Buffer| b.kind.fault_sites().is_some();
        let Some(at) = program.buffers.iter().position(is_faults) else {
            return Ok(());
        };
        let length = self.layouts[at].len() * size(program.buffers[at].ty);
        let recorded = bytes_of(&own[at]).get(..length).unwrap_or_default();
        no_fault(program, recorded, &self.params)
    }

    /// The address of the contents of a buffer in the program.
    fn table(&self, at: usize, bytes: usize) -> Result<Address, Error> {
        let Some(table) = &self.owner.tables[at] else {
            unreachable!("a missing input was refused")
        };
        if table.len() != bytes {
            let size = size(self.owner.program.buffers[at].ty);
            return Err(Error::WrongLength {
                shape: self.layouts[at].shape.clone(),
                expected: bytes / size,
                got: table.len() / size,
            });
        }
        Ok(Address::new(table.start()))
    }
}

/// An error if the buffer of faults has recorded one.
pub(crate) fn no_fault(program: &Program, recorded: &[u8], sizes: &[i128]) -> Result<(), Error> {
    let numbers = recorded.chunks_exact(4);
    let numbers = numbers.map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match RaisedFault::read(program, &numbers.collect::<Vec<i32>>(), sizes) {
        Some(raised) => Err(Error::Raised(Box::new(raised))),
        None => Ok(()),
    }
}

/// The common state of the launches of a run.
struct Launcher<'a> {
    run: &'a Run<'a>,
    buffers: &'a [Address],
    scratch: &'a mut Vec<AlignedBytes>,
    /// Addresses of scratch memory in the current launch.
    addresses: Vec<Address>,
    stats: &'a mut Stats,
}

impl Launcher<'_> {
    fn launch(&mut self, kernel: usize, args: &[i64]) -> Result<(), Error> {
        let Run {
            owner,
            params,
            sizes,
            ..
        } = self.run;
        let blocks = blocks(&owner.program.kernels[kernel], params, args)?.count;
        self.stats.launches += 1;
        if blocks == 0 {
            return Ok(());
        }
        self.stats.blocks = self.stats.blocks.saturating_add(blocks.unsigned_abs());
        let most = usize::try_from(blocks).unwrap_or(usize::MAX);
        let threads = self.run.threads.min(most);
        let bytes = scratch_bytes(&owner.scratch[kernel], params)?;
        if self.scratch.len() < threads {
            self.scratch.resize_with(threads, || AlignedBytes::EMPTY);
        }
        self.addresses.clear();
        for memory in &mut self.scratch[..threads] {
            memory.ensure(bytes, "the scratch memory of a thread")?;
            self.addresses.push(Address::new(memory.start_mut()));
        }
        let arguments = Arguments {
            sizes,
            args,
            buffers: self.buffers,
            scratch: &self.addresses,
        };
        owner.kernels[kernel].launch(Pool::global(), blocks, owner.order, &arguments);
        Ok(())
    }
}
