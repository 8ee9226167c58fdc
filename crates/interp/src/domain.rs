//! The integer points of a condition at concrete parameters, in lexicographic order.
//!
//! Bounds of each iterator in terms of the outer ones come from Fourier-Motzkin elimination. This
//! does not use the `affine` crate on purpose: the interpreter is the reference for the compiler,
//! so it must be independent. Eliminated rows may be looser than the integer hull, never tighter;
//! the rows of the condition itself decide.

use std::collections::BTreeMap;

use systola_ir::form::Overflow;
use systola_ir::{Atom, Cond, Form, Rel};

use crate::linear::Test;

/// Coefficients beyond this are refused, or dropped if the row is only derived; sums of products
/// with 64-bit coordinates then stay within 128 bits.
const ROW_LIMIT: i128 = 1 << 56;
/// Derived rows beyond this number are dropped: they only speed up the walk.
const MAX_ROWS: usize = 2_000;
/// More candidates than this are not walked.
const MAX_VISITS: u64 = 1 << 32;
/// Coordinates beyond this are refused.
const COORDINATE_LIMIT: i128 = 1 << 62;

/// A set of integer points that can be walked.
#[derive(Clone, Debug)]
pub struct Domain {
    rank: usize,
    /// `levels[d]` bounds iterator d by those before it.
    levels: Vec<Vec<Inequality>>,
    /// The part of the condition that the rows do not express exactly.
    residue: Option<Test>,
    is_empty: bool,
}

/// Why a domain cannot be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    #[error("iterator {0} is not bounded")]
    Unbounded(usize),
    #[error("the domain is too large")]
    TooLarge,
}

impl From<Overflow> for DomainError {
    fn from(_: Overflow) -> Self {
        DomainError::TooLarge
    }
}

/// The number of points, and their bounding box (inclusive; meaningless for none).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    pub count: u64,
    pub lo: Vec<i64>,
    pub hi: Vec<i64>,
}

/// Σ coefficients·x + constant ≥ 0. Coefficients past the end are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inequality {
    coefficients: Vec<i128>,
    constant: i128,
}

impl Inequality {
    fn at(&self, column: usize) -> i128 {
        self.coefficients.get(column).copied().unwrap_or(0)
    }

    fn combine(&self, p: i128, other: &Inequality, q: i128) -> Option<Inequality> {
        let width = self.coefficients.len().max(other.coefficients.len());
        let mix = |a: i128, b: i128| a.checked_mul(p)?.checked_add(b.checked_mul(q)?);
        let coefficients = (0..width)
            .map(|c| mix(self.at(c), other.at(c)))
            .collect::<Option<_>>()?;
        let constant = mix(self.constant, other.constant)?;
        Some(Inequality {
            coefficients,
            constant,
        })
    }

    /// Divides by the common factor, rounding the constant down: the same integer points.
    fn normalised(mut self) -> Inequality {
        while self.coefficients.last() == Some(&0) {
            self.coefficients.pop();
        }
        let factor = self.coefficients.iter().fold(0, |g, c| gcd(g, c.abs()));
        if factor > 1 {
            self.coefficients.iter_mut().for_each(|c| *c /= factor);
            self.constant = self.constant.div_euclid(factor);
        }
        self
    }

    fn is_small(&self) -> bool {
        let fits = |x: &i128| x.abs() < ROW_LIMIT;
        self.coefficients.iter().all(fits) && self.constant.abs() < COORDINATE_LIMIT
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Domain {
    /// The points of the iterators 0..rank that satisfy the condition.
    pub fn new(cond: &Cond, rank: usize, params: &[i128]) -> Result<Domain, DomainError> {
        let mut rows = Inequalities {
            params,
            rank,
            width: rank,
            rows: Vec::new(),
            is_exact: true,
        };
        rows.collect(cond, true)?;
        let order: Vec<usize> = (0..rows.width).rev().collect();
        let mut levels = vec![Vec::new(); rank];
        let mut left = tighten(rows.rows);
        for column in order {
            let (rest, bounds) = eliminate(left, column);
            left = rest;
            if let Some(level) = levels.get_mut(column) {
                *level = bounds;
            }
        }
        let is_empty = left.iter().any(|row| row.constant < 0);
        for (d, level) in levels.iter().enumerate() {
            let bounded = level.iter().any(|r| r.at(d) > 0) && level.iter().any(|r| r.at(d) < 0);
            if !bounded && !is_empty {
                return Err(DomainError::Unbounded(d));
            }
        }
        let residue = match rows.is_exact {
            true => None,
            false => Some(Test::compile(cond, params)?),
        };
        Ok(Domain {
            rank,
            levels,
            residue,
            is_empty,
        })
    }

    /// Counts the points, but no further than `limit`.
    pub fn census(&self, limit: u64) -> Result<Census, DomainError> {
        let mut census = Census {
            count: 0,
            lo: vec![i64::MAX; self.rank],
            hi: vec![i64::MIN; self.rank],
        };
        let mut visits = 0u64;
        self.rows(&mut |point: &mut [i64], lo, hi| {
            if lo.abs() > COORDINATE_LIMIT || hi.abs() > COORDINATE_LIMIT {
                return Err(DomainError::TooLarge);
            }
            let (mut first, mut last, mut n) = (lo as i64, hi as i64, (hi - lo + 1) as u64);
            visits = visits.saturating_add(if self.residue.is_some() { n } else { 1 });
            if visits > MAX_VISITS {
                return Err(DomainError::TooLarge);
            }
            if let (Some(test), Some(inner)) = (&self.residue, self.rank.checked_sub(1)) {
                (first, last, n) = (i64::MAX, i64::MIN, 0);
                for x in lo as i64..=hi as i64 {
                    point[inner] = x;
                    if test.eval(point).ok_or(DomainError::TooLarge)? {
                        (first, last, n) = (first.min(x), x, n + 1);
                    }
                }
            } else if let Some(test) = &self.residue {
                n = test.eval(point).ok_or(DomainError::TooLarge)?.into();
            }
            if n > 0 {
                census.count = census.count.saturating_add(n);
                for (d, x) in point.iter().enumerate() {
                    let (low, high) = match d + 1 == self.rank {
                        true => (first, last),
                        false => (*x, *x),
                    };
                    census.lo[d] = census.lo[d].min(low);
                    census.hi[d] = census.hi[d].max(high);
                }
            }
            match census.count > limit {
                true => Err(DomainError::TooLarge),
                false => Ok(()),
            }
        })?;
        Ok(census)
    }

    /// Calls `f` on every point, in lexicographic order.
    pub fn visit<E>(&self, f: &mut impl FnMut(&[i64]) -> Result<(), E>) -> Result<(), E> {
        self.rows(&mut |point: &mut [i64], lo, hi| {
            let clamp = |x: i128| x.clamp(-COORDINATE_LIMIT, COORDINATE_LIMIT) as i64;
            for x in clamp(lo)..=clamp(hi) {
                if let Some(inner) = point.last_mut() {
                    *inner = x;
                }
                let inside = self
                    .residue
                    .as_ref()
                    .is_none_or(|test| test.eval(point) == Some(true));
                if inside {
                    f(point)?;
                }
            }
            Ok(())
        })
    }

    /// Chooses a point: each coordinate between its inclusive bounds, which depend on the previous
    /// ones. `None` where the choices lead to no point.
    pub fn choose(&self, mut one: impl FnMut(usize, i64, i64) -> i64) -> Option<Vec<i64>> {
        if self.is_empty {
            return None;
        }
        let mut point = vec![0; self.rank];
        for depth in 0..self.rank {
            let (lo, hi) = self.bounds(depth, &point);
            let bounded = lo.abs() <= COORDINATE_LIMIT && hi.abs() <= COORDINATE_LIMIT;
            if lo > hi || !bounded {
                return None;
            }
            point[depth] = one(depth, lo as i64, hi as i64);
        }
        let test = self.residue.as_ref();
        let inside = test.is_none_or(|test| test.eval(&point) == Some(true));
        inside.then_some(point)
    }

    /// The inclusive bounds of a coordinate, given the previous ones.
    fn bounds(&self, depth: usize, point: &[i64]) -> (i128, i128) {
        let (mut lo, mut hi) = (i128::MIN, i128::MAX);
        for row in &self.levels[depth] {
            let outer = row.coefficients.iter().zip(&point[..depth]);
            let rest: i128 = outer.map(|(c, x)| c * i128::from(*x)).sum::<i128>() + row.constant;
            let c = row.at(depth);
            if c > 0 {
                lo = lo.max(-rest.div_euclid(c));
            } else {
                hi = hi.min(rest.div_euclid(-c));
            }
        }
        (lo, hi)
    }

    /// Calls `f` on every non-empty row along the last iterator, with its inclusive bounds.
    fn rows<E>(
        &self,
        f: &mut impl FnMut(&mut [i64], i128, i128) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_empty {
            return Ok(());
        }
        let mut point = vec![0; self.rank];
        if self.rank == 0 {
            return f(&mut point, 0, 0);
        }
        self.row(0, &mut point, f)
    }

    fn row<E>(
        &self,
        depth: usize,
        point: &mut [i64],
        f: &mut impl FnMut(&mut [i64], i128, i128) -> Result<(), E>,
    ) -> Result<(), E> {
        let (lo, hi) = self.bounds(depth, point);
        if lo > hi {
            return Ok(());
        }
        if depth + 1 == self.rank {
            return f(point, lo, hi);
        }
        let clamp = |x: i128| x.clamp(-COORDINATE_LIMIT, COORDINATE_LIMIT) as i64;
        for x in clamp(lo)..=clamp(hi) {
            point[depth] = x;
            self.row(depth + 1, point, f)?;
        }
        Ok(())
    }
}

/// Collects the rows that a condition implies.
struct Inequalities<'a> {
    params: &'a [i128],
    rank: usize,
    /// Iterators, then one quotient for every floor and remainder.
    width: usize,
    rows: Vec<Inequality>,
    /// Are the rows equivalent to the condition?
    is_exact: bool,
}

impl Inequalities<'_> {
    /// Adds what `cond` (or its negation) implies for the conjunction so far.
    fn collect(&mut self, cond: &Cond, holds: bool) -> Result<(), DomainError> {
        match (cond, holds) {
            (Cond::Const(b), _) => {
                if *b != holds {
                    self.push(Vec::new(), -1);
                }
                Ok(())
            }
            (Cond::Cmp(rel, left, right), _) => self.compare(*rel, holds, &left.sub(right)),
            (Cond::And(parts), true) => self.all(parts, true),
            (Cond::Or(parts), false) => self.all(parts, false),
            (Cond::Or(parts), true) => self.hull(parts, true),
            (Cond::And(parts), false) => self.hull(parts, false),
            (Cond::Not(inner), _) => self.collect(inner, !holds),
        }
    }

    fn all(&mut self, parts: &[Cond], holds: bool) -> Result<(), DomainError> {
        // Disjunctions last: their hull is tighter within the other conditions.
        let is_disjunction = |c: &&Cond| match c {
            Cond::Or(_) => holds,
            Cond::And(_) => !holds,
            Cond::Not(_) | Cond::Const(_) | Cond::Cmp(..) => false,
        };
        for part in parts.iter().filter(|c| !is_disjunction(c)) {
            self.collect(part, holds)?;
        }
        for part in parts.iter().filter(is_disjunction) {
            self.collect(part, holds)?;
        }
        Ok(())
    }

    fn compare(&mut self, rel: Rel, holds: bool, form: &Form) -> Result<(), DomainError> {
        let Inequality {
            coefficients,
            constant,
        } = self.row_of(form)?;
        let negated: Vec<i128> = coefficients.iter().map(|c| -c).collect();
        match (rel, holds) {
            (Rel::Eq, true) | (Rel::Ne, false) => {
                self.push(coefficients, constant);
                self.push(negated, -constant);
            }
            (Rel::Ne, true) | (Rel::Eq, false) => self.is_exact = false,
            (Rel::Ge, true) | (Rel::Lt, false) => self.push(coefficients, constant),
            (Rel::Gt, true) | (Rel::Le, false) => self.push(coefficients, constant - 1),
            (Rel::Le, true) | (Rel::Gt, false) => self.push(negated, -constant),
            (Rel::Lt, true) | (Rel::Ge, false) => self.push(negated, -constant - 1),
        }
        Ok(())
    }

    fn push(&mut self, coefficients: Vec<i128>, constant: i128) {
        self.rows.push(Inequality {
            coefficients,
            constant,
        });
    }

    /// The row that a form is. Each ⌊f/c⌋ becomes a column q with c·q ≤ f ≤ c·q + c − 1.
    fn row_of(&mut self, form: &Form) -> Result<Inequality, DomainError> {
        let mut sum = Inequality {
            coefficients: Vec::new(),
            constant: form.constant_part().eval(self.params)?,
        };
        for (atom, coefficient) in form.terms() {
            let coefficient = coefficient.eval(self.params)?;
            let term = match atom {
                Atom::Dim(d) if d.index() < self.rank => unit(d.index()),
                // A domain cannot depend on an iterator of a `reduce`.
                Atom::Dim(d) => return Err(DomainError::Unbounded(d.index())),
                Atom::Floor(inner, c) => self.quotient(inner, *c)?.0,
                Atom::Mod(inner, c) => {
                    let (quotient, inner) = self.quotient(inner, *c)?;
                    inner
                        .combine(1, &quotient, -c)
                        .ok_or(DomainError::TooLarge)?
                }
            };
            sum = sum
                .combine(1, &term, coefficient)
                .ok_or(DomainError::TooLarge)?;
        }
        match sum.is_small() {
            true => Ok(sum),
            false => Err(DomainError::TooLarge),
        }
    }

    fn quotient(&mut self, inner: &Form, c: i128) -> Result<(Inequality, Inequality), DomainError> {
        self.is_exact = false;
        let inner = self.row_of(inner)?;
        let quotient = unit(self.width);
        self.width += 1;
        let rest = inner
            .combine(1, &quotient, -c)
            .ok_or(DomainError::TooLarge)?;
        let mut room = quotient
            .combine(c, &inner, -1)
            .ok_or(DomainError::TooLarge)?;
        room.constant += c - 1;
        self.rows.extend([rest, room]);
        Ok((quotient, inner))
    }

    /// The bounding box of all alternatives.
    fn hull(&mut self, parts: &[Cond], holds: bool) -> Result<(), DomainError> {
        self.is_exact = false;
        let mut hull: Option<Vec<Interval>> = None;
        for part in parts {
            let mut alternative = Inequalities {
                rows: self.rows.clone(),
                ..*self
            };
            alternative.collect(part, holds)?;
            let Some(intervals) = alternative.bounding_box() else {
                continue;
            };
            hull = Some(match hull {
                None => intervals,
                Some(hull) => hull
                    .iter()
                    .zip(&intervals)
                    .map(|(a, b)| (join(a.0, b.0, i128::min), join(a.1, b.1, i128::max)))
                    .collect(),
            });
        }
        let Some(hull) = hull else {
            self.push(Vec::new(), -1);
            return Ok(());
        };
        for (d, (lo, hi)) in hull.into_iter().enumerate() {
            let column = unit(d).coefficients;
            if let Some(hi) = hi {
                self.push(column.iter().map(|c| -c).collect(), hi);
            }
            if let Some(lo) = lo {
                self.push(column, -lo);
            }
        }
        Ok(())
    }

    /// `None` where there is no point at all.
    fn bounding_box(&self) -> Option<Vec<Interval>> {
        (0..self.rank)
            .map(|d| {
                let mut rows = tighten(self.rows.clone());
                for column in (0..self.width).rev().filter(|c| *c != d) {
                    rows = eliminate(rows, column).0;
                }
                let (mut lo, mut hi) = (None, None);
                for row in rows {
                    match row.at(d) {
                        0 if row.constant < 0 => return None,
                        0 => {}
                        c if c > 0 => lo = lo.max(Some(-row.constant.div_euclid(c))),
                        c => {
                            let bound = row.constant.div_euclid(-c);
                            hi = Some(hi.map_or(bound, |h: i128| h.min(bound)));
                        }
                    }
                }
                let is_empty = lo.zip(hi).is_some_and(|(lo, hi)| lo > hi);
                (!is_empty).then_some((lo, hi))
            })
            .collect()
    }
}

type Interval = (Option<i128>, Option<i128>);

fn join(a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128) -> Option<i128> {
    Some(f(a?, b?))
}

fn unit(column: usize) -> Inequality {
    let mut coefficients = vec![0; column + 1];
    coefficients[column] = 1;
    Inequality {
        coefficients,
        constant: 0,
    }
}

/// Normalised, with one row per direction.
fn tighten(rows: Vec<Inequality>) -> Vec<Inequality> {
    let mut tightest = BTreeMap::new();
    for row in rows {
        let row = row.normalised();
        let entry = tightest.entry(row.coefficients).or_insert(row.constant);
        *entry = row.constant.min(*entry);
    }
    tightest
        .into_iter()
        .map(|(coefficients, constant)| Inequality {
            coefficients,
            constant,
        })
        .collect()
}

/// (derived rows without the column, rows with it).
fn eliminate(rows: Vec<Inequality>, column: usize) -> (Vec<Inequality>, Vec<Inequality>) {
    let (bounds, mut rest): (Vec<Inequality>, Vec<Inequality>) =
        rows.into_iter().partition(|row| row.at(column) != 0);
    for lower in bounds.iter().filter(|r| r.at(column) > 0) {
        for upper in bounds.iter().filter(|r| r.at(column) < 0) {
            if rest.len() > MAX_ROWS {
                break;
            }
            let row = lower.combine(-upper.at(column), upper, lower.at(column));
            rest.extend(row.map(Inequality::normalised).filter(Inequality::is_small));
        }
    }
    (tighten(rest), bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::{DimId, Poly};

    fn dim(d: u32) -> Form {
        Form::from(DimId(d))
    }

    fn between(lo: i128, form: Form, hi: i128) -> Cond {
        Cond::cmp(Rel::Le, lo, form.clone()).and(Cond::cmp(Rel::Le, form, hi))
    }

    /// The walk finds what testing every point of a large box finds.
    fn check(cond: &Cond, rank: usize) {
        let domain = Domain::new(cond, rank, &[]).unwrap();
        let mut found = Vec::new();
        domain
            .visit(&mut |p| {
                found.push(p.to_vec());
                Ok::<_, ()>(())
            })
            .unwrap();
        let mut expect = vec![Vec::new()];
        for _ in 0..rank {
            expect = expect
                .iter()
                .flat_map(|p| {
                    (-12..=12).map(move |x| {
                        let mut q: Vec<i64> = p.clone();
                        q.push(x);
                        q
                    })
                })
                .collect();
        }
        expect.retain(|p| {
            let wide: Vec<i128> = p.iter().map(|x| i128::from(*x)).collect();
            cond.eval(&[], &wide).unwrap()
        });
        assert_eq!(found, expect);
        let census = domain.census(u64::MAX).unwrap();
        assert_eq!(census.count, expect.len() as u64);
        for d in 0..rank {
            if !expect.is_empty() {
                assert_eq!(Some(census.lo[d]), expect.iter().map(|p| p[d]).min());
                assert_eq!(Some(census.hi[d]), expect.iter().map(|p| p[d]).max());
            }
        }
    }

    #[test]
    fn walks_in_order() {
        let triangle = between(0, dim(0), 6).and(between(0, dim(1).sub(&dim(0)).plus(6), 6));
        check(&triangle, 2);
        let skewed = between(0, dim(0).add(&dim(1)), 5).and(between(-3, dim(0).sub(&dim(1)), 4));
        check(&skewed, 2);
        let evens = between(-5, dim(0), 7).and(Cond::cmp(Rel::Eq, dim(0).modulo(2), 0));
        check(&evens, 1);
        let floors = between(-2, dim(0).floor_div(3), 1);
        check(&floors, 1);
        let holes = between(-5, dim(0), 7).and(Cond::cmp(Rel::Eq, dim(0), 3).negate());
        check(&holes, 1);
        let pieces = Cond::Or(vec![between(-5, dim(0), -3), between(4, dim(0), 7)]).and(between(
            0,
            dim(1),
            1,
        ));
        check(&pieces, 2);
        let parenthesised = between(0, dim(0), 8)
            .and(Cond::cmp(Rel::Le, dim(0).plus(2), dim(1)))
            .and(Cond::cmp(Rel::Le, dim(1), 8))
            .and(Cond::cmp(Rel::Le, 1, dim(2)))
            .and(Cond::cmp(Rel::Le, dim(2), dim(1).sub(&dim(0)).floor_div(2)));
        check(&parenthesised, 3);
        check(&between(3, dim(0), 2), 1);
        check(&Cond::TRUE, 0);
        check(&Cond::Const(false), 0);
        let nowhere = Cond::Or(vec![between(3, dim(0), 2), Cond::Const(false)]);
        check(&nowhere, 1);
    }

    #[test]
    fn random_conditions() {
        let mut state = 1u64;
        let mut random = move |n: i128| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            i128::from(state >> 40) % n
        };
        let rels = [Rel::Eq, Rel::Ne, Rel::Lt, Rel::Le, Rel::Gt, Rel::Ge];
        for round in 0..400 {
            let rank = 1 + round % 3;
            let mut atom = || {
                let mut form = Form::from(random(9) - 4);
                for d in 0..rank {
                    let c = Poly::constant(random(7) - 3);
                    form = form.add(&dim(d as u32).scale(&c).unwrap());
                }
                let form = match random(6) {
                    0 => form.floor_div(3),
                    1 => form.modulo(4).plus(-2),
                    _ => form,
                };
                let cond = Cond::cmp(rels[random(6) as usize], form, 0);
                if random(4) == 0 { cond.negate() } else { cond }
            };
            let (a, b, c, d) = (atom(), atom(), atom(), atom());
            let cond = match round % 5 {
                0 => a.and(b),
                1 => Cond::Or(vec![a.and(b), c]).and(d),
                2 => Cond::And(vec![a, Cond::Or(vec![b, c])]).negate(),
                3 => a,
                _ => Cond::Or(vec![a, b]).negate().and(c),
            };
            let walls = (0..rank).fold(Cond::TRUE, |all, d| all.and(between(-5, dim(d as u32), 6)));
            check(&walls.and(cond), rank);
        }
    }

    #[test]
    fn missing_bounds_are_named() {
        let cond = between(0, dim(0), 6).and(Cond::cmp(Rel::Le, dim(1), dim(0)));
        assert_eq!(
            Domain::new(&cond, 2, &[]).err(),
            Some(DomainError::Unbounded(1))
        );
    }

    #[test]
    fn size_is_limited() {
        let cond = between(0, dim(0), 1 << 50);
        let domain = Domain::new(&cond, 1, &[]).unwrap();
        assert_eq!(domain.census(1_000), Err(DomainError::TooLarge));
    }
}
