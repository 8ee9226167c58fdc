//! Named sums become variables.
//!
//! `let a = sum(…); let b = sum(…); sqrt(a*a + b*b)` reads each sum twice. A sum becomes a
//! recurrence of its own, and a sum that is read twice must not become two recurrences, so `a` gets
//! an equation. The equation holds at the points of its original equation where the enclosing
//! choices by position hold, with enclosing names inlined. A name inside a sum stays.

use std::convert::Infallible;

use systola_ir::system::visit::{map_children, map_expr, walk};
use systola_ir::system::{Expr, System, Var};
use systola_ir::{Cond, DimId, Form, LocalId, VarId};

use super::fresh;
use super::typing::type_of;

/// Does the expression contain a sum?
pub fn has_sum(expr: &Expr) -> bool {
    contains(expr, &|e| {
        matches!(e, Expr::Reduce { .. } | Expr::Scan { .. })
    })
}

pub fn contains(expr: &Expr, is: &dyn Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    walk(expr, &mut |e| found |= is(e));
    found
}

/// The number of times that a name is read.
pub fn uses(expr: &Expr, local: LocalId) -> usize {
    let mut uses = 0;
    walk(expr, &mut |e| {
        uses += usize::from(matches!(e, Expr::Local(l) if *l == local));
    });
    uses
}

/// Gives named sums variables. Returns each new variable with the variable it came from.
pub fn name_sums(system: &mut System) -> Vec<(VarId, VarId)> {
    let mut all = Vec::new();
    for n in 0..system.vars.len() {
        let of = VarId::from(n);
        let body = system.vars[n].body.clone();
        let before = system.vars.len();
        let mut place = Place {
            of,
            before,
            when: Cond::TRUE,
            names: Vec::new(),
        };
        system.vars[n].body = place.moved(system, &body);
        let new = before..system.vars.len();
        all.extend(new.map(|v| (VarId::from(v), of)));
    }
    all
}

/// A position in an equation.
struct Place {
    of: VarId,
    /// The number of variables before those of this equation are added.
    before: usize,
    /// The condition under which the evaluation reaches this position.
    when: Cond,
    /// Enclosing names, with values that use none of them.
    names: Vec<(LocalId, Expr)>,
}

impl Place {
    /// Moves sums that are read more than once into variables. If there is only one such sum, it
    /// stays in its equation.
    fn moved(&mut self, system: &mut System, expr: &Expr) -> Expr {
        match expr {
            Expr::Reduce { .. } | Expr::Scan { .. } => expr.clone(),
            Expr::Let {
                local,
                name,
                value,
                body,
            } => {
                let value = self.moved(system, value);
                let mut closed = value.clone();
                for (local, value) in &self.names {
                    closed = replaced(&closed, *local, value);
                }
                let beside = has_sum(body) || system.vars.len() > self.before;
                if has_sum(&value) && beside && uses(body, *local) > 1 {
                    let here = variable(system, self.of, name, closed, &self.when);
                    return self.moved(system, &replaced(body, *local, &here));
                }
                self.names.push((*local, closed));
                let body = self.moved(system, body);
                self.names.pop();
                Expr::Let {
                    local: *local,
                    name: name.clone(),
                    value: Box::new(value),
                    body: Box::new(body),
                }
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => Expr::Guard {
                cond: cond.clone(),
                then: Box::new(self.moved_where(system, cond, then)),
                otherwise: otherwise.as_ref().map(|e| {
                    let other = cond.clone().negate();
                    Box::new(self.moved_where(system, &other, e))
                }),
            },
            _ => {
                let Ok(all) =
                    map_children(expr, &mut |e| Ok::<_, Infallible>(self.moved(system, e)));
                all
            }
        }
    }

    fn moved_where(&mut self, system: &mut System, cond: &Cond, expr: &Expr) -> Expr {
        let around = self.when.clone();
        self.when = around.clone().and(cond.clone());
        let moved = self.moved(system, expr);
        self.when = around;
        moved
    }
}

/// Adds a variable for the value; returns the reference to it at the same point.
fn variable(system: &mut System, of: VarId, name: &str, value: Expr, when: &Cond) -> Expr {
    let like = system.vars[of.index()].clone();
    let ty = type_of(system, &value).unwrap_or(like.ty.clone());
    let var = VarId::from(system.vars.len());
    let taken = |name: &str| {
        system.vars.iter().any(|v| v.name == name)
            || system.inputs.iter().any(|i| i.name == name)
            || system.params.iter().any(|p| p.name == name)
    };
    let name = fresh(name, taken);
    let mut on = like.on;
    if *when != Cond::TRUE {
        on.push(when.clone());
    }
    let span = like.span;
    system.vars.push(Var {
        name,
        ty,
        law: like.law,
        own: None,
        on,
        body: value,
        span,
    });
    let index = (0..system.dims.len()).map(|d| Form::from(DimId::from(d)));
    Expr::Var {
        var,
        index: index.collect(),
        span,
    }
}

fn replaced(expr: &Expr, local: LocalId, by: &Expr) -> Expr {
    let Ok(all) = map_expr(expr, &mut |e| {
        Ok::<_, Infallible>(match e {
            Expr::Local(l) if l == local => by.clone(),
            other => other,
        })
    });
    all
}
