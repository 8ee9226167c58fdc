//! What every program of kernels satisfies, for all sizes. The interpreter checks what depends on
//! the sizes, such as races and accesses inside the axes.
//!
//! Index variables, values and registers that are no longer used may stay in their lists.

use std::collections::HashSet;

use crate::form::{Atom, Cond, Form, Monomial, Poly};
use crate::id::{DimId, KernelId};
use crate::kernel::{Buffer, BufferKind, FaultSite, Host, Program, VarKind};
use crate::scalar::{Literal, Scalar};

mod body;
pub(super) mod ops;

impl Program {
    /// Everything that is wrong with the program, one message each; empty for a well-formed
    /// program.
    pub fn verify(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        self.verify_buffers(&mut wrong);
        for cond in &self.context {
            if !self.knows_cond(cond, &|_| false) {
                wrong.push("a condition on the sizes uses something else".into());
            }
        }
        let mut scope = vec![false; self.host_vars.len()];
        let mut bound = scope.clone();
        self.verify_host(&self.body, &mut scope, &mut bound, &mut wrong);
        for n in 0..self.kernels.len() {
            body::verify_kernel(self, KernelId::from(n), &mut wrong);
        }
        wrong
    }

    fn verify_buffers(&self, wrong: &mut Vec<String>) {
        let mut names = HashSet::new();
        for buffer in &self.buffers {
            let name = &buffer.name;
            if !names.insert(name) {
                wrong.push(format!("two buffers are named {name}"));
            }
            let axes = || buffer.axes.iter().flat_map(|axis| [&axis.lo, &axis.hi]);
            if !axes().all(|form| self.knows(form, &|_| false)) {
                wrong.push(format!("the axes of {name} use something that is no size"));
            }
            let check = |value: &Literal, wrong: &mut Vec<String>| {
                if !is_literal_of(*value, buffer.ty) {
                    wrong.push(format!("{value} in {name} is no {}", buffer.ty));
                }
            };
            match &buffer.kind {
                BufferKind::Input { data: Some(data) } => {
                    let extents = buffer.axes.iter().map(|a| a.hi.sub(&a.lo).as_constant());
                    let n: Option<i128> = extents.map(|e| e.map(|e| e.max(0))).product();
                    if n.is_some_and(|n| n != data.len() as i128) {
                        wrong.push(format!("the contents of {name} do not fill its axes"));
                    }
                    data.iter().for_each(|value| check(value, wrong));
                }
                BufferKind::Output { fill: Some(value) } => check(value, wrong),
                BufferKind::Flags => {
                    if !matches!(buffer.ty, Scalar::I32 | Scalar::U64) {
                        wrong.push(format!(
                            "the flags {name} are {}, not i32 or u64",
                            buffer.ty
                        ));
                    }
                }
                BufferKind::Faults { sites } => self.verify_faults(buffer, sites, wrong),
                BufferKind::Input { data: None }
                | BufferKind::Output { fill: None }
                | BufferKind::Temporary => {}
            }
        }
    }

    fn verify_faults(&self, buffer: &Buffer, sites: &[FaultSite], wrong: &mut Vec<String>) {
        let name = &buffer.name;
        if buffer.ty != Scalar::I32 {
            wrong.push(format!("the faults {name} are {}, not i32", buffer.ty));
        }
        let most = sites.iter().map(|s| s.iterators.len()).max().unwrap_or(0);
        let room = buffer.axes.iter().map(|a| a.hi.sub(&a.lo).as_constant());
        let room: Option<i128> = room.product();
        if buffer.axes.len() != 1 || room.is_none_or(|n| n < 1 + 2 * most as i128) {
            wrong.push(format!("{name} has no room for a point"));
        }
        let is_faults = |b: &&Buffer| matches!(b.kind, BufferKind::Faults { .. });
        if self.buffers.iter().filter(is_faults).count() > 1 {
            wrong.push("two buffers hold faults".into());
        }
    }

    /// `scope`: the variables of the enclosing loops; `bound`: those of all loops so far.
    fn verify_host(
        &self,
        body: &[Host],
        scope: &mut [bool],
        bound: &mut [bool],
        wrong: &mut Vec<String>,
    ) {
        for step in body {
            let known =
                |form: &Form| self.knows(form, &|d| scope.get(d.index()).copied().unwrap_or(false));
            match step {
                Host::Launch { kernel, args } => {
                    let Some(kernel) = self.kernels.get(kernel.index()) else {
                        wrong.push(format!("there is no kernel {}", kernel.index()));
                        continue;
                    };
                    let wanted = kernel.vars_where(|k| matches!(k, VarKind::Host)).count();
                    if args.len() != wanted {
                        let (name, given) = (&kernel.name, args.len());
                        wrong.push(format!(
                            "{name} is launched with {given} arguments for {wanted} variables"
                        ));
                    }
                    if !args.iter().all(known) {
                        wrong.push(format!(
                            "a launch of {} uses a variable out of scope",
                            kernel.name
                        ));
                    }
                }
                Host::For { var, lo, hi, body } => {
                    if lo.is_empty() || hi.is_empty() {
                        wrong.push("a loop of the host has no bound".into());
                    }
                    if !lo.iter().chain(hi).all(known) {
                        wrong.push("a loop of the host uses a variable out of scope".into());
                    }
                    let at = var.index();
                    match bound.get_mut(at) {
                        None => wrong.push(format!("the host has no variable {at}")),
                        Some(twice @ false) => *twice = true,
                        Some(true) => wrong.push(format!(
                            "the host's variable {} is bound twice",
                            self.host_vars[at]
                        )),
                    }
                    let mut inner = scope.to_vec();
                    if let Some(slot) = inner.get_mut(at) {
                        *slot = true;
                    }
                    self.verify_host(body, &mut inner, bound, wrong);
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    if !cond.forms().into_iter().all(known) {
                        wrong.push("a condition of the host uses a variable out of scope".into());
                    }
                    // Only one side runs, so both may bind a variable.
                    let mut there = bound.to_vec();
                    self.verify_host(then, scope, bound, wrong);
                    self.verify_host(otherwise, scope, &mut there, wrong);
                    for (bound, there) in bound.iter_mut().zip(there) {
                        *bound |= there;
                    }
                }
            }
        }
    }

    /// Are all parameters of the form sizes of the program, and all its variables allowed?
    fn knows(&self, form: &Form, dim: &dyn Fn(DimId) -> bool) -> bool {
        self.knows_poly(form.constant_part())
            && form.terms().all(|(atom, coefficient)| {
                self.knows_poly(coefficient)
                    && match atom {
                        Atom::Dim(d) => dim(*d),
                        Atom::Floor(inner, c) | Atom::Mod(inner, c) => {
                            *c > 0 && self.knows(inner, dim)
                        }
                    }
            })
    }

    fn knows_cond(&self, cond: &Cond, dim: &dyn Fn(DimId) -> bool) -> bool {
        cond.forms().into_iter().all(|form| self.knows(form, dim))
    }

    fn knows_poly(&self, poly: &Poly) -> bool {
        let known = |(monomial, _): (&Monomial, i128)| {
            monomial.iter().all(|p| p.index() < self.params.len())
        };
        poly.terms().all(known)
    }
}

/// Is the literal written in a way the type allows? A float may be written as an integer.
fn is_literal_of(value: Literal, ty: Scalar) -> bool {
    match value {
        Literal::Bool(_) => ty == Scalar::Bool,
        Literal::Int(_) => ty != Scalar::Bool,
        Literal::Float(_) => ty.is_float(),
    }
}
