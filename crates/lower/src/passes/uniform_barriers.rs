//! Makes control around barriers uniform, for devices that can only synchronise a whole block.
//!
//! On a device without sub-groups a barrier of the block is the only synchronisation: lanes of one
//! warp wait for each other at a point that all warps of the block must reach, or the block hangs.
//! A kernel guarantees this for its own barriers; but lanes may also have to
//! [synchronise](mod@super::sync_warps) inside a branch or a loop whose condition or bounds depend
//! on the warp. Before: such control. After: all warps run through both branches, and through all
//! iterations that any of them has. Every access and every change of a register gets the condition,
//! so a warp has no effect where it would not have run. Values that are only computed do no harm.
//!
//! If threads may not synchronise in any branch, the same is done to branches that all warps take
//! alike. A loop then runs at least once, as `do … while`, and tests in every iteration whether
//! that iteration exists. Compilers that turn a block into one thread duplicate all code after a
//! barrier that may be skipped, and so once more for every loop.

use std::collections::BTreeSet;

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::map_forms;
use systola_ir::kernel::{Kernel, Memory, Op, Reg, Stmt, Value, VarKind};
use systola_ir::{DimId, RegId, Rel, Span, ValueId};

use crate::failure::{Failure, limitation};
use crate::passes::sync_warps::{Rewritten, SyncPoints};

/// The same kernel, in which lanes synchronise only where all warps do, and not in branches unless
/// `in_branches` allows it. From `slots` on, shared arrays hold values in transit from lane to
/// lane.
pub fn uniform_barriers(
    mut kernel: Kernel,
    in_branches: bool,
    slots: usize,
    rewritten: &Rewritten,
) -> Result<Kernel, Failure> {
    let warp = kernel.vars_where(|k| matches!(k, VarKind::Warp)).next();
    let warp = warp.filter(|_| kernel.warps > 1);
    let mut tested = BTreeSet::new();
    loop {
        let mut search = Search {
            points: SyncPoints::of(&kernel, false, rewritten),
            in_branches,
            tested: &mut tested,
            found: Vec::new(),
        };
        let inside = search.list(&kernel.body, &warp.into_iter().collect());
        if !inside.goes {
            return Ok(kernel);
        }
        let found = search.found;
        let body = std::mem::take(&mut kernel.body);
        let mut pass = Pass {
            kernel,
            found,
            next: 0,
            warp,
            slots,
        };
        let body = pass.list(&body, None)?;
        kernel = pass.kernel;
        kernel.body = body;
    }
}

/// What the search finds about a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// It is control that must be removed.
    goes: bool,
    /// The number of statements inside it, and what holds for some of them.
    inside: Inside,
}

#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    count: usize,
    /// Lanes synchronise.
    waits: bool,
    /// Control must be removed.
    goes: bool,
}

/// Finds branches and loops that must be removed.
struct Search<'a> {
    points: SyncPoints,
    in_branches: bool,
    /// Loops found earlier that test in every iteration whether it exists.
    tested: &'a mut BTreeSet<DimId>,
    /// By statement number: outer statements are numbered first.
    found: Vec<Found>,
}

impl Search<'_> {
    /// `by_warp`: the variables that depend on the warp.
    fn list(&mut self, list: &[Stmt], by_warp: &BTreeSet<DimId>) -> Inside {
        let mut all = Inside::default();
        for stmt in list {
            let number = self.found.len();
            self.found.push(Found::default());
            let depends = |forms: &[&Form]| {
                let mut dims = forms.iter().flat_map(|f| f.dims());
                dims.any(|d| by_warp.contains(&d))
            };
            let mut variables = by_warp.clone();
            if let Stmt::For { var, lo, hi, .. } = stmt
                && depends(&lo.iter().chain(hi).collect::<Vec<_>>())
            {
                variables.insert(*var);
            }
            let mut inside = Inside::default();
            for body in stmt.bodies() {
                let part = self.list(body, &variables);
                inside.count += part.count;
                inside.waits |= part.waits;
                inside.goes |= part.goes;
            }
            let goes = inside.waits
                && match stmt {
                    Stmt::For { var, .. } => {
                        variables.contains(var) || (!self.in_branches && self.tested.insert(*var))
                    }
                    Stmt::If { cond, .. } => !self.in_branches || depends(&cond.forms()),
                    _ => false,
                };
            self.found[number] = Found { goes, inside };
            all.count += 1 + inside.count;
            all.waits |=
                inside.waits || self.points.before(number) || stmt.effects().orders.is_some();
            all.goes |= goes || inside.goes;
        }
        all
    }
}

struct Pass {
    /// The new kernel so far, without statements.
    kernel: Kernel,
    found: Vec<Found>,
    /// The number of the next statement.
    next: usize,
    /// The variable of the warp, if there are several warps.
    warp: Option<DimId>,
    /// The first shared array in which every lane has elements of its own, so that accesses need no
    /// condition.
    slots: usize,
}

impl Pass {
    /// Statements that run where the condition holds; `None` means always.
    fn list(&mut self, list: &[Stmt], when: Option<&Cond>) -> Result<Vec<Stmt>, Failure> {
        let mut made = Vec::new();
        for stmt in list {
            let found = self.found[self.next];
            let behind = self.next + 1 + found.inside.count;
            self.next += 1;
            self.stmt(stmt, found, when, &mut made)?;
            self.next = behind;
        }
        Ok(made)
    }

    fn stmt(
        &mut self,
        stmt: &Stmt,
        found: Found,
        when: Option<&Cond>,
        made: &mut Vec<Stmt>,
    ) -> Result<(), Failure> {
        // Do the statements inside have to be rewritten?
        let opened = found.goes || found.inside.goes || (when.is_some() && found.inside.waits);
        let stmt = match stmt {
            Stmt::If {
                cond,
                then,
                otherwise,
            } if found.goes => {
                let holds = both(when, cond.clone());
                made.extend(self.list(then, Some(&holds))?);
                let fails = both(when, cond.clone().negate());
                made.extend(self.list(otherwise, Some(&fails))?);
                return Ok(());
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } if opened => Stmt::If {
                cond: cond.clone(),
                then: self.list(then, when)?,
                otherwise: self.list(otherwise, when)?,
            },
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } if found.goes => {
                let inside = self.in_own_iterations(*var, (lo, hi), when);
                let body = self.list(body, inside.as_ref())?;
                self.iterations_of_all(*var, (lo, hi), *step, body)?
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } if opened => Stmt::For {
                var: *var,
                lo: lo.clone(),
                hi: hi.clone(),
                step: *step,
                body: self.list(body, when)?,
            },
            Stmt::If { .. } | Stmt::For { .. } => match when {
                Some(when) => Stmt::If {
                    cond: when.clone(),
                    then: vec![stmt.clone()],
                    otherwise: Vec::new(),
                },
                None => stmt.clone(),
            },
            Stmt::Set(reg, value) => self.set(*reg, *value, when, made),
            Stmt::Let(..)
            | Stmt::LoadWide { .. }
            | Stmt::Store { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Copy { .. }
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::LookBack(_)
            | Stmt::Fault { .. } => self.guarded(stmt, when),
            Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::DynamicBlock { .. }
            | Stmt::Comment(_) => stmt.clone(),
        };
        made.push(stmt);
        Ok(())
    }

    /// The statement with its memory accesses under the condition.
    fn guarded(&self, stmt: &Stmt, when: Option<&Cond>) -> Stmt {
        let mut stmt = stmt.clone();
        let Some(when) = when else { return stmt };
        if let Stmt::Fault { when: own, .. } = &mut stmt {
            *own = own.clone().and(when.clone());
        }
        for access in stmt.accesses_mut() {
            if !matches!(access.memory, Memory::Shared(s) if s.index() >= self.slots) {
                access.when = access.when.clone().and(when.clone());
            }
        }
        stmt
    }

    /// Sets a register; it keeps its value where the condition does not hold.
    fn set(
        &mut self,
        reg: RegId,
        value: ValueId,
        when: Option<&Cond>,
        made: &mut Vec<Stmt>,
    ) -> Stmt {
        let Some(when) = when else {
            return Stmt::Set(reg, value);
        };
        let before = self.of_register(reg, Op::Get(reg), made);
        let chosen = Op::Choose {
            cond: when.clone(),
            then: value,
            otherwise: before,
        };
        Stmt::Set(reg, self.of_register(reg, chosen, made))
    }

    /// The condition inside a loop that all warps run through: the iteration is one of the warp's
    /// own.
    fn in_own_iterations(
        &self,
        var: DimId,
        (lo, hi): (&[Form], &[Form]),
        when: Option<&Cond>,
    ) -> Option<Cond> {
        let bound = |rel: Rel, form: &Form| Cond::cmp(rel, var, form.clone());
        let begins = lo.iter().filter(|f| self.is_by_warp(f));
        let is_sure = runs(lo, hi);
        let ends = hi.iter().filter(|_| !is_sure);
        begins
            .map(|f| bound(Rel::Ge, f))
            .chain(ends.map(|f| bound(Rel::Lt, f)))
            .fold(when.cloned(), |so_far, cond| {
                Some(both(so_far.as_ref(), cond))
            })
    }

    fn is_by_warp(&self, form: &Form) -> bool {
        self.warp.is_some_and(|warp| form.dims().contains(&warp))
    }

    /// A new value of the type of a register.
    fn of_register(&mut self, reg: RegId, op: Op, made: &mut Vec<Stmt>) -> ValueId {
        let value = ValueId::from(self.kernel.values.len());
        let Reg { name, ty, shape } = self.kernel.regs[reg.index()].clone();
        self.kernel.values.push(Value { name, ty, shape });
        made.push(Stmt::Let(value, op));
        value
    }

    /// A loop over all iterations that any warp has. If warps begin at different places, iterations
    /// are counted from there.
    fn iterations_of_all(
        &self,
        var: DimId,
        (lo, hi): (&[Form], &[Form]),
        step: i128,
        body: Vec<Stmt>,
    ) -> Result<Stmt, Failure> {
        let (lo, hi, body) = match lo {
            [first] if self.is_by_warp(first) => {
                let from = first.add(&Form::from(var));
                let at = |d: DimId| (d == var).then(|| from.clone());
                let moved = map_forms(&body, &|form: &Form| form.substitute(&at))?;
                let hi: Vec<Form> = hi.iter().map(|form| form.sub(first)).collect();
                (vec![Form::zero()], self.extremes(&hi, true)?, moved)
            }
            _ if step != 1 && lo.iter().any(|f| self.is_by_warp(f)) => {
                return Err(not_all("in steps that begin with the warp"));
            }
            _ => (self.extremes(lo, false)?, self.extremes(hi, true)?, body),
        };
        Ok(Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        })
    }

    /// Bounds for all warps.
    fn extremes(&self, forms: &[Form], greatest: bool) -> Result<Vec<Form>, Failure> {
        let forms = forms.iter().map(|form| {
            let Some(own) = self.warp.filter(|_| self.is_by_warp(form)) else {
                return Ok(form.clone());
            };
            let linear = !form.has_digit_of(own);
            let Some(step) = form.coefficient(own).as_constant().filter(|_| linear) else {
                return Err(not_all("with bounds that are not linear in the warp"));
            };
            let warp = if (step > 0) == greatest {
                i128::from(self.kernel.warps) - 1
            } else {
                0
            };
            let at = |d: DimId| (d == own).then(|| Form::from(warp));
            Ok(form.substitute(&at)?)
        });
        forms.collect()
    }
}

fn both(when: Option<&Cond>, cond: Cond) -> Cond {
    match when {
        Some(when) => when.clone().and(cond),
        None => cond,
    }
}

/// Is there an iteration for all sizes?
fn runs(lo: &[Form], hi: &[Form]) -> bool {
    let numbers =
        |forms: &[Form]| -> Option<Vec<i128>> { forms.iter().map(Form::as_constant).collect() };
    match (numbers(lo), numbers(hi)) {
        (Some(lo), Some(hi)) => lo.iter().max() < hi.iter().min(),
        _ => false,
    }
}

fn not_all(how: &str) -> Failure {
    let why = format!(
        "lanes wait for each other in a loop {how}, and this device can only let all warps wait"
    );
    limitation(Span::NONE, why)
}
