//! Control without branches around barriers, where a device has no other synchronisation than that of a whole block.
//!
//! A barrier of the block is the only synchronisation of a device without sub-groups, so lanes of one warp wait for each other
//! where all warps of the block come by, or they never leave. A kernel promises that for its own barriers; but lanes may also
//! have to [wait](mod@super::sync_warps) inside of a branch or a loop whose condition or bounds depend on the warp. Before: such control.
//! After: all warps run through both branches, and through all iterations that one of them has, and what a warp would not have
//! done is done by nobody, since every access and every change of a register gets the condition. What is only computed does no
//! harm.
//!
//! Where threads may not wait in any branch, the same is done to branches that all warps take alike. A loop is then run through at least
//! once, as `do … while`, and tests in every iteration whether there is one: compilers that make one thread of a block write down all
//! that follows a barrier twice if it may be passed by, and so twice for every loop.

use std::collections::BTreeSet;

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::map_forms;
use systola_ir::kernel::{Access, Kernel, Memory, Op, Reg, Stmt, Value, VarKind};
use systola_ir::{DimId, RegId, Rel, Span, ValueId};

use crate::failure::{Failure, limitation};
use crate::passes::sync_warps::SyncPoints;

/// The same kernel, in which lanes wait only where all warps come by; and not in branches either, unless they may. From `slots` on, shared
/// arrays hold what is on its way from lane to lane.
pub fn uniform_barriers(
    mut kernel: Kernel,
    in_branches: bool,
    slots: usize,
) -> Result<Kernel, Failure> {
    let warp = kernel.vars_where(|k| matches!(k, VarKind::Warp)).next();
    let warp = warp.filter(|_| kernel.warps > 1);
    let mut tested = BTreeSet::new();
    loop {
        let mut search = Search {
            points: SyncPoints::of(&kernel, false),
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

/// What was found out about a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// It is control that has to go.
    goes: bool,
    /// Statements inside of it, and what holds for some of them.
    inside: Inside,
}

#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    count: usize,
    /// Lanes wait for each other.
    waits: bool,
    /// Control has to go.
    goes: bool,
}

/// Looks for branches and loops that have to go.
struct Search<'a> {
    points: SyncPoints,
    in_branches: bool,
    /// Loops that were found before, and test in every iteration whether there is one.
    tested: &'a mut BTreeSet<DimId>,
    /// By the number of the statement: outer statements first.
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
    /// With what was made so far, without statements.
    kernel: Kernel,
    found: Vec<Found>,
    /// The number of the next statement.
    next: usize,
    /// Where there are several.
    warp: Option<DimId>,
    /// The first shared array of which every lane has elements of its own, whether or not they are of use.
    slots: usize,
}

impl Pass {
    /// Statements that are done where the condition holds; none: always.
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
        let slots = self.slots;
        // Must the statements inside be looked at, which are done under a condition?
        let opened = found.goes || found.inside.goes || (when.is_some() && found.inside.waits);
        let guarded = |access: &Access| Access {
            when: match (when, access.memory) {
                (Some(_), Memory::Shared(s)) if s.index() >= slots => access.when.clone(),
                (Some(when), _) => access.when.clone().and(when.clone()),
                (None, _) => access.when.clone(),
            },
            ..access.clone()
        };
        let stmt = match stmt {
            Stmt::Let(value, Op::Load { from, otherwise }) => Stmt::Let(
                *value,
                Op::Load {
                    from: guarded(from),
                    otherwise: *otherwise,
                },
            ),
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => Stmt::LoadWide {
                to: to.clone(),
                from: guarded(from),
                otherwise: *otherwise,
            },
            Stmt::Store { to, value } => Stmt::Store {
                to: guarded(to),
                value: *value,
            },
            Stmt::StoreWide { to, values } => Stmt::StoreWide {
                to: guarded(to),
                values: values.clone(),
            },
            Stmt::Prefetch { at, into } => Stmt::Prefetch {
                at: guarded(at),
                into: *into,
            },
            Stmt::Copy {
                to,
                from,
                width,
                engine,
            } => Stmt::Copy {
                to: guarded(to),
                from: guarded(from),
                width: *width,
                engine: *engine,
            },
            Stmt::Set(reg, value) => {
                let mut value = *value;
                if let Some(when) = when {
                    let before = self.of_register(*reg, Op::Get(*reg), made);
                    let chosen = Op::Choose {
                        cond: when.clone(),
                        then: value,
                        otherwise: before,
                    };
                    value = self.of_register(*reg, chosen, made);
                }
                Stmt::Set(*reg, value)
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } if opened => {
                if found.goes {
                    let both = |side: Cond| match when {
                        Some(when) => when.clone().and(side),
                        None => side,
                    };
                    let then = self.list(then, Some(&both(cond.clone())))?;
                    made.extend(then);
                    let other = both(cond.clone().negate());
                    let otherwise = self.list(otherwise, Some(&other))?;
                    made.extend(otherwise);
                    return Ok(());
                }
                Stmt::If {
                    cond: cond.clone(),
                    then: self.list(then, when)?,
                    otherwise: self.list(otherwise, when)?,
                }
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } if opened => {
                let mut inside = when.cloned();
                if !found.goes {
                    Stmt::For {
                        var: *var,
                        lo: lo.clone(),
                        hi: hi.clone(),
                        step: *step,
                        body: self.list(body, inside.as_ref())?,
                    }
                } else {
                    let own = Form::from(*var);
                    let begins = lo.iter().filter(|f| self.is_by_warp(f));
                    let begins = begins.map(|f| Cond::cmp(Rel::Ge, own.clone(), f.clone()));
                    let is_sure = runs(lo, hi);
                    let ends = hi.iter().filter(|_| !is_sure);
                    let ends = ends.map(|f| Cond::cmp(Rel::Lt, own.clone(), f.clone()));
                    let all: Vec<Cond> = begins.chain(ends).collect();
                    for cond in all {
                        inside = Some(match inside {
                            Some(so_far) => so_far.and(cond),
                            None => cond,
                        });
                    }
                    let body = self.list(body, inside.as_ref())?;
                    self.iterations_of_all(*var, (lo, hi), *step, body)?
                }
            }
            Stmt::If { .. } | Stmt::For { .. } => match when {
                Some(when) => Stmt::If {
                    cond: when.clone(),
                    then: vec![stmt.clone()],
                    otherwise: Vec::new(),
                },
                None => stmt.clone(),
            },
            Stmt::Fault {
                faults,
                site,
                bad,
                when: own,
                point,
            } => Stmt::Fault {
                faults: *faults,
                site: *site,
                bad: *bad,
                when: match when {
                    Some(when) => own.clone().and(when.clone()),
                    None => own.clone(),
                },
                point: point.clone(),
            },
            Stmt::Signal { flag } => Stmt::Signal {
                flag: guarded(flag),
            },
            Stmt::Await { flag, at_least } => Stmt::Await {
                flag: guarded(flag),
                at_least: at_least.clone(),
            },
            Stmt::Let(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Ticket { .. }
            | Stmt::Comment(_) => stmt.clone(),
        };
        made.push(stmt);
        Ok(())
    }

    fn is_by_warp(&self, form: &Form) -> bool {
        self.warp.is_some_and(|warp| form.dims().contains(&warp))
    }

    /// A new value that the register can hold.
    fn of_register(&mut self, reg: RegId, op: Op, made: &mut Vec<Stmt>) -> ValueId {
        let value = ValueId::from(self.kernel.values.len());
        let Reg { name, ty, shape } = self.kernel.regs[reg.index()].clone();
        self.kernel.values.push(Value { name, ty, shape });
        made.push(Stmt::Let(value, op));
        value
    }

    /// A loop with all iterations that a warp has. Where warps begin at different places, iterations are counted from there.
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

/// Is there an iteration, whatever the sizes?
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
