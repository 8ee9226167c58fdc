//! Predicates loads under a condition, instead of branching around them.
//!
//! The path of blocks at the edge of an array tests every load. As branches, these tests split its
//! straight-line code. The compiler sees that many of them are the same and keeps their outcomes
//! and the addresses in registers throughout: it runs out of registers, on a path that hardly
//! matters, and spills. So a load becomes an instruction with a predicate, and its tests stand
//! beside it where the compiler cannot separate them.
//!
//! This is for kernels without loops. In a loop most tests are the same in all iterations and are
//! better made before it.

use systola_ir::form::Cond;
use systola_ir::kernel::visit::any;
use systola_ir::kernel::{Kernel, Stmt};

/// Sets the hint on a kernel.
pub fn predicate_loads(mut kernel: Kernel) -> Kernel {
    let is_loop = |stmt: &Stmt| matches!(stmt, Stmt::For { .. });
    let asks = |stmt: &Stmt| {
        let read = stmt.effects().read;
        read.is_some_and(|(from, _)| !matches!(from.when, Cond::Const(_)))
    };
    kernel.hints.predicated_loads = any(&kernel.body, &asks) && !any(&kernel.body, &is_loop);
    kernel
}
