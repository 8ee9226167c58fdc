//! What the lengths of rows imply for places in them.
//!
//! An element at a multiple of 4 from the start of its row is at a multiple of 4 from the start of
//! the array only if row lengths are multiples of 4 too; and only then does a row end where a group
//! of 4 ends.

use systola_ir::form::{Cond, Form, Monomial, Rel};

use crate::digits::gcd;

/// What is known of the lengths of rows.
pub enum Rows<'n> {
    /// Only what holds for all sizes.
    Any,
    /// Whatever is asked for, unless it contradicts an earlier assumption.
    Assumed(&'n mut Assumed),
}

impl Rows<'_> {
    /// May the extent be assumed to be a multiple?
    pub fn ask(&mut self, extent: &Form, divisor: i128) -> bool {
        match self {
            Rows::Any => false,
            Rows::Assumed(assumed) => assumed.ask(extent, divisor),
        }
    }

    pub fn might_grant(&self, extent: &Form, divisor: i128) -> bool {
        match self {
            Rows::Any => false,
            Rows::Assumed(assumed) => {
                let asked = (extent.clone(), divisor);
                assumed.banned != Some(asked) && extent.modulo(divisor).as_constant().is_none()
            }
        }
    }
}

/// Lengths of rows that are assumed to be multiples.
#[derive(Debug, Default)]
pub struct Assumed {
    /// Length and divisor.
    pub multiples: Vec<(Form, i128)>,
    /// This one must not be assumed.
    pub banned: Option<(Form, i128)>,
    /// Was anything asked for that the other assumptions exclude?
    pub contradicts: bool,
}

impl Assumed {
    pub fn ask(&mut self, extent: &Form, width: i128) -> bool {
        let new = (extent.clone(), width);
        if self.banned.as_ref() == Some(&new) {
            return false;
        }
        for (other, divisor) in &self.multiples {
            let Some(gap) = extent.sub(other).as_constant() else {
                continue;
            };
            if gap.rem_euclid(width.min(*divisor)) != 0 {
                self.contradicts = true;
                return false;
            }
            if width <= *divisor {
                return true;
            }
        }
        self.multiples.push(new);
        true
    }

    pub fn cond(&self) -> Cond {
        let holds = |(extent, width): &(Form, i128)| Cond::cmp(Rel::Eq, extent.modulo(*width), 0);
        self.multiples.iter().map(holds).fold(Cond::TRUE, Cond::and)
    }
}

/// Normalises a condition on integers: 4·l ≥ 3 and 4·l ≥ 1 both become 4·l ≥ 4. `multiple` is a
/// length that is assumed to be a multiple of a number.
pub fn tightened(cond: &Cond, multiple: Option<(&Form, i128)>) -> Cond {
    let all = |parts: &[Cond]| parts.iter().map(|part| tightened(part, multiple)).collect();
    match cond {
        Cond::Const(_) | Cond::Not(_) => cond.clone(),
        Cond::And(parts) => Cond::And(all(parts)),
        Cond::Or(parts) => Cond::Or(all(parts)),
        Cond::Cmp(rel, left, right) => {
            let gap = match rel {
                Rel::Ge => left.sub(right),
                Rel::Gt => left.sub(right).plus(-1),
                Rel::Le => right.sub(left),
                Rel::Lt => right.sub(left).plus(-1),
                Rel::Eq | Rel::Ne => return cond.clone(),
            };
            let (step, rest) = grid(&gap, multiple);
            if step < 2 {
                return cond.clone();
            }
            Cond::cmp(Rel::Ge, gap.plus(-rest.rem_euclid(step)), 0)
        }
    }
}

/// The values that a form can take: multiples of the first number, offset by the second.
fn grid(form: &Form, multiple: Option<(&Form, i128)>) -> (i128, i128) {
    let mut step = 0;
    // The sum of all terms that are not multiples of the step.
    let mut rest = 0;
    for (monomial, c) in form.constant_part().terms() {
        match multiple.and_then(|(of, by)| residue(monomial, of, by)) {
            _ if monomial.is_empty() => rest += c,
            None => step = gcd(step, c.abs()),
            Some((divisor, residue)) => {
                step = gcd(step, (c * divisor).abs());
                rest += c * residue;
            }
        }
    }
    for (_, c) in form.terms().flat_map(|(_, poly)| poly.terms()) {
        step = gcd(step, c.abs());
    }
    (step, rest)
}

/// A condition without the equations that the lengths of rows exclude: if rows have 4·n elements,
/// 4·l + 1 is not the last one.
pub fn possible(cond: &Cond, multiples: &[(Form, i128)]) -> Cond {
    let all = |parts: &[Cond], neutral: bool| {
        let mut kept = Vec::new();
        for part in parts {
            match possible(part, multiples) {
                Cond::Const(value) if value == neutral => {}
                Cond::Const(value) => return vec![Cond::Const(value)],
                other => kept.push(other),
            }
        }
        if kept.is_empty() {
            kept.push(Cond::Const(neutral));
        }
        kept
    };
    let joined = |mut parts: Vec<Cond>, join: fn(Vec<Cond>) -> Cond| match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    };
    match cond {
        Cond::Const(_) => cond.clone(),
        Cond::Not(inner) => possible(inner, multiples).negate(),
        Cond::And(parts) => joined(all(parts, true), Cond::And),
        Cond::Or(parts) => joined(all(parts, false), Cond::Or),
        Cond::Cmp(rel @ (Rel::Eq | Rel::Ne), left, right) => {
            let gap = left.sub(right);
            let misses = |(of, by): &(Form, i128)| {
                let (step, rest) = grid(&gap, Some((of, *by)));
                step > 1 && rest.rem_euclid(step) != 0
            };
            if multiples.iter().any(misses) {
                Cond::Const(*rel == Rel::Ne)
            } else {
                cond.clone()
            }
        }
        Cond::Cmp(Rel::Lt | Rel::Le | Rel::Gt | Rel::Ge, ..) => cond.clone(),
    }
}

/// A product of parameters as a multiple of a number plus a remainder, if a length that contains
/// nothing else is a multiple of it.
fn residue(monomial: &Monomial, of: &Form, by: i128) -> Option<(i128, i128)> {
    if of.terms().next().is_some() {
        return None;
    }
    let mut constant = 0;
    for (other, c) in of.constant_part().terms() {
        if other.is_empty() {
            constant = c;
        } else if other != monomial || c != 1 {
            return None;
        }
    }
    Some((by, -constant))
}

#[cfg(test)]
mod tests {
    use systola_ir::DimId;
    use systola_ir::form::Poly;

    use super::*;

    /// 4·l + offset < C, for the element at an offset.
    fn inside(offset: i128, c: &Form) -> Cond {
        let at = Form::from(DimId(0)).scale(&Poly::constant(4)).unwrap();
        Cond::cmp(Rel::Lt, at.plus(offset), c.clone())
    }

    #[test]
    fn a_row_of_groups_ends_with_a_group() {
        let c = Form::from(Poly::param(systola_ir::ParamId(0)));
        let one = |offset, multiple| tightened(&inside(offset, &c), multiple);
        for group in [-4, 0, 4] {
            for offset in group..group + 4 {
                assert_eq!(one(offset, Some((&c, 4))), one(group, Some((&c, 4))));
            }
        }
        assert_ne!(one(3, Some((&c, 4))), one(4, Some((&c, 4))));
        // Without the length of a row nothing is known, and with half of it half.
        assert_ne!(one(1, None), one(0, None));
        assert_eq!(one(1, Some((&c, 2))), one(0, Some((&c, 2))));
        assert_ne!(one(2, Some((&c, 2))), one(1, Some((&c, 2))));
        // Rows of C + 3 elements have 4·n elements if C is 4·n + 1.
        let longer = c.plus(3);
        assert_eq!(one(1, Some((&longer, 4))), one(4, Some((&longer, 4))));
        assert_ne!(one(0, Some((&longer, 4))), one(1, Some((&longer, 4))));
    }

    #[test]
    fn only_the_last_of_a_group_ends_a_row() {
        let c = Form::from(Poly::param(systola_ir::ParamId(0)));
        let at = Form::from(DimId(0)).scale(&Poly::constant(4)).unwrap();
        let ends = |offset| Cond::cmp(Rel::Eq, at.plus(offset), c.plus(-1));
        let groups = [(c.clone(), 4)];
        for offset in 0..3 {
            assert_eq!(possible(&ends(offset), &groups), Cond::Const(false));
            assert_eq!(possible(&ends(offset), &[]), ends(offset));
            let first = Cond::cmp(Rel::Eq, at.plus(offset), 0);
            let either = Cond::Or(vec![first.clone(), ends(offset)]);
            let left = if offset == 0 {
                first
            } else {
                Cond::Const(false)
            };
            assert_eq!(possible(&either, &groups), left);
        }
        assert_eq!(possible(&ends(3), &groups), ends(3));
        assert_eq!(possible(&ends(1).negate(), &groups), Cond::TRUE);
    }

    #[test]
    fn lengths_that_exclude_each_other_are_not_assumed() {
        let c = Form::from(Poly::param(systola_ir::ParamId(0)));
        let mut assumed = Assumed::default();
        assert!(assumed.ask(&c, 4));
        assert!(assumed.ask(&c, 2));
        assert!(!assumed.ask(&c.plus(1), 4));
        assert!(assumed.contradicts);
    }
}
