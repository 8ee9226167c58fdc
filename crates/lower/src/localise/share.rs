//! Sums that run over the same range in the same direction under one name share an iterator.
//!
//! Before: every `reduce` has iterators of its own, even where two of them are called `q`. After:
//! iterators with the same name, range and direction are one iterator, so that `q` in a mapping
//! means all of them and their terms are computed at one point of the grown index space.
//!
//! Two sums do not share an iterator if one needs the finished result of the other at the same
//! point: one ends where the other begins. Such sums keep separate iterators. A mapping that uses
//! their name is refused, since the name is ambiguous.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::mapping::Direction;
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, System};
use systola_ir::{DimId, VarId};

use super::Choices;
use super::named::contains;
use super::renumber::renumber_bound;

/// Merges iterators of the same name, range and direction, in the system and in the mapping's
/// choices.
pub(super) fn share_iterators(system: &mut System, choices: &mut Choices) -> Result<(), Overflow> {
    let n = system.dims.len();
    let direction = |d: DimId| {
        let orders = choices.order.values();
        let written = orders
            .flat_map(|(stages, _)| stages.iter().flatten())
            .find(|(at, _)| *at == d);
        written.map_or(Direction::Up, |(_, direction)| *direction)
    };
    let owners = owners(system);
    let needs = needs(system);
    // A variable that sums over `a` needs, at its own point, one that sums over `b`.
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
            let separate = |m: &DimId| nested(system, *m, d) || waits(d, *m) || waits(*m, d);
            if same && !members.iter().any(separate) {
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
    let firsts: Vec<DimId> = kept.iter().map(|(first, _)| *first).collect();
    renumber_bound(system, &firsts, &renumber).map_err(|(o, _)| o)?;
    for (stages, _) in choices.order.values_mut() {
        let mut seen = BTreeSet::new();
        for stage in stages {
            for (d, _) in stage.iter_mut() {
                *d = *renumber.get(d).unwrap_or(d);
            }
            stage.retain(|(d, _)| seen.insert(*d));
        }
    }
    let mut present: Vec<Cond> = Vec::new();
    for cond in &choices.present {
        let cond = cond.map(&|f| f.substitute(&|d| renumber.get(&d).map(|d| Form::from(*d))))?;
        if !present.contains(&cond) {
            present.push(cond);
        }
    }
    choices.present = present;
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

/// Does one of two iterators run inside the sum over the other, or do both belong to one sum?
fn nested(system: &System, a: DimId, b: DimId) -> bool {
    let mut found = false;
    for var in &system.vars {
        walk(&var.body, &mut |e| {
            if let Expr::Reduce { dims, .. } = e {
                let one = dims.contains(&a) || dims.contains(&b);
                found |= one && sums_over(e, a) && sums_over(e, b);
            }
        });
    }
    found
}

/// Does the expression sum over the iterator?
fn sums_over(expr: &Expr, d: DimId) -> bool {
    contains(
        expr,
        &|e| matches!(e, Expr::Reduce { dims, .. } if dims.contains(&d)),
    )
}
