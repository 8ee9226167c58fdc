//! Polynomials in the parameters: the coefficients of forms. Nearly all are plain numbers, which
//! need no allocation.

use std::cmp::Ordering;
use std::fmt;

use super::{Form, LIMIT, Overflow, write_form};
use crate::id::ParamId;

/// A product of parameters, sorted; the empty product is 1.
pub type Monomial = Vec<ParamId>;

static ONE: Monomial = Monomial::new();

/// A polynomial in the parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Poly {
    constant: i128,
    /// Sorted by monomial; none is 1, and none has coefficient zero.
    products: Vec<(Monomial, i128)>,
}

impl Ord for Poly {
    /// Compares term by term.
    fn cmp(&self, other: &Self) -> Ordering {
        self.terms().cmp(other.terms())
    }
}

impl PartialOrd for Poly {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Poly {
    pub fn zero() -> Self {
        Self::default()
    }

    pub fn constant(constant: i128) -> Self {
        Poly {
            constant,
            products: Vec::new(),
        }
    }

    pub fn param(p: ParamId) -> Self {
        Self::term(vec![p], 1)
    }

    pub(super) fn term(mut monomial: Monomial, c: i128) -> Self {
        if c == 0 {
            return Self::default();
        }
        if monomial.is_empty() {
            return Self::constant(c);
        }
        monomial.sort_unstable();
        Poly {
            constant: 0,
            products: vec![(monomial, c)],
        }
    }

    /// Sorted by monomial, 1 first; none has coefficient zero.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        let constant = (self.constant != 0).then_some((&ONE, self.constant));
        let products = self.products.iter().map(|(m, c)| (m, *c));
        constant.into_iter().chain(products)
    }

    pub fn is_zero(&self) -> bool {
        self.as_constant() == Some(0)
    }

    /// The value, if no parameter occurs.
    pub fn as_constant(&self) -> Option<i128> {
        self.products.is_empty().then_some(self.constant)
    }

    /// The highest number of parameters multiplied in one term.
    pub fn degree(&self) -> usize {
        let degrees = self.products.iter().map(|(m, _)| m.len());
        degrees.max().unwrap_or(0)
    }

    #[must_use]
    pub fn add(&self, other: &Poly) -> Poly {
        let mut sum = self.clone();
        sum.accumulate(other);
        sum
    }

    pub(super) fn accumulate(&mut self, other: &Poly) {
        self.constant = self.constant.saturating_add(other.constant);
        for (monomial, c) in &other.products {
            match self.products.binary_search_by(|(m, _)| m.cmp(monomial)) {
                Err(at) => self.products.insert(at, (monomial.clone(), *c)),
                Ok(at) => {
                    let total = self.products[at].1.saturating_add(*c);
                    if total == 0 {
                        self.products.remove(at);
                    } else {
                        self.products[at].1 = total;
                    }
                }
            }
        }
    }

    #[must_use]
    pub fn neg(&self) -> Poly {
        Poly {
            constant: -self.constant,
            products: self.products.iter().map(|(m, c)| (m.clone(), -c)).collect(),
        }
    }

    #[must_use]
    pub fn sub(&self, other: &Poly) -> Poly {
        self.add(&other.neg())
    }

    pub fn mul(&self, other: &Poly) -> Result<Poly, Overflow> {
        let mut product = Poly::zero();
        for (m, c) in self.terms() {
            for (n, d) in other.terms() {
                let coefficient = c.checked_mul(d).filter(|x| x.abs() < LIMIT);
                let monomial = m.iter().chain(n).copied().collect();
                product.accumulate(&Poly::term(monomial, coefficient.ok_or(Overflow)?));
            }
        }
        Ok(product)
    }

    /// The value at concrete parameters.
    pub fn eval(&self, params: &[i128]) -> Result<i128, Overflow> {
        let mut sum = self.constant;
        for (monomial, c) in &self.products {
            let mut term = *c;
            for p in monomial {
                let value = params.get(p.index()).copied().unwrap_or(0);
                term = term.checked_mul(value).ok_or(Overflow)?;
            }
            sum = sum.checked_add(term).ok_or(Overflow)?;
        }
        Ok(sum)
    }

    /// Prints with the names of the parameters.
    pub fn display<'a>(&'a self, params: &'a [String]) -> impl fmt::Display + 'a {
        let form = Form::from(self.clone());
        fmt::from_fn(move |f| write_form(&form, params, &[], f))
    }
}
