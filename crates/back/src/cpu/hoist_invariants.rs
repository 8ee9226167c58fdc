//! Elements of inputs that every block reads, such as the weights of a stencil.
//!
//! They are loop-invariant and read once, before the first block. A compiler would often do the same by itself, but not across
//! non-temporal stores, which to it may change any memory.

use std::collections::BTreeMap;

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Memory, Op, Program, Stmt};
use systola_ir::system::Axis;
use systola_ir::{BufferId, Scalar};

use super::Cpu;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::scalar::c_type;

/// More do not fit into registers beside all else, and are as near in the cache.
const MOST: usize = 12;

/// An element of an array, by its position.
pub type Element = (BufferId, Vec<i128>);

impl Cpu {
    /// Reads them.
    pub(super) fn hoist_invariants(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let mut found: BTreeMap<Element, Access> = BTreeMap::new();
        walk(&cx.kernel.body, &mut |stmt| {
            if let Stmt::Let(_, Op::Load { from, .. }) = stmt
                && let Some(element) = element(cx.program, from)
            {
                found.insert(element, from.clone());
            }
        });
        if found.len() > MOST {
            return Ok(());
        }
        for (element, from) in found {
            let place = self.place(cx, &from, 0)?;
            let ty = c_type(Self::memory_type(cx, from.memory))?;
            let name = cx.names.claim(&cx.buffers[element.0.index()].name);
            let there = Expr::index(&place.array, &place.offset);
            cx.constants
                .push(format!("const {ty} {name} = {};", there.text));
            self.hoisted.insert(element, name);
        }
        Ok(())
    }

    /// The name of an element that was read before the first block.
    pub(super) fn hoisted(&self, cx: &Context<'_>, from: &Access) -> Option<Expr> {
        let name = self.hoisted.get(&element(cx.program, from)?)?;
        Some(Expr::atom(name))
    }
}

/// What is read, if it is the same element of an input in every block and the array has it, whatever the sizes.
fn element(program: &Program, from: &Access) -> Option<Element> {
    let Memory::Global(id) = from.memory else {
        return None;
    };
    let buffer = &program.buffers[id.index()];
    let is_input = matches!(buffer.kind, BufferKind::Input { .. });
    if !is_input || buffer.ty == Scalar::Bool || from.when != Cond::TRUE {
        return None;
    }
    let at: Option<Vec<i128>> = from.index.iter().map(Form::as_constant).collect();
    let at = at.filter(|at| at.iter().zip(&buffer.axes).all(|(at, axis)| has(axis, *at)))?;
    Some((id, at))
}

fn has(axis: &Axis, at: i128) -> bool {
    let ends = axis.lo.as_constant().zip(axis.hi.as_constant());
    ends.is_some_and(|(lo, hi)| lo <= at && at < hi)
}
