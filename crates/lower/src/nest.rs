//! The loops of a block over time, as a tree: which of them are unrolled, partitioned or
//! multiversioned.
//!
//! A nest begins as one loop for each time coordinate around a tick. From the outermost loop
//! inwards, each loop becomes
//!
//! 1. its iterations one after another, or several at a time (`unroll.rs`), if `walk.rs` says so;
//! 2. a few peeled iterations and the loop between them, if the tests of the cells change at its
//!    ends (`peel.rs`);
//! 3. prologue, steady state and epilogue, if a wavefront fills and drains (`partition.rs`);
//! 4. a loop over two versions of its body, without and with tests (`multiversion.rs`). The block
//!    itself may have two versions too.
//!
//! Decisions are made here, before there are statements: a test of a cell is one condition over the
//! coordinates of the slot, where the kernel will have a copy of it for each PE and each unrolled
//! iteration. [Emission](crate::emit) walks the finished tree and decides nothing about loops.
//!
//! Forms and conditions are over the coordinates of the slot. One more coordinate, after the last,
//! is the warp where blocks [share warps](crate::storage::packing).

use systola_ir::form::Cond;

use crate::failure::Failure;
use crate::nest::context::Context;
use crate::nest::separate::MOST_CUTS;
use crate::nest::tree::{Nest, Which};
use crate::storage::Plan;

mod build;
mod context;
pub mod interior;
mod memory_order;
mod multiversion;
mod partition;
mod peel;
pub mod print;
mod separate;
pub mod tree;
mod unroll;
mod walk;

/// The nest of a block, for some launches.
pub fn nest(plan: Plan<'_>, which: &Which) -> Result<Nest, Failure> {
    let cx = Context::new(plan, which)?;
    let at = cx.outside();
    if plan.array.keeps_values() {
        return cx.by_grid(&at, MOST_CUTS);
    }
    cx.versions(cx.block_inside(&at)?, &at, &|at| cx.level(0, at))
}

/// The launches that need no test for the first and last launches, as a condition over the launch
/// coordinates.
pub fn inner_launches(plan: Plan<'_>) -> Result<Cond, Failure> {
    Context::new(plan, &Which::All)?.launch_inside()
}
