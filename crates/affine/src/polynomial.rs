//! Multivariate polynomials with rational coefficients, and their sums over integer ranges.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::int::{Int, add, gcd, mul};

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rational {
    pub numerator: Int,
    pub denominator: Int,
}

impl Rational {
    pub(crate) const ZERO: Rational = Rational {
        numerator: 0,
        denominator: 1,
    };

    pub(crate) fn new(numerator: Int, denominator: Int) -> Result<Rational> {
        let mut g = gcd(numerator, denominator)?;
        if denominator < 0 {
            g = crate::int::neg(g)?;
        }
        if g == 0 {
            return Err(Error::Divisor(denominator));
        }
        Ok(Rational {
            numerator: numerator.checked_div(g).ok_or(Error::Overflow)?,
            denominator: denominator.checked_div(g).ok_or(Error::Overflow)?,
        })
    }

    pub(crate) fn integer(n: Int) -> Rational {
        Rational {
            numerator: n,
            denominator: 1,
        }
    }

    pub(crate) fn add(self, o: Rational) -> Result<Rational> {
        if self.denominator == 1 && o.denominator == 1 {
            return Ok(Rational::integer(add(self.numerator, o.numerator)?));
        }
        let g = gcd(self.denominator, o.denominator)?;
        let left = mul(self.numerator, o.denominator / g)?;
        let right = mul(o.numerator, self.denominator / g)?;
        Rational::new(add(left, right)?, mul(self.denominator / g, o.denominator)?)
    }

    pub(crate) fn mul(self, o: Rational) -> Result<Rational> {
        if self.numerator == 0 || o.numerator == 0 {
            return Ok(Rational::ZERO);
        }
        let g = gcd(self.numerator, o.denominator)?;
        let h = gcd(o.numerator, self.denominator)?;
        Ok(Rational {
            numerator: mul(self.numerator / g, o.numerator / h)?,
            denominator: mul(self.denominator / h, o.denominator / g)?,
        })
    }
}

/// Terms by their exponents; trailing zero exponents are left off, zero coefficients never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Polynomial {
    terms: BTreeMap<Vec<u32>, Rational>,
}

impl Polynomial {
    pub(crate) fn constant(c: Rational) -> Polynomial {
        let mut p = Polynomial {
            terms: BTreeMap::new(),
        };
        if c.numerator != 0 {
            p.terms.insert(Vec::new(), c);
        }
        p
    }

    /// An affine row, constant first, as a polynomial.
    pub(crate) fn affine(row: &[Int]) -> Polynomial {
        let mut p = Polynomial::constant(Rational::integer(row[0]));
        for (v, &c) in row[1..].iter().enumerate() {
            if c != 0 {
                let mut e = vec![0; v + 1];
                e[v] = 1;
                p.terms.insert(e, Rational::integer(c));
            }
        }
        p
    }

    pub(crate) fn n_terms(&self) -> usize {
        self.terms.len()
    }

    fn add_term(&mut self, exponents: Vec<u32>, c: Rational) -> Result<()> {
        if c.numerator == 0 {
            return Ok(());
        }
        let sum = match self.terms.get(&exponents) {
            Some(&old) => old.add(c)?,
            None => c,
        };
        if sum.numerator == 0 {
            self.terms.remove(&exponents);
        } else {
            self.terms.insert(exponents, sum);
        }
        Ok(())
    }

    pub(crate) fn add(&self, other: &Polynomial) -> Result<Polynomial> {
        let mut p = self.clone();
        for (e, &c) in &other.terms {
            p.add_term(e.clone(), c)?;
        }
        Ok(p)
    }

    pub(crate) fn scale(&self, k: Rational) -> Result<Polynomial> {
        let mut p = Polynomial::constant(Rational::ZERO);
        for (e, &c) in &self.terms {
            p.add_term(e.clone(), c.mul(k)?)?;
        }
        Ok(p)
    }

    pub(crate) fn mul(&self, other: &Polynomial) -> Result<Polynomial> {
        let mut p = Polynomial::constant(Rational::ZERO);
        for (e, &c) in &self.terms {
            for (f, &d) in &other.terms {
                let n = e.len().max(f.len());
                let at = |x: &[u32], i: usize| x.get(i).copied().unwrap_or(0);
                let exponents = (0..n).map(|i| at(e, i) + at(f, i)).collect();
                p.add_term(exponents, c.mul(d)?)?;
            }
        }
        Ok(p)
    }

    /// The coefficients, themselves polynomials, of the powers of variable `v`.
    fn coefficients_of(&self, v: usize) -> Result<Vec<Polynomial>> {
        let mut by_power: Vec<Polynomial> = Vec::new();
        for (e, &c) in &self.terms {
            let power = e.get(v).copied().unwrap_or(0) as usize;
            while by_power.len() <= power {
                by_power.push(Polynomial::constant(Rational::ZERO));
            }
            let mut rest = e.clone();
            if power > 0 {
                rest[v] = 0;
                while rest.last() == Some(&0) {
                    rest.pop();
                }
            }
            by_power[power].add_term(rest, c)?;
        }
        Ok(by_power)
    }

    /// The polynomial with variable `v` replaced by another polynomial.
    pub(crate) fn substitute(&self, v: usize, image: &Polynomial) -> Result<Polynomial> {
        let by_power = self.coefficients_of(v)?;
        if by_power.len() <= 1 {
            return Ok(self.clone());
        }
        let mut result = Polynomial::constant(Rational::ZERO);
        for c in by_power.iter().rev() {
            result = result.mul(image)?.add(c)?;
        }
        Ok(result)
    }

    /// The sum over `v` from `low` to `high`, right wherever `high >= low - 1`.
    pub(crate) fn sum(&self, v: usize, low: &Polynomial, high: &Polynomial) -> Result<Polynomial> {
        let by_power = self.coefficients_of(v)?;
        let below = low.add(&Polynomial::constant(Rational::integer(-1)))?;
        let mut result = Polynomial::constant(Rational::ZERO);
        for (power, c) in by_power.iter().enumerate() {
            if c.terms.is_empty() {
                continue;
            }
            let formula = power_sum(power)?;
            let difference = evaluate(&formula, high)?
                .add(&evaluate(&formula, &below)?.scale(Rational::integer(-1))?)?;
            result = result.add(&c.mul(&difference)?)?;
        }
        Ok(result)
    }

    /// The value of a polynomial without variables.
    pub(crate) fn as_constant(&self) -> Option<Rational> {
        match self.terms.len() {
            0 => Some(Rational::ZERO),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }
}

fn evaluate(coefficients: &[Rational], at: &Polynomial) -> Result<Polynomial> {
    let mut p = Polynomial::constant(Rational::ZERO);
    for &c in coefficients.iter().rev() {
        p = p.mul(at)?.add(&Polynomial::constant(c))?;
    }
    Ok(p)
}

/// Coefficients, lowest first, of a polynomial `S` with `S(n) - S(n - 1) = n^power` (Faulhaber's
/// formula).
fn power_sum(power: usize) -> Result<Vec<Rational>> {
    // Compare the coefficients of n^j in S(n) - S(n - 1) from the top: those of S follow one by
    // one.
    let mut s = vec![Rational::ZERO; power + 2];
    for j in (0..=power).rev() {
        // coefficient of n^j in S(n) - S(n-1): sum over k > j of s_k C(k, j) (-1)^(k-j+1)
        let mut known = Rational::ZERO;
        for (k, &s_k) in s.iter().enumerate().skip(j + 2) {
            let sign = if (k - j) % 2 == 1 { 1 } else { -1 };
            let b = Rational::integer(mul(sign, binomial(k, j)?)?);
            known = known.add(s_k.mul(b)?)?;
        }
        let wanted = Rational::integer(Int::from(j == power));
        let rest = wanted.add(known.mul(Rational::integer(-1))?)?;
        s[j + 1] = rest.mul(Rational::new(1, j as Int + 1)?)?;
    }
    Ok(s)
}

fn binomial(n: usize, k: usize) -> Result<Int> {
    let mut b: Int = 1;
    for i in 0..k {
        b = mul(b, (n - i) as Int)? / (i as Int + 1);
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulhaber() {
        for power in 0..8 {
            let formula = power_sum(power).unwrap();
            let at = |n: Int| {
                let x = Polynomial::constant(Rational::integer(n));
                evaluate(&formula, &x).unwrap().as_constant().unwrap()
            };
            for n in -5..6 as Int {
                let minus = at(n - 1).mul(Rational::integer(-1)).unwrap();
                let step = at(n).add(minus).unwrap();
                assert_eq!(step, Rational::integer(n.pow(power as u32)));
            }
        }
    }
}
