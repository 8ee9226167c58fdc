//! Loads before stores that they do not depend on.
//!
//! A compiler for threads starts loads as early as it may, so that there is work to do until the data has come. It
//! may not where a store to the same array comes before: it does not know that the two go to different places, such
//! as the planes of an array that one launch reads and the next writes. The lowering does, and puts such loads before
//! the store.

use systola_ir::kernel::{Access, Kernel, Stmt};
use systola_ir::{DimId, Form};

/// Elements of one list of statements that are loaded earlier, at most: they wait in registers.
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

/// Where the load may come at the earliest, if a store to its array lies behind that.
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

/// How a load passes a statement that comes before it.
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
            } else if apart(to, load, lane) {
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
        | Stmt::Ticket { .. } => Pass::Not,
    }
}

/// Do no two lanes ever meet, the one at this place, the other at that? An axis on which all lanes are at the same
/// place must tell.
fn apart(a: &Access, b: &Access, lane: Option<DimId>) -> bool {
    let uniform = |form: &Form| lane.is_none_or(|lane| !form.dims().contains(&lane));
    let axes = a.index.iter().zip(&b.index);
    let last = a.index.len().saturating_sub(1);
    axes.take(last)
        .any(|(x, y)| uniform(x) && uniform(y) && x.differs_from(y))
}
