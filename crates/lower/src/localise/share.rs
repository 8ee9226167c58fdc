//! Iterators of one name: sums that run through the same range in the same direction share an iterator.
//!
//! Before: every `reduce` has iterators of its own, also where two are called `q`. After: those that
//! have one name, one range and one direction are one iterator, so that `q` in a mapping means all of
//! them and their terms run at one point of the grown index space.
//!
//! Two sums do not share where one needs the finished other at the same point: the one ends where the
//! other begins. What can not share keeps its own iterator; a mapping that names it is refused, since
//! the name does not say which one is meant.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::form::{Form, Overflow};
use systola_ir::mapping::Direction;
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Expr, System, map_forms};
use systola_ir::{DimId, VarId};

use super::Choices;

/// Makes iterators of the same name, range and direction one, in the system and in what the mapping says of it.
pub(super) fn share_iterators(system: &mut System, choices: &mut Choices) -> Result<(), Overflow> {
    let n = system.dims.len();
    let direction = |d: DimId| {
        let orders = choices.order.values();
        let written = orders.flat_map(|(order, _)| order).find(|(at, _)| *at == d);
        written.map_or(Direction::Up, |(_, direction)| *direction)
    };
    let owners = owners(system);
    let needs = needs(system);
    // One waits for the other: a variable that sums over `a` needs one that sums over `b`, at its own point.
    let waits = |a: DimId, b: DimId| {
        let (Some(a), Some(b)) = (owners.get(&a), owners.get(&b)) else {
            return true;
        };
        a.iter()
            .any(|a| needs[a].iter().any(|need| b.contains(need)))
    };
    let mut into: BTreeMap<DimId, DimId> = BTreeMap::new();
    let mut kept: Vec<(DimId, Vec<DimId>)> = Vec::new();
    for k in 0..system.bound.len() {
        let d = DimId::from(n + k);
        let range = renamed_range(system, d, &into)?;
        let mut found = None;
        for (at, (first, members)) in kept.iter().enumerate() {
            let same = system.dim(*first).name == system.dim(d).name
                && renamed_range(system, *first, &into)? == range
                && direction(*first) == direction(d);
            let apart = |m: &DimId| nested(system, *m, d) || waits(d, *m) || waits(*m, d);
            if same && !members.iter().any(apart) {
                found = Some(at);
                break;
            }
        }
        match found {
            Some(at) => {
                into.insert(d, kept[at].0);
                kept[at].1.push(d);
            }
            None => kept.push((d, vec![d])),
        }
    }
    if into.is_empty() {
        return Ok(());
    }
    let mut renumber: BTreeMap<DimId, DimId> = BTreeMap::new();
    for (at, (_, members)) in kept.iter().enumerate() {
        renumber.extend(members.iter().map(|m| (*m, DimId::from(n + at))));
    }
    rewrite(system, &kept, &renumber)?;
    for (order, _) in choices.order.values_mut() {
        let mut seen = BTreeSet::new();
        for (d, _) in order.iter_mut() {
            *d = *renumber.get(d).unwrap_or(d);
        }
        order.retain(|(d, _)| seen.insert(*d));
    }
    Ok(())
}

fn renamed_range(
    system: &System,
    d: DimId,
    into: &BTreeMap<DimId, DimId>,
) -> Result<Option<(Form, Form)>, Overflow> {
    let rename = |f: &Form| f.substitute(&|d| into.get(&d).map(|d| Form::from(*d)));
    match &system.dim(d).range {
        Some((lo, hi)) => Ok(Some((rename(lo)?, rename(hi)?))),
        None => Ok(None),
    }
}

/// The variables whose equations sum over an iterator.
fn owners(system: &System) -> BTreeMap<DimId, BTreeSet<VarId>> {
    let mut owners: BTreeMap<DimId, BTreeSet<VarId>> = BTreeMap::new();
    for (n, var) in system.vars.iter().enumerate() {
        walk(&var.body, &mut |e| {
            if let Expr::Reduce { dims, .. } = e {
                for d in dims {
                    owners.entry(*d).or_default().insert(VarId::from(n));
                }
            }
        });
    }
    owners
}

/// What each variable needs at its own point, directly or through others.
fn needs(system: &System) -> BTreeMap<VarId, BTreeSet<VarId>> {
    let here = system.identity_index();
    let mut needs: BTreeMap<VarId, BTreeSet<VarId>> = BTreeMap::new();
    for (n, var) in system.vars.iter().enumerate() {
        let direct = needs.entry(VarId::from(n)).or_default();
        walk(&var.body, &mut |e| {
            if let Expr::Var { var, index, .. } = e
                && *index == here
            {
                direct.insert(*var);
            }
        });
    }
    loop {
        let mut changed = false;
        for n in (0..system.vars.len()).map(VarId::from) {
            let further: BTreeSet<VarId> = needs[&n]
                .iter()
                .flat_map(|need| needs[need].iter().copied())
                .collect();
            let own = needs.entry(n).or_default();
            let before = own.len();
            own.extend(further);
            changed |= own.len() != before;
        }
        if !changed {
            return needs;
        }
    }
}

/// Does one of two iterators run inside of the sum over the other, or do both belong to one sum?
fn nested(system: &System, a: DimId, b: DimId) -> bool {
    let mut found = false;
    for var in &system.vars {
        walk(&var.body, &mut |e| {
            let Expr::Reduce { dims, body, .. } = e else {
                return;
            };
            let inside = |d: DimId| {
                let mut inside = dims.contains(&d);
                walk(body, &mut |e| {
                    if let Expr::Reduce { dims, .. } = e {
                        inside |= dims.contains(&d);
                    }
                });
                inside
            };
            found |= (dims.contains(&a) || dims.contains(&b)) && inside(a) && inside(b);
        });
    }
    found
}

/// Keeps the first iterator of every group, under its new number.
fn rewrite(
    system: &mut System,
    kept: &[(DimId, Vec<DimId>)],
    renumber: &BTreeMap<DimId, DimId>,
) -> Result<(), Overflow> {
    let rename = |f: &Form| f.substitute(&|d| renumber.get(&d).map(|d| Form::from(*d)));
    let mut bound = Vec::new();
    for (first, _) in kept {
        let mut dim = system.dim(*first).clone();
        if let Some((lo, hi)) = &dim.range {
            dim.range = Some((rename(lo)?, rename(hi)?));
        }
        bound.push(dim);
    }
    system.bound = bound;
    for var in &mut system.vars {
        let body = map_forms(&var.body, &rename)?;
        let Ok(body) = map_expr::<std::convert::Infallible>(&body, &mut |e| {
            Ok(match e {
                Expr::Iter(d) => Expr::Iter(*renumber.get(&d).unwrap_or(&d)),
                Expr::Reduce {
                    op,
                    dims,
                    body,
                    span,
                } => Expr::Reduce {
                    op,
                    dims: dims.iter().map(|d| *renumber.get(d).unwrap_or(d)).collect(),
                    body,
                    span,
                },
                other => other,
            })
        });
        var.body = body;
    }
    Ok(())
}
