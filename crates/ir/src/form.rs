//! Quasi-affine forms and conditions: the index expressions of systems, mappings and arrays.
//!
//! A [`Form`] is a sum of atoms with coefficients that are polynomials in the parameters. An atom
//! is an iterator, or the floor or remainder of a form by a positive constant. Almost all forms
//! have constant coefficients; integer sets can reason about exactly these. `N*i` and `i + N*N` are
//! forms too, so that a schedule such as `K*j + k` can be written down and later be rewritten to
//! digits.
//!
//! Coefficients stay below [`LIMIT`] in magnitude: products are checked, and sums of fewer than
//! 2^40 such terms cannot overflow.

mod cond;
mod poly;

use std::fmt;

use crate::id::{DimId, ParamId};

pub use cond::{Cond, Rel};
pub use poly::{Monomial, Poly};

/// The largest magnitude of a coefficient.
pub const LIMIT: i128 = 1 << 80;

/// A coefficient outgrew [`LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a coefficient is larger than 2^80")
    }
}

impl std::error::Error for Overflow {}

/// What a form is a combination of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    Dim(DimId),
    /// ⌊form / c⌋, c > 0.
    Floor(Box<Form>, i128),
    /// form − c·⌊form / c⌋, c > 0.
    Mod(Box<Form>, i128),
}

/// A quasi-affine form with polynomial coefficients. No atom has coefficient zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// Sorted by atom.
    terms: Vec<(Atom, Poly)>,
    constant: Poly,
}

impl From<Poly> for Form {
    fn from(constant: Poly) -> Self {
        Form {
            terms: Vec::new(),
            constant,
        }
    }
}

impl From<i128> for Form {
    fn from(c: i128) -> Self {
        Poly::constant(c).into()
    }
}

impl From<DimId> for Form {
    fn from(d: DimId) -> Self {
        Form::atom(Atom::Dim(d))
    }
}

impl From<ParamId> for Form {
    fn from(p: ParamId) -> Self {
        Poly::param(p).into()
    }
}

impl Form {
    pub fn zero() -> Self {
        Self::default()
    }

    pub fn atom(atom: Atom) -> Self {
        Form {
            terms: vec![(atom, Poly::constant(1))],
            constant: Poly::zero(),
        }
    }

    pub fn terms(&self) -> impl Iterator<Item = (&Atom, &Poly)> {
        self.terms.iter().map(|(atom, c)| (atom, c))
    }

    fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.terms.iter().map(|(atom, _)| atom)
    }

    fn place_of(&self, atom: &Atom) -> Result<usize, usize> {
        self.terms.binary_search_by(|(a, _)| a.cmp(atom))
    }

    pub fn constant_part(&self) -> &Poly {
        &self.constant
    }

    /// The coefficient of an iterator outside any floor or remainder.
    pub fn coefficient(&self, d: DimId) -> Poly {
        let place = self.place_of(&Atom::Dim(d));
        place.map_or_else(|_| Poly::zero(), |at| self.terms[at].1.clone())
    }

    /// The polynomial this form is, if it has no atom.
    pub fn as_poly(&self) -> Option<&Poly> {
        self.terms.is_empty().then_some(&self.constant)
    }

    pub fn as_constant(&self) -> Option<i128> {
        self.as_poly()?.as_constant()
    }

    /// Does it contain only iterators with constant coefficients, plus an affine form of the
    /// parameters?
    pub fn is_affine(&self) -> bool {
        self.constant.degree() <= 1
            && self
                .terms
                .iter()
                .all(|(atom, c)| matches!(atom, Atom::Dim(_)) && c.as_constant().is_some())
    }

    /// Are all coefficients constant, also inside floors, and the parameters at most linear?
    /// Presburger arithmetic can decide questions about such forms.
    pub fn is_quasi_affine(&self) -> bool {
        self.constant.degree() <= 1
            && self.terms.iter().all(|(atom, c)| {
                c.as_constant().is_some()
                    && match atom {
                        Atom::Dim(_) => true,
                        Atom::Floor(inner, _) | Atom::Mod(inner, _) => inner.is_quasi_affine(),
                    }
            })
    }

    /// Every iterator that occurs, also inside floors.
    pub fn dims(&self) -> Vec<DimId> {
        let mut dims = Vec::new();
        self.collect_dims(&mut dims);
        dims.sort_unstable();
        dims.dedup();
        dims
    }

    fn collect_dims(&self, dims: &mut Vec<DimId>) {
        for atom in self.atoms() {
            match atom {
                Atom::Dim(d) => dims.push(*d),
                Atom::Floor(inner, _) | Atom::Mod(inner, _) => inner.collect_dims(dims),
            }
        }
    }

    /// Does an iterator occur in a quotient or a remainder? Then its coefficient does not describe
    /// its whole effect.
    pub fn has_digit_of(&self, dim: DimId) -> bool {
        self.atoms().any(|atom| match atom {
            Atom::Dim(_) => false,
            Atom::Floor(inner, _) | Atom::Mod(inner, _) => inner.dims().contains(&dim),
        })
    }

    #[must_use]
    pub fn add(&self, other: &Form) -> Form {
        let mut sum = self.clone();
        sum.accumulate(other);
        sum
    }

    fn accumulate(&mut self, other: &Form) {
        affine::cancel::check();
        self.constant.accumulate(&other.constant);
        for (atom, c) in &other.terms {
            self.add_term(atom, c);
        }
    }

    fn add_term(&mut self, atom: &Atom, c: &Poly) {
        match self.place_of(atom) {
            Err(_) if c.is_zero() => {}
            Err(at) => self.terms.insert(at, (atom.clone(), c.clone())),
            Ok(at) => {
                self.terms[at].1.accumulate(c);
                if self.terms[at].1.is_zero() {
                    self.terms.remove(at);
                }
            }
        }
    }

    #[must_use]
    pub fn neg(&self) -> Form {
        Form {
            terms: self
                .terms
                .iter()
                .map(|(a, c)| (a.clone(), c.neg()))
                .collect(),
            constant: self.constant.neg(),
        }
    }

    #[must_use]
    pub fn sub(&self, other: &Form) -> Form {
        let mut difference = other.neg();
        difference.accumulate(self);
        difference
    }

    /// The form plus a constant.
    #[must_use]
    pub fn plus(&self, c: i128) -> Form {
        let mut sum = self.clone();
        sum.constant.accumulate(&Poly::constant(c));
        sum
    }

    pub fn scale(&self, factor: &Poly) -> Result<Form, Overflow> {
        let mut scaled = Form::from(self.constant.mul(factor)?);
        for (atom, c) in &self.terms {
            scaled.add_term(atom, &c.mul(factor)?);
        }
        Ok(scaled)
    }

    /// The product, if one side has no atom; `None` for the product of two iterators.
    pub fn mul(&self, other: &Form) -> Option<Result<Form, Overflow>> {
        match (self.as_poly(), other.as_poly()) {
            (Some(factor), _) => Some(other.scale(factor)),
            (_, Some(factor)) => Some(self.scale(factor)),
            _ => None,
        }
    }

    /// ⌊self / c⌋ for c > 0, folded where all terms are constant or divisible.
    #[must_use]
    pub fn floor_div(&self, c: i128) -> Form {
        debug_assert!(c > 0);
        if c == 1 {
            return self.clone();
        }
        if let Some(value) = self.as_constant() {
            return Form::from(value.div_euclid(c));
        }
        // Move what is divisible by c out of the floor; the rest stays in it.
        let (whole, rest) = self.split_divisible(c);
        if rest.as_constant().is_some() {
            return whole;
        }
        whole.add(&Form::atom(Atom::Floor(Box::new(rest), c)))
    }

    /// self mod c for c > 0, in 0..c.
    #[must_use]
    pub fn modulo(&self, c: i128) -> Form {
        debug_assert!(c > 0);
        if let Some(value) = self.as_constant() {
            return Form::from(value.rem_euclid(c));
        }
        let (_, rest) = self.split_divisible(c);
        if let Some(value) = rest.as_constant() {
            return Form::from(value.rem_euclid(c));
        }
        Form::atom(Atom::Mod(Box::new(rest), c))
    }

    /// Do the two differ wherever their variables have the same values? May miss some cases.
    pub fn differs_from(&self, other: &Form) -> bool {
        if let Some(distance) = self.sub(other).as_constant() {
            return distance != 0;
        }
        let digit = |form: &Form| match &form.terms[..] {
            [(Atom::Mod(of, by), c)] if c.as_constant() == Some(1) => {
                Some(((**of).clone(), *by, form.constant.clone()))
            }
            _ => None,
        };
        match (digit(self), digit(other)) {
            (Some((of, by, at)), Some((other, other_by, other_at))) => {
                let distance = of.sub(&other).as_constant();
                by == other_by && at == other_at && distance.is_some_and(|d| d.rem_euclid(by) != 0)
            }
            _ => false,
        }
    }

    /// (w, r) with self = c·w + r. The constant of r is in 0..c. Its other coefficients are smaller
    /// than c in magnitude and keep their sign, which reads better than `3*i` for `-i` mod 4.
    fn split_divisible(&self, c: i128) -> (Form, Form) {
        let split = |poly: &Poly, constant: bool| {
            let (mut whole, mut rest) = (Poly::zero(), Poly::zero());
            for (monomial, k) in poly.terms() {
                let (w, r) = if constant && monomial.is_empty() {
                    (k.div_euclid(c), k.rem_euclid(c))
                } else {
                    (k / c, k % c)
                };
                whole.accumulate(&Poly::term(monomial.clone(), w));
                rest.accumulate(&Poly::term(monomial.clone(), r));
            }
            (whole, rest)
        };
        let (whole, rest) = split(&self.constant, true);
        let (mut whole, mut rest) = (Form::from(whole), Form::from(rest));
        for (atom, k) in &self.terms {
            let (w, r) = split(k, false);
            whole.add_term(atom, &w);
            rest.add_term(atom, &r);
        }
        (whole, rest)
    }

    /// Replaces iterators; one for which `by` gives `None` stays.
    pub fn substitute(&self, by: &dyn Fn(DimId) -> Option<Form>) -> Result<Form, Overflow> {
        let mut result = Form::from(self.constant.clone());
        for (atom, c) in &self.terms {
            let replaced = match atom {
                Atom::Dim(d) => by(*d).unwrap_or_else(|| Form::from(*d)),
                Atom::Floor(inner, k) => inner.substitute(by)?.floor_div(*k),
                Atom::Mod(inner, k) => inner.substitute(by)?.modulo(*k),
            };
            result.accumulate(&replaced.scale(c)?);
        }
        Ok(result)
    }

    /// Replaces parameters by values; one for which `value` gives `None` stays symbolic.
    pub fn fix_params(&self, value: &dyn Fn(ParamId) -> Option<i128>) -> Result<Form, Overflow> {
        let fix = |poly: &Poly| -> Result<Poly, Overflow> {
            let mut fixed = Poly::zero();
            for (monomial, c) in poly.terms() {
                let mut term = Poly::constant(c);
                for p in monomial {
                    let factor = value(*p).map_or_else(|| Poly::param(*p), Poly::constant);
                    term = term.mul(&factor)?;
                }
                fixed = fixed.add(&term);
            }
            Ok(fixed)
        };
        let mut result = Form::from(fix(&self.constant)?);
        for (atom, c) in &self.terms {
            let atom = match atom {
                Atom::Dim(d) => Form::from(*d),
                Atom::Floor(inner, k) => inner.fix_params(value)?.floor_div(*k),
                Atom::Mod(inner, k) => inner.fix_params(value)?.modulo(*k),
            };
            result = result.add(&atom.scale(&fix(c)?)?);
        }
        Ok(result)
    }

    /// The value at concrete parameters and iterators.
    pub fn eval(&self, params: &[i128], dims: &[i128]) -> Result<i128, Overflow> {
        let mut sum = self.constant.eval(params)?;
        for (atom, c) in &self.terms {
            let value = match atom {
                Atom::Dim(d) => dims.get(d.index()).copied().unwrap_or(0),
                Atom::Floor(inner, k) => inner.eval(params, dims)?.div_euclid(*k),
                Atom::Mod(inner, k) => inner.eval(params, dims)?.rem_euclid(*k),
            };
            let term = c.eval(params)?.checked_mul(value).ok_or(Overflow)?;
            sum = sum.checked_add(term).ok_or(Overflow)?;
        }
        Ok(sum)
    }

    /// Prints as the text language writes it.
    pub fn display<'a>(
        &'a self,
        params: &'a [String],
        dims: &'a [String],
    ) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| write_form(self, params, dims, f))
    }
}

fn name(names: &[String], index: usize, fallback: &str) -> String {
    names
        .get(index)
        .cloned()
        .unwrap_or_else(|| format!("{fallback}{index}"))
}

fn write_form(
    form: &Form,
    params: &[String],
    dims: &[String],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut first = true;
    let mut write_term = |negative: bool, factors: Vec<String>| -> fmt::Result {
        match (first, negative) {
            (true, true) => f.write_str("-")?,
            (true, false) => {}
            (false, true) => f.write_str(" - ")?,
            (false, false) => f.write_str(" + ")?,
        }
        first = false;
        f.write_str(&factors.join("*"))
    };
    let factors = |c: i128, monomial: &Monomial, atom: Option<String>| {
        let mut factors = Vec::new();
        if c.abs() != 1 || (monomial.is_empty() && atom.is_none()) {
            factors.push(c.abs().to_string());
        }
        factors.extend(monomial.iter().map(|p| name(params, p.index(), "p")));
        factors.extend(atom);
        factors
    };
    for (atom, poly) in form.terms() {
        for (monomial, c) in poly.terms() {
            // In `2*(i/4)` and `-(i/4)`, the factor would otherwise bind before the division.
            let alone = c == 1 && monomial.is_empty();
            let text = match atom {
                Atom::Dim(d) => name(dims, d.index(), "i"),
                Atom::Floor(inner, k) => division(inner, &format!("/{k}"), params, dims),
                Atom::Mod(inner, k) => division(inner, &format!(" % {k}"), params, dims),
            };
            let text = match atom {
                Atom::Floor(..) | Atom::Mod(..) if !alone => format!("({text})"),
                Atom::Dim(_) | Atom::Floor(..) | Atom::Mod(..) => text,
            };
            write_term(c < 0, factors(c, monomial, Some(text)))?;
        }
    }
    // Parameters before the plain number: `C + Q - 1`.
    for (monomial, c) in form.constant.terms().filter(|(m, _)| !m.is_empty()) {
        write_term(c < 0, factors(c, monomial, None))?;
    }
    match form.constant.terms().find(|(m, _)| m.is_empty()) {
        Some((monomial, c)) => write_term(c < 0, factors(c, monomial, None)),
        None if first => f.write_str("0"),
        None => Ok(()),
    }
}

/// `i/4`, `2*i/4` or `(i + 1)/4`.
fn division(inner: &Form, by: &str, params: &[String], dims: &[String]) -> String {
    let text = inner.display(params, dims);
    let mut polys = inner
        .terms
        .iter()
        .map(|(_, c)| c)
        .chain([&inner.constant])
        .flat_map(Poly::terms);
    let is_product = polys.next().is_some_and(|(_, c)| c > 0)
        && polys.next().is_none()
        && inner.atoms().all(|atom| matches!(atom, Atom::Dim(_)));
    if is_product {
        format!("{text}{by}")
    } else {
        format!("({text}){by}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_string()).collect()
    }

    fn check(form: &Form, expect: &str) {
        let shown = form
            .display(&names(&["N", "K"]), &names(&["i", "j"]))
            .to_string();
        assert_eq!(shown, expect);
    }

    #[test]
    fn sums_cancel_and_print() {
        let i = Form::from(DimId(0));
        let n = Form::from(ParamId(0));
        check(&i.add(&n).plus(-1), "i + N - 1");
        check(&i.sub(&i), "0");
        check(&i.neg().plus(3), "-i + 3");
        check(&n.mul(&i).unwrap().unwrap(), "N*i");
        assert!(i.mul(&i).is_none());
    }

    #[test]
    fn forms_that_are_never_equal() {
        let i = Form::from(DimId(0));
        assert!(i.differs_from(&i.plus(1)));
        assert!(!i.differs_from(&i));
        assert!(!i.differs_from(&Form::from(DimId(1))));
        assert!(i.modulo(2).differs_from(&i.plus(1).modulo(2)));
        assert!(!i.modulo(2).differs_from(&i.plus(2).modulo(2)));
        assert!(!i.modulo(2).differs_from(&i.plus(1).modulo(3)));
        assert!(!i.modulo(2).plus(1).differs_from(&i.plus(1).modulo(2)));
    }

    #[test]
    fn digits_are_quotients_and_remainders() {
        let (i, j) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let form = i.add(&j.plus(1).floor_div(4));
        assert!(form.has_digit_of(DimId(1)) && !form.has_digit_of(DimId(0)));
        assert!(i.floor_div(2).add(&j).modulo(8).has_digit_of(DimId(0)));
    }

    #[test]
    fn floors_and_remainders_fold_what_divides() {
        let i = Form::from(DimId(0));
        let four_i = i.scale(&Poly::constant(4)).unwrap();
        check(&four_i.plus(6).floor_div(4), "i + 1");
        check(&four_i.add(&Form::from(DimId(1))).floor_div(4), "i + j/4");
        check(&four_i.add(&Form::from(DimId(1))).modulo(4), "j % 4");
        let half = i.plus(1).floor_div(2);
        check(&half, "(i + 1)/2");
        check(&half.neg(), "-((i + 1)/2)");
        check(&half.add(&half), "2*((i + 1)/2)");
        check(
            &i.scale(&Poly::constant(3)).unwrap().modulo(4).plus(1),
            "3*i % 4 + 1",
        );
        check(&Form::from(-7).floor_div(2), "-4");
        check(&Form::from(-7).modulo(2), "1");
    }

    #[test]
    fn products_past_the_limit_are_refused() {
        let big = Poly::constant(1 << 60);
        assert_eq!(big.mul(&big), Err(Overflow));
    }

    #[test]
    fn evaluation_agrees_with_substitution() {
        let i = Form::from(DimId(0));
        let form = i
            .plus(5)
            .floor_div(3)
            .add(&i.modulo(2))
            .add(&Form::from(ParamId(1)));
        for value in -7..7 {
            let replaced = form.substitute(&|_| Some(Form::from(value))).unwrap();
            assert_eq!(
                replaced.eval(&[0, 10], &[]).unwrap(),
                form.eval(&[0, 10], &[value]).unwrap()
            );
        }
    }
}
