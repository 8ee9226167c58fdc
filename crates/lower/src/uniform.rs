//! References that are uniform where they are read.
//!
//! `select(i == 0, Y(t - 1, 0), …)` reads Y(t − 1, 0) only where i is 0, and there it is Y(t − 1,
//! i): at the distance (1, 0) from every point that reads it. The distance z − index is computed on
//! the set of points at which the reference is evaluated: first with the equations among its
//! conditions, then from the least and the greatest value of each component.

use systola_ir::form::{Atom, Cond, Form, Overflow, Poly, Rel};
use systola_ir::system::visit::map_children;
use systola_ir::system::{Expr, System, shifted};
use systola_ir::{DimId, VarId};

use crate::clock::interval;
use crate::decide::Decide;

/// e = z − index on the points that satisfy a condition, if it is the same at all of them.
pub fn distance_where(system: &System, index: &[Form], read: &Cond) -> Option<Vec<Poly>> {
    if let Some(distance) = system.distance(index) {
        return Some(distance);
    }
    let here = system.identity_index();
    here.iter()
        .zip(index)
        .map(|(here, there)| constant_where(system, &here.sub(there), read))
        .collect()
}

/// The value of a form on the points that satisfy a condition, if it is the same at all of them.
pub fn constant_where(system: &System, form: &Form, read: &Cond) -> Option<Poly> {
    if let Some(known) = form.as_poly() {
        return Some(known.clone());
    }
    if let Some(known) = substituted(form, &equations(read)).ok()?.as_poly() {
        return Some(known.clone());
    }
    let decide = Decide {
        n_params: system.params.len(),
        context: system.context_cond(),
    };
    let (least, most) = interval(form, read, &decide).ok()??;
    (least == most).then_some(least)
}

/// Is there no point at which a condition holds? If that cannot be decided, the answer is no.
pub fn is_never(system: &System, read: &Cond) -> bool {
    let decide = Decide {
        n_params: system.params.len(),
        context: system.context_cond(),
    };
    decide
        .is_empty(read, system.dims.len() + system.bound.len())
        .unwrap_or(false)
}

/// Rewrites every reference that is uniform where it is read as z − e.
pub fn make_uniform(system: &mut System) -> Result<(), Overflow> {
    for n in 0..system.vars.len() {
        let domain = system.var_domain(VarId::from(n));
        let body = &system.vars[n].body;
        let mut uniform = true;
        systola_ir::system::visit::walk(body, &mut |e| {
            if let Expr::Var { index, .. } = e {
                uniform &= system.distance(index).is_some();
            }
        });
        if !uniform {
            let body = rewrite(system, &domain, body, &domain)?;
            system.vars[n].body = body;
        }
    }
    Ok(())
}

fn rewrite(system: &System, domain: &Cond, expr: &Expr, read: &Cond) -> Result<Expr, Overflow> {
    Ok(match expr {
        Expr::Var { var, index, span } if system.distance(index).is_none() => {
            let index = match distance_where(system, index, read) {
                Some(e) => shifted(&system.identity_index(), &e),
                None => index.clone(),
            };
            Expr::Var {
                var: *var,
                index,
                span: *span,
            }
        }
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            let holds = read.clone().and(cond.clone());
            let fails = read.clone().and(cond.clone().negate());
            Expr::Guard {
                cond: cond.clone(),
                then: Box::new(rewrite(system, domain, then, &holds)?),
                otherwise: match otherwise {
                    Some(e) => Some(Box::new(rewrite(system, domain, e, &fails)?)),
                    None => None,
                },
            }
        }
        Expr::Reduce { dims, .. } => {
            let ranges = dims.iter().filter_map(|d| system.dim_range(*d));
            let inside = ranges.fold(read.clone(), Cond::and);
            return map_children(expr, &mut |e| rewrite(system, domain, e, &inside));
        }
        // The terms of a prefix belong to other points, where the conditions of this point may not
        // hold.
        Expr::Scan { .. } => {
            return map_children(expr, &mut |e| rewrite(system, domain, e, domain));
        }
        other => return map_children(other, &mut |e| rewrite(system, domain, e, read)),
    })
}

/// Iterators with the forms that they equal where a condition holds.
fn equations(cond: &Cond) -> Vec<(DimId, Form)> {
    let mut found: Vec<(DimId, Form)> = Vec::new();
    let mut open = vec![cond];
    while let Some(cond) = open.pop() {
        match cond {
            Cond::And(parts) => open.extend(parts),
            Cond::Cmp(Rel::Eq, left, right) => {
                let Ok(zero) = substituted(&left.sub(right), &found) else {
                    continue;
                };
                let unit = zero.terms().find_map(|(atom, factor)| match atom {
                    Atom::Dim(d) => match factor.as_constant() {
                        Some(k @ (1 | -1)) => Some((*d, k)),
                        _ => None,
                    },
                    Atom::Floor(..) | Atom::Mod(..) => None,
                });
                let Some((d, k)) = unit else { continue };
                // k·d + rest = 0, so d = −k·rest.
                let Ok(term) = Form::from(d).scale(&Poly::constant(k)) else {
                    continue;
                };
                let Ok(value) = zero.sub(&term).scale(&Poly::constant(-k)) else {
                    continue;
                };
                if value.dims().contains(&d) {
                    continue;
                }
                for (_, other) in &mut found {
                    if let Ok(form) = substituted(other, &[(d, value.clone())]) {
                        *other = form;
                    }
                }
                found.push((d, value));
            }
            Cond::Cmp(..) | Cond::Or(_) | Cond::Not(_) | Cond::Const(_) => {}
        }
    }
    found
}

fn substituted(form: &Form, equations: &[(DimId, Form)]) -> Result<Form, Overflow> {
    form.substitute(&|d| {
        let found = equations.iter().find(|(at, _)| *at == d);
        found.map(|(_, value)| value.clone())
    })
}
