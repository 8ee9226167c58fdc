//! The rare branch, kept apart.
//!
//! Where a kernel says so, its blocks at the edge are a function of their own. In other branches the coordinates are copied where the
//! branch begins, in a way that hides where the copies come from: a compiler that sees how they go on from block to block would carry
//! all that depends on them along.

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

/// Takes a kernel apart whose edge is to be a function of its own.
pub fn split(kernel: &Kernel) -> Option<Split> {
    let (inside, then, otherwise) = kernel.branches().filter(|_| kernel.hints.outlined_edge)?;
    let with = |body: Vec<Stmt>| Kernel {
        body,
        ..kernel.clone()
    };
    let comments = kernel.body.iter().filter(|s| matches!(s, Stmt::Comment(_)));
    Some(Split {
        inside: inside.clone(),
        then: with(comments.chain(then).cloned().collect()),
        edge: with(otherwise.to_vec()),
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
