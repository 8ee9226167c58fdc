//! Issues loads one iteration ahead.
//!
//! A warp whose values take most of its registers has few other warps beside it, and an iteration
//! of its loop that begins with a load begins with waiting. So the loads of a long iteration are
//! issued in the previous one; their values wait in registers of their own. The previous iteration
//! must not write what an iteration loads. If most iterations take one branch and some take
//! another, the loads of the first branch are issued ahead, provided that the next iteration takes
//! that branch.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Access, Kernel, Op, Reg, Stmt};
use systola_ir::{DimId, RegId, ValueId};

use super::hoist_loads::{Pass, passes};

/// The least number of operations in an iteration for each element that is loaded; with fewer, the
/// registers are better used for other things.
const LEAST_WORK: usize = 5;
/// At most this many elements wait.
const MOST_ELEMENTS: usize = 16;

/// The kernel with the loads of long iterations moved to the previous iterations.
pub fn software_pipeline(mut kernel: Kernel) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = list(&mut kernel, body);
    kernel
}

fn list(kernel: &mut Kernel, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut made = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        for body in stmt.bodies_mut() {
            *body = list(kernel, std::mem::take(body));
        }
        let Stmt::For {
            var,
            lo,
            hi,
            step,
            mut body,
        } = stmt
        else {
            made.push(stmt);
            continue;
        };
        let iterations = Iterations { var, lo, hi, step };
        made.extend(iterations.pipeline(kernel, &mut body));
        let Iterations { var, lo, hi, step } = iterations;
        made.push(Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        });
    }
    made
}

struct Iterations {
    var: DimId,
    lo: Vec<Form>,
    hi: Vec<Form>,
    step: i128,
}

impl Iterations {
    /// Rewrites the body of the loop, and returns the statements that come before the loop.
    fn pipeline(&self, kernel: &mut Kernel, body: &mut Vec<Stmt>) -> Vec<Stmt> {
        let next = Form::from(self.var).plus(self.step);
        let lane = kernel.lane();
        let may_move = |stmt: &Stmt| {
            stmt.global_load().is_some_and(|(from, _)| {
                let moves = from.index.iter().any(|f| f.dims().contains(&self.var));
                // It passes the stores of one iteration, and everything before the load in the
                // next.
                let later = self.at(from, &next);
                moves && later.is_some_and(|later| body.iter().all(|s| lets_pass(s, &later, lane)))
            })
        };
        // The iteration, or what it does under a condition.
        let branch = body.iter().position(|s| matches!(s, Stmt::If { .. }));
        let (cond, list) = match branch.map(|at| &body[at]) {
            Some(Stmt::If { cond, then, .. }) => (cond.clone(), then.as_slice()),
            _ => (Cond::TRUE, body.as_slice()),
        };
        let is_moved: Vec<bool> = list.iter().map(may_move).collect();
        let moved = list.iter().zip(&is_moved).filter(|(_, is)| **is);
        let elements: usize = moved.map(|(load, _)| load.defs().len()).sum();
        let worth = elements * LEAST_WORK <= work(kernel, list);
        if elements == 0 || elements > MOST_ELEMENTS || !worth {
            return Vec::new();
        }
        let list = match branch.map(|at| &mut body[at]) {
            Some(Stmt::If { then, .. }) => then,
            _ => &mut *body,
        };
        let mut loads = Vec::new();
        let mut at = 0;
        list.retain(|stmt| {
            if is_moved[at] {
                loads.push(stmt.clone());
            }
            at += 1;
            !is_moved[at - 1]
        });
        let loads: Vec<(Stmt, Vec<RegId>)> = (loads.into_iter())
            .map(|load| {
                let values = load.defs();
                let regs = values.iter().map(|v| register(kernel, *v)).collect();
                (load, regs)
            })
            .collect();
        let mut top = Vec::new();
        for (load, regs) in &loads {
            let pairs = load.defs().into_iter().zip(regs);
            top.extend(pairs.map(|(value, reg)| Stmt::Let(value, Op::Get(*reg))));
        }
        top.extend(self.fetch(kernel, &loads, &cond, &next));
        body.splice(0..0, top);
        let mut before = Vec::new();
        for first in &self.lo {
            let others = self.lo.iter().filter(|lo| *lo != first);
            let is_first = others
                .map(|lo| Cond::cmp(Rel::Ge, first.clone(), lo.clone()))
                .fold(Cond::TRUE, Cond::and);
            let fetch = self.fetch(kernel, &loads, &cond, first);
            match is_first {
                Cond::Const(_) => before.extend(fetch),
                cond => before.push(Stmt::If {
                    cond,
                    then: fetch,
                    otherwise: Vec::new(),
                }),
            }
        }
        before
    }

    /// Loads into registers for the iteration with this value of the variable, if there is such an
    /// iteration.
    fn fetch(
        &self,
        kernel: &mut Kernel,
        loads: &[(Stmt, Vec<RegId>)],
        cond: &Cond,
        iteration: &Form,
    ) -> Vec<Stmt> {
        let then = |f: &Form| f.substitute(&|d| (d == self.var).then(|| iteration.clone()));
        let Ok(cond) = cond.map(&then) else {
            unreachable!("the accesses were moved to the same iteration");
        };
        let ends = self.hi.iter().map(|hi| less(iteration, hi));
        let there = ends.fold(cond, Cond::and);
        if there == Cond::Const(false) {
            return Vec::new();
        }
        let mut made = Vec::new();
        for (load, regs) in loads {
            let moved = load
                .global_load()
                .and_then(|(from, _)| self.at(from, iteration));
            let Some(mut from) = moved else {
                unreachable!("a load that was moved once cannot be moved again");
            };
            // A predicate, not a branch: the compiler moves all registers from iteration to
            // iteration if a loop has a branch.
            from.when = from.when.and(there.clone());
            let to: Vec<ValueId> = (load.defs().into_iter())
                .map(|v| {
                    let value = kernel.values[v.index()].clone();
                    kernel.values.push(value);
                    ValueId::from(kernel.values.len() - 1)
                })
                .collect();
            match (load, to.as_slice()) {
                (Stmt::Let(_, Op::Load { otherwise, .. }), [to]) => {
                    let otherwise = *otherwise;
                    made.push(Stmt::Let(*to, Op::Load { from, otherwise }));
                }
                (Stmt::LoadWide { otherwise, .. }, _) => made.push(Stmt::LoadWide {
                    to: to.clone(),
                    from,
                    otherwise: *otherwise,
                }),
                _ => unreachable!("another statement was taken for a load"),
            }
            made.extend(regs.iter().zip(to).map(|(reg, v)| Stmt::Set(*reg, v)));
        }
        made
    }

    /// The access in the iteration with this value of the variable.
    fn at(&self, access: &Access, iteration: &Form) -> Option<Access> {
        let there = |f: &Form| f.substitute(&|d| (d == self.var).then(|| iteration.clone()));
        let index: Result<_, _> = access.index.iter().map(&there).collect();
        Some(Access {
            memory: access.memory,
            index: index.ok()?,
            when: access.when.map(&there).ok()?,
        })
    }
}

fn less(a: &Form, b: &Form) -> Cond {
    match b.sub(a).as_constant() {
        Some(gap) => Cond::Const(gap > 0),
        None => Cond::cmp(Rel::Lt, a.clone(), b.clone()),
    }
}

/// May a load come before a statement of the previous iteration?
fn lets_pass(stmt: &Stmt, load: &Access, lane: Option<DimId>) -> bool {
    if let Stmt::If {
        then, otherwise, ..
    } = stmt
    {
        let mut both = then.iter().chain(otherwise);
        return both.all(|s| lets_pass(s, load, lane));
    }
    match passes(stmt, load, lane) {
        Pass::Freely | Pass::Store => true,
        Pass::Not => false,
    }
}

/// A register for a value that is loaded one iteration ahead.
fn register(kernel: &mut Kernel, value: ValueId) -> RegId {
    let value = &kernel.values[value.index()];
    let reg = Reg {
        name: format!("{}_next", value.name),
        ty: value.ty,
        shape: value.shape,
    };
    kernel.regs.push(reg);
    RegId::from(kernel.regs.len() - 1)
}

/// Operations of the lanes in these statements, excluding those in loops and branches.
fn work(kernel: &Kernel, stmts: &[Stmt]) -> usize {
    stmts.iter().filter(|stmt| kernel.is_work(stmt)).count()
}

#[cfg(test)]
mod tests {
    use systola_ir::kernel::{Memory, Shape, Value, Var, VarKind};
    use systola_ir::{BinOp, BufferId, ParamId, Scalar};

    use super::*;

    const VAR: DimId = DimId(0);

    /// A loop over 0..N that loads an element, performs `operations` operations on it, and stores
    /// the last result.
    fn kernel(operations: u32, to: Access) -> Kernel {
        let from = Access::new(Memory::Global(BufferId(0)), vec![Form::from(VAR)]);
        let otherwise = None;
        let mut body = vec![Stmt::Let(ValueId(0), Op::Load { from, otherwise })];
        for n in 1..=operations {
            let (a, b) = (ValueId(n - 1), ValueId(0));
            body.push(Stmt::Let(ValueId(n), Op::Binary(BinOp::Add, a, b)));
        }
        let value = ValueId(operations);
        body.push(Stmt::Store { to, value });
        let named = |name: &str, kind| Var {
            name: name.to_string(),
            kind,
        };
        Kernel {
            hints: Default::default(),
            name: "k".to_string(),
            lanes: 32,
            warps: 1,
            vars: vec![named("t", VarKind::Loop), named("l", VarKind::Lane)],
            shared: Vec::new(),
            regs: Vec::new(),
            values: (0..=operations)
                .map(|_| Value {
                    name: "v".to_string(),
                    ty: Scalar::F32,
                    shape: Shape::Varying,
                })
                .collect(),
            body: vec![Stmt::For {
                var: VAR,
                lo: vec![Form::zero()],
                hi: vec![Form::from(ParamId(0))],
                step: 1,
                body,
            }],
        }
    }

    fn elsewhere() -> Access {
        Access::new(Memory::Global(BufferId(1)), vec![Form::from(VAR)])
    }

    #[test]
    fn a_long_iteration_loads_for_the_next() {
        let kernel = software_pipeline(kernel(24, elsewhere()));
        let [
            Stmt::Let(_, Op::Load { from: first, .. }),
            Stmt::Set(..),
            Stmt::For { body, .. },
        ] = kernel.body.as_slice()
        else {
            panic!("{:?}", kernel.body);
        };
        let n = Form::from(ParamId(0));
        assert_eq!(first.index, [Form::zero()]);
        assert_eq!(first.when, Cond::cmp(Rel::Lt, Form::zero(), n.clone()));
        let [
            Stmt::Let(ValueId(0), Op::Get(_)),
            Stmt::Let(_, Op::Load { from: next, .. }),
            Stmt::Set(..),
            ..,
        ] = body.as_slice()
        else {
            panic!("{body:?}");
        };
        assert_eq!(next.index, [Form::from(VAR).plus(1)]);
        assert_eq!(next.when, Cond::cmp(Rel::Lt, Form::from(VAR).plus(1), n));
    }

    #[test]
    fn short_iterations_and_loads_of_written_elements_stay() {
        let short = kernel(4, elsewhere());
        assert_eq!(software_pipeline(short.clone()), short);
        let back = Access::new(Memory::Global(BufferId(0)), vec![Form::from(VAR)]);
        let same = kernel(24, back);
        assert_eq!(software_pipeline(same.clone()), same);
    }
}
