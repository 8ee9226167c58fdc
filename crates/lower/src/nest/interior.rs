//! Conditions under which no test is needed.
//!
//! Most blocks of a large problem lie inside every array they touch. The form of each test that the
//! cells would perform is taken at the worst lane, PE and tick. What remains depends on the block
//! only; where all these conditions hold, the block runs without any test.

use systola_ir::DimId;
use systola_ir::array::{Array, Realisation, Role};
use systola_ir::form::{Atom, Cond, Form, Overflow, Rel};
use systola_ir::system::visit::walk;
use systola_ir::system::{Axis, Expr};

use crate::facts::Facts;
use crate::storage::links::delivering;
use crate::storage::slots::{SlotPiece, Slots};

/// A comparison that decides about memory accesses or branches, over the slot.
#[derive(Clone, Debug)]
pub struct Test {
    pub cond: Cond,
    /// If it does not hold, there is nothing to compute.
    pub of_domain: bool,
    /// It decides only about stores: all values are the same whether or not it holds.
    pub of_stores: bool,
}

/// All tests. Those of the domain come first: among slots without a point, an edge may look
/// frequent.
pub fn tests(array: &Array, slots: &Slots) -> Result<Vec<Test>, Overflow> {
    let (mut domain, mut values, mut stores) = (Vec::new(), Vec::new(), Vec::new());
    for piece in &slots.pieces {
        let at = |f: &Form| f.substitute(&|d| piece.point.get(d.index()).cloned());
        domain.extend([piece.valid.clone(), array.owned().map(&at)?]);
        of_values(array, piece, &mut values)?;
        for write in array.outputs.iter().flat_map(|o| &o.writes) {
            stores.push(write.when.map(&at)?);
        }
    }
    // With several pieces, the one that is valid selects the value.
    let single = slots.pieces.len() == 1;
    let mut unique: Vec<Test> = Vec::new();
    for (conds, of_domain, of_stores) in [
        (domain, single, single),
        (values, false, false),
        (stores, false, true),
    ] {
        let mut atoms = Vec::new();
        conds.iter().for_each(|cond| flatten(cond, &mut atoms));
        for cond in atoms {
            match unique.iter_mut().find(|test| test.cond == cond) {
                Some(test) => test.of_stores &= of_stores,
                None => unique.push(Test {
                    cond,
                    of_domain,
                    of_stores,
                }),
            }
        }
    }
    Ok(unique)
}

/// The conditions that decide the values of cells: guards, ends of inputs, and which link delivers.
fn of_values(array: &Array, piece: &SlotPiece, all: &mut Vec<Cond>) -> Result<(), Overflow> {
    let at = |f: &Form| f.substitute(&|d| piece.point.get(d.index()).cloned());
    let mut exprs: Vec<&Expr> = array.cells.iter().map(|c| &c.body).collect();
    exprs.extend(
        array
            .outputs
            .iter()
            .flat_map(|o| o.writes.iter().map(|w| &w.value)),
    );
    for expr in exprs {
        of_expr(array, expr, &at, all)?;
    }
    for port in &array.ports {
        let links = delivering(port);
        for (link, choice) in &links {
            if links.len() > 1 {
                all.push(choice.map(&at)?);
            }
            if let Role::Propagation { input, index, .. } = &array.cells[port.source.index()].role
                && matches!(
                    link.realisation,
                    Realisation::Reinject | Realisation::Broadcast
                )
            {
                all.push(inside(&array.inputs[input.index()].axes, index).map(&at)?);
            }
        }
    }
    Ok(())
}

/// lo ≤ index < hi on every axis.
pub fn inside(axes: &[Axis], index: &[Form]) -> Cond {
    axes.iter()
        .zip(index)
        .map(|(axis, i)| {
            Cond::cmp(Rel::Ge, i.clone(), axis.lo.clone()).and(Cond::cmp(
                Rel::Lt,
                i.clone(),
                axis.hi.clone(),
            ))
        })
        .fold(Cond::TRUE, Cond::and)
}

/// The conditions that decide the value of an expression, but for those of the terms of a sum.
fn of_expr(
    array: &Array,
    expr: &Expr,
    at: &impl Fn(&Form) -> Result<Form, Overflow>,
    all: &mut Vec<Cond>,
) -> Result<(), Overflow> {
    let of_point = |form: &Form| form.dims().iter().all(|d| d.index() < array.dims.len());
    let mut found = Vec::new();
    walk(expr, &mut |e| match e {
        Expr::Input { input, index, .. } if index.iter().all(of_point) => {
            found.push(inside(&array.inputs[input.index()].axes, index));
        }
        Expr::Guard { cond, .. } if cond.forms().into_iter().all(of_point) => {
            found.push(cond.clone());
        }
        _ => {}
    });
    for cond in found {
        all.push(cond.map(at)?);
    }
    Ok(())
}

/// For each cell, all comparisons that decide what it computes, keeps and writes.
pub fn tests_of_cells(array: &Array, slots: &Slots) -> Result<Vec<Vec<Cond>>, Overflow> {
    let mut tests = vec![Vec::new(); array.cells.len()];
    for piece in &slots.pieces {
        let at = |f: &Form| f.substitute(&|d| piece.point.get(d.index()).cloned());
        for (n, cell) in array.cells.iter().enumerate() {
            let mut conds = vec![cell.domain.map(&at)?];
            if let Some(kept) = &cell.kept {
                conds.push(kept.when.map(&at)?);
            }
            of_expr(array, &cell.body, &at, &mut conds)?;
            let outputs = array.outputs.iter().enumerate();
            for (_, output) in outputs.filter(|(n, _)| !array.is_storage(*n)) {
                for write in &output.writes {
                    let mut takes = false;
                    walk(&write.value, &mut |e| {
                        takes |= matches!(e, Expr::Var { var, .. } if var.index() == n);
                    });
                    if takes {
                        conds.push(write.when.map(&at)?);
                        of_expr(array, &write.value, &at, &mut conds)?;
                    }
                }
            }
            let mut atoms = Vec::new();
            conds.iter().for_each(|cond| flatten(cond, &mut atoms));
            for atom in atoms {
                if !tests[n].contains(&atom) {
                    tests[n].push(atom);
                }
            }
        }
    }
    Ok(tests)
}

fn flatten(cond: &Cond, atoms: &mut Vec<Cond>) {
    match cond {
        Cond::Const(_) => {}
        Cond::Cmp(..) => atoms.push(cond.clone()),
        Cond::And(parts) | Cond::Or(parts) => parts.iter().for_each(|p| flatten(p, atoms)),
        Cond::Not(inner) => flatten(inner, atoms),
    }
}

impl Test {
    /// The test with its forms mapped.
    pub fn map(&self, f: &impl Fn(&Form) -> Result<Form, Overflow>) -> Result<Test, Overflow> {
        Ok(Test {
            cond: self.cond.map(f)?,
            of_domain: self.of_domain,
            of_stores: self.of_stores,
        })
    }
}

/// A condition without the variables `inner` under which each test has one outcome for all of their
/// values; true if there is nothing to gain. Tests without a variable that `matters` selects are
/// ignored. `holds` may know more than the facts: is a form without the inner variables at least
/// zero? A `predicated` test that mostly holds stays in the code.
pub fn interior(
    tests: &[Test],
    facts: &Facts<'_>,
    inner: &impl Fn(DimId) -> bool,
    matters: &impl Fn(DimId) -> bool,
    holds: &dyn Fn(&Form) -> bool,
    predicated: &dyn Fn(&Test) -> bool,
) -> Cond {
    // Predicated tests still count where outcomes are weighed: beyond the domain an edge may look
    // frequent.
    let (mut found, mut likely) = (Cond::TRUE, Cond::TRUE);
    for test in tests {
        let Cond::Cmp(rel, left, right) = &test.cond else {
            continue;
        };
        let gap = left.sub(right);
        if !gap.dims().into_iter().any(matters) {
            continue;
        }
        // Either outcome will do. The more frequent one is tried first for an equation, and if no
        // size affects the test; otherwise the true one comes first if sizes may be small.
        let outcomes = match rel {
            Rel::Ge => [gap.clone(), gap.neg().plus(-1)],
            Rel::Gt => [gap.plus(-1), gap.neg()],
            Rel::Le => [gap.neg(), gap.plus(-1)],
            Rel::Lt => [gap.neg().plus(-1), gap.clone()],
            Rel::Eq | Rel::Ne => [gap.plus(-1), gap.neg().plus(-1)],
        };
        if outcomes.iter().any(|f| facts.is_nonnegative(f)) {
            continue;
        }
        let sure = |f: &Form| worst(f, facts, inner).is_some_and(|worst| holds(&worst));
        if outcomes.iter().any(sure) {
            continue;
        }
        let known = facts.with(found.clone());
        let samples = facts.with(likely.clone());
        let holds_then = match rel {
            Rel::Eq => [false; 2],
            Rel::Ne => [true; 2],
            Rel::Ge | Rel::Gt | Rel::Le | Rel::Lt => [true, false],
        };
        let worsts = outcomes
            .iter()
            .zip(holds_then)
            .filter_map(|(f, then)| Some((worst(f, facts, inner)?, then)));
        let mut worsts: Vec<(Form, bool)> = worsts.collect();
        // If too few samples satisfy everything found so far, use only the conditions on the same
        // variables.
        let near = (!samples.has_many_samples()).then(|| facts.with(about(&likely, &gap)));
        let judge = near.as_ref().unwrap_or(&samples);
        let often = |worst: &Form| judge.weight(&Cond::cmp(Rel::Ge, worst.clone(), 0));
        let is_equation = matches!(rel, Rel::Eq | Rel::Ne);
        let frequent = facts.prefers_frequent() || is_equation || facts.is_sizeless(&gap);
        if frequent && !test.of_domain {
            worsts.sort_by(|(a, _), (b, _)| often(b).total_cmp(&often(a)));
        }
        for (worst, then) in worsts {
            if known.is_nonnegative(&worst) {
                break;
            }
            let holds = Cond::cmp(Rel::Ge, worst, 0);
            // A condition that rarely holds is left to the loops inside.
            if samples.is_common(&holds) {
                if !(then && predicated(test)) {
                    found = found.and(holds.clone());
                }
                likely = likely.and(holds);
                break;
            }
        }
    }
    without_implied(found)
}

/// A condition without parts that another part implies: `t >= 3` beside `t >= 11`.
pub fn without_implied(cond: Cond) -> Cond {
    let Cond::And(mut parts) = cond else {
        return cond;
    };
    let mut at = 0;
    while at < parts.len() {
        let implied = gap(&parts[at]).is_some_and(|own| {
            let others = parts.iter().enumerate().filter(|(n, _)| *n != at);
            let mut nearer = others.filter_map(|(_, other)| own.sub(&gap(other)?).as_constant());
            nearer.any(|further| further >= 0)
        });
        if implied {
            parts.remove(at);
        } else {
            at += 1;
        }
    }
    parts.into_iter().fold(Cond::TRUE, Cond::and)
}

/// The form that is nonnegative where a comparison holds.
fn gap(cond: &Cond) -> Option<Form> {
    let Cond::Cmp(rel, left, right) = cond else {
        return None;
    };
    match rel {
        Rel::Ge => Some(left.sub(right)),
        Rel::Gt => Some(left.sub(right).plus(-1)),
        Rel::Le => Some(right.sub(left)),
        Rel::Lt => Some(right.sub(left).plus(-1)),
        Rel::Eq | Rel::Ne => None,
    }
}

/// The parts of a conjunction that use a variable of the form.
fn about(found: &Cond, form: &Form) -> Cond {
    let dims = form.dims();
    let shares = |part: &&Cond| {
        let mut its = part.forms().into_iter().flat_map(Form::dims);
        its.any(|d| dims.contains(&d))
    };
    let parts = match found {
        Cond::And(parts) => parts.as_slice(),
        part => std::slice::from_ref(part),
    };
    parts
        .iter()
        .filter(shares)
        .cloned()
        .fold(Cond::TRUE, Cond::and)
}

/// The form at the values of the inner variables that make it smallest.
fn worst(form: &Form, facts: &Facts<'_>, inner: &impl Fn(DimId) -> bool) -> Option<Form> {
    let mut form = form.clone();
    let digits: Vec<_> = form
        .terms()
        .filter_map(|(atom, c)| match atom {
            Atom::Dim(_) => None,
            Atom::Floor(of, by) => Some((of.floor_div(*by), atom.clone(), c.clone())),
            Atom::Mod(of, by) => Some((of.modulo(*by), atom.clone(), c.clone())),
        })
        .filter(|(digit, _, _)| digit.dims().into_iter().any(inner))
        .collect();
    for (digit, atom, coefficient) in digits {
        let (least, most) = span(&atom, facts)?;
        let end = if coefficient.as_constant()? > 0 {
            least
        } else {
            most
        };
        form = form.sub(&digit.scale(&coefficient).ok()?);
        form = form.add(&Form::from(end).scale(&coefficient).ok()?);
    }
    loop {
        let next = form
            .terms()
            .filter_map(|(atom, c)| match atom {
                Atom::Dim(d) if inner(*d) => Some((*d, c.clone())),
                Atom::Dim(_) | Atom::Floor(..) | Atom::Mod(..) => None,
            })
            .max_by_key(|(d, _)| d.index());
        let Some((d, coefficient)) = next else { break };
        let sign = coefficient.as_constant()?;
        let range = facts.range(d)?;
        let ends = if sign > 0 { &range.lo } else { &range.hi };
        let number = ends.iter().find(|e| e.as_constant().is_some());
        let end = number.or(ends.first())?;
        let end = if sign > 0 { end.clone() } else { end.plus(-1) };
        let gone = Form::from(d).scale(&coefficient).ok()?;
        form = form.sub(&gone).add(&end.scale(&coefficient).ok()?);
    }
    (!form.dims().into_iter().any(inner)).then_some(form)
}

/// The least and the greatest value of a floor or remainder of variables with constant ranges.
fn span(atom: &Atom, facts: &Facts<'_>) -> Option<(i128, i128)> {
    let (Atom::Floor(inner, by) | Atom::Mod(inner, by)) = atom else {
        return None;
    };
    let of = |form: &Form| -> Option<(i128, i128)> {
        let start = form.constant_part().as_constant()?;
        form.terms()
            .try_fold((start, start), |(lo, hi), (atom, c)| {
                let c = c.as_constant()?;
                let (first, last) = match atom {
                    Atom::Dim(d) => {
                        let (first, end) = facts.range(*d)?.constant()?;
                        (first, end - 1)
                    }
                    Atom::Floor(..) | Atom::Mod(..) => span(atom, facts)?,
                };
                Some((
                    lo + (c * first).min(c * last),
                    hi + (c * first).max(c * last),
                ))
            })
    };
    match atom {
        Atom::Floor(..) => {
            let (lo, hi) = of(inner)?;
            Some((lo.div_euclid(*by), hi.div_euclid(*by)))
        }
        Atom::Mod(..) | Atom::Dim(_) => match of(inner) {
            Some((lo, hi)) if lo.div_euclid(*by) == hi.div_euclid(*by) => {
                Some((lo.rem_euclid(*by), hi.rem_euclid(*by)))
            }
            _ => Some((0, by - 1)),
        },
    }
}
