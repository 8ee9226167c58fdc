//! The branch for blocks at the edge, which is rarely taken.
//!
//! Where a kernel's hints say so, its blocks at the edge are a separate function. Other such
//! branches copy the coordinates of the block at their beginning, in a way that hides from the
//! compiler where the copies come from. A compiler that sees how the coordinates change from block
//! to block would also update everything that depends on them in the loop over blocks.

use std::collections::BTreeSet;

use systola_ir::DimId;
use systola_ir::form::Cond;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Stmt, VarKind};

use crate::context::Context;
use crate::prelude::File;

/// A kernel with one path for blocks inside the domain and another for blocks at the edge.
pub struct Split {
    /// The condition for blocks inside.
    pub inside: Cond,
    pub then: Kernel,
    pub edge: Kernel,
}

/// Splits a kernel whose edge becomes a separate function.
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

/// Copies the coordinates of the block that these statements mention, and returns the original
/// names.
pub fn copy_coordinates(cx: &mut Context<'_>, stmts: &[Stmt]) -> Vec<(DimId, String)> {
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
        cx.prelude.add("opaque", File::Memory, "opaque", &[]);
        let line = format!("const int64_t {own} = opaque({name});");
        cx.lines.push(&line);
        cx.dims[var.index()].name = own;
        outside.push((var, name));
    }
    outside
}
