//! Decides whether a condition holds nowhere, case by case, without multiplying out the cases.
//!
//! The comparisons that must hold form a conjunction; the disjunctions wait in a list. A point of
//! the conjunction that satisfies all disjunctions ends the search: the condition holds there. A
//! conjunction without a point ends the case, together with all cases of the disjunctions that
//! still wait. Otherwise one disjunction that the point fails is split, and its parts are tried one
//! after another.

use std::borrow::Cow;

use affine::{BasicSetBuilder, LinExpr, Relaxation, Relaxer, Space};

use super::{SetError, compare, identity, opposite};
use crate::form::{Cond, Rel};

/// The budget of elementary steps for one question.
const MOST_STEPS: u64 = 3_000_000;

/// Whether no point of the space satisfies the condition; iterator n is dimension n.
pub fn is_empty(cond: &Cond, space: Space) -> Result<bool, SetError> {
    let mut search = Search {
        places: identity(space),
        steps: MOST_STEPS,
    };
    let answer = search.is_empty(
        BasicSetBuilder::with_shared_floors(space),
        Relaxer::new(space),
        vec![(Cow::Borrowed(cond), true)],
    );
    answer.map_err(|error| match error {
        // Report the whole budget, not the part that was left when the last step began.
        SetError::Affine(affine::Error::TooComplex { .. }) => {
            affine::Error::TooComplex { budget: MOST_STEPS }.into()
        }
        other => other,
    })
}

/// A condition, and whether it must hold or fail.
type Part<'a> = (Cow<'a, Cond>, bool);

struct Search {
    places: Vec<LinExpr>,
    /// The part of [`MOST_STEPS`] that is left.
    steps: u64,
}

impl Search {
    fn is_empty(
        &mut self,
        piece: BasicSetBuilder,
        mut relaxer: Relaxer,
        open: Vec<Part<'_>>,
    ) -> Result<bool, SetError> {
        let Some((piece, mut waiting)) = self.conjunction(piece, open)? else {
            return Ok(true);
        };
        let cost = 1 + waiting.len() as u64;
        self.steps = self
            .steps
            .checked_sub(cost)
            .ok_or(affine::Error::TooComplex { budget: MOST_STEPS })?;
        let failed = match relaxer.relax(&piece, &mut self.steps)? {
            Relaxation::Empty => return Ok(true),
            Relaxation::Point { params, dims } => {
                let fails = |(cond, holds): &Part<'_>| cond.eval(&params, &dims) != Ok(*holds);
                match waiting.iter().position(fails) {
                    None => return Ok(false),
                    Some(failed) => failed,
                }
            }
            Relaxation::Open => 0,
        };
        if waiting.is_empty() {
            return Ok(piece.build().is_empty_within(&mut self.steps)?);
        }
        let (cond, holds) = waiting.remove(failed);
        for part in alternatives(&cond, holds) {
            let mut open = waiting.clone();
            open.push(part);
            if !self.is_empty(piece.clone(), relaxer.clone(), open)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the comparisons to the piece, and returns it with the disjunctions that are left;
    /// `None` if a part cannot be satisfied.
    fn conjunction<'a>(
        &self,
        mut piece: BasicSetBuilder,
        mut open: Vec<Part<'a>>,
    ) -> Result<Option<(BasicSetBuilder, Vec<Part<'a>>)>, SetError> {
        let mut waiting = Vec::new();
        while let Some((cond, holds)) = open.pop() {
            if let Cond::Const(value) = *cond {
                if value != holds {
                    return Ok(None);
                }
            } else if let Some(parts) = conjuncts(&cond, holds) {
                open.extend(parts);
            } else if let Cond::Cmp(rel, left, right) = &*cond
                && relation(*rel, holds) != Rel::Ne
            {
                // Combine both sides into one form, so that common terms cancel before they become
                // existentials.
                let difference = left.sub(right);
                let mut pieces = Vec::with_capacity(1);
                let rel = relation(*rel, holds);
                compare(piece, rel, &difference, &self.places, &mut pieces)?;
                match pieces.pop() {
                    Some(more) => piece = more,
                    None => return Ok(None),
                }
            } else {
                waiting.push((cond, holds));
            }
        }
        // Disjunctions with few cases come first.
        waiting.sort_by_key(|(cond, holds)| alternatives(cond, *holds).len());
        Ok(Some((piece, waiting)))
    }
}

fn relation(rel: Rel, holds: bool) -> Rel {
    if holds { rel } else { opposite(rel) }
}

/// The parts of a condition that must all hold, or all fail; `None` for a condition that is not of
/// this kind.
fn conjuncts<'a>(cond: &Cow<'a, Cond>, holds: bool) -> Option<Vec<Part<'a>>> {
    match (&**cond, holds) {
        (Cond::Not(_), _) => Some(parts_of(cond, !holds)),
        (Cond::And(_), true) | (Cond::Or(_), false) => Some(parts_of(cond, holds)),
        (Cond::Or(parts) | Cond::And(parts), _) if parts.len() == 1 => Some(parts_of(cond, holds)),
        (Cond::Const(_) | Cond::Cmp(..) | Cond::And(_) | Cond::Or(_), _) => None,
    }
}

/// The cases of a disjunction, or of a comparison that excludes a single value.
fn alternatives<'a>(cond: &Cow<'a, Cond>, holds: bool) -> Vec<Part<'a>> {
    match &**cond {
        Cond::Cmp(_, left, right) => [Rel::Lt, Rel::Gt]
            .map(|rel| {
                let side = Cond::Cmp(rel, left.clone(), right.clone());
                (Cow::Owned(side), true)
            })
            .to_vec(),
        Cond::Const(_) | Cond::And(_) | Cond::Or(_) | Cond::Not(_) => parts_of(cond, holds),
    }
}

fn parts_of<'a>(cond: &Cow<'a, Cond>, holds: bool) -> Vec<Part<'a>> {
    match cond {
        Cow::Borrowed(Cond::And(parts) | Cond::Or(parts)) => {
            parts.iter().map(|p| (Cow::Borrowed(p), holds)).collect()
        }
        Cow::Borrowed(Cond::Not(inner)) => vec![(Cow::Borrowed(&**inner), holds)],
        // Only the cases of split comparisons are owned.
        Cow::Borrowed(Cond::Const(_) | Cond::Cmp(..)) | Cow::Owned(_) => {
            vec![(cond.clone(), holds)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::id::{DimId, ParamId};
    use crate::sets::set_of;

    fn check(cond: &Cond, expect: bool) {
        let space = Space::new(1, 3);
        assert_eq!(is_empty(cond, space), Ok(expect), "{cond:?}");
        let whole = set_of(cond, space).unwrap().is_empty().unwrap();
        assert_eq!(whole, expect, "multiplied out: {cond:?}");
    }

    #[test]
    fn agrees_with_the_set_multiplied_out() {
        let [i, j, k] = [0, 1, 2].map(|d| Form::from(DimId(d)));
        let n = Form::from(ParamId(0));
        let within = |f: &Form, lo: i128, hi: &Form| {
            Cond::cmp(Rel::Ge, f.clone(), lo).and(Cond::cmp(Rel::Lt, f.clone(), hi.clone()))
        };
        let boxed = within(&i, 0, &n)
            .and(within(&j, 0, &n))
            .and(within(&k, 0, &n));
        let either = Cond::Or(vec![
            Cond::cmp(Rel::Lt, i.clone(), 0),
            Cond::cmp(Rel::Ge, j.clone(), n.clone()),
            Cond::cmp(Rel::Eq, i.modulo(4), 5),
        ]);
        check(&boxed, false);
        check(&boxed.clone().and(either.clone()), true);
        check(&boxed.clone().and(either.clone().negate()), false);
        let different = Cond::cmp(Rel::Ne, i.clone(), j.clone());
        let same = Cond::cmp(Rel::Eq, i.floor_div(4), j.floor_div(4));
        let close = Cond::cmp(Rel::Eq, i.modulo(4), j.modulo(4));
        check(&different.clone().and(same.clone()), false);
        check(
            &different.clone().and(same.clone()).and(close.clone()),
            true,
        );
        check(
            &Cond::Not(Box::new(Cond::Or(vec![different, same.clone().negate()]))).and(close),
            false,
        );
        check(&Cond::TRUE, false);
        check(&Cond::Const(false), true);
        check(&Cond::Or(vec![]), true);
    }

    #[test]
    fn many_disjunctions_do_not_multiply() {
        // x ≥ 0, and forty times (x < -1 or x > 1 + n), with n > x: 2^40 cases, each empty.
        let x = Form::from(DimId(0));
        let mut cond = Cond::cmp(Rel::Ge, x.clone(), 0).and(Cond::cmp(Rel::Lt, x.clone(), 1));
        for n in 1..40 {
            cond = cond.and(Cond::Or(vec![
                Cond::cmp(Rel::Lt, x.clone(), -n),
                Cond::cmp(Rel::Gt, x.clone(), n),
            ]));
        }
        assert_eq!(is_empty(&cond, Space::new(0, 1)), Ok(true));
    }
}
