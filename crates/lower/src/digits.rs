//! Schedules with parameters as lexicographic digits.
//!
//! `t = K·j + k` multiplies a parameter by an iterator, which Presburger arithmetic cannot express.
//! But if k stays within K values, t determines both j and k: they are its digits in base K. In
//! general a form F = p·A + B is equivalent to the pair (A, B) if any two points that agree on
//! everything known so far differ by less than p in B. The forms are treated as linear maps on the
//! difference d of two points, so constants do not matter. Forms that are known to agree (a skew by
//! the PE, as in `i + K·j + k` with PE i) are eliminated first.

use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::{DimId, ParamId};

use crate::decide::{Decide, Undecided};

/// A linear map on differences of points, with coefficients in the parameters.
type Row = Vec<Poly>;

/// Forms with constant coefficients on which two points agree exactly if they agree on all of
/// `forms`. `domain` is a condition on pairs (z, z') of `n` coordinates each.
pub fn digits(
    forms: &[Form],
    n: usize,
    domain: &Cond,
    decide: &Decide,
) -> Result<Vec<Form>, Undecided> {
    let mut pass = Digits {
        n,
        domain,
        decide,
        known: Vec::new(),
        pivots: Vec::new(),
    };
    let (plain, parametric): (Vec<&Form>, Vec<&Form>) =
        forms.iter().partition(|f| f.is_quasi_affine());
    let mut result: Vec<Form> = Vec::new();
    for form in plain {
        result.push(form.clone());
        pass.know(form);
    }
    for form in parametric {
        let row = linear(form, n).ok_or_else(|| {
            Undecided::NeedsSizes(
                "a floor or remainder stands inside a schedule with parameters".into(),
            )
        })?;
        let before = pass.known.len();
        pass.split(row)?;
        result.extend(pass.known[before..].iter().cloned());
    }
    Ok(result)
}

struct Digits<'a> {
    n: usize,
    domain: &'a Cond,
    decide: &'a Decide,
    known: Vec<Form>,
    /// Rows with a coefficient ±1 that eliminates a coordinate.
    pivots: Vec<(usize, Row)>,
}

/// The coefficients of a form without floors.
fn linear(form: &Form, n: usize) -> Option<Row> {
    let mut row = vec![Poly::zero(); n];
    for (atom, coefficient) in form.terms() {
        match atom {
            Atom::Dim(d) => *row.get_mut(d.index())? = coefficient.clone(),
            Atom::Floor(..) | Atom::Mod(..) => return None,
        }
    }
    Some(row)
}

fn form_of(row: &Row) -> Result<Form, Undecided> {
    let mut form = Form::zero();
    for (n, c) in row.iter().enumerate() {
        form = form.add(&Form::from(DimId::from(n)).scale(c)?);
    }
    Ok(form)
}

impl Digits<'_> {
    fn know(&mut self, form: &Form) {
        self.known.push(form.clone());
        let Some(row) = linear(form, self.n) else {
            return;
        };
        let Ok(row) = self.eliminate(row) else { return };
        let pivot = row
            .iter()
            .position(|c| matches!(c.as_constant(), Some(1 | -1)));
        if let Some(at) = pivot {
            self.pivots.push((at, row));
        }
    }

    /// The row minus multiples of rows that are known to be zero.
    fn eliminate(&self, mut row: Row) -> Result<Row, Undecided> {
        for (at, pivot) in &self.pivots {
            if row[*at].is_zero() {
                continue;
            }
            let factor = row[*at].mul(&pivot[*at])?;
            for (c, p) in row.iter_mut().zip(pivot) {
                *c = c.sub(&p.mul(&factor)?);
            }
        }
        Ok(row)
    }

    fn split(&mut self, row: Row) -> Result<(), Undecided> {
        let mut row = self.eliminate(row)?;
        divide_by_content(&mut row);
        if row.iter().all(|c| c.as_constant().is_some()) {
            if row.iter().any(|c| !c.is_zero()) {
                let form = form_of(&row)?;
                self.know(&form);
            }
            return Ok(());
        }
        for p in (0..self.decide.n_params).map(ParamId::from) {
            let (high, low): (Row, Row) = row.iter().map(|c| divide(c, p)).unzip();
            let constant = low.iter().all(|c| c.as_constant().is_some());
            if high.iter().all(Poly::is_zero) || !constant {
                continue;
            }
            if self.stays_below(&low, p)? {
                let form = form_of(&low)?;
                if low.iter().any(|c| !c.is_zero()) {
                    self.know(&form);
                }
                return self.split(high);
            }
        }
        Err(Undecided::NeedsSizes(
            "the schedule multiplies a parameter with an iterator, and its digits overlap".into(),
        ))
    }

    /// Do two points that agree on the known forms differ by less than p in the row?
    fn stays_below(&self, row: &Row, p: ParamId) -> Result<bool, Undecided> {
        let first = form_of(row)?;
        let second = at_second(&first, self.n)?;
        let mut cond = self.domain.clone();
        for form in &self.known {
            cond = cond.and(Cond::cmp(Rel::Eq, form.clone(), at_second(form, self.n)?));
        }
        let far = cond.and(Cond::cmp(Rel::Ge, first.sub(&second), p));
        self.decide.is_empty(&far, 2 * self.n)
    }
}

/// The form of the second point of a pair.
pub fn at_second(form: &Form, n: usize) -> Result<Form, Undecided> {
    Ok(form.substitute(&|d| Some(Form::from(DimId::from(d.index() + n))))?)
}

/// (a, b) with c = p·a + b and no p in b.
fn divide(c: &Poly, p: ParamId) -> (Poly, Poly) {
    let (mut high, mut low) = (Poly::zero(), Poly::zero());
    for (monomial, k) in c.terms() {
        let mut rest = monomial.clone();
        match rest.iter().position(|q| *q == p) {
            Some(at) => {
                rest.remove(at);
                high = high.add(&monomial_of(&rest, k));
            }
            None => low = low.add(&monomial_of(&rest, k)),
        }
    }
    (high, low)
}

fn monomial_of(params: &[ParamId], k: i128) -> Poly {
    params
        .iter()
        .try_fold(Poly::constant(k), |poly, p| poly.mul(&Poly::param(*p)))
        .unwrap_or_default()
}

fn divide_by_content(row: &mut Row) {
    let mut content = 0i128;
    for c in row.iter() {
        for (_, k) in c.terms() {
            content = gcd(content, k.abs());
        }
    }
    if content > 1 {
        for c in row.iter_mut() {
            let mut divided = Poly::zero();
            for (monomial, k) in c.terms() {
                divided = divided.add(&monomial_of(monomial, k / content));
            }
            *c = divided;
        }
    }
}

pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
