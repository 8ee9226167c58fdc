//! Sums that look back over the blocks of a launch: where each block publishes its part.
//!
//! A chain has an element for each of its parts: for each launch, for each coordinate that
//! distinguishes the chains, and for each block along the chain. The registers and lanes of a warp
//! that have chains of their own come last: a warp looks back along all of its chains together, and
//! so publishes and reads adjacent elements.
//!
//! Blocks begin in an order in which a chain goes to larger numbers ([`waits`]), so a block waits
//! only for what running or finished blocks publish.
//!
//! [`waits`]: crate::storage::waits

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Access, Buffer, BufferKind, LookBack, Memory, Program, Shared};
use systola_ir::system::Axis;
use systola_ir::{BufferId, Scalar, VarId};

use crate::facts::Range;
use crate::failure::Failure;
use crate::split_sums::look_back::{SplitChain, refusal};
use crate::storage::chains::Joins;
use crate::storage::partition::{Partition, Pes};
use crate::storage::queues::scalars;
use crate::storage::slots::Slots;
use crate::storage::waits::Flags;
use crate::storage::warp_totals::{Ends, Exchange};

/// A chain with its buffer.
#[derive(Clone, Debug)]
pub struct PublishedChain {
    /// The cell with the parts.
    pub part: VarId,
    pub joins: Joins,
    pub up: bool,
    buffer: BufferId,
    /// Coordinates of the slots, with the start of their ranges.
    axes: Vec<(usize, Form)>,
    /// The axis along which the blocks follow each other.
    pub axis: usize,
    /// Conditions on the coordinates of a slot at which parts are complete.
    when: Vec<(usize, Form)>,
    pub ends: Ends,
    /// Where the warp that looks back leaves what it finds for the others; `None` if each warp has
    /// chains of its own.
    pub handed: Option<Exchange>,
}

impl PublishedChain {
    pub fn declare(
        array: &Array,
        slots: &Slots,
        partition: &Partition,
        flags: Option<&Flags>,
        chain: &SplitChain,
        program: &mut Program,
        shared: &mut Vec<Shared>,
    ) -> Result<PublishedChain, Failure> {
        let refused = |why| Err(refusal(array, chain.whole, why));
        let Pes::Known { .. } = partition.walk else {
            return refused(
                "a block has too many PEs for registers, or their number is not constant",
            );
        };
        // Every block must come to the same parts of its chains.
        let own = |k: &usize| {
            let ends = slots.ranges[*k].lo.iter().chain(&slots.ranges[*k].hi);
            ends.into_iter().any(|form| !form.dims().is_empty())
        };
        if partition.steps.iter().any(own) {
            return refused("its blocks run different steps");
        }
        let Some(((along, ..), others)) = chain.axes.split_last() else {
            unreachable!("a chain has the axis of its blocks")
        };
        let block = flags.and_then(|flags| flags.order.iter().find(|o| o.k == *along));
        let Some(block) = block else {
            unreachable!("blocks begin in the order of their chains")
        };
        let is_lane = |k: usize| Some(k) == partition.vector;
        let launches = partition.launches.iter().map(|k| {
            let Range { lo, hi } = &slots.ranges[*k];
            (*k, lo[0].clone(), hi[0].sub(&lo[0]))
        });
        let in_warp = |k: usize| partition.pes.contains(&k);
        let select = |is: &dyn Fn(usize) -> bool| -> Vec<_> {
            let own = others.iter().filter(|(k, ..)| is(*k));
            own.cloned().collect()
        };
        let before: Vec<_> = launches.chain(select(&|k| !in_warp(k))).collect();
        let axis = before.len();
        let blocks = (*along, block.lo.clone(), block.extent());
        let registers = select(&|k| in_warp(k) && !is_lane(k));
        let axes: Vec<_> = before
            .into_iter()
            .chain([blocks])
            .chain(registers)
            .chain(select(&is_lane))
            .collect();
        let Some(ends) = Ends::of(chain, partition) else {
            return refused("the PE that ends its parts depends on the sizes");
        };
        let one_warp = |k: usize| partition.warps.has(k) && chain.end(k).is_some();
        let handed = partition.warps.coordinates().any(one_warp).then(|| {
            let name = format!("{}_before", array.cells[chain.whole.index()].name);
            Exchange::declare(array, chain.part, &name, &ends, slots, partition, 1, shared)
        });
        let is_pe = |k: &usize| partition.pes.contains(k);
        let when = chain.fixed.iter().filter(|(k, _)| {
            let one = slots.ranges[*k]
                .constant()
                .is_some_and(|(lo, hi)| hi - lo <= 1);
            !is_pe(k) && !partition.launches.contains(k) && !one
        });
        Ok(PublishedChain {
            part: chain.part,
            joins: chain.joins,
            up: chain.up,
            buffer: buffer(array, chain.part, &axes, program),
            axes: axes.into_iter().map(|(k, start, _)| (k, start)).collect(),
            axis,
            when: when.cloned().collect(),
            ends,
            handed,
        })
    }

    /// Where the part that is complete at a slot is published.
    pub fn at(&self, slot: &[Form], slots: &Slots) -> Access {
        let own = self.when.iter();
        let when = own.map(|(k, at)| Cond::cmp(Rel::Eq, slot[*k].clone(), at.clone()));
        let inside = self.axes.iter();
        let inside = inside.map(|(k, _)| slots.ranges[*k].holds(&slot[*k]));
        let index = self.axes.iter().map(|(k, start)| slot[*k].sub(start));
        Access {
            memory: Memory::Global(self.buffer),
            index: index.chain([Form::zero()]).collect(),
            when: when.chain(inside).fold(Cond::TRUE, Cond::and),
        }
    }
}

fn buffer(
    array: &Array,
    part: VarId,
    axes: &[(usize, Form, Form)],
    program: &mut Program,
) -> BufferId {
    let cell = &array.cells[part.index()];
    let words = Form::from(i128::from(LookBack::words(scalars(&cell.ty))));
    let extents = axes.iter().map(|(.., extent)| extent.clone());
    let axes = extents.chain([words]).map(|hi| Axis {
        lo: Form::zero(),
        hi,
    });
    program.buffers.push(Buffer {
        name: Buffer::unused_name(&format!("{}_chain", cell.name), &program.buffers),
        ty: Scalar::U64,
        kind: BufferKind::Flags,
        axes: axes.collect(),
    });
    BufferId::from(program.buffers.len() - 1)
}
