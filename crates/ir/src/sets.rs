//! Exact translation of conditions and forms to integer sets and maps.
//!
//! The columns of a set are those of [`affine`]: parameters, then dimensions, then existentials,
//! which floors and remainders become. A *place list* maps the iterators of a condition to columns:
//! it has one expression for each `DimId`, so that the same condition can be imposed on z, on z'
//! and on z − e in one set of pairs. A form whose coefficients multiply parameters is no Presburger
//! term and is refused.

mod cases;

use std::fmt;

use affine::{BasicSetBuilder, LinExpr, Map, Set, Space};

use crate::form::{Atom, Cond, Form, Poly, Rel};
use crate::id::VarId;
use crate::system::System;

pub use cases::is_empty;

/// Why a condition is not a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// The form multiplies parameters with iterators or with each other.
    NotAffine(Form),
    /// A coefficient is too large, or the question is too complex.
    Affine(affine::Error),
}

impl From<affine::Error> for SetError {
    fn from(error: affine::Error) -> Self {
        SetError::Affine(error)
    }
}

impl From<crate::form::Overflow> for SetError {
    fn from(_: crate::form::Overflow) -> Self {
        SetError::Affine(affine::Error::Overflow)
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::NotAffine(form) => {
                write!(f, "{} is not affine", form.display(&[], &[]))
            }
            SetError::Affine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetError {}

/// The points where a condition holds; iterator n is dimension n.
pub fn set_of(cond: &Cond, space: Space) -> Result<Set, SetError> {
    set_at(cond, space, &identity(space))
}

/// The points of `space` at which a condition holds, with its iterators placed as `places` says.
pub fn set_at(cond: &Cond, space: Space, places: &[LinExpr]) -> Result<Set, SetError> {
    let pieces = constrain(vec![BasicSetBuilder::new(space)], cond, places)?;
    union(space, pieces)
}

/// The union of the sets that the builders describe.
pub fn union(space: Space, pieces: Vec<BasicSetBuilder>) -> Result<Set, SetError> {
    let pieces = pieces.into_iter().map(BasicSetBuilder::build).collect();
    Ok(Set::from_pieces(space, pieces)?)
}

/// The place list in which every dimension has its own column.
pub fn identity(space: Space) -> Vec<LinExpr> {
    (space.n_params..space.n_vars()).map(LinExpr::var).collect()
}

/// The space of the points of a system.
pub fn system_space(system: &System) -> Space {
    Space::new(system.params.len(), system.dims.len())
}

/// What the parameters satisfy, as a set without dimensions.
pub fn context_set(system: &System) -> Result<Set, SetError> {
    set_of(&system.context_cond(), Space::new(system.params.len(), 0))
}

/// The domain, for parameters in the context.
pub fn system_domain(system: &System) -> Result<Set, SetError> {
    let cond = system.context_cond().and(system.domain_cond());
    set_of(&cond, system_space(system))
}

/// The domain of a variable, for parameters in the context.
pub fn var_domain_set(system: &System, var: VarId) -> Result<Set, SetError> {
    let cond = system.context_cond().and(system.var_domain(var));
    set_of(&cond, system_space(system))
}

/// The map that sends a point to the values of forms.
pub fn map_of(forms: &[Form], space: Space) -> Result<Map, SetError> {
    let mut builder = BasicSetBuilder::new(space);
    let places = identity(space);
    let outputs = forms
        .iter()
        .map(|form| lin_expr(form, &mut builder, &places))
        .collect::<Result<_, _>>()?;
    Ok(builder.build_map(outputs)?)
}

/// A form as an expression over the columns of a builder, which gains an existential for each
/// floor.
pub fn lin_expr(
    form: &Form,
    builder: &mut BasicSetBuilder,
    places: &[LinExpr],
) -> Result<LinExpr, SetError> {
    let refuse = || SetError::NotAffine(form.clone());
    let mut sum = lin_poly(form.constant_part()).ok_or_else(refuse)?;
    for (atom, coefficient) in form.terms() {
        let coefficient = coefficient.as_constant().ok_or_else(refuse)?;
        let atom = match atom {
            Atom::Dim(d) => places
                .get(d.index())
                .cloned()
                .ok_or(affine::Error::OutOfRange {
                    index: d.index(),
                    len: places.len(),
                })?,
            Atom::Floor(inner, c) => {
                let inner = lin_expr(inner, builder, places)?;
                builder.floor_div(&inner, *c)?
            }
            Atom::Mod(inner, c) => {
                let inner = lin_expr(inner, builder, places)?;
                builder.modulo(&inner, *c)?
            }
        };
        sum = sum.add_scaled(coefficient, &atom)?;
    }
    Ok(sum)
}

/// A polynomial of degree one over the columns of the parameters.
pub fn lin_poly(poly: &Poly) -> Option<LinExpr> {
    let mut sum = LinExpr::zero();
    for (monomial, c) in poly.terms() {
        match monomial.as_slice() {
            [] => sum.set_constant(c),
            [p] => sum.set_coeff(p.index(), c),
            _ => return None,
        }
    }
    Some(sum)
}

/// Adds a condition to each piece; a disjunction yields more pieces, which may overlap.
pub fn constrain(
    pieces: Vec<BasicSetBuilder>,
    cond: &Cond,
    places: &[LinExpr],
) -> Result<Vec<BasicSetBuilder>, SetError> {
    add(pieces, cond, true, places)
}

fn add(
    pieces: Vec<BasicSetBuilder>,
    cond: &Cond,
    holds: bool,
    places: &[LinExpr],
) -> Result<Vec<BasicSetBuilder>, SetError> {
    match (cond, holds) {
        (Cond::Const(value), _) => Ok(if *value == holds { pieces } else { Vec::new() }),
        (Cond::Not(inner), _) => add(pieces, inner, !holds, places),
        (Cond::And(parts), true) | (Cond::Or(parts), false) => {
            // Conditions that split pieces come last, when most of the resulting pieces are empty.
            let (split, plain): (Vec<&Cond>, Vec<&Cond>) =
                parts.iter().partition(|part| splits(part, holds));
            let pieces = plain
                .into_iter()
                .try_fold(pieces, |pieces, part| add(pieces, part, holds, places))?;
            split.into_iter().try_fold(pieces, |pieces, part| {
                without_empty(add(pieces, part, holds, places)?)
            })
        }
        (Cond::Or(parts), true) | (Cond::And(parts), false) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(add(pieces.clone(), part, holds, places)?);
            }
            Ok(all)
        }
        (Cond::Cmp(rel, left, right), _) => {
            let rel = if holds { *rel } else { opposite(*rel) };
            // Combine both sides into one form, so that common terms cancel before they become
            // existentials.
            let difference = left.sub(right);
            let mut all = Vec::with_capacity(pieces.len());
            for piece in pieces {
                compare(piece, rel, &difference, places, &mut all)?;
            }
            Ok(all)
        }
    }
}

/// Does a condition yield more than one piece?
fn splits(cond: &Cond, holds: bool) -> bool {
    match (cond, holds) {
        (Cond::Const(_), _) => false,
        (Cond::Cmp(rel, ..), true) => *rel == Rel::Ne,
        (Cond::Cmp(rel, ..), false) => *rel == Rel::Eq,
        (Cond::Not(inner), _) => splits(inner, !holds),
        (Cond::And(parts), true) | (Cond::Or(parts), false) => {
            parts.iter().any(|part| splits(part, holds))
        }
        (Cond::Or(_), true) | (Cond::And(_), false) => true,
    }
}

/// Conjunctions of disjunctions multiply the pieces, so empty ones are removed as soon as there are
/// some.
fn without_empty(pieces: Vec<BasicSetBuilder>) -> Result<Vec<BasicSetBuilder>, SetError> {
    /// With fewer pieces, nothing is removed.
    const FEW: usize = 8;
    /// More pieces are an error.
    const MOST: usize = 10_000;
    if pieces.len() <= FEW {
        return Ok(pieces);
    }
    let mut kept = Vec::new();
    for piece in pieces {
        match piece.clone().build().is_empty() {
            Ok(true) => {}
            Ok(false) | Err(affine::Error::TooComplex { .. }) => kept.push(piece),
            Err(error) => return Err(error.into()),
        }
        if kept.len() > MOST {
            return Err(affine::Error::TooComplex {
                budget: MOST as u64,
            }
            .into());
        }
    }
    Ok(kept)
}

fn opposite(rel: Rel) -> Rel {
    match rel {
        Rel::Eq => Rel::Ne,
        Rel::Ne => Rel::Eq,
        Rel::Lt => Rel::Ge,
        Rel::Le => Rel::Gt,
        Rel::Gt => Rel::Le,
        Rel::Ge => Rel::Lt,
    }
}

fn compare(
    mut piece: BasicSetBuilder,
    rel: Rel,
    difference: &Form,
    places: &[LinExpr],
    all: &mut Vec<BasicSetBuilder>,
) -> Result<(), SetError> {
    if let Some(value) = difference.as_constant() {
        if rel.holds(value, 0) {
            all.push(piece);
        }
        return Ok(());
    }
    let e = lin_expr(difference, &mut piece, places)?;
    let zero = LinExpr::zero();
    match rel {
        Rel::Eq => piece.eq(&e, &zero)?,
        Rel::Lt => piece.lt(&e, &zero)?,
        Rel::Le => piece.le(&e, &zero)?,
        Rel::Gt => piece.gt(&e, &zero)?,
        Rel::Ge => piece.ge(&e, &zero)?,
        Rel::Ne => {
            let mut below = piece.clone();
            below.lt(&e, &zero)?;
            all.push(below);
            piece.gt(&e, &zero)?;
        }
    }
    all.push(piece);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DimId, ParamId};

    /// The set must agree with evaluation at every small point.
    fn check(cond: &Cond) {
        let space = Space::new(1, 2);
        let set = set_of(cond, space).unwrap();
        for n in -1..4 {
            for i in -5..6 {
                for j in -5..6 {
                    let expect = cond.eval(&[n], &[i, j]).unwrap();
                    let found = set.contains(&[n], &[i, j]).unwrap();
                    assert_eq!(found, expect, "{cond:?} at {n}, {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn sets_agree_with_evaluation() {
        let (i, j) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let n = Form::from(ParamId(0));
        let even = Cond::cmp(Rel::Eq, i.add(&j).modulo(2), 0);
        let half = Cond::cmp(Rel::Lt, i.plus(1).floor_div(2), n.sub(&j.floor_div(3)));
        let different = Cond::cmp(Rel::Ne, i.clone(), j.clone());
        check(&even);
        check(&half);
        check(&different);
        check(&even.clone().and(half.clone()).and(different.clone()));
        check(&Cond::Or(vec![
            even.clone(),
            half.clone(),
            different.clone(),
        ]));
        check(&Cond::And(vec![even.clone(), half.clone()]).negate());
        check(&Cond::Not(Box::new(Cond::Or(vec![
            different,
            Cond::Not(Box::new(half)),
        ]))));
        check(&Cond::TRUE);
        check(&Cond::Const(false));
    }

    #[test]
    fn products_with_parameters_are_refused() {
        let i = Form::from(DimId(0));
        let n = Form::from(ParamId(0));
        let product = n.mul(&i).unwrap().unwrap();
        let cond = Cond::cmp(Rel::Ge, product.clone(), 0);
        let refused = set_of(&cond, Space::new(1, 1)).unwrap_err();
        assert_eq!(refused, SetError::NotAffine(product));
    }

    #[test]
    fn maps_send_points_to_values() {
        let i = Form::from(DimId(0));
        let space = Space::new(0, 1);
        let map = map_of(&[i.floor_div(4), i.modulo(4)], space).unwrap();
        let below = Cond::cmp(Rel::Ge, i.clone(), 0).and(Cond::cmp(Rel::Lt, i, 6));
        let image = set_of(&below, space).unwrap().image(&map).unwrap();
        assert!(image.contains(&[], &[1, 1]).unwrap());
        assert!(!image.contains(&[], &[1, 2]).unwrap());
    }
}
