//! Constant folding in the forms of kernels: sizes that were fixed, and the lane or the warp where
//! there is only one.

use crate::form::{Cond, Form, Overflow};
use crate::kernel::visit::{Rewrite, rewrite};
use crate::kernel::{Kernel, Program, VarKind};
use crate::system::Axis;

impl Program {
    /// The same program with fixed sizes as numbers and without variables that can only be 0.
    /// Printers expect this form.
    pub fn folded(mut self) -> Result<Program, Overflow> {
        let sizes: Vec<Option<i128>> = self.params.iter().map(|p| p.fixed).collect();
        let fixed = |form: &Form| form.fix_params(&|p| sizes[p.index()]);
        for axis in self.buffers.iter_mut().flat_map(|b| &mut b.axes) {
            *axis = Axis {
                lo: fixed(&axis.lo)?,
                hi: fixed(&axis.hi)?,
            };
        }
        for kernel in &mut self.kernels {
            *kernel = fold_kernel(kernel, &fixed)?;
        }
        Ok(self)
    }
}

fn fold_kernel(
    kernel: &Kernel,
    fixed: &impl Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Kernel, Overflow> {
    let map = |form: &Form| {
        fixed(form)?.substitute(&|d| {
            let zero = match kernel.vars[d.index()].kind {
                VarKind::Lane => kernel.lanes == 1,
                VarKind::Warp => kernel.warps == 1,
                VarKind::Host | VarKind::Block { .. } | VarKind::Loop | VarKind::DynamicBlock => {
                    false
                }
            };
            zero.then(Form::zero)
        })
    };
    let mut special = kernel.clone();
    for var in &mut special.vars {
        if let VarKind::Block { lo, hi } = &mut var.kind {
            for form in lo.iter_mut().chain(hi) {
                *form = map(form)?;
            }
        }
    }
    for shared in &mut special.shared {
        for extent in &mut shared.extents {
            let form = fixed(&Form::from(extent.clone()))?;
            // A form without atoms stays without atoms.
            *extent = form.constant_part().clone();
        }
    }
    for hint in &mut special.hints.non_temporal {
        hint.when = fold(hint.when.map(fixed)?);
    }
    special.body = rewrite(&kernel.body, &Known(map))?;
    Ok(special)
}

/// Applies a function to every form, and decides the conditions that are then constant.
struct Known<F>(F);

impl<F: Fn(&Form) -> Result<Form, Overflow>> Rewrite for Known<F> {
    fn form(&self, form: &Form) -> Result<Form, Overflow> {
        (self.0)(form)
    }

    fn cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        Ok(fold(cond.map(&self.0)?))
    }
}

/// Decides comparisons of constants, and simplifies conjunctions and disjunctions by them.
fn fold(cond: Cond) -> Cond {
    match cond {
        Cond::Const(b) => Cond::Const(b),
        Cond::Cmp(rel, left, right) => match left.sub(&right).as_constant() {
            Some(difference) => Cond::Const(rel.holds(difference, 0)),
            None => Cond::Cmp(rel, left, right),
        },
        Cond::And(parts) => fold_parts(parts, true),
        Cond::Or(parts) => fold_parts(parts, false),
        Cond::Not(inner) => fold(*inner).negate(),
    }
}

/// `neutral` is the constant that can be omitted; the other constant decides.
fn fold_parts(parts: Vec<Cond>, neutral: bool) -> Cond {
    let mut kept = Vec::new();
    for part in parts {
        match fold(part) {
            Cond::Const(b) if b == neutral => {}
            Cond::Const(b) => return Cond::Const(b),
            part @ (Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_)) => kept.push(part),
        }
    }
    match kept.len() {
        0 => Cond::Const(neutral),
        1 => kept.remove(0),
        _ if neutral => Cond::And(kept),
        _ => Cond::Or(kept),
    }
}
