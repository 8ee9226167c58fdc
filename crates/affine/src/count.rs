//! The number of points, without visiting them.
//!
//! Variables are summed away from the inside out. Where one lower and one upper bound of a variable
//! is active, the sum of a polynomial over it is a polynomial in the others (Faulhaber); elsewhere
//! the space is split into the parts where each pair of bounds is active. A bound with a divisor is
//! split by remainders, which become equalities. Equalities are solved by unimodular changes of
//! variables, which preserve the number of points.

use crate::basic::{BasicSet, check_len};
use crate::error::{Error, Result};
use crate::int::{Int, add, mul, nearest_quotient, neg, sub};
use crate::omega;
use crate::polynomial::{Polynomial, Rational};
use crate::set::Set;
use crate::system::{Budget, Row, System, combine};

/// Enumeration is the last resort, and only below this many points.
const ENUMERABLE: Int = 2_000_000;

impl Set {
    /// The number of integer points at the given parameters; `None` when there are infinitely many.
    pub fn count(&self, params: &[Int]) -> Result<Option<Int>> {
        check_len(params, self.space.n_params)?;
        match self.count_symbolic(params) {
            Err(e @ (Error::TooComplex { .. } | Error::Overflow)) => self
                .count_by_visiting(params)?
                .map_or(Err(e), |n| Ok(Some(n))),
            other => other,
        }
    }

    fn count_symbolic(&self, params: &[Int]) -> Result<Option<Int>> {
        let budget = &mut Budget::default();
        let fixed = self.fix_params(params)?.div_form_in(budget)?;
        let disjoint = fixed.make_disjoint_in(budget)?;
        let mut total = Rational::ZERO;
        for p in &disjoint.pieces {
            match count_piece(p, budget)? {
                Some(n) => total = total.add(n)?,
                None => return Ok(None),
            }
        }
        Ok(Some(total.numerator))
    }

    /// Visits the points if a box around them is small; `None` if it is not.
    fn count_by_visiting(&self, params: &[Int]) -> Result<Option<Int>> {
        let budget = &mut Budget::default();
        let mut cells: Int = 0;
        for p in &self.fix_params(params)?.pieces {
            let mut volume: Int = 1;
            for v in 0..self.space.n_dims {
                let Some(shadow) = omega::real_shadow(p.sys.clone(), |w| w == v, budget)? else {
                    volume = 0;
                    break;
                };
                let mut rows = shadow.ges;
                for r in shadow.eqs {
                    rows.push(crate::system::negate(&r)?);
                    rows.push(r);
                }
                match crate::optimum::range_of_rows(&rows, v)? {
                    (Some(l), Some(h)) => {
                        volume = mul(volume, add(sub(h, l)?.max(-1), 1)?)?;
                    }
                    _ => return Ok(None),
                }
            }
            cells = add(cells, volume)?;
        }
        if cells > ENUMERABLE {
            return Ok(None);
        }
        let mut n: Int = 0;
        self.for_each_point(params, |_| n += 1)?;
        Ok(Some(n))
    }
}

/// Existentials in div form take one value for each point, so counting them as dimensions changes
/// nothing.
fn count_piece(p: &BasicSet, budget: &mut Budget) -> Result<Option<Rational>> {
    if p.is_empty_in(budget)? {
        return Ok(Some(Rational::ZERO));
    }
    let mut total = Rational::ZERO;
    for p in p.div_form(budget)? {
        let alive = (0..p.sys.n).collect();
        let one = Polynomial::constant(Rational::integer(1));
        match sum_out(p.sys, alive, one, budget)? {
            Some(n) => total = total.add(n)?,
            None => return Ok(None),
        }
    }
    Ok(Some(total))
}

/// The sum of `weight` over the points of the system; `None` when it is infinite. The weight is
/// positive on them.
fn sum_out(
    mut sys: System,
    mut alive: Vec<usize>,
    mut weight: Polynomial,
    budget: &mut Budget,
) -> Result<Option<Rational>> {
    loop {
        if !sys.normalize(budget)? {
            return Ok(Some(Rational::ZERO));
        }
        if !sys.eqs.is_empty() {
            solve_equality(&mut sys, &mut alive, &mut weight, budget)?;
            continue;
        }
        if alive.is_empty() {
            return Ok(Some(weight.as_constant().unwrap_or(Rational::ZERO)));
        }
        let occ = sys.occurrences();
        if alive.iter().any(|&v| occ[v].is_one_sided()) {
            return Ok(match omega::is_empty(sys, budget)? {
                true => Some(Rational::ZERO),
                false => None,
            });
        }
        budget.spend(weight.n_terms() * sys.n_rows())?;
        // The variable that needs the fewest parts: every pair of bounds, times the remainders of
        // their divisors.
        let parts = |v: usize| -> Int {
            let side = |sign: Int| -> Int {
                sys.ges
                    .iter()
                    .map(|r| r[v + 1].saturating_mul(sign).max(0))
                    .fold(0, |a: Int, b| a.saturating_add(b))
            };
            side(1).saturating_mul(side(-1))
        };
        let Some(&z) = alive.iter().min_by_key(|&&v| parts(v)) else {
            return Ok(Some(Rational::ZERO));
        };
        if parts(z) == 1 {
            let (low, high) = unit_bounds(&sys, z)?;
            weight = weight.sum(z, &Polynomial::affine(&low), &Polynomial::affine(&high))?;
            sys.ges = sys.shadow(z, budget)?.into_real();
            alive.retain(|&v| v != z);
            continue;
        }
        return sum_parts(&sys, &alive, &weight, z, budget);
    }
}

/// The lower and upper bound of a variable that has one of each, with coefficient 1.
fn unit_bounds(sys: &System, z: usize) -> Result<(Row, Row)> {
    let mut low = vec![0; sys.n + 1];
    let mut high = low.clone();
    for r in &sys.ges {
        if r[z + 1] > 0 {
            low = crate::system::negate(r)?;
            low[z + 1] = 0;
        } else if r[z + 1] < 0 {
            high.clone_from(r);
            high[z + 1] = 0;
        }
    }
    Ok((low, high))
}

/// Splits by the active pair of bounds of `z` and by the remainders of their divisors.
fn sum_parts(
    sys: &System,
    alive: &[usize],
    weight: &Polynomial,
    z: usize,
    budget: &mut Budget,
) -> Result<Option<Rational>> {
    let lower: Vec<&Row> = sys.ges.iter().filter(|r| r[z + 1] > 0).collect();
    let upper: Vec<&Row> = sys.ges.iter().filter(|r| r[z + 1] < 0).collect();
    let rest: Vec<&Row> = sys.ges.iter().filter(|r| r[z + 1] == 0).collect();
    let mut total = Rational::ZERO;
    for i in 0..lower.len() {
        let mut above: Vec<Row> = rest.iter().map(|&r| r.clone()).collect();
        above.extend(active(&lower, i, z)?);
        for j in 0..upper.len() {
            let mut part = System {
                n: sys.n,
                eqs: Vec::new(),
                ges: above.clone(),
            };
            part.ges.extend(active(&upper, j, z)?);
            budget.spend(part.n_rows())?;
            if omega::is_empty(part.clone(), budget)? {
                continue;
            }
            for (mut part, mut alive) in round_bound(&part, alive, lower[i], z, budget)? {
                let mut row = upper[j].clone();
                row.resize(part.n + 1, 0);
                let rounded = round_bound(&part, &alive, &row, z, budget)?;
                for (s, a) in rounded {
                    part = s;
                    alive = a;
                    if omega::is_empty(part.clone(), budget)? {
                        continue;
                    }
                    match sum_out(part, alive, weight.clone(), budget)? {
                        Some(n) => total = total.add(n)?,
                        None => return Ok(None),
                    }
                }
            }
        }
    }
    Ok(Some(total))
}

/// The conditions under which bound `i` of `z` is the tightest of its side; the first bound wins
/// ties.
fn active(bounds: &[&Row], i: usize, z: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let c = bounds[i][z + 1].checked_abs().ok_or(Error::Overflow)?;
    for (j, other) in bounds.iter().enumerate() {
        if j == i {
            continue;
        }
        let d = other[z + 1].checked_abs().ok_or(Error::Overflow)?;
        let mut row = combine(c, other, neg(d)?, bounds[i])?;
        if j < i {
            row[0] = add(row[0], -1)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Adds the bound `row` of `z` to the system with coefficient 1: for a coefficient `c > 1`, a new
/// variable is the rounded quotient, in one system for each remainder.
fn round_bound(
    sys: &System,
    alive: &[usize],
    row: &Row,
    z: usize,
    budget: &mut Budget,
) -> Result<Vec<(System, Vec<usize>)>> {
    let c = row[z + 1].checked_abs().ok_or(Error::Overflow)?;
    if c == 1 {
        let mut s = sys.clone();
        s.ges.push(row.clone());
        return Ok(vec![(s, alive.to_vec())]);
    }
    let mut parts = Vec::new();
    let sign = row[z + 1].signum();
    let mut r = 0;
    while r < c {
        budget.spend(1 + sys.n_rows())?;
        let mut s = sys.clone();
        s.add_vars(1);
        let w = s.n - 1;
        // lower: c z + L >= 0, w = ceil(-L / c), c w + L = r;
        // upper: U - c z >= 0, w = floor(U / c), U - c w = r.
        let mut eq = row.clone();
        eq[z + 1] = 0;
        eq.push(mul(sign, c)?);
        eq[0] = add(eq[0], neg(r)?)?;
        s.eqs.push(eq);
        let mut bound = vec![0; s.n + 1];
        bound[z + 1] = sign;
        bound[w + 1] = -sign;
        s.ges.push(bound);
        let mut a = alive.to_vec();
        a.push(w);
        parts.push((s, a));
        r += 1;
    }
    Ok(parts)
}

/// One step of solving the first equality, applied to the weight as well.
fn solve_equality(
    sys: &mut System,
    alive: &mut Vec<usize>,
    weight: &mut Polynomial,
    budget: &mut Budget,
) -> Result<()> {
    for e in 0..sys.eqs.len() {
        if let Some(v) = (0..sys.n).find(|&v| matches!(sys.eqs[e][v + 1], 1 | -1)) {
            let row = sys.eqs.swap_remove(e);
            sys.substitute(v, &row, budget)?;
            let mut image: Row = Vec::with_capacity(row.len());
            for &c in &row {
                image.push(mul(c, neg(row[v + 1])?)?);
            }
            image[v + 1] = 0;
            *weight = weight.substitute(v, &Polynomial::affine(&image))?;
            alive.retain(|&w| w != v);
            return Ok(());
        }
    }
    let vars: Vec<usize> = (0..sys.n).filter(|&v| sys.eqs[0][v + 1] != 0).collect();
    let Some(&pivot) = vars
        .iter()
        .min_by_key(|&&v| sys.eqs[0][v + 1].unsigned_abs())
    else {
        return Ok(());
    };
    let p = sys.eqs[0][pivot + 1];
    let mut image = vec![0; sys.n + 1];
    image[pivot + 1] = 1;
    for &v in &vars {
        if v != pivot {
            image[v + 1] = neg(nearest_quotient(sys.eqs[0][v + 1], p)?)?;
        }
    }
    *weight = weight.substitute(pivot, &Polynomial::affine(&image))?;
    sys.euclid_step(0, &vars, budget)
}
