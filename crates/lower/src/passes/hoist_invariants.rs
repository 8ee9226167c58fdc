//! Hoists elements of inputs that every block reads, such as the weights of a stencil.
//!
//! They are loop-invariant and read once, before the first block. A compiler would often do the
//! same, but not across non-temporal stores, which for all it knows change any memory.

use systola_ir::Scalar;
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Invariant, Kernel, Memory, Op, Program, Stmt};
use systola_ir::system::Axis;

/// More do not fit into registers beside everything else, and the cache is as near.
const MOST: usize = 12;

/// Sets the hint on every kernel.
pub fn hoist_invariants(program: &mut Program) {
    for n in 0..program.kernels.len() {
        let mut found = invariants(program, &program.kernels[n]);
        if found.len() > MOST {
            found.clear();
        }
        program.kernels[n].hints.invariants = found;
    }
}

/// The invariants, in the order of their places.
fn invariants(program: &Program, kernel: &Kernel) -> Vec<Invariant> {
    let mut found = Vec::new();
    walk(&kernel.body, &mut |stmt| {
        if let Stmt::Let(_, Op::Load { from, .. }) = stmt {
            found.extend(invariant(program, from));
        }
    });
    found.sort_by(|a, b| (a.buffer, &a.index).cmp(&(b.buffer, &b.index)));
    found.dedup();
    found
}

/// The element that an access reads, if it is the same element of an input in every block and
/// inside the array for all sizes.
fn invariant(program: &Program, from: &Access) -> Option<Invariant> {
    let Memory::Global(buffer) = from.memory else {
        return None;
    };
    let read = &program.buffers[buffer.index()];
    let is_input = matches!(read.kind, BufferKind::Input { .. });
    if !is_input || read.ty == Scalar::Bool || from.when != Cond::TRUE {
        return None;
    }
    let index: Option<Vec<i128>> = from.index.iter().map(Form::as_constant).collect();
    let is_there = |index: &Vec<i128>| {
        index
            .iter()
            .zip(&read.axes)
            .all(|(at, axis)| has(axis, *at))
    };
    let index = index.filter(is_there)?;
    Some(Invariant { buffer, index })
}

fn has(axis: &Axis, at: i128) -> bool {
    let ends = axis.lo.as_constant().zip(axis.hi.as_constant());
    ends.is_some_and(|(lo, hi)| lo <= at && at < hi)
}
