//! Which PEs must test their point?
//!
//! The PEs of an array and its steps form a box, and a mapping rarely fills it. A slot of the box
//! that belongs to no point of the domain would still compute, if nobody tests. That is harmless
//! unless it reads an input outside of its axes, divides integers, looks up a table, or writes an
//! output: points of the domain read only points of the domain, at the time they are due. For every
//! such effect it is asked, for all sizes at once, whether an empty slot could have it.

use std::cell::OnceCell;

use affine::{Set, Space};
use systola_ir::array::{Array, Guard, Reverse};
use systola_ir::codes::legality as codes;
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::mapping::Check;
use systola_ir::sets::{map_of, set_of};
use systola_ir::system::visit::children;
use systola_ir::system::{Axis, Expr};
use systola_ir::{BinOp, Diagnostic, Span};

use crate::clock::{domain, form_bounds};
use crate::decide::{Decide, Sample, Undecided};

/// An effect of a cell or an output on memory.
struct Effect {
    what: String,
    /// Where it happens, and goes wrong outside of the domain.
    when: Cond,
}

/// Finds the guards that stay and those that are proved away.
pub fn find_guards(array: &Array, decide: &Decide) -> Vec<Guard> {
    let mut guards: Vec<Guard> = off_lattice(array).into_iter().collect();
    let effects = effects(array);
    if effects.is_empty() {
        return guards;
    }
    let slots = empty_slots(array, decide);
    for effect in effects {
        let (kept, reason) = match (&slots, array.check) {
            (_, Check::Check) => (true, "`check` asks every PE to test".to_string()),
            (Slots::Filled, _) => (false, "every slot of the array has a point".to_string()),
            (Slots::Unknown(why), _) => (true, why.clone()),
            (Slots::Empty(boxes), _) => match happens(array, decide, boxes, &effect.when) {
                Ok(None) => (false, "no empty slot can have this effect".to_string()),
                Ok(Some((params, point))) => {
                    let names = array.param_names();
                    let at: Vec<String> = array
                        .dims
                        .iter()
                        .zip(&point)
                        .map(|(d, v)| format!("{d} = {v}"))
                        .collect();
                    let sizes: Vec<String> = names
                        .iter()
                        .zip(&params)
                        .map(|(p, v)| format!("{p} = {v}"))
                        .collect();
                    (
                        true,
                        format!(
                            "an empty slot would, at {} with {}",
                            at.join(", "),
                            sizes.join(", ")
                        ),
                    )
                }
                Err(_) => (true, "not proved unnecessary".to_string()),
            },
        };
        guards.push(Guard {
            effect: effect.what,
            kept,
            reason,
        });
    }
    guards
}

/// A mapping with a determinant other than 1 leaves slots between its points.
fn off_lattice(array: &Array) -> Option<Guard> {
    let widest = array
        .pieces
        .iter()
        .filter_map(|piece| match &piece.reverse {
            Reverse::Forms(forms) => forms.iter().map(|(_, divisor)| *divisor).max(),
            Reverse::Scan => None,
        })
        .max()?;
    (widest > 1).then(|| Guard {
        effect: "a slot between the points computes".into(),
        kept: true,
        reason: format!("a point needs a division by {widest} that comes out even"),
    })
}

/// `trust` is refused where a test is needed.
pub fn verify_trust(array: &Array, span: Span) -> Option<Diagnostic> {
    if array.check != Check::Trust {
        return None;
    }
    let needed = array.guards.iter().find(|g| g.kept)?;
    Some(
        Diagnostic::new(
            &codes::TRUST_IS_WRONG,
            span,
            format!("a test is needed: {}", needed.effect),
        )
        .note(needed.reason.clone())
        .help("use `auto`, which keeps only the tests that are needed"),
    )
}

enum Slots {
    /// No slot of the box is empty.
    Filled,
    Empty(Boxes),
    Unknown(String),
}

/// The points outside of the domain that the empty slots belong to.
struct Boxes {
    /// In a box that is at least as large as the array's, found without projections.
    loose: Set,
    /// In the box itself, found when it is needed.
    tight: OnceCell<Result<Set, Undecided>>,
}

fn happens(
    array: &Array,
    decide: &Decide,
    boxes: &Boxes,
    when: &Cond,
) -> Result<Option<Sample>, Undecided> {
    let space = Space::new(decide.n_params, array.dims.len());
    let effect = set_of(when, space)?;
    match first_common(&boxes.loose, &effect)? {
        None => Ok(None),
        Some(sample) if is_in_box(array, &sample)? => Ok(Some(sample)),
        Some(_) => {
            let tight = boxes
                .tight
                .get_or_init(|| box_around(array, decide, Bounds::Tight));
            first_common(tight.as_ref().map_err(Clone::clone)?, &effect)
        }
    }
}

/// A point of both. Pair by pair: most effects that need a test show it in the first pieces.
fn first_common(slots: &Set, effect: &Set) -> Result<Option<Sample>, Undecided> {
    for slots in slots.pieces() {
        for effect in effect.pieces() {
            let both = slots.intersect(effect)?;
            if !both.is_empty()? {
                return Ok(Set::from(both).sample()?);
            }
        }
    }
    Ok(None)
}

/// Do the coordinates of a point lie between those of points of the domain, at its sizes?
fn is_in_box(array: &Array, (params, point): &Sample) -> Result<bool, Undecided> {
    let Some(piece) = array.pieces.first() else {
        return Ok(false);
    };
    for form in piece.place.iter().chain(&piece.time) {
        let value = form.eval(params, point)?;
        match form_bounds(array, &[(&piece.cond, form)], params)? {
            Some((least, most)) if (least..=most).contains(&value) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn empty_slots(array: &Array, decide: &Decide) -> Slots {
    if array.pieces.len() != 1 {
        return Slots::Unknown("the mapping has several pieces".into());
    }
    let slots = box_around(array, decide, Bounds::Loose);
    match slots.and_then(|slots| Ok((slots.is_empty()?, slots))) {
        Ok((true, _)) => Slots::Filled,
        Ok((false, loose)) => Slots::Empty(Boxes {
            loose,
            tight: OnceCell::new(),
        }),
        Err(Undecided::NeedsSizes(why)) => {
            Slots::Unknown(format!("not decided for all sizes: {why}"))
        }
        Err(Undecided::TooComplex(error)) => Slots::Unknown(error.to_string()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    Loose,
    Tight,
}

/// The points outside of the domain whose coordinates lie between those of points inside.
fn box_around(array: &Array, decide: &Decide, bounds: Bounds) -> Result<Set, Undecided> {
    let space = Space::new(decide.n_params, array.dims.len());
    let cond = decide.context.clone().and(domain(array));
    let inside = set_of(&cond, space)?;
    let mut slots = inside.complement_in(&set_of(&decide.context, space)?)?;
    let forms = array
        .pieces
        .iter()
        .flat_map(|p| p.place.iter().chain(&p.time));
    for form in forms {
        let stated = declared_bounds(form, &cond);
        let stated = match bounds {
            Bounds::Loose => stated.or_else(|| sum_of_bounds(form, &cond)),
            Bounds::Tight => stated,
        };
        if let Some((least, most)) = stated {
            let between = Cond::Cmp(Rel::Ge, form.clone(), Form::from(least)).and(Cond::Cmp(
                Rel::Le,
                form.clone(),
                Form::from(most),
            ));
            slots = slots.intersect(&set_of(&between, space)?)?;
            continue;
        }
        if !has_small_coefficients(form) {
            return Err(Undecided::NeedsSizes(
                "a coordinate with large coefficients".into(),
            ));
        }
        let map = map_of(std::slice::from_ref(form), space)?;
        let values = inside.image(&map)?;
        let n = decide.n_params;
        // Not below the least value, not above the greatest.
        let above = values.product(&Set::universe(Space::new(n, 1)))?;
        let above = above.intersect(&Set::lex_le(n, 1)?)?.range_of(1)?;
        let below = values.product(&Set::universe(Space::new(n, 1)))?;
        let below = below.intersect(&Set::lex_ge(n, 1)?)?.range_of(1)?;
        let between = above.intersect(&below)?.coalesce()?;
        slots = slots.intersect(&between.preimage(&map)?)?;
    }
    Ok(slots)
}

/// The image of a form with large coefficients is full of gaps, one piece each.
fn has_small_coefficients(form: &Form) -> bool {
    const LARGEST: i128 = 8;
    form.terms().all(|(atom, c)| {
        let small = c.as_constant().is_some_and(|c| c.abs() <= LARGEST);
        small
            && match atom {
                Atom::Dim(_) => true,
                Atom::Floor(inner, _) | Atom::Mod(inner, _) => has_small_coefficients(inner),
            }
    })
}

/// An affine form between the sums of the bounds of its iterators.
fn sum_of_bounds(form: &Form, domain: &Cond) -> Option<(Poly, Poly)> {
    let mut least = form.constant_part().clone();
    let mut most = least.clone();
    for (atom, coefficient) in form.terms() {
        let Atom::Dim(d) = atom else { return None };
        let c = coefficient.as_constant()?;
        let (lo, hi) = declared_bounds(&Form::from(*d), domain)?;
        let (lo, hi) = if c > 0 { (lo, hi) } else { (hi, lo) };
        least = least.add(&lo.mul(&Poly::constant(c)).ok()?);
        most = most.add(&hi.mul(&Poly::constant(c)).ok()?);
    }
    Some((least, most))
}

/// The bounds of a form where the domain states them in so many words: an iterator with a range, or
/// the inner coordinate of a tile, plain or split by a constant.
fn declared_bounds(form: &Form, domain: &Cond) -> Option<(Poly, Poly)> {
    let Cond::And(parts) = domain else {
        return None;
    };
    let stated = |form: &Form| {
        let (mut least, mut most) = (None, None);
        for part in parts {
            let Cond::Cmp(rel, left, right) = part else {
                continue;
            };
            // gap >= 0
            let gap = match rel {
                Rel::Le => right.sub(left),
                Rel::Lt => right.sub(left).plus(-1),
                Rel::Ge => left.sub(right),
                Rel::Gt => left.sub(right).plus(-1),
                Rel::Eq | Rel::Ne => continue,
            };
            if let Some(below) = form.sub(&gap).as_poly() {
                least = Some(below.clone());
            } else if let Some(above) = form.add(&gap).as_poly() {
                most = Some(above.clone());
            }
        }
        Some((least?, most?))
    };
    if let Some(bounds) = stated(form) {
        return Some(bounds);
    }
    let mut terms = form.terms();
    let (atom, coefficient) = terms.next()?;
    if terms.next().is_some() || coefficient.as_constant() != Some(1) {
        return None;
    }
    let shift = form.constant_part();
    let (inner, m, is_floor) = match atom {
        Atom::Dim(_) => return None,
        Atom::Floor(inner, m) => (inner, *m, true),
        Atom::Mod(inner, m) => (inner, *m, false),
    };
    let (least, most) = stated(inner)?;
    let (least, most) = (least.as_constant()?, most.as_constant()?);
    let (least, most) = if is_floor {
        (least.div_euclid(m), most.div_euclid(m))
    } else if most - least + 1 >= m {
        (0, m - 1)
    } else {
        return None;
    };
    Some((
        Poly::constant(least).add(shift),
        Poly::constant(most).add(shift),
    ))
}

fn effects(array: &Array) -> Vec<Effect> {
    let params = array.param_names();
    let mut effects: Vec<Effect> = Vec::new();
    let mut add = |effect: Effect| match effects.iter_mut().find(|e| e.what == effect.what) {
        Some(known) => {
            known.when = Cond::Or(vec![known.when.clone(), effect.when]);
        }
        None => effects.push(effect),
    };
    for cell in &array.cells {
        cell_effects(
            array,
            &cell.body,
            &Cond::TRUE,
            &params,
            &cell.name,
            &mut add,
        );
    }
    for output in &array.outputs {
        for write in &output.writes {
            add(Effect {
                what: format!(
                    "`{}[{}]` is written",
                    output.name,
                    shown(&write.index, &params, &array.dims)
                ),
                when: write.when.clone(),
            });
        }
    }
    effects
}

fn shown(forms: &[Form], params: &[String], dims: &[String]) -> String {
    forms
        .iter()
        .map(|f| f.display(params, dims).to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn outside(index: &[Form], axes: &[Axis]) -> Cond {
    let cases: Vec<Cond> = index
        .iter()
        .zip(axes)
        .flat_map(|(form, axis)| {
            [
                Cond::Cmp(Rel::Lt, form.clone(), axis.lo.clone()),
                Cond::Cmp(Rel::Ge, form.clone(), axis.hi.clone()),
            ]
        })
        .collect();
    Cond::Or(cases)
}

fn cell_effects(
    array: &Array,
    expr: &Expr,
    when: &Cond,
    params: &[String],
    cell: &str,
    add: &mut impl FnMut(Effect),
) {
    match expr {
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            let inside = when.clone().and(cond.clone());
            cell_effects(array, then, &inside, params, cell, add);
            if let Some(otherwise) = otherwise {
                let outside = when.clone().and(cond.clone().negate());
                cell_effects(array, otherwise, &outside, params, cell, add);
            }
            return;
        }
        Expr::Input { input, index, .. } => {
            let input = &array.inputs[input.index()];
            if input.outside.is_none() {
                add(Effect {
                    what: format!(
                        "`{}[{}]` is read",
                        input.name,
                        shown(index, params, &array.dims)
                    ),
                    when: when.clone().and(outside(index, &input.axes)),
                });
            }
        }
        Expr::Lookup { input, .. } => {
            let input = &array.inputs[input.index()];
            if input.outside.is_none() {
                add(Effect {
                    what: format!("`{}` is looked up in `{cell}`", input.name),
                    when: when.clone(),
                });
            }
        }
        Expr::Binary(BinOp::Div | BinOp::Rem, ..) => {
            add(Effect {
                what: format!("`{cell}` divides"),
                when: when.clone(),
            });
        }
        _ => {}
    }
    for child in children(expr) {
        cell_effects(array, child, when, params, cell, add);
    }
}
