//! What lives where: places and times as lanes, warps, blocks and loops, and where values wait for those who read them.
//!
//! An array says which PE makes a value and which takes it. Here it is decided how the coordinates of its slots run on a machine
//! ([`partition`]), and of every value that is not used at once where it is kept: in registers or shared memory of its block
//! ([`queues`]), in global memory for [later launches](launches) or [other blocks](inter_block), and which windows of inputs
//! are brought into shared memory ([`windows`]). Nothing here makes a statement.

use systola_ir::array::Array;
use systola_ir::kernel::Program;
use systola_ir::target::Machine;

use crate::decide::Decide;
use crate::failure::Failure;
use crate::storage::inter_block::InterBlock;
use crate::storage::launches::Launches;
use crate::storage::partition::Partition;
use crate::storage::shared_memory::SharedMemory;
use crate::storage::slots::Slots;
use crate::storage::waits::Flags;

pub mod chains;
pub mod circular;
pub mod inter_block;
pub mod launches;
pub mod links;
pub mod packing;
pub mod partition;
pub mod place;
pub mod queues;
pub mod shared_memory;
pub mod slots;
pub mod stages;
pub mod staging;
pub mod waits;
pub mod warps;
pub mod windows;

/// All that is decided about an array before its loops are.
#[derive(Clone, Debug)]
pub struct Storage {
    pub slots: Slots,
    pub partition: Partition,
    pub shared: SharedMemory,
    pub launches: Launches,
    pub inter_block: InterBlock,
    /// How blocks wait for each other, where they do.
    pub flags: Option<Flags>,
}

/// An array on its way to a kernel.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub array: &'a Array,
    pub decide: &'a Decide,
    pub machine: &'a Machine,
    pub storage: &'a Storage,
}

impl Storage {
    /// Declares buffers of the program for what goes through global memory.
    pub fn declare(
        array: &Array,
        decide: &Decide,
        machine: &Machine,
        slots: Slots,
        partition: Partition,
        program: &mut Program,
    ) -> Result<Storage, Failure> {
        let launches = Launches::declare(array, decide, program)?;
        let mut inter_block = InterBlock::declare(array, decide, &partition, program)?;
        let flags = Flags::declare(array, &slots, &partition, program)?;
        if let Some(flags) = &flags {
            circular::fold(array, flags, &partition, &mut inter_block, program)?;
        }
        let shared = SharedMemory::declare(array, decide, machine, &slots, &partition)?;
        Ok(Storage {
            slots,
            partition,
            shared,
            launches,
            inter_block,
            flags,
        })
    }
}
