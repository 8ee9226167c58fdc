//! An exact simplex tableau in contiguous memory, since it is copied for every branch and every
//! question.

use std::cmp::Ordering;

use super::entry::Entry;
use crate::error::Result;
use crate::int::{Int, ceil_div};
use crate::system::{Budget, System, negate};

/// The meaning of a line or a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Unknown {
    /// A variable of the system, of any sign.
    Var(usize),
    /// The value of an inequality, which must not be negative.
    Slack(usize),
}

/// Line `i` means `lines[i] = (entries[0] + sum entries[1 + j] * columns[j]) / dens[i]`, where
/// `entries` are those of the line.
///
/// All columns are at zero, so the value of a line is `entries[0] / den`; slacks on lines are not
/// negative.
#[derive(Clone, Debug)]
pub(super) struct Tableau<T> {
    lines: Vec<Unknown>,
    dens: Vec<T>,
    /// `columns.len() + 1` for each line.
    entries: Vec<T>,
    columns: Vec<Unknown>,
}

impl<T: Entry> Tableau<T> {
    /// `None` when the system has no rational solution. Inequality `i` gets number
    /// `2 * eqs.len() + i`.
    pub(super) fn new(sys: &System, budget: &mut Budget) -> Result<Option<Self>> {
        let mut tableau = Tableau::of_variables(sys.n, sys.ges.len() + sys.n);
        let mut id = 0;
        for row in &sys.eqs {
            let opposite = negate(row)?;
            if !tableau.insert(row, id, budget)? || !tableau.insert(&opposite, id + 1, budget)? {
                return Ok(None);
            }
            id += 2;
        }
        for row in &sys.ges {
            if !tableau.insert(row, id, budget)? {
                return Ok(None);
            }
            id += 1;
        }
        Ok(Some(tableau))
    }

    /// All values of `n` variables, with room for lines.
    pub(super) fn of_variables(n: usize, n_lines: usize) -> Self {
        Tableau {
            lines: Vec::with_capacity(n_lines),
            dens: Vec::with_capacity(n_lines),
            entries: Vec::with_capacity(n_lines * (n + 1)),
            columns: (0..n).map(Unknown::Var).collect(),
        }
    }

    /// Appends the variables from `from` to `to`, without constraints.
    pub(super) fn add_variables(&mut self, from: usize, to: usize) {
        let (old, more) = (self.width(), to - from);
        let mut entries = Vec::with_capacity(self.lines.len() * (old + more));
        for line in self.entries.chunks_exact(old) {
            entries.extend_from_slice(line);
            entries.resize(entries.len() + more, T::default());
        }
        self.entries = entries;
        self.columns.extend((from..to).map(Unknown::Var));
    }

    fn width(&self) -> usize {
        self.columns.len() + 1
    }

    fn line(&self, at: usize) -> &[T] {
        &self.entries[at * self.width()..][..self.width()]
    }

    fn constant(&self, at: usize) -> T {
        self.entries[at * self.width()]
    }

    fn coefficient(&self, at: usize, column: usize) -> T {
        self.entries[at * self.width() + column + 1]
    }

    /// Adds `row >= 0` after all others; `false` when that leaves no rational point.
    pub(super) fn push(&mut self, row: &[Int], budget: &mut Budget) -> Result<bool> {
        let unknowns = self.lines.iter().chain(&self.columns);
        let id = unknowns.filter_map(|u| match u {
            Unknown::Slack(i) => Some(i + 1),
            Unknown::Var(_) => None,
        });
        let id = id.max().unwrap_or(0);
        self.insert(row, id, budget)
    }

    fn insert(&mut self, row: &[Int], id: usize, budget: &mut Budget) -> Result<bool> {
        let at = self.express(row, Unknown::Slack(id))?;
        // Raise the new line to zero: minimise its negation.
        while self.constant(at).is_negative() {
            let Some((column, up)) = self.improving_column(at, false) else {
                return Ok(false);
            };
            let mut first = at;
            if let Some(other) = self.limiting_line(column, up, at)?
                && self.compare_ratio(at, other, column)? == Ordering::Greater
            {
                first = other;
            }
            self.pivot(first, column, budget)?;
            if first == at {
                // Its slack is a column now, at zero.
                break;
            }
        }
        Ok(true)
    }

    /// Appends an affine row, in terms of the current columns, as a line; returns its position.
    fn express(&mut self, row: &[Int], unknown: Unknown) -> Result<usize> {
        let (at, width) = (self.lines.len(), self.width());
        self.entries.push(T::narrow(row[0])?);
        for u in &self.columns {
            let entry = match u {
                Unknown::Var(v) => T::narrow(row[v + 1])?,
                Unknown::Slack(_) => T::default(),
            };
            self.entries.push(entry);
        }
        let (known, entries) = self.entries.split_at_mut(at * width);
        let mut den = T::ONE;
        for (i, u) in self.lines.iter().enumerate() {
            let Unknown::Var(v) = u else { continue };
            let c = T::narrow(row[v + 1])?;
            if c.is_zero() {
                continue;
            }
            // entries / den + c * line / its den
            let g = den.gcd(self.dens[i])?;
            let (p, q) = (self.dens[i].over(g), c.times(den.over(g))?);
            combine(entries, p, &known[i * width..][..width], q)?;
            den = den.times(p)?;
        }
        self.lines.push(unknown);
        self.dens.push(den);
        reduce(&mut self.dens[at], &mut self.entries[at * width..])?;
        Ok(at)
    }

    /// The first column (Bland's rule) whose move raises (`lower = false`) or lowers the line, and
    /// the direction.
    fn improving_column(&self, at: usize, lower: bool) -> Option<(usize, bool)> {
        let mut best: Option<(usize, bool)> = None;
        for (j, &u) in self.columns.iter().enumerate() {
            let c = self.coefficient(at, j);
            if c.is_zero() {
                continue;
            }
            let up = c.is_positive() != lower;
            let allowed = up || matches!(u, Unknown::Var(_));
            if allowed && best.is_none_or(|(b, _)| u < self.columns[b]) {
                best = Some((j, up));
            }
        }
        best
    }

    /// The slack line that first reaches zero when the column moves; ties go to the least unknown
    /// (Bland).
    fn limiting_line(&self, column: usize, up: bool, except: usize) -> Result<Option<usize>> {
        let mut best: Option<usize> = None;
        for (i, &u) in self.lines.iter().enumerate() {
            if i == except || matches!(u, Unknown::Var(_)) {
                continue;
            }
            let c = self.coefficient(i, column);
            let falls = if up { c.is_negative() } else { c.is_positive() };
            if !falls {
                continue;
            }
            best = Some(match best {
                None => i,
                Some(b) => match self.compare_ratio(i, b, column)? {
                    Ordering::Less => i,
                    Ordering::Greater => b,
                    Ordering::Equal if u < self.lines[b] => i,
                    Ordering::Equal => b,
                },
            });
        }
        Ok(best)
    }

    /// Compares `value / |coefficient of column|` of two lines.
    fn compare_ratio(&self, a: usize, b: usize, column: usize) -> Result<Ordering> {
        let (ca, cb) = (self.coefficient(a, column), self.coefficient(b, column));
        self.constant(a).compare_products(cb, self.constant(b), ca)
    }

    fn pivot(&mut self, at: usize, column: usize, budget: &mut Budget) -> Result<()> {
        budget.spend(self.lines.len())?;
        let width = self.width();
        // column = (den * line - sum of the others) / a
        let mut pivoted = self.line(at).to_vec();
        let a = pivoted[column + 1];
        let mut den = if a.is_negative() { a.negative()? } else { a };
        pivoted[column + 1] = self.dens[at].negative()?;
        if a.is_positive() {
            for e in &mut pivoted {
                *e = e.negative()?;
            }
        }
        reduce(&mut den, &mut pivoted)?;
        for (i, line) in self.entries.chunks_exact_mut(width).enumerate() {
            let b = line[column + 1];
            if i == at || b.is_zero() {
                continue;
            }
            let g = b.gcd(den)?;
            let (p, q) = (den.over(g), b.over(g));
            line[column + 1] = T::default();
            combine(line, p, &pivoted, q)?;
            self.dens[i] = self.dens[i].times(p)?;
            reduce(&mut self.dens[i], line)?;
        }
        self.entries[at * width..][..width].copy_from_slice(&pivoted);
        self.dens[at] = den;
        std::mem::swap(&mut self.columns[column], &mut self.lines[at]);
        Ok(())
    }

    /// Lowers line `at`, whose own sign does not matter, as far as possible; with `stop`, until it
    /// is at most -1. Returns its value as numerator and denominator; `None` where it has no
    /// minimum.
    fn minimize(&mut self, at: usize, stop: bool, budget: &mut Budget) -> Result<Option<(T, T)>> {
        loop {
            let value = (self.constant(at), self.dens[at]);
            if stop && !value.0.plus(value.1)?.is_positive() {
                return Ok(Some(value));
            }
            let Some((column, up)) = self.improving_column(at, true) else {
                return Ok(Some(value));
            };
            match self.limiting_line(column, up, at)? {
                None => return Ok(None),
                Some(other) => self.pivot(other, column, budget)?,
            }
        }
    }

    /// The smallest value of an affine row, rounded up to an integer; `None` when it is unbounded.
    pub(super) fn minimum_of(mut self, row: &[Int], budget: &mut Budget) -> Result<Option<Int>> {
        let at = self.express(row, Unknown::Var(usize::MAX))?;
        match self.minimize(at, false, budget)? {
            None => Ok(None),
            Some((n, d)) => Ok(Some(ceil_div(n.wide(), d.wide())?)),
        }
    }

    /// Whether inequality `id` follows from the others on integer points because they keep it above
    /// -1.
    pub(super) fn is_redundant(&self, id: usize, budget: &mut Budget) -> Result<bool> {
        let mut t = self.clone();
        let slack = Unknown::Slack(id);
        let at = match t.lines.iter().position(|u| *u == slack) {
            Some(at) => at,
            None => {
                let Some(column) = t.columns.iter().position(|u| *u == slack) else {
                    return Ok(false);
                };
                t.columns[column] = released(id);
                let at = t.lines.len();
                t.entries.resize(t.entries.len() + t.width(), T::default());
                let unit = at * t.width() + column + 1;
                t.entries[unit] = T::ONE;
                t.lines.push(slack);
                t.dens.push(T::ONE);
                at
            }
        };
        Ok(match t.minimize(at, true, budget)? {
            None => false,
            Some((n, d)) => n.plus(d)?.is_positive(),
        })
    }

    /// Removes the sign constraint of inequality `id`.
    pub(super) fn forget(&mut self, id: usize) {
        let slack = Unknown::Slack(id);
        if let Some(at) = self.lines.iter().position(|u| *u == slack) {
            let width = self.width();
            self.lines.remove(at);
            self.dens.remove(at);
            self.entries.drain(at * width..(at + 1) * width);
        }
        for u in &mut self.columns {
            if *u == slack {
                *u = released(id);
            }
        }
    }

    /// The coordinates of the current vertex, as numerator and denominator.
    pub(super) fn vertex(&self, n: usize) -> Vec<(Int, Int)> {
        let mut x = vec![(0, 1); n];
        for (i, u) in self.lines.iter().enumerate() {
            if let Unknown::Var(v) = u
                && let Some(c) = x.get_mut(*v)
            {
                *c = (self.constant(i).wide(), self.dens[i].wide());
            }
        }
        x
    }
}

/// `line * p + other * q`, in place of the line.
#[inline]
fn combine<T: Entry>(line: &mut [T], p: T, other: &[T], q: T) -> Result<()> {
    for (e, &x) in line.iter_mut().zip(other) {
        if !e.is_zero() || !x.is_zero() {
            *e = e.times(p)?.plus(q.times(x)?)?;
        }
    }
    Ok(())
}

/// Divides a line by the common divisor of all its entries and its denominator.
#[inline]
fn reduce<T: Entry>(den: &mut T, entries: &mut [T]) -> Result<()> {
    let mut g = *den;
    for &e in entries.iter() {
        if g == T::ONE {
            return Ok(());
        }
        if !e.is_zero() {
            g = g.gcd(e)?;
        }
    }
    if g > T::ONE {
        *den = den.over(g);
        for e in entries {
            *e = e.over(g);
        }
    }
    Ok(())
}

/// An unknown without a sign constraint that replaces a slack.
fn released(id: usize) -> Unknown {
    Unknown::Var(usize::MAX - 1 - id)
}
