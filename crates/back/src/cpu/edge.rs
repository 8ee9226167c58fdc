//! The rare branch, kept apart.
//!
//! A block at the edge of the domain takes another branch than all the others. Addresses and bounds in there
//! depend on the block's coordinates, and a compiler that sees how these go on from block to block carries each of them along, from
//! one block to the next, with dozens of additions in memory for every block that is not at the edge; and registers that the
//! one branch needs are not left to the other. So the branch becomes a function of its own. Where it can not, because
//! something is done for both, the coordinates are copied where that branch begins, in a way that hides where the copies come from.

use std::collections::BTreeSet;

use systola_ir::DimId;
use systola_ir::form::Cond;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Stmt, VarKind};

use crate::context::Context;
use crate::prelude::File;

/// A kernel whose blocks do one of two things.
pub struct Split {
    /// What holds for the blocks inside.
    pub inside: Cond,
    pub then: Kernel,
    pub edge: Kernel,
}

/// Takes a kernel apart whose blocks are at the edge or are not, and that does nothing else.
pub fn split(kernel: &Kernel) -> Option<Split> {
    let is_comment = |stmt: &&Stmt| matches!(stmt, Stmt::Comment(_));
    let mut stmts = kernel.body.iter().filter(|s| !is_comment(s));
    let Stmt::If {
        cond,
        then,
        otherwise,
    } = stmts.next()?
    else {
        return None;
    };
    if stmts.next().is_some() || then.is_empty() || otherwise.is_empty() {
        return None;
    }
    let with = |body: Vec<Stmt>| Kernel {
        body,
        ..kernel.clone()
    };
    let comments = kernel.body.iter().filter(is_comment);
    Some(Split {
        inside: cond.clone(),
        then: with(comments.chain(then).cloned().collect()),
        edge: with(otherwise.clone()),
    })
}

/// Copies the coordinates of the block that these statements mention; the names that they have outside are returned.
pub fn set_apart(cx: &mut Context<'_>, stmts: &[Stmt]) -> Vec<(DimId, String)> {
    let mut mentioned = BTreeSet::new();
    walk(stmts, &mut |stmt| {
        for form in stmt.forms() {
            mentioned.extend(form.dims());
        }
    });
    let is_coordinate = |var: &DimId| {
        let kind = &cx.kernel.vars[var.index()].kind;
        matches!(kind, VarKind::Block { .. })
    };
    let coordinates: Vec<DimId> = mentioned.into_iter().filter(is_coordinate).collect();
    let mut outside = Vec::new();
    for var in coordinates {
        let name = cx.dims[var.index()].mention();
        let own = cx.names.claim(&format!("{name}_edge"));
        cx.prelude.add("apart", File::Memory, "apart", &[]);
        let line = format!("const int64_t {own} = apart({name});");
        cx.lines.push(&line);
        cx.dims[var.index()].name = own;
        outside.push((var, name));
    }
    outside
}
