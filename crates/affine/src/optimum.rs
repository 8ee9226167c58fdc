//! Concrete points and extreme values.
//!
//! "Is there a point with `e <= k`?" is monotone in `k`, so the smallest value of `e` is found by
//! doubling and bisection over exact emptiness tests.

use crate::basic::{BasicSet, check_len};
use crate::error::{Error, Result};
use crate::expr::LinExpr;
use crate::int::{Int, add, ceil_div, floor_div, mul, neg, sub};
use crate::omega;
use crate::set::Set;
use crate::simplex;
use crate::system::{Budget, Row, System};

/// Bounds of an affine form over one piece: `lower` holds pairs `(e, m)` for `form >= ceil(e / m)`,
/// `upper` for `form <= floor(e / m)`, with `e` over the parameters. Each list is empty when that
/// side has no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicBounds {
    /// The form is at least the maximum of the rounded-up quotients.
    pub lower: Vec<(LinExpr, Int)>,
    /// The form is at most the minimum of the rounded-down quotients.
    pub upper: Vec<(LinExpr, Int)>,
}

impl Set {
    /// A point `(params, dims)` of the set, or `None` when it is empty.
    ///
    /// Values are chosen one after the other, parameters first: the smallest that is not negative,
    /// else the one closest to zero.
    pub fn sample(&self) -> Result<Option<(Vec<Int>, Vec<Int>)>> {
        let budget = &mut Budget::default();
        let mut best: Option<Vec<Int>> = None;
        for p in &self.pieces {
            if let Some(point) = sample_piece(p, budget)? {
                let better = match &best {
                    None => true,
                    Some(b) => magnitude(&point) < magnitude(b),
                };
                if better {
                    best = Some(point);
                }
            }
        }
        Ok(best.map(|mut point| {
            let dims = point.split_off(self.space.n_params);
            (point, dims)
        }))
    }

    /// The lexicographically smallest point at the given parameters, `None` when there is no point.
    pub fn lexmin_point(&self, params: &[Int]) -> Result<Option<Vec<Int>>> {
        self.lex_extreme(params, 1)
    }

    /// The lexicographically largest point at the given parameters, `None` when there is no point.
    pub fn lexmax_point(&self, params: &[Int]) -> Result<Option<Vec<Int>>> {
        self.lex_extreme(params, -1)
    }

    fn lex_extreme(&self, params: &[Int], sign: Int) -> Result<Option<Vec<Int>>> {
        check_len(params, self.space.n_params)?;
        let budget = &mut Budget::default();
        let mut best: Option<Vec<Int>> = None;
        for p in &self.pieces {
            let mut sys = p.fix_params(params)?.sys;
            if omega::is_empty(sys.clone(), budget)? {
                continue;
            }
            let mut point = Vec::with_capacity(self.space.n_dims);
            for v in 0..self.space.n_dims {
                let mut row = vec![0; sys.n + 1];
                row[v + 1] = sign;
                let Some(low) = minimum(&sys, &row, budget)? else {
                    return Err(Error::Unbounded { dim: v });
                };
                let value = mul(sign, low)?;
                sys.fix(v, value)?;
                point.push(value);
            }
            let better = match &best {
                None => true,
                Some(b) if sign > 0 => point < *b,
                Some(b) => point > *b,
            };
            if better {
                best = Some(point);
            }
        }
        Ok(best)
    }

    /// The exact smallest and largest integer value of an affine form over the points at the given
    /// parameters; `None` on a side that is unbounded. On an empty set both are `None`.
    pub fn bounds(&self, form: &LinExpr, params: &[Int]) -> Result<(Option<Int>, Option<Int>)> {
        check_len(params, self.space.n_params)?;
        let budget = &mut Budget::default();
        let row = form.to_row(self.space.n_vars())?;
        let mut low: Option<Option<Int>> = None;
        let mut high: Option<Option<Int>> = None;
        for p in &self.pieces {
            let sys = p.fix_params(params)?.sys;
            if omega::is_empty(sys.clone(), budget)? {
                continue;
            }
            let mut r = vec![0; sys.n + 1];
            r[0] = row[0];
            for (&c, &value) in row[1..].iter().zip(params) {
                r[0] = add(r[0], mul(c, value)?)?;
            }
            let d = self.space.n_dims;
            r[1..=d].copy_from_slice(&row[1 + params.len()..]);
            let min = minimum(&sys, &r, budget)?;
            let max = match minimum(&sys, &crate::system::negate(&r)?, budget)? {
                Some(m) => Some(neg(m)?),
                None => None,
            };
            low = Some(match low {
                None => min,
                Some(l) => l.zip(min).map(|(a, b)| a.min(b)),
            });
            high = Some(match high {
                None => max,
                Some(h) => h.zip(max).map(|(a, b)| a.max(b)),
            });
        }
        Ok((low.flatten(), high.flatten()))
    }

    /// Bounds of an affine form in terms of the parameters, for each piece. They hold at every
    /// point and are tight over the rationals; an integer point need not attain them.
    pub fn bounds_symbolic(&self, form: &LinExpr) -> Result<Vec<SymbolicBounds>> {
        let budget = &mut Budget::default();
        let row = form.to_row(self.space.n_vars())?;
        let k = self.space.n_params;
        let mut all = Vec::new();
        for p in &self.pieces {
            if p.is_empty_in(budget)? {
                continue;
            }
            let mut sys = p.sys.clone();
            sys.add_vars(1);
            let t = sys.n - 1;
            let mut eq = row.clone();
            eq.resize(sys.n + 1, 0);
            eq[t + 1] = -1;
            sys.eqs.push(eq);
            let mut bounds = SymbolicBounds {
                lower: Vec::new(),
                upper: Vec::new(),
            };
            let Some(mut shadow) = omega::real_shadow(sys, |v| v < k || v == t, budget)? else {
                continue;
            };
            simplex::remove_redundant(&mut shadow, |_| false, budget)?;
            for r in &shadow.eqs {
                bounds.push(r, t, k)?;
                bounds.push(&crate::system::negate(r)?, t, k)?;
            }
            for r in &shadow.ges {
                bounds.push(r, t, k)?;
            }
            all.push(bounds);
        }
        Ok(all)
    }
}

impl SymbolicBounds {
    fn push(&mut self, row: &Row, t: usize, n_params: usize) -> Result<()> {
        let c = row[t + 1];
        if c > 0 {
            let e = LinExpr::from_row(&row[..=n_params]).neg()?;
            self.lower.push((e, c));
        } else if c < 0 {
            self.upper
                .push((LinExpr::from_row(&row[..=n_params]), neg(c)?));
        }
        Ok(())
    }
}

/// The sum of absolute values, parameters first, to choose the simplest of several samples.
fn magnitude(point: &[Int]) -> (Int, Vec<Int>) {
    let sum = point
        .iter()
        .fold(0, |s: Int, v| s.saturating_add(v.saturating_abs()));
    (sum, point.to_vec())
}

fn sample_piece(p: &BasicSet, budget: &mut Budget) -> Result<Option<Vec<Int>>> {
    let mut sys = p.sys.clone();
    if omega::is_empty(sys.clone(), budget)? {
        return Ok(None);
    }
    let mut point = Vec::new();
    for v in 0..p.space.n_vars() {
        let value = closest_to_zero(&sys, v, budget)?;
        sys.fix(v, value)?;
        if !sys.normalize(budget)? {
            return Ok(None);
        }
        point.push(value);
    }
    Ok(Some(point))
}

/// The smallest non-negative value of `v`, or else its largest negative one, in a system that is
/// not empty.
fn closest_to_zero(sys: &System, v: usize, budget: &mut Budget) -> Result<Int> {
    if !sys.rows().any(|r| r[v + 1] != 0) {
        return Ok(0);
    }
    let between = |low: Int, high: Option<Int>, budget: &mut Budget| -> Result<bool> {
        let mut s = sys.clone();
        let mut row = vec![0; s.n + 1];
        row[v + 1] = 1;
        row[0] = neg(low)?;
        s.ges.push(row.clone());
        if let Some(high) = high {
            row[v + 1] = -1;
            row[0] = high;
            s.ges.push(row);
        }
        Ok(!omega::is_empty(s, budget)?)
    };
    if between(0, Some(0), budget)? {
        return Ok(0);
    }
    if between(1, None, budget)? {
        return first_true(1, |k| between(1, Some(k), budget));
    }
    neg(first_true(1, |k| between(neg(k)?, Some(-1), budget))?)
}

/// The smallest `k >= start` for which a monotone predicate holds, which some `k` must satisfy.
fn first_true(start: Int, mut holds: impl FnMut(Int) -> Result<bool>) -> Result<Int> {
    if holds(start)? {
        return Ok(start);
    }
    let mut low = start;
    let mut step: Int = 1;
    let mut high = loop {
        let k = add(low, step)?;
        if holds(k)? {
            break k;
        }
        low = k;
        step = mul(step, 2)?;
    };
    while sub(high, low)? > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// The smallest value of a row over a system that is not empty; `None` when there is none.
pub(crate) fn minimum(sys: &System, row: &[Int], budget: &mut Budget) -> Result<Option<Int>> {
    let least = simplex::minima(sys, &[row.to_vec()], budget)?;
    let Some([Some(low)]) = least.as_deref() else {
        return Ok(None);
    };
    let value = first_true(*low, |k| {
        let mut s = sys.clone();
        let mut at_most = crate::system::negate(row)?;
        at_most[0] = add(at_most[0], k)?;
        s.ges.push(at_most);
        Ok(!omega::is_empty(s, budget)?)
    })?;
    Ok(Some(value))
}

/// The numeric range that rows of a one-variable system give to variable `v`.
pub(crate) fn range_of_rows(rows: &[Row], v: usize) -> Result<(Option<Int>, Option<Int>)> {
    let (mut low, mut high) = (None::<Int>, None::<Int>);
    for r in rows {
        let c = r[v + 1];
        if c > 0 {
            let b = ceil_div(neg(r[0])?, c)?;
            low = Some(low.map_or(b, |l| l.max(b)));
        } else if c < 0 {
            let b = floor_div(r[0], neg(c)?)?;
            high = Some(high.map_or(b, |h| h.min(b)));
        }
    }
    Ok((low, high))
}
