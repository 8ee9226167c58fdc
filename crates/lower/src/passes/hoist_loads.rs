//! Moves loads before stores that they do not depend on.
//!
//! A compiler for threads starts loads as early as it can, so that there is work to do until the
//! data arrives. It cannot move a load before a store to the same array, because it does not know
//! that the two access different elements, such as the planes of an array that one launch reads and
//! the next writes. The lowering does know, and puts such loads before the store.

use systola_ir::kernel::{Access, Kernel, Stmt};
use systola_ir::{DimId, Form};

/// At most this many elements of one list of statements are loaded earlier: they wait in registers.
const MOST_ELEMENTS: usize = 32;

/// The kernel with loads from global memory moved up in their lists of statements.
pub fn hoist_loads(mut kernel: Kernel) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    let lane = kernel.lane();
    kernel.body = list(body, lane);
    kernel
}

fn list(stmts: Vec<Stmt>, lane: Option<DimId>) -> Vec<Stmt> {
    let mut moved: Vec<Stmt> = Vec::with_capacity(stmts.len());
    let mut elements = 0;
    for mut stmt in stmts {
        for body in stmt.bodies_mut() {
            *body = list(std::mem::take(body), lane);
        }
        let Some((from, width)) = stmt.global_load() else {
            moved.push(stmt);
            continue;
        };
        match place(&moved, from, lane) {
            Some(at) if elements + width <= MOST_ELEMENTS => {
                elements += width;
                moved.insert(at, stmt);
            }
            _ => moved.push(stmt),
        }
    }
    moved
}

/// The earliest position of a load that is before a store to its array, if there is one.
fn place(before: &[Stmt], load: &Access, lane: Option<DimId>) -> Option<usize> {
    let mut found = None;
    for (at, stmt) in before.iter().enumerate().rev() {
        match passes(stmt, load, lane) {
            Pass::Freely => {}
            Pass::Store => found = Some(at),
            Pass::Not => break,
        }
    }
    found
}

/// Whether a load can move past a statement before it.
pub enum Pass {
    Freely,
    /// It is a store to the same array, elsewhere.
    Store,
    Not,
}

pub fn passes(stmt: &Stmt, load: &Access, lane: Option<DimId>) -> Pass {
    match stmt {
        Stmt::Let(..)
        | Stmt::Set(..)
        | Stmt::LoadWide { .. }
        | Stmt::Prefetch { .. }
        | Stmt::Fault { .. }
        | Stmt::Comment(_) => Pass::Freely,
        Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => {
            if to.memory != load.memory {
                Pass::Freely
            } else if disjoint(to, load, lane) {
                Pass::Store
            } else {
                Pass::Not
            }
        }
        Stmt::Copy { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Barrier
        | Stmt::SyncWarp
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::DynamicBlock { .. } => Pass::Not,
        // It publishes and reads nothing but its chain.
        Stmt::LookBack(_) => Pass::Freely,
    }
}

/// Do two accesses never touch the same element, from whichever lanes? An axis on which all lanes
/// have the same index must show it.
fn disjoint(a: &Access, b: &Access, lane: Option<DimId>) -> bool {
    let uniform = |form: &Form| lane.is_none_or(|lane| !form.dims().contains(&lane));
    let axes = a.index.iter().zip(&b.index);
    let last = a.index.len().saturating_sub(1);
    axes.take(last)
        .any(|(x, y)| uniform(x) && uniform(y) && x.differs_from(y))
}
