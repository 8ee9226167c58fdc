//! Splits a form into a part that is the same in all lanes and a small part: u + v(lane), where u
//! is a 64-bit scalar and v has a known range, so that vectors of narrow integers can hold it.
//!
//! A floor or remainder of u + v by c needs only the remainder of u: with u = c·q + r, the floor is
//! q + ⌊(v + r) / c⌋, and r is in 0 … c − 1. One scalar division then serves all lanes.

use systola_ir::DimId;
use systola_ir::form::{Atom, Form, Poly};

/// An integer in each lane, with a known range.
#[derive(Clone, Debug, PartialEq)]
pub enum Small {
    Lane,
    /// A uniform form with values in 0 … below − 1.
    Rest {
        form: Form,
        below: i128,
    },
    Const(i128),
    Sum(Vec<(i128, Small)>),
    /// The quotient of a non-negative number.
    Div(Box<Small>, i128),
    /// The remainder of a non-negative number.
    Mod(Box<Small>, i128),
}

/// A form as `uniform + small`. `None` if a coefficient of the lane is not a number, or the range
/// is large.
pub fn split(form: &Form, lane: DimId, lanes: u32) -> Option<(Form, Small)> {
    let mut uniform = Form::from(form.constant_part().clone());
    let mut sum = Vec::new();
    for (atom, coefficient) in form.terms() {
        let this = Form::atom(atom.clone());
        if !this.dims().contains(&lane) {
            uniform = uniform.add(&this.scale(coefficient).ok()?);
            continue;
        }
        let factor = coefficient.as_constant()?;
        match atom {
            Atom::Dim(_) => sum.push((factor, Small::Lane)),
            Atom::Floor(inner, c) => {
                let (u, v) = split(inner, lane, lanes)?;
                let (shifted, by) = v.plus_rest(&u, *c, lanes)?;
                let whole = u.floor_div(*c).plus(by.checked_neg()?);
                uniform = uniform.add(&whole.scale(&Poly::constant(factor)).ok()?);
                sum.push((factor, Small::Div(Box::new(shifted), *c)));
            }
            Atom::Mod(inner, c) => {
                let (u, v) = split(inner, lane, lanes)?;
                let (shifted, _) = v.plus_rest(&u, *c, lanes)?;
                sum.push((factor, Small::Mod(Box::new(shifted), *c)));
            }
        }
    }
    let small = match sum.as_slice() {
        [(1, _)] => sum.remove(0).1,
        _ => Small::Sum(sum),
    };
    small.bits(lanes)?;
    Some((uniform, small))
}

impl Small {
    /// (self + (u mod c) + c·k, k), with the least k ≥ 0 for which the sum is not negative.
    fn plus_rest(self, u: &Form, c: i128, lanes: u32) -> Option<(Small, i128)> {
        let (least, _) = self.range(lanes)?;
        let k = if least < 0 {
            least.checked_neg()?.checked_add(c - 1)?.div_euclid(c)
        } else {
            0
        };
        let rest = u.modulo(c);
        let constant = c.checked_mul(k)?;
        let mut sum = vec![(1, self)];
        match rest.as_constant() {
            Some(r) if r.checked_add(constant)? == 0 => {}
            Some(r) => sum.push((1, Small::Const(r + constant))),
            None => {
                sum.push((
                    1,
                    Small::Rest {
                        form: rest,
                        below: c,
                    },
                ));
                if constant != 0 {
                    sum.push((1, Small::Const(constant)));
                }
            }
        }
        let sum = match sum.len() {
            1 => sum.remove(0).1,
            _ => Small::Sum(sum),
        };
        Some((sum, k))
    }

    /// Least and greatest value.
    pub fn range(&self, lanes: u32) -> Option<(i128, i128)> {
        match self {
            Small::Lane => Some((0, i128::from(lanes) - 1)),
            Small::Rest { below, .. } => Some((0, below - 1)),
            Small::Const(c) => Some((*c, *c)),
            Small::Sum(terms) => {
                let (mut least, mut greatest) = (0i128, 0i128);
                for (factor, term) in terms {
                    let (a, b) = term.range(lanes)?;
                    let (a, b) = (a.checked_mul(*factor)?, b.checked_mul(*factor)?);
                    least = least.checked_add(a.min(b))?;
                    greatest = greatest.checked_add(a.max(b))?;
                }
                Some((least, greatest))
            }
            Small::Div(inner, c) => {
                let (least, greatest) = inner.range(lanes)?;
                Some((least.div_euclid(*c), greatest.div_euclid(*c)))
            }
            Small::Mod(inner, c) => {
                let (_, greatest) = inner.range(lanes)?;
                Some((0, greatest.min(c - 1)))
            }
        }
    }

    /// The number of bits that hold every intermediate value, and one more on either side: 8, 16 or
    /// 32.
    pub fn bits(&self, lanes: u32) -> Option<u32> {
        let (least, greatest) = self.range(lanes)?;
        let here = [8u32, 16, 32].into_iter().find(|bits| {
            let limit = 1i128 << (bits - 1);
            least > -limit && greatest < limit - 1
        })?;
        match self {
            Small::Lane | Small::Const(_) => Some(here),
            Small::Rest { below, .. } => (*below < i128::from(i32::MAX)).then_some(here),
            Small::Div(inner, c) | Small::Mod(inner, c) => {
                let c = Small::Const(*c).bits(lanes)?;
                Some(here.max(inner.bits(lanes)?).max(c))
            }
            Small::Sum(terms) => {
                // Partial sums can exceed the range of the whole sum: the magnitudes bound them.
                let mut bits = here;
                let mut magnitude = 0i128;
                for (factor, term) in terms {
                    bits = bits
                        .max(term.bits(lanes)?)
                        .max(Small::Const(*factor).bits(lanes)?);
                    let (a, b) = term.range(lanes)?;
                    let most = a.abs().max(b.abs()).checked_mul(factor.abs())?;
                    magnitude = magnitude.checked_add(most)?;
                }
                Some(bits.max(Small::Const(magnitude).bits_of_number()?))
            }
        }
    }

    fn bits_of_number(&self) -> Option<u32> {
        match self {
            Small::Const(_) => self.bits(1),
            Small::Lane | Small::Rest { .. } | Small::Sum(_) | Small::Div(..) | Small::Mod(..) => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::ParamId;

    fn eval(small: &Small, params: &[i128], dims: &[i128], lane: i128) -> i128 {
        match small {
            Small::Lane => lane,
            Small::Rest { form, below } => {
                let value = form.eval(params, dims).unwrap();
                assert!((0..*below).contains(&value));
                value
            }
            Small::Const(c) => *c,
            Small::Sum(terms) => terms
                .iter()
                .map(|(f, t)| f * eval(t, params, dims, lane))
                .sum(),
            Small::Div(inner, c) => {
                let value = eval(inner, params, dims, lane);
                assert!(value >= 0);
                value / c
            }
            Small::Mod(inner, c) => {
                let value = eval(inner, params, dims, lane);
                assert!(value >= 0);
                value % c
            }
        }
    }

    #[test]
    fn halves_add_up_to_the_form() {
        let (lane, i, n) = (DimId(0), DimId(1), ParamId(0));
        let l = Form::from(lane);
        let at = |a: i128, b: i128| {
            let a = l.scale(&Poly::constant(a)).unwrap();
            let b = Form::from(i).scale(&Poly::constant(b)).unwrap();
            a.add(&b).add(&Form::from(n))
        };
        let forms = [
            l.clone(),
            at(3, 2),
            at(-1, 1).floor_div(4),
            at(-5, 7).modulo(6).add(&at(1, 0)),
            at(2, 3).modulo(8).floor_div(3).add(&at(-2, 5).floor_div(7)),
        ];
        for form in &forms {
            let (u, v) = split(form, lane, 16).unwrap();
            let (least, greatest) = v.range(16).unwrap();
            for l in 0..16 {
                for i in [-1000, -7, 0, 5, 999] {
                    for n in [-3, 0, 4] {
                        let small = eval(&v, &[n], &[l, i], l);
                        assert!((least..=greatest).contains(&small));
                        let whole = u.eval(&[n], &[l, i]).unwrap() + small;
                        assert_eq!(whole, form.eval(&[n], &[l, i]).unwrap());
                    }
                }
            }
        }
    }

    #[test]
    fn forms_that_are_not_small_are_refused() {
        let lane = DimId(0);
        let l = Form::from(lane);
        let n = Poly::param(ParamId(0));
        assert!(split(&l.scale(&n).unwrap(), lane, 16).is_none());
        let big = Poly::constant(1 << 40);
        assert!(split(&l.scale(&big).unwrap(), lane, 16).is_none());
    }

    #[test]
    fn widths_hold_partial_sums() {
        let sum = Small::Sum(vec![(9, Small::Lane), (-9, Small::Lane)]);
        assert_eq!(sum.range(16), Some((-135, 135)));
        assert_eq!(sum.bits(16), Some(16));
        assert_eq!(Small::Lane.bits(64), Some(8));
    }
}
