//! The slots of an array that belong to no point of its domain.
//!
//! In each coordinate the box of an array reaches from the least to the greatest value that the
//! domain takes. Both ends are exact, even if they are not polynomials of the sizes: a number is at
//! least the least value if some point of the domain has a value that is at most this number, which
//! is one projection.

use std::cell::OnceCell;

use affine::{Set, Space};
use systola_ir::array::Array;
use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::id::DimId;
use systola_ir::sets::{map_of, set_of};

use crate::clock::{domain, form_bounds};
use crate::decide::{Decide, Sample, Undecided};

pub(super) enum Slots {
    /// No slot of the box is empty.
    Filled,
    Empty(Boxes),
    Unknown(String),
}

/// The points outside the domain that correspond to empty slots.
pub(super) struct Boxes {
    /// In a box at least as large as the array's, found with fewer projections.
    loose: Set,
    /// In the box itself, computed on demand.
    tight: OnceCell<Result<Set, Undecided>>,
}

pub(super) fn empty_slots(array: &Array, decide: &Decide) -> Slots {
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

/// A point outside the domain, in the box of the array, at which a condition holds.
pub(super) fn happens(
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

/// A point in both sets. Pieces are tried pair by pair: most effects that need a test show it in
/// the first pieces.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    Loose,
    Tight,
}

/// The points outside the domain whose coordinates lie between those of points inside.
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
        let between = match stated {
            Some((least, most)) => {
                let from = Cond::Cmp(Rel::Ge, form.clone(), Form::from(least));
                let to = Cond::Cmp(Rel::Le, form.clone(), Form::from(most));
                set_of(&from.and(to), space)?
            }
            None => {
                let above = half_lines(form, Rel::Ge, &cond, space)?;
                let below = half_lines(form, Rel::Le, &cond, space)?;
                let map = map_of(std::slice::from_ref(form), space)?;
                above.intersect(&below)?.preimage(&map)?
            }
        };
        slots = slots.intersect(&between)?;
    }
    Ok(slots)
}

/// The numbers that are at least (or at most) the value of a form somewhere in a domain.
///
/// The values themselves have gaps, and an exact image of them would have a piece for each value.
fn half_lines(form: &Form, rel: Rel, domain: &Cond, space: Space) -> Result<Set, Undecided> {
    let n = space.n_dims;
    let number = Form::from(DimId::from(n));
    let beyond = domain.clone().and(Cond::Cmp(rel, number, form.clone()));
    let with_number = set_of(&beyond, Space::new(space.n_params, n + 1))?;
    Ok(with_number.range_of(n)?.coalesce()?)
}

/// Bounds of an affine form, from the bounds of its iterators.
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

/// The bounds of a form that the domain states explicitly: for an iterator with a range, or for the
/// inner coordinate of a tile, plain or split by a constant.
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

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::id::ParamId;

    /// The half-lines must be those of the least and the greatest value over all points of a grid.
    fn check(form: &Form, domain: &Cond) {
        let context = Cond::cmp(Rel::Ge, ParamId(0), 1);
        let cond = context.and(domain.clone());
        let space = Space::new(1, 2);
        let above = half_lines(form, Rel::Ge, &cond, space).unwrap();
        let below = half_lines(form, Rel::Le, &cond, space).unwrap();
        for n in 0..9 {
            let grid = (-2..12).flat_map(|i| (-2..12).map(move |j| [i, j]));
            let values: Vec<i128> = grid
                .filter(|point| cond.eval(&[n], point).unwrap())
                .map(|point| form.eval(&[n], &point).unwrap())
                .collect();
            for y in -30..30 {
                let least = values.iter().min().is_some_and(|v| *v <= y);
                let most = values.iter().max().is_some_and(|v| *v >= y);
                let shown = form.display(&[], &[]).to_string();
                assert_eq!(
                    above.contains(&[n], &[y]).unwrap(),
                    least,
                    "{shown}, {n}, {y}"
                );
                assert_eq!(
                    below.contains(&[n], &[y]).unwrap(),
                    most,
                    "{shown}, {n}, {y}"
                );
            }
        }
    }

    #[test]
    fn half_lines_begin_at_the_least_and_the_greatest_value() {
        let (i, j) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let n = Form::from(ParamId(0));
        let times = |form: &Form, c: i128| form.scale(&Poly::constant(c)).unwrap();
        let range = |d: &Form| {
            Cond::cmp(Rel::Ge, d.clone(), 0).and(Cond::cmp(Rel::Lt, d.clone(), n.clone()))
        };
        let square = range(&i).and(range(&j));
        let triangle = square.clone().and(Cond::cmp(Rel::Lt, j.clone(), i.clone()));
        let sparse = square
            .clone()
            .and(Cond::cmp(Rel::Eq, i.add(&j).modulo(3), 1));
        let split = square.clone().and(Cond::Or(vec![
            Cond::cmp(Rel::Eq, i.clone(), 0),
            Cond::cmp(Rel::Ge, j.clone(), 4),
        ]));
        let forms = [
            times(&i, 9).sub(&times(&j, 2)),
            i.add(&j.modulo(4)),
            i.modulo(4).floor_div(2).sub(&j),
            times(&i.add(&j).floor_div(3), 2).sub(&i),
            times(&i.plus(5).modulo(6).modulo(4), -3).add(&n),
        ];
        for domain in [square, triangle, sparse, split] {
            for form in &forms {
                check(form, &domain);
            }
        }
    }
}
