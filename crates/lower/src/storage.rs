//! Decides what lives where: how places and times become lanes, warps, blocks and loops, and where
//! values are stored until they are read.
//!
//! An array says which PE makes a value and which takes it. This module decides how the coordinates
//! of its slots run on a machine ([`partition`]). For every value that is not used at once it
//! chooses the storage: registers or shared memory of its block ([`queues`]), or global memory for
//! [later launches](launches) or other blocks, which [wait](inter_block) for it or
//! [look back](look_back). Warps [exchange](warp_totals) their parts of a sum through shared memory.
//! It also decides which windows of
//! inputs are loaded into shared memory ([`windows`]). Nothing here emits a statement.

use systola_ir::array::Array;
use systola_ir::kernel::Program;
use systola_ir::target::Machine;

use crate::decide::Decide;
use crate::failure::Failure;
use crate::split_sums::look_back::SplitChain;
use crate::storage::inter_block::InterBlock;
use crate::storage::launches::Launches;
use crate::storage::look_back::PublishedChain;
use crate::storage::partition::Partition;
use crate::storage::shared_memory::SharedMemory;
use crate::storage::slots::Slots;
use crate::storage::stored_values::StoredValues;
use crate::storage::waits::Flags;
use crate::storage::warp_totals::WarpTotals;

pub mod chains;
pub mod circular;
pub mod inter_block;
pub mod launches;
pub mod links;
pub mod look_back;
pub mod packing;
pub mod partition;
pub mod place;
pub mod queues;
pub mod shared_memory;
pub mod slots;
pub mod stages;
pub mod staging;
pub mod stored_values;
pub mod waits;
pub mod warp_totals;
pub mod warps;
pub mod windows;

/// All decisions about an array that come before its loops.
#[derive(Clone, Debug)]
pub struct Storage {
    pub slots: Slots,
    pub partition: Partition,
    pub shared: SharedMemory,
    pub launches: Launches,
    pub inter_block: InterBlock,
    pub kept: StoredValues,
    /// How blocks wait for each other, if they do.
    pub flags: Option<Flags>,
    /// The sums that look back over blocks.
    pub look_backs: Vec<PublishedChain>,
    /// The sums that cross the warps of a block.
    pub warp_totals: Vec<WarpTotals>,
}

/// An array with the decisions from which its kernel is made.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub array: &'a Array,
    pub decide: &'a Decide,
    pub machine: &'a Machine,
    pub storage: &'a Storage,
}

/// The sums that were split into parts.
#[derive(Clone, Copy, Default)]
pub struct Chains<'a> {
    pub of_blocks: &'a [SplitChain],
    pub of_warps: &'a [SplitChain],
}

impl Storage {
    /// Declares the buffers of the program for values that go through global memory.
    pub fn declare(
        array: &Array,
        decide: &Decide,
        machine: &Machine,
        slots: Slots,
        partition: Partition,
        chains: &Chains<'_>,
        program: &mut Program,
    ) -> Result<Storage, Failure> {
        let launches = Launches::declare(array, decide, program)?;
        let mut inter_block = InterBlock::declare(array, decide, &partition, program)?;
        let flags = Flags::declare(array, &slots, &partition, program)?;
        if let Some(flags) = &flags {
            circular::fold(array, flags, &partition, &mut inter_block, program)?;
        }
        let mut shared = SharedMemory::declare(array, decide, machine, &slots, &partition)?;
        let look_backs = chains.of_blocks.iter().map(|chain| {
            let flags = flags.as_ref();
            let arrays = &mut shared.arrays;
            PublishedChain::declare(array, &slots, &partition, flags, chain, program, arrays)
        });
        let look_backs = look_backs.collect::<Result<_, _>>()?;
        let warp_totals = chains
            .of_warps
            .iter()
            .map(|chain| WarpTotals::declare(array, &slots, &partition, chain, &mut shared.arrays));
        let warp_totals = warp_totals.collect();
        Ok(Storage {
            slots,
            partition,
            shared,
            launches,
            inter_block,
            kept: StoredValues::declare(array, program),
            flags,
            look_backs,
            warp_totals,
        })
    }
}
