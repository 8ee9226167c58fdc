//! The role of an equation: a propagated input, a carried value, an accumulation, or plain.
//!
//! * X(z) = select(…, in(A z + b), X(z − e)) with A e = 0 is a *propagation*: it equals in(A z + b)
//!   everywhere, so it can be injected again at the edge of any tile.
//! * With a computed value in place of the input it is a *carry*.
//! * Z(z) = Z(z − e) ⊕ f, with any initial value, is an *accumulation*.

use systola_ir::array::Role;
use systola_ir::form::{Form, Poly};
use systola_ir::system::visit::walk;
use systola_ir::system::{Combine, Expr, System};
use systola_ir::{InputId, VarId};

use crate::localise::shift_form;

/// The role of a variable of a localised system.
pub fn role(system: &System, var: VarId) -> Role {
    let body = &system.vars[var.index()].body;
    let mut leaves = Vec::new();
    collect_leaves(body, &mut leaves);
    let own: Vec<Option<Vec<Poly>>> = leaves
        .iter()
        .map(|leaf| self_reference(system, var, leaf))
        .collect();
    if own.iter().any(Option::is_some) {
        let along: Vec<Vec<Poly>> = own.iter().flatten().cloned().collect();
        let others: Vec<&&Expr> = leaves
            .iter()
            .zip(&own)
            .filter(|(_, own)| own.is_none())
            .map(|(leaf, _)| leaf)
            .collect();
        if let Some(role) = propagation(&others, &along) {
            return role;
        }
        if others.iter().all(|e| !mentions(e, var)) {
            return Role::Carry {
                along: dedup(along),
            };
        }
    }
    match accumulation(system, var, body) {
        Some((op, along)) if !along.is_empty() => Role::Accumulation {
            op,
            along: dedup(along),
        },
        _ => Role::Plain,
    }
}

fn dedup(mut list: Vec<Vec<Poly>>) -> Vec<Vec<Poly>> {
    let mut seen = Vec::new();
    list.retain(|e| {
        let new = !seen.contains(e);
        seen.push(e.clone());
        new
    });
    list
}

/// The values among which guards choose.
fn collect_leaves<'a>(expr: &'a Expr, leaves: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Guard {
            then, otherwise, ..
        } => {
            collect_leaves(then, leaves);
            if let Some(otherwise) = otherwise {
                collect_leaves(otherwise, leaves);
            }
        }
        other => leaves.push(other),
    }
}

/// e, if the expression is V(z − e) with e ≠ 0.
fn self_reference(system: &System, var: VarId, expr: &Expr) -> Option<Vec<Poly>> {
    match expr {
        Expr::Var { var: v, index, .. } if *v == var => system
            .distance(index)
            .filter(|e| e.iter().any(|p| !p.is_zero())),
        _ => None,
    }
}

fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        if let Expr::Var { var: v, .. } = e {
            found |= *v == var;
        }
    });
    found
}

fn propagation(others: &[&&Expr], along: &[Vec<Poly>]) -> Option<Role> {
    let read = |e: &Expr| -> Option<(InputId, Vec<Form>)> {
        match e {
            Expr::Input { input, index, .. } => Some((*input, index.clone())),
            _ => None,
        }
    };
    let first = read(others.first()?)?;
    let [e] = along else {
        return None;
    };
    let same = others.iter().all(|o| read(o).as_ref() == Some(&first));
    let (input, index) = first;
    let constant = index
        .iter()
        .all(|form| shift_form(form, e).is_ok_and(|there| there == *form));
    (same && constant).then(|| Role::Propagation {
        input,
        index,
        along: e.clone(),
    })
}

/// The operator and the distances, if every branch is a term, or a self-reference combined with a
/// term.
fn accumulation(system: &System, var: VarId, body: &Expr) -> Option<(Combine, Vec<Vec<Poly>>)> {
    match body {
        Expr::Guard {
            then, otherwise, ..
        } => {
            let branches = std::iter::once(&**then).chain(otherwise.as_deref());
            let mut op = None;
            let mut along = Vec::new();
            for branch in branches {
                if !mentions(branch, var) {
                    continue;
                }
                let (found, e) = accumulation(system, var, branch)?;
                if *op.get_or_insert(found) != found {
                    return None;
                }
                along.extend(e);
            }
            Some((op?, along))
        }
        Expr::Binary(op, left, right) if op.is_reduction() => {
            let op = *op;
            // a ⊕ b ⊕ …: exactly one operand is the sum so far.
            let mut operands = Vec::new();
            flatten(op, left, &mut operands);
            flatten(op, right, &mut operands);
            let (own, rest): (Vec<&Expr>, Vec<&Expr>) =
                operands.into_iter().partition(|e| mentions(e, var));
            let [sum] = own.as_slice() else {
                return None;
            };
            (!rest.is_empty()).then_some(())?;
            so_far(system, var, sum).map(|along| (Combine::Op(op), along))
        }
        Expr::Call(f, args) => {
            let [sum, term] = args.as_slice() else {
                return None;
            };
            if mentions(term, var) {
                return None;
            }
            so_far(system, var, sum).map(|along| (Combine::Fn(*f), along))
        }
        _ => None,
    }
}

fn flatten<'a>(op: systola_ir::BinOp, expr: &'a Expr, operands: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Binary(o, left, right) if *o == op => {
            flatten(op, left, operands);
            flatten(op, right, operands);
        }
        other => operands.push(other),
    }
}

/// The distances, if every leaf is a self-reference or an initial value.
fn so_far(system: &System, var: VarId, expr: &Expr) -> Option<Vec<Vec<Poly>>> {
    let mut leaves = Vec::new();
    collect_leaves(expr, &mut leaves);
    let mut along = Vec::new();
    for leaf in leaves {
        match self_reference(system, var, leaf) {
            Some(e) => along.push(e),
            None if mentions(leaf, var) => return None,
            None => {}
        }
    }
    Some(along)
}
