//! Walking and rewriting kernels.

use crate::form::{Cond, Form, Overflow};
use crate::id::{DimId, RegId, ValueId};
use crate::kernel::{Access, BlockChain, Host, Joins, Kernel, LookBack, Memory, Op, Stmt, VarKind};

/// Calls `f` on every statement, outer ones first, in the order in which they are written.
pub fn walk<'a>(body: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        f(stmt);
        for inner in stmt.bodies() {
            walk(inner, f);
        }
    }
}

/// Is there such a statement?
pub fn any(body: &[Stmt], is_such: &dyn Fn(&Stmt) -> bool) -> bool {
    body.iter().any(|stmt| {
        let mut bodies = stmt.bodies().into_iter();
        is_such(stmt) || bodies.any(|inner| any(inner, is_such))
    })
}

/// Calls `f` on every statement, inner ones first, so that `f` may replace the statements in a
/// body.
pub fn walk_mut(body: &mut [Stmt], f: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        for inner in stmt.bodies_mut() {
            walk_mut(inner, f);
        }
        f(stmt);
    }
}

/// Calls `f` on every step of the host, outermost first.
pub fn walk_host<'a>(body: &'a [Host], f: &mut dyn FnMut(&'a Host)) {
    for step in body {
        f(step);
        match step {
            Host::Launch { .. } => {}
            Host::For { body, .. } => walk_host(body, f),
            Host::If {
                then, otherwise, ..
            } => {
                walk_host(then, f);
                walk_host(otherwise, f);
            }
        }
    }
}

/// The bounds of a loop, the lower ones first.
fn bounds<'a>(lo: &'a [Form], hi: &'a [Form]) -> Vec<&'a Form> {
    lo.iter().chain(hi).collect()
}

impl Access {
    /// The forms of the index and of the predicate.
    pub fn forms(&self) -> Vec<&Form> {
        let mut forms: Vec<&Form> = self.index.iter().collect();
        forms.extend(self.when.forms());
        forms
    }
}

impl Op {
    /// The operands, in the order in which they are written.
    pub fn values(&self) -> Vec<ValueId> {
        match self {
            Op::Lit(_) | Op::Index(_) | Op::Get(_) | Op::Load { .. } => Vec::new(),
            Op::Unary(_, a) | Op::Cast(a) | Op::Shuffle { value: a, .. } => vec![*a],
            Op::Binary(_, a, b) => vec![*a, *b],
            Op::Select {
                cond,
                then,
                otherwise,
            } => vec![*cond, *then, *otherwise],
            Op::Choose {
                then, otherwise, ..
            } => vec![*then, *otherwise],
            Op::Lookup { index, .. } => index.clone(),
            Op::LaneShift { low, high, .. } => low.iter().chain(high).copied().collect(),
        }
    }

    /// Every form of the operation.
    pub fn forms(&self) -> Vec<&Form> {
        match self {
            Op::Index(form) | Op::Shuffle { from: form, .. } => vec![form],
            Op::Choose { cond, .. } => cond.forms(),
            Op::Load { from, .. } => from.forms(),
            Op::Lit(_)
            | Op::Get(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::Lookup { .. }
            | Op::LaneShift { .. } => Vec::new(),
        }
    }
}

impl Stmt {
    /// The statement lists nested in it, one for each branch.
    pub fn bodies(&self) -> Vec<&[Stmt]> {
        match self {
            Stmt::For { body, .. } => vec![body],
            Stmt::If {
                then, otherwise, ..
            } => vec![then, otherwise],
            Stmt::LookBack(look) => vec![&look.joins.body],
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => Vec::new(),
        }
    }

    /// Like [`Stmt::bodies`].
    pub fn bodies_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::For { body, .. } => vec![body],
            Stmt::If {
                then, otherwise, ..
            } => vec![then, otherwise],
            Stmt::LookBack(look) => vec![&mut look.joins.body],
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => Vec::new(),
        }
    }

    /// The values that the statement itself reads; its bodies are not included. Of a look-back these
    /// are also the results of its operation, which its body assigns.
    pub fn uses(&self) -> Vec<ValueId> {
        match self {
            Stmt::Let(_, op) => op.values(),
            Stmt::Set(_, value) | Stmt::Store { value, .. } => vec![*value],
            Stmt::StoreWide { values, .. } => values.clone(),
            Stmt::Fault { bad, .. } => vec![*bad],
            Stmt::LookBack(look) => {
                let mut values = look.terms();
                values.extend(&look.joins.joined);
                values
            }
            Stmt::LoadWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::Comment(_) => Vec::new(),
        }
    }

    /// The values that the statement itself assigns.
    pub fn defs(&self) -> Vec<ValueId> {
        match self {
            Stmt::Let(value, _) => vec![*value],
            Stmt::LoadWide { to, .. } => to.clone(),
            Stmt::LookBack(look) => {
                let Joins { earlier, later, .. } = &look.joins;
                let before = look.chains.iter().flat_map(|chain| &chain.before);
                before.chain(earlier).chain(later).copied().collect()
            }
            Stmt::Set(..)
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => Vec::new(),
        }
    }

    /// The index variable it binds.
    pub fn binds(&self) -> Option<DimId> {
        match self {
            Stmt::For { var, .. } | Stmt::DynamicBlock { var, .. } => Some(*var),
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::LookBack(_)
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => None,
        }
    }

    /// The statement's own forms: indices, predicates, bounds and conditions.
    pub fn forms(&self) -> Vec<&Form> {
        match self {
            Stmt::Let(_, op) => op.forms(),
            Stmt::For { lo, hi, .. } => bounds(lo, hi),
            Stmt::If { cond, .. } => cond.forms(),
            Stmt::Await { flag, at_least } => {
                let mut forms = flag.forms();
                forms.push(at_least);
                forms
            }
            Stmt::Fault { when, point, .. } => {
                let mut forms = when.forms();
                forms.extend(point);
                forms
            }
            Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::Signal { .. }
            | Stmt::LookBack(_)
            | Stmt::DynamicBlock { .. } => self
                .accesses()
                .into_iter()
                .flat_map(Access::forms)
                .collect(),
            Stmt::Set(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Comment(_) => Vec::new(),
        }
    }
}

/// The replacements that [`rewrite`] makes in a statement. Each method keeps its part unless it is
/// overridden. A bound variable is replaced only where it is bound: its uses are forms.
pub trait Rewrite {
    fn form(&self, form: &Form) -> Result<Form, Overflow> {
        Ok(form.clone())
    }

    fn cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        cond.map(&|form| self.form(form))
    }

    /// Replaces the index of an access, whose forms have been rewritten already.
    fn index(&self, _: Memory, index: Vec<Form>) -> Result<Vec<Form>, Overflow> {
        Ok(index)
    }

    fn value(&self, value: ValueId) -> ValueId {
        value
    }

    fn reg(&self, reg: RegId) -> RegId {
        reg
    }

    fn bound(&self, var: DimId) -> DimId {
        var
    }
}

/// Applies a function to every form.
pub struct MapForms<F>(pub F);

impl<F: Fn(&Form) -> Result<Form, Overflow>> Rewrite for MapForms<F> {
    fn form(&self, form: &Form) -> Result<Form, Overflow> {
        (self.0)(form)
    }
}

/// A copy of the statements with their forms, values, registers and bound variables replaced.
pub fn rewrite(body: &[Stmt], by: &impl Rewrite) -> Result<Vec<Stmt>, Overflow> {
    body.iter().map(|stmt| rewrite_stmt(stmt, by)).collect()
}

/// A copy of the statements, with a function applied to every form.
pub fn map_forms(
    body: &[Stmt],
    f: &dyn Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Vec<Stmt>, Overflow> {
    rewrite(body, &MapForms(f))
}

fn rewrite_forms(list: &[Form], by: &impl Rewrite) -> Result<Vec<Form>, Overflow> {
    list.iter().map(|form| by.form(form)).collect()
}

fn rewrite_values(list: &[ValueId], by: &impl Rewrite) -> Vec<ValueId> {
    list.iter().map(|value| by.value(*value)).collect()
}

fn rewrite_look_back(look: &LookBack, by: &impl Rewrite) -> Result<LookBack, Overflow> {
    let chain = |chain: &BlockChain| {
        Ok(BlockChain {
            at: rewrite_access(&chain.at, by)?,
            terms: rewrite_values(&chain.terms, by),
            before: rewrite_values(&chain.before, by),
        })
    };
    Ok(LookBack {
        chains: look.chains.iter().map(chain).collect::<Result<_, _>>()?,
        axis: look.axis,
        up: look.up,
        joins: Joins {
            earlier: rewrite_values(&look.joins.earlier, by),
            later: rewrite_values(&look.joins.later, by),
            body: rewrite(&look.joins.body, by)?,
            joined: rewrite_values(&look.joins.joined, by),
        },
    })
}

fn rewrite_access(access: &Access, by: &impl Rewrite) -> Result<Access, Overflow> {
    Ok(Access {
        memory: access.memory,
        index: by.index(access.memory, rewrite_forms(&access.index, by)?)?,
        when: by.cond(&access.when)?,
    })
}

fn rewrite_stmt(stmt: &Stmt, by: &impl Rewrite) -> Result<Stmt, Overflow> {
    Ok(match stmt {
        Stmt::Let(value, op) => Stmt::Let(by.value(*value), rewrite_op(op, by)?),
        Stmt::Set(reg, value) => Stmt::Set(by.reg(*reg), by.value(*value)),
        Stmt::LoadWide {
            to,
            from,
            otherwise,
        } => Stmt::LoadWide {
            to: rewrite_values(to, by),
            from: rewrite_access(from, by)?,
            otherwise: *otherwise,
        },
        Stmt::Store { to, value } => Stmt::Store {
            to: rewrite_access(to, by)?,
            value: by.value(*value),
        },
        Stmt::StoreWide { to, values } => Stmt::StoreWide {
            to: rewrite_access(to, by)?,
            values: rewrite_values(values, by),
        },
        Stmt::Prefetch { at, into } => Stmt::Prefetch {
            at: rewrite_access(at, by)?,
            into: *into,
        },
        Stmt::Copy {
            to,
            from,
            width,
            engine,
        } => Stmt::Copy {
            to: rewrite_access(to, by)?,
            from: rewrite_access(from, by)?,
            width: *width,
            engine: *engine,
        },
        Stmt::CommitCopies => Stmt::CommitCopies,
        Stmt::WaitCopies { pending } => Stmt::WaitCopies { pending: *pending },
        Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        } => Stmt::For {
            var: by.bound(*var),
            lo: rewrite_forms(lo, by)?,
            hi: rewrite_forms(hi, by)?,
            step: *step,
            body: rewrite(body, by)?,
        },
        Stmt::If {
            cond,
            then,
            otherwise,
        } => Stmt::If {
            cond: by.cond(cond)?,
            then: rewrite(then, by)?,
            otherwise: rewrite(otherwise, by)?,
        },
        Stmt::Barrier => Stmt::Barrier,
        Stmt::SyncWarp => Stmt::SyncWarp,
        Stmt::Signal { flag } => Stmt::Signal {
            flag: rewrite_access(flag, by)?,
        },
        Stmt::Await { flag, at_least } => Stmt::Await {
            flag: rewrite_access(flag, by)?,
            at_least: by.form(at_least)?,
        },
        Stmt::LookBack(look) => Stmt::LookBack(Box::new(rewrite_look_back(look, by)?)),
        Stmt::DynamicBlock { var, counter } => Stmt::DynamicBlock {
            var: by.bound(*var),
            counter: rewrite_access(counter, by)?,
        },
        Stmt::Fault {
            faults,
            site,
            bad,
            when,
            point,
        } => Stmt::Fault {
            faults: *faults,
            site: *site,
            bad: by.value(*bad),
            when: by.cond(when)?,
            point: rewrite_forms(point, by)?,
        },
        Stmt::Comment(text) => Stmt::Comment(text.clone()),
    })
}

/// A copy of the operation with its forms, values and registers replaced.
pub fn rewrite_op(op: &Op, by: &impl Rewrite) -> Result<Op, Overflow> {
    Ok(match op {
        Op::Lit(value) => Op::Lit(*value),
        Op::Index(form) => Op::Index(by.form(form)?),
        Op::Get(reg) => Op::Get(by.reg(*reg)),
        Op::Unary(op, a) => Op::Unary(*op, by.value(*a)),
        Op::Binary(op, a, b) => Op::Binary(*op, by.value(*a), by.value(*b)),
        Op::Cast(a) => Op::Cast(by.value(*a)),
        Op::Select {
            cond,
            then,
            otherwise,
        } => Op::Select {
            cond: by.value(*cond),
            then: by.value(*then),
            otherwise: by.value(*otherwise),
        },
        Op::Choose {
            cond,
            then,
            otherwise,
        } => Op::Choose {
            cond: by.cond(cond)?,
            then: by.value(*then),
            otherwise: by.value(*otherwise),
        },
        Op::Load { from, otherwise } => Op::Load {
            from: rewrite_access(from, by)?,
            otherwise: *otherwise,
        },
        Op::Lookup { memory, index } => Op::Lookup {
            memory: *memory,
            index: rewrite_values(index, by),
        },
        Op::Shuffle { value, from } => Op::Shuffle {
            value: by.value(*value),
            from: by.form(from)?,
        },
        Op::LaneShift { low, high, by: k } => Op::LaneShift {
            low: low.map(|v| by.value(v)),
            high: high.map(|v| by.value(v)),
            by: *k,
        },
    })
}

impl Kernel {
    /// The kernel with a function applied to every form of its body and of its grid.
    pub fn map_forms(
        &self,
        f: &dyn Fn(&Form) -> Result<Form, Overflow>,
    ) -> Result<Kernel, Overflow> {
        let mut kernel = self.clone();
        let all = |list: &mut Vec<Form>| -> Result<(), Overflow> {
            for form in list {
                *form = f(form)?;
            }
            Ok(())
        };
        for var in &mut kernel.vars {
            match &mut var.kind {
                VarKind::Block { lo, hi } => {
                    all(lo)?;
                    all(hi)?;
                }
                VarKind::Host
                | VarKind::Warp
                | VarKind::Lane
                | VarKind::Loop
                | VarKind::DynamicBlock => {}
            }
        }
        for hint in &mut kernel.hints.non_temporal {
            hint.when = hint.when.map(f)?;
        }
        kernel.body = map_forms(&self.body, f)?;
        Ok(kernel)
    }
}
