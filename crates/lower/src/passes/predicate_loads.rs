//! Loads under a condition without a branch.
//!
//! The path of blocks at the edge of an array tests every load. As branches, these tests part its straight-line code, and the
//! compiler, which sees that many of them are the same, keeps their outcomes and the addresses in registers all along: it runs
//! out of them, on a path that hardly matters, and spills. So a load is an instruction with a predicate, and its tests stand beside
//! it where the compiler cannot take them apart.
//!
//! That is for kernels without loops. In a loop most of the tests are the same in all iterations and better made before it.

use systola_ir::form::Cond;
use systola_ir::kernel::visit::any;
use systola_ir::kernel::{Kernel, Stmt};

/// States it for a kernel.
pub fn predicate_loads(mut kernel: Kernel) -> Kernel {
    let is_loop = |stmt: &Stmt| matches!(stmt, Stmt::For { .. });
    let asks = |stmt: &Stmt| {
        let read = stmt.effects().read;
        read.is_some_and(|(from, _)| !matches!(from.when, Cond::Const(_)))
    };
    kernel.hints.predicated_loads = any(&kernel.body, &asks) && !any(&kernel.body, &is_loop);
    kernel
}
