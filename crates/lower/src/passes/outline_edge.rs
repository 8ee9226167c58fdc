//! Outlines the rare branch into a function of its own.
//!
//! A block at the edge of the domain takes another branch than all other blocks. Addresses and
//! bounds in that branch depend on the block's coordinates. A compiler that sees how these change
//! from block to block updates each of them, with dozens of additions in memory for every block
//! that is not at the edge. Besides, registers for one branch are not available to the other.

use systola_ir::kernel::Kernel;

/// Sets the hint, if the body of a kernel is one `If` with two branches.
pub fn outline_edge(mut kernel: Kernel) -> Kernel {
    kernel.hints.outlined_edge = kernel.branches().is_some();
    kernel
}
