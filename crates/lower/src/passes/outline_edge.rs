//! The rare branch, as a function of its own.
//!
//! A block at the edge of the domain takes another branch than all the others. Addresses and bounds in there depend on the block's
//! coordinates, and a compiler that sees how these go on from block to block carries each of them along, with dozens of additions in
//! memory for every block that is not at the edge; and registers that the one branch needs are not left to the other.

use systola_ir::kernel::Kernel;

/// States it, where the body of a kernel is one `If` with two branches.
pub fn outline_edge(mut kernel: Kernel) -> Kernel {
    kernel.hints.outlined_edge = kernel.branches().is_some();
    kernel
}
