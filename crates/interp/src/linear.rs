//! Forms and conditions at concrete parameters, flat and in 64 bits, for the inner loop.
//!
//! Every operation is checked: `None` means that a value left 64 bits.

use systola_ir::form::Overflow;
use systola_ir::{Atom, Cond, Form, Rel};

/// A form at concrete parameters.
#[derive(Clone, Debug)]
pub struct Linear {
    constant: i64,
    terms: Box<[(i64, Term)]>,
}

#[derive(Clone, Debug)]
enum Term {
    Dim(usize),
    Floor(Box<Linear>, i64),
    Mod(Box<Linear>, i64),
}

fn narrow(x: i128) -> Result<i64, Overflow> {
    i64::try_from(x).map_err(|_| Overflow)
}

impl Linear {
    pub fn compile(form: &Form, params: &[i128]) -> Result<Linear, Overflow> {
        let mut terms = Vec::new();
        for (atom, coefficient) in form.terms() {
            let coefficient = narrow(coefficient.eval(params)?)?;
            if coefficient == 0 {
                continue;
            }
            let inner = |form: &Form| Linear::compile(form, params).map(Box::new);
            let term = match atom {
                Atom::Dim(d) => Term::Dim(d.index()),
                Atom::Floor(form, c) => Term::Floor(inner(form)?, positive(*c)?),
                Atom::Mod(form, c) => Term::Mod(inner(form)?, positive(*c)?),
            };
            terms.push((coefficient, term));
        }
        Ok(Linear {
            constant: narrow(form.constant_part().eval(params)?)?,
            terms: terms.into(),
        })
    }

    /// The value at a point; iterators beyond its end count as zero.
    #[inline]
    pub fn eval(&self, point: &[i64]) -> Option<i64> {
        let mut sum = self.constant;
        for (coefficient, term) in &self.terms {
            let value = match term {
                Term::Dim(d) => point.get(*d).copied().unwrap_or(0),
                Term::Floor(form, c) => form.eval(point)?.div_euclid(*c),
                Term::Mod(form, c) => form.eval(point)?.rem_euclid(*c),
            };
            sum = sum.checked_add(coefficient.checked_mul(value)?)?;
        }
        Some(sum)
    }

    /// Bounds of its value while each iterator is within a range, possibly loose: an iterator in
    /// several terms varies in each of them independently. Iterators beyond the end count as zero.
    pub fn range(&self, ranges: &[(i64, i64)]) -> Option<(i64, i64)> {
        let (mut least, mut most) = (self.constant, self.constant);
        for (coefficient, term) in &self.terms {
            let (lo, hi) = match term {
                Term::Dim(d) => ranges.get(*d).copied().unwrap_or((0, 0)),
                Term::Floor(form, c) => {
                    let (lo, hi) = form.range(ranges)?;
                    (lo.div_euclid(*c), hi.div_euclid(*c))
                }
                Term::Mod(form, c) => {
                    let (lo, hi) = form.range(ranges)?;
                    match lo.div_euclid(*c) == hi.div_euclid(*c) {
                        true => (lo.rem_euclid(*c), hi.rem_euclid(*c)),
                        false => (0, c - 1),
                    }
                }
            };
            let (a, b) = (coefficient.checked_mul(lo)?, coefficient.checked_mul(hi)?);
            least = least.checked_add(a.min(b))?;
            most = most.checked_add(a.max(b))?;
        }
        Some((least, most))
    }
}

fn positive(c: i128) -> Result<i64, Overflow> {
    narrow(c).and_then(|c| if c > 0 { Ok(c) } else { Err(Overflow) })
}

/// A condition at concrete parameters.
#[derive(Clone, Debug)]
pub enum Test {
    Const(bool),
    /// The difference of the two sides, against zero.
    Cmp(Rel, Linear),
    And(Box<[Test]>),
    Or(Box<[Test]>),
    Not(Box<Test>),
}

impl Test {
    pub fn compile(cond: &Cond, params: &[i128]) -> Result<Test, Overflow> {
        let all = |parts: &[Cond]| -> Result<Box<[Test]>, Overflow> {
            parts.iter().map(|p| Test::compile(p, params)).collect()
        };
        Ok(match cond {
            Cond::Const(b) => Test::Const(*b),
            Cond::Cmp(rel, left, right) => {
                Test::Cmp(*rel, Linear::compile(&left.sub(right), params)?)
            }
            Cond::And(parts) => Test::And(all(parts)?),
            Cond::Or(parts) => Test::Or(all(parts)?),
            Cond::Not(inner) => Test::Not(Box::new(Test::compile(inner, params)?)),
        })
    }

    #[inline]
    pub fn eval(&self, point: &[i64]) -> Option<bool> {
        Some(match self {
            Test::Const(b) => *b,
            Test::Cmp(rel, difference) => {
                let difference = difference.eval(point)?;
                match rel {
                    Rel::Eq => difference == 0,
                    Rel::Ne => difference != 0,
                    Rel::Lt => difference < 0,
                    Rel::Le => difference <= 0,
                    Rel::Gt => difference > 0,
                    Rel::Ge => difference >= 0,
                }
            }
            Test::And(parts) => {
                for part in parts {
                    if !part.eval(point)? {
                        return Some(false);
                    }
                }
                true
            }
            Test::Or(parts) => {
                for part in parts {
                    if part.eval(point)? {
                        return Some(true);
                    }
                }
                false
            }
            Test::Not(inner) => !inner.eval(point)?,
        })
    }

    /// Can it hold, can it fail, while each iterator is within a range? Both, if undecided.
    pub fn outcomes(&self, ranges: &[(i64, i64)]) -> Outcomes {
        match self {
            Test::Const(b) => Outcomes {
                holds: *b,
                fails: !*b,
            },
            Test::Cmp(rel, difference) => match difference.range(ranges) {
                None => Outcomes::BOTH,
                Some((lo, hi)) => {
                    let zero = lo <= 0 && hi >= 0;
                    let single = lo == hi;
                    let (holds, fails) = match rel {
                        Rel::Eq => (zero, !(zero && single)),
                        Rel::Ne => (!(zero && single), zero),
                        Rel::Lt => (lo < 0, hi >= 0),
                        Rel::Le => (lo <= 0, hi > 0),
                        Rel::Gt => (hi > 0, lo <= 0),
                        Rel::Ge => (hi >= 0, lo < 0),
                    };
                    Outcomes { holds, fails }
                }
            },
            Test::And(parts) => {
                let mut parts = parts.iter().map(|p| p.outcomes(ranges));
                parts.try_fold(Outcomes::HOLDS, |all, part| {
                    let holds = all.holds && part.holds;
                    let fails = all.fails || part.fails;
                    holds.then_some(Outcomes { holds, fails })
                })
            }
            .unwrap_or(Outcomes::FAILS),
            Test::Or(parts) => {
                let mut parts = parts.iter().map(|p| p.outcomes(ranges));
                parts.try_fold(Outcomes::FAILS, |all, part| {
                    let holds = all.holds || part.holds;
                    let fails = all.fails && part.fails;
                    fails.then_some(Outcomes { holds, fails })
                })
            }
            .unwrap_or(Outcomes::HOLDS),
            Test::Not(inner) => {
                let Outcomes { holds, fails } = inner.outcomes(ranges);
                Outcomes {
                    holds: fails,
                    fails: holds,
                }
            }
        }
    }
}

/// The possible values of a condition over ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes {
    pub holds: bool,
    pub fails: bool,
}

impl Outcomes {
    pub const BOTH: Outcomes = Outcomes {
        holds: true,
        fails: true,
    };
    pub const HOLDS: Outcomes = Outcomes {
        holds: true,
        fails: false,
    };
    pub const FAILS: Outcomes = Outcomes {
        holds: false,
        fails: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::{DimId, ParamId, Poly};

    #[test]
    fn agrees_with_forms() {
        let (i, j) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let n = Poly::param(ParamId(0));
        let form = i
            .scale(&n)
            .unwrap()
            .sub(&j.plus(3).floor_div(2))
            .add(&i.add(&j).modulo(3))
            .add(&Form::from(n));
        let cond = Cond::cmp(Rel::Lt, form.clone(), j.clone())
            .negate()
            .and(Cond::Or(vec![
                Cond::cmp(Rel::Eq, i.clone(), j.clone()),
                Cond::cmp(Rel::Ge, i, 2),
            ]));
        let linear = Linear::compile(&form, &[5]).unwrap();
        let test = Test::compile(&cond, &[5]).unwrap();
        for i in -4..4 {
            for j in -4..4 {
                let ranges = [(i - 1, i + 2), (j, j + 1)];
                let (least, most) = linear.range(&ranges).unwrap();
                let outcomes = test.outcomes(&ranges);
                for (a, b) in (i - 1..=i + 2).flat_map(|a| (j..=j + 1).map(move |b| (a, b))) {
                    let value = linear.eval(&[a, b]).unwrap();
                    assert!(least <= value && value <= most);
                    let holds = test.eval(&[a, b]).unwrap();
                    assert!(if holds {
                        outcomes.holds
                    } else {
                        outcomes.fails
                    });
                }
                let (wide, point) = ([i128::from(i), i128::from(j)], [i, j]);
                let expect = form.eval(&[5], &wide).unwrap();
                assert_eq!(linear.eval(&point).map(i128::from), Some(expect));
                assert_eq!(test.eval(&point), cond.eval(&[5], &wide).ok());
            }
        }
    }

    #[test]
    fn overflow_is_seen() {
        let form = Form::from(DimId(0))
            .scale(&Poly::constant(1 << 40))
            .unwrap();
        let linear = Linear::compile(&form, &[]).unwrap();
        assert_eq!(linear.eval(&[1 << 30]), None);
        assert!(Linear::compile(&Form::from(1 << 70), &[]).is_err());
    }
}
