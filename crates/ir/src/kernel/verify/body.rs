//! Scopes, control and accesses of one kernel.

use crate::form::{Cond, Form};
use crate::id::{DimId, KernelId, ValueId};
use crate::kernel::print::KernelText;
use crate::kernel::visit::walk;
use crate::kernel::{
    Access, BlockChain, BufferKind, Joins, Kernel, LookBack, Memory, Op, Program, Shape, Stmt,
    Value, Var, VarKind,
};
use crate::scalar::{Literal, Scalar};

use super::is_literal_of;
use super::ops::{OpType, type_of};

pub(super) fn verify_kernel(program: &Program, id: KernelId, wrong: &mut Vec<String>) {
    let Some(text) = KernelText::new(program, id) else {
        return;
    };
    let kernel = &program.kernels[id.index()];
    let mut checker = Checker {
        program,
        kernel,
        text,
        here: None,
        wrong,
        defined: vec![false; kernel.values.len()],
        bound: vec![false; kernel.vars.len()],
        scope: Scope {
            values: vec![false; kernel.values.len()],
            vars: kernel.vars.iter().map(is_given).collect(),
            in_loop: false,
            by_warp: false,
        },
    };
    checker.declarations();
    checker.body(&kernel.body);
    checker.copies();
    checker.hints();
}

/// Does the variable have a value from the first statement on?
fn is_given(var: &Var) -> bool {
    match var.kind {
        VarKind::Host | VarKind::Block { .. } | VarKind::Warp | VarKind::Lane => true,
        VarKind::Loop | VarKind::DynamicBlock => false,
    }
}

/// The state of the checks at a statement.
#[derive(Clone)]
struct Scope {
    values: Vec<bool>,
    vars: Vec<bool>,
    in_loop: bool,
    /// Does the warp decide whether, or how often, this is executed?
    by_warp: bool,
}

/// The name, element type and number of axes of a memory.
pub(super) struct Array<'a> {
    name: &'a str,
    pub ty: Scalar,
    pub rank: usize,
}

struct Checker<'a, 'w> {
    program: &'a Program,
    kernel: &'a Kernel,
    text: KernelText<'a>,
    /// The statement being checked.
    here: Option<&'a Stmt>,
    wrong: &'w mut Vec<String>,
    defined: Vec<bool>,
    bound: Vec<bool>,
    scope: Scope,
}

impl<'a> Checker<'a, '_> {
    fn report(&mut self, what: impl Into<String>) {
        let (name, what) = (&self.kernel.name, what.into());
        self.wrong.push(match self.here {
            Some(stmt) => format!("{name}: {what}: `{}`", self.text.stmt(stmt)),
            None => format!("{name}: {what}"),
        });
    }

    fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.report(what);
        }
    }

    fn declarations(&mut self) {
        let kernel = self.kernel;
        self.check(kernel.lanes > 0 && kernel.warps > 0, "no lanes or no warps");
        let count = |is: fn(&VarKind) -> bool| kernel.vars_where(is).count();
        let (lanes, warps) = (
            count(|k| matches!(k, VarKind::Lane)),
            count(|k| matches!(k, VarKind::Warp)),
        );
        self.check(lanes <= 1, "more than one lane variable");
        self.check(warps <= 1, "more than one warp variable");
        for var in &kernel.vars {
            let VarKind::Block { lo, hi } = &var.kind else {
                continue;
            };
            let is_host = |d: DimId| {
                let var = kernel.vars.get(d.index());
                var.is_some_and(|v| v.kind == VarKind::Host)
            };
            let known = |form: &Form| self.program.knows(form, &is_host);
            let (bounded, known) = (
                !lo.is_empty() && !hi.is_empty(),
                lo.iter().chain(hi).all(known),
            );
            let name = &var.name;
            self.check(bounded, &format!("the block variable {name} has no bound"));
            self.check(
                known,
                &format!("the range of {name} uses more than sizes and the host's variables"),
            );
        }
        for shared in &kernel.shared {
            let known = shared.extents.iter().all(|e| self.program.knows_poly(e));
            let name = &shared.name;
            self.check(known, &format!("the extents of {name} use an unknown size"));
        }
    }

    fn body(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            self.here = Some(stmt);
            self.stmt(stmt);
        }
    }

    fn inner(&mut self, body: &'a [Stmt], change: impl FnOnce(&mut Scope)) {
        let outer = self.scope.clone();
        change(&mut self.scope);
        self.body(body);
        self.scope = outer;
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        for form in stmt.forms() {
            let in_scope = |d: DimId| self.scope.vars.get(d.index()).copied().unwrap_or(false);
            let known = self.program.knows(form, &in_scope);
            self.check(
                known,
                "a position uses an unknown variable or one out of scope",
            );
        }
        let read = match stmt {
            // The others are assigned by its body.
            Stmt::LookBack(look) => look.terms(),
            _ => stmt.uses(),
        };
        self.read(&read);
        match stmt {
            Stmt::LookBack(look) => self.look_back(look),
            Stmt::Let(value, op) => {
                match type_of(self.program, self.kernel, op, self.value(*value)) {
                    Ok(found) => self.assigned(*value, found),
                    Err(why) => self.report(why),
                }
                if let Some(access) = op.access() {
                    self.access(access, 1);
                }
                self.define(*value);
            }
            Stmt::Set(reg, value) => {
                let (Some(to), Some(from)) =
                    (self.kernel.regs.get(reg.index()), self.value(*value))
                else {
                    return self.report("there is no such register or value");
                };
                let (types, shapes) = (to.ty == from.ty, to.shape >= from.shape);
                self.check(types, "the register has another type than the value");
                self.check(shapes, "a uniform register is set to a varying value");
            }
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => {
                self.check(!to.is_empty(), "nothing is loaded");
                if let Some(array) = self.access(from, to.len()) {
                    let (ty, shape) = (array.ty, access_shape(self.kernel, from));
                    self.literal(*otherwise, ty);
                    for value in to {
                        self.assigned(*value, OpType { ty, shape });
                    }
                }
                to.iter().for_each(|value| self.define(*value));
            }
            Stmt::Store { to, value } => self.store(to, std::slice::from_ref(value)),
            Stmt::StoreWide { to, values } => self.store(to, values),
            Stmt::Prefetch { at, .. } => {
                let global = matches!(at.memory, Memory::Global(_));
                self.check(global, "a prefetch is of global memory");
                self.access(at, 1);
            }
            Stmt::Copy {
                to, from, width, ..
            } => {
                self.check(*width > 0, "nothing is copied");
                let into_shared = matches!(to.memory, Memory::Shared(_));
                let from_global = matches!(from.memory, Memory::Global(_));
                self.check(
                    into_shared && from_global,
                    "a copy goes from global to shared memory",
                );
                let width = *width as usize;
                let (to, from) = (self.access(to, width), self.access(from, width));
                if let (Some(to), Some(from)) = (to, from) {
                    self.check(to.ty == from.ty, "the copy changes the type");
                }
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let bounds: Vec<&Form> = lo.iter().chain(hi).collect();
                self.check(!lo.is_empty() && !hi.is_empty(), "the loop has no bound");
                self.check(*step > 0, "the step is not positive");
                let uniform = bounds.iter().all(|form| self.kernel.is_uniform(form));
                self.check(uniform, "the bounds depend on the lane");
                self.bind(*var, |kind| matches!(kind, VarKind::Loop), "loop");
                let by_warp = self.is_by_warp(&bounds);
                self.inner(body, |scope| {
                    if let Some(slot) = scope.vars.get_mut(var.index()) {
                        *slot = true;
                    }
                    scope.in_loop = true;
                    scope.by_warp |= by_warp;
                });
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let uniform = self.kernel.cond_is_uniform(cond);
                self.check(uniform, "the condition depends on the lane");
                let by_warp = self.is_by_warp(&cond.forms());
                self.inner(then, |scope| scope.by_warp |= by_warp);
                self.inner(otherwise, |scope| scope.by_warp |= by_warp);
            }
            Stmt::Barrier => {
                let everyone = !self.scope.by_warp;
                self.check(everyone, "not every warp reaches this barrier");
            }
            Stmt::SyncWarp => {}
            Stmt::Signal { flag } => self.flag(flag, &[]),
            Stmt::Await { flag, at_least } => self.flag(flag, &[at_least]),
            Stmt::DynamicBlock { var, counter } => {
                let once = !self.scope.in_loop;
                self.check(once, "a dynamic block id is taken in a loop");
                let always = counter.when == Cond::TRUE;
                self.check(always, "a dynamic block id is taken on a condition");
                self.flag(counter, &[]);
                self.bind(
                    *var,
                    |kind| matches!(kind, VarKind::DynamicBlock),
                    "dynamic block",
                );
                if let Some(slot) = self.scope.vars.get_mut(var.index()) {
                    *slot = true;
                }
            }
            Stmt::Fault {
                faults,
                site,
                bad,
                point,
                ..
            } => {
                let buffer = self.program.buffers.get(faults.index());
                let sites = buffer.and_then(|b| b.kind.fault_sites());
                match sites.map(|sites| sites.get(*site)) {
                    None => self.report("this is no buffer of faults"),
                    Some(None) => self.report("there is no such site of a fault"),
                    Some(Some(site)) => self.check(
                        site.iterators.len() == point.len(),
                        "the point has another number of coordinates than its site",
                    ),
                }
                let is_bool = self.value(*bad).is_none_or(|v| v.ty == Scalar::Bool);
                self.check(is_bool, "the condition of a fault is not a bool");
            }
            Stmt::CommitCopies | Stmt::WaitCopies { .. } | Stmt::Comment(_) => {}
        }
    }

    fn read(&mut self, values: &[ValueId]) {
        for value in values {
            match self.scope.values.get(value.index()) {
                None => self.report(format!("there is no value {}", value.index())),
                Some(true) => {}
                Some(false) => {
                    let name = self.text.value(*value);
                    self.report(format!(
                        "{name} is used before it is assigned or out of its scope"
                    ));
                }
            }
        }
    }

    fn look_back(&mut self, look: &'a LookBack) {
        let Joins {
            earlier,
            later,
            body,
            joined,
        } = &look.joins;
        let mut types: Vec<Scalar> = Vec::new();
        for chain in &look.chains {
            let terms = chain.terms.iter().filter_map(|v| self.value(*v));
            let own: Vec<Scalar> = terms.map(|v| v.ty).collect();
            let alike = types.is_empty() || types == own;
            self.check(alike, "the chains of a look-back have different types");
            types = own;
            self.chain(look, chain);
            let first = &look.chains[0].at;
            let same = chain.at.when == first.when;
            self.check(same, "the chains of a look-back have different predicates");
            let along = |at: &'a Access| at.index.get(look.axis);
            let beside = chain.at.memory == first.memory && along(&chain.at) == along(first);
            self.check(
                beside,
                "the chains of a look-back have places in different blocks or buffers",
            );
        }
        let lists = [earlier, later, joined];
        let counted = !types.is_empty() && lists.iter().all(|list| list.len() == types.len());
        self.check(
            counted,
            "the operation of a look-back has other operands than terms",
        );
        self.check(!self.scope.by_warp, "not every warp looks back");
        let pure = |stmt: &Stmt| match stmt {
            Stmt::Let(_, op) => {
                let does = op.effects();
                let sizes_only = op.forms().iter().all(|form| form.dims().is_empty());
                let computes = does.computes && !does.crosses_lanes && sizes_only;
                computes || matches!(op, Op::Lit(_))
            }
            _ => false,
        };
        let pure = body.iter().all(pure);
        self.check(pure, "the operation of a look-back does more than compute");
        for (value, ty) in earlier.iter().chain(later).zip(types.iter().cycle()) {
            let (ty, shape) = (*ty, Shape::Uniform);
            self.assigned(*value, OpType { ty, shape });
        }
        let outer = self.scope.clone();
        earlier.iter().chain(later).for_each(|v| self.define(*v));
        let here = self.here;
        self.body(body);
        self.here = here;
        self.read(joined);
        for (value, ty) in joined.iter().zip(&types) {
            let found = self.value(*value);
            let right = found.is_none_or(|v| v.ty == *ty && v.shape == Shape::Uniform);
            self.check(right, "the operation gives another type or varies");
        }
        self.scope = outer;
        let before = look.chains.iter().flat_map(|chain| &chain.before);
        before.for_each(|v| self.define(*v));
    }

    /// Checks the place of a block in a chain, and its term.
    fn chain(&mut self, look: &LookBack, chain: &BlockChain) {
        let Some(array) = self.access(&chain.at, 1) else {
            return;
        };
        let shape = access_shape(self.kernel, &chain.at);
        self.check(look.axis + 1 < array.rank, "the chain is along no axis");
        let buffer = match chain.at.memory {
            Memory::Global(id) => self.program.buffers.get(id.index()),
            Memory::Shared(_) => None,
        };
        let is_flags = buffer.is_some_and(|b| b.kind == BufferKind::Flags && b.ty == Scalar::U64);
        self.check(is_flags, "this is not in a buffer of flags with 64 bits");
        let terms = chain.terms.iter().filter_map(|v| self.value(*v));
        let terms: Vec<&Value> = terms.collect();
        let words = LookBack::words(terms.iter().map(|v| v.ty));
        let last = buffer.and_then(|b| b.axes.last());
        let room = last.and_then(|axis| axis.hi.sub(&axis.lo).as_constant());
        let starts = chain.at.index.last().and_then(Form::as_constant) == Some(0);
        let fits = room == Some(i128::from(words)) && starts;
        self.check(fits, "the scalars do not fill the last axis");
        let along = chain.at.index.get(look.axis);
        let uniform = along.is_none_or(|form| self.kernel.is_uniform(form));
        self.check(uniform, "the place in the chain depends on the lane");
        let same = terms.iter().all(|term| term.shape <= shape);
        self.check(same, "a chain of the warp has a term for each lane");
        let counted = chain.before.len() == terms.len();
        self.check(counted, "a chain has other results than terms");
        for (value, term) in chain.before.iter().zip(&terms) {
            self.assigned(*value, OpType { ty: term.ty, shape });
        }
    }

    fn value(&self, value: ValueId) -> Option<&'a Value> {
        self.kernel.values.get(value.index())
    }

    fn define(&mut self, value: ValueId) {
        let at = value.index();
        match self.defined.get_mut(at) {
            None => self.report(format!("there is no value {at}")),
            Some(slot) if !*slot => {
                *slot = true;
                self.scope.values[at] = true;
            }
            Some(_) => {
                let name = self.text.value(value);
                self.report(format!("{name} is assigned twice"));
            }
        }
    }

    fn bind(&mut self, var: DimId, is: fn(&VarKind) -> bool, kind: &str) {
        let at = var.index();
        match self.kernel.vars.get(at) {
            None => self.report(format!("there is no variable {at}")),
            Some(var) if !is(&var.kind) => {
                self.report(format!("{} is no {kind} variable", var.name));
            }
            Some(var) => {
                if std::mem::replace(&mut self.bound[at], true) {
                    self.report(format!("{} is bound twice", var.name));
                }
            }
        }
    }

    /// Checks that a value of this declaration may hold a result of this type.
    fn assigned(&mut self, value: ValueId, found: OpType) {
        let Some(declared) = self.value(value) else {
            return;
        };
        if declared.ty != found.ty {
            let (ty, found) = (declared.ty, found.ty);
            self.report(format!("a {ty} is assigned a {found}"));
        }
        let fits = declared.shape >= found.shape;
        self.check(fits, "a uniform value depends on the lane");
    }

    fn literal(&mut self, value: Option<Literal>, ty: Scalar) {
        if let Some(value) = value
            && !is_literal_of(value, ty)
        {
            self.report(format!("{value} is no {ty}"));
        }
    }

    fn access(&mut self, access: &Access, width: usize) -> Option<Array<'a>> {
        let Some(array) = array_of(self.program, self.kernel, access.memory) else {
            self.report("there is no such array");
            return None;
        };
        if access.index.len() != array.rank {
            let (name, rank, given) = (array.name, array.rank, access.index.len());
            self.report(format!("{given} indices for the {rank} axes of {name}"));
        }
        let has_axis = width == 1 || array.rank > 0;
        self.check(has_axis, "a vector access to a single element");
        Some(array)
    }

    fn store(&mut self, to: &Access, values: &[ValueId]) {
        self.check(!values.is_empty(), "nothing is stored");
        self.check(!self.is_input(to.memory), "an input is written");
        let Some(array) = self.access(to, values.len()) else {
            return;
        };
        for value in values {
            let Some(stored) = self.value(*value) else {
                continue;
            };
            if stored.ty != array.ty {
                let (found, ty) = (stored.ty, array.ty);
                self.report(format!("a {found} is stored into an array of {ty}"));
            }
        }
    }

    fn is_input(&self, memory: Memory) -> bool {
        match memory {
            Memory::Global(id) => {
                let buffer = self.program.buffers.get(id.index());
                buffer.is_some_and(|b| matches!(b.kind, BufferKind::Input { .. }))
            }
            Memory::Shared(_) => false,
        }
    }

    /// Checks an operation that the block does as a whole, with all its warps, on one element of a
    /// `Flags` buffer.
    fn flag(&mut self, flag: &Access, others: &[&Form]) {
        self.access(flag, 1);
        let is_flags = match flag.memory {
            Memory::Global(id) => {
                let buffer = self.program.buffers.get(id.index());
                buffer.is_some_and(|b| b.kind == BufferKind::Flags && b.ty == Scalar::I32)
            }
            Memory::Shared(_) => false,
        };
        self.check(is_flags, "this is not in a buffer of flags");
        let mut forms = flag.forms();
        forms.extend(others);
        let uniform = forms.iter().all(|form| self.kernel.is_uniform(form));
        self.check(uniform, "it depends on the lane");
        let one = !self.is_by_warp(&forms) && !self.scope.by_warp;
        self.check(
            one,
            "it depends on the warp, but the whole block executes it",
        );
    }

    /// Does the warp variable occur in the forms, in a kernel of more than one warp?
    fn is_by_warp(&self, forms: &[&Form]) -> bool {
        let is_warp = |d: &DimId| {
            let var = self.kernel.vars.get(d.index());
            var.is_some_and(|v| v.kind == VarKind::Warp)
        };
        self.kernel.warps > 1 && forms.iter().any(|form| form.dims().iter().any(is_warp))
    }

    /// Checks that printers can do what the hints say.
    fn hints(&mut self) {
        let (kernel, hints) = (self.kernel, &self.kernel.hints);
        self.here = None;
        for hint in &hints.invariants {
            let buffer = self.program.buffers.get(hint.buffer.index());
            let is_element = buffer.is_some_and(|b| {
                matches!(b.kind, BufferKind::Input { .. }) && b.axes.len() == hint.index.len()
            });
            self.check(is_element, "an invariant that is no element of an input");
        }
        let Some(deferred) = hints.deferred else {
            return;
        };
        let bypasses = hints
            .non_temporal
            .iter()
            .any(|h| h.buffer == deferred.buffer);
        self.check(bypasses, "deferred stores that are not non-temporal");
        self.check(
            deferred.group_size > 0,
            "deferred stores in groups of size 0",
        );
        let inside = kernel.branches().filter(|_| hints.outlined_edge);
        let body = inside.map_or(&kernel.body[..], |(_, inside, _)| inside);
        let straight = body.iter().all(|stmt| stmt.bodies().is_empty());
        self.check(
            straight,
            "deferred stores in code that is not straight-line",
        );
    }

    /// Checks that copies are committed and waited for, and that nothing else is.
    fn copies(&mut self) {
        let (mut copies, mut commits, mut waits) = (0, 0, 0);
        walk(&self.kernel.body, &mut |stmt| match stmt {
            Stmt::Copy { .. } => copies += 1,
            Stmt::CommitCopies => commits += 1,
            Stmt::WaitCopies { .. } => waits += 1,
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::LookBack(_)
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => {}
        });
        self.here = None;
        if copies > 0 {
            self.check(commits > 0, "copies are never committed");
            self.check(waits > 0, "copies are never waited for");
        } else {
            self.check(
                commits == 0 && waits == 0,
                "there are no copies to wait for",
            );
        }
    }
}

/// The shape of what is loaded.
pub(super) fn access_shape(kernel: &Kernel, access: &Access) -> Shape {
    let shapes = access.forms().into_iter().map(|form| kernel.shape_of(form));
    shapes.max().unwrap_or(Shape::Uniform)
}

pub(super) fn array_of<'a>(
    program: &'a Program,
    kernel: &'a Kernel,
    memory: Memory,
) -> Option<Array<'a>> {
    Some(match memory {
        Memory::Global(id) => {
            let buffer = program.buffers.get(id.index())?;
            Array {
                name: &buffer.name,
                ty: buffer.ty,
                rank: buffer.axes.len(),
            }
        }
        Memory::Shared(id) => {
            let shared = kernel.shared.get(id.index())?;
            Array {
                name: &shared.name,
                ty: shared.ty,
                rank: shared.extents.len(),
            }
        }
    })
}
