//! Loads the elements that a kernel's hints name before the first block.

use systola_ir::BufferId;
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, Invariant, Op, Stmt};

use super::Cpu;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::scalar::c_type;

/// An element of an array, by its position.
pub type Element = (BufferId, Vec<i128>);

impl Cpu {
    /// Loads the invariants that the kernel mentions.
    pub(super) fn hoist_invariants(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let mut read: Vec<(Element, &Access)> = Vec::new();
        walk(&cx.kernel.body, &mut |stmt| {
            if let Stmt::Let(_, Op::Load { from, .. }) = stmt {
                read.extend(element(from).map(|element| (element, from)));
            }
        });
        for Invariant { buffer, index } in &cx.kernel.hints.invariants {
            let element = (*buffer, index.clone());
            let Some((_, from)) = read.iter().find(|(read, _)| *read == element) else {
                continue;
            };
            let place = self.place(cx, from, 0)?;
            let ty = c_type(Self::memory_type(cx, from.memory))?;
            let name = cx.names.claim(&cx.buffers[buffer.index()].name);
            let there = Expr::index(&place.array, &place.offset);
            cx.constants
                .push(format!("const {ty} {name} = {};", there.text));
            self.hoisted.insert(element, name);
        }
        Ok(())
    }

    /// The name of an element that has been loaded before the first block.
    pub(super) fn hoisted(&self, from: &Access) -> Option<Expr> {
        let name = self.hoisted.get(&element(from)?)?;
        Some(Expr::atom(name))
    }
}

/// The element that an access reads, if its position is constant and the access is unconditional.
fn element(from: &Access) -> Option<Element> {
    let buffer = from.memory.buffer().filter(|_| from.when == Cond::TRUE)?;
    let index: Option<Vec<i128>> = from.index.iter().map(Form::as_constant).collect();
    Some((buffer, index?))
}
