//! The rational relaxation: an exact simplex tableau, and branch and bound on top of it.
//!
//! Fourier-Motzkin elimination makes many rows that say nothing new. The tableau finds them, and often settles
//! emptiness before any integer reasoning: no rational point means no integer point, and a vertex with integer
//! coordinates is one.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::int::{Int, add, ceil_div, exact_quotient, floor_div, gcd, mul, neg, sub};
use crate::system::{Budget, Row, System, negate};

/// What a tableau line or column stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unknown {
    /// A variable of the system, of any sign.
    Var(usize),
    /// The value of an inequality, which must not be negative.
    Slack(usize),
}

/// `unknown = (entries[0] + sum entries[1 + j] * column_j) / den`
#[derive(Clone, Debug)]
struct Line {
    unknown: Unknown,
    den: Int,
    entries: Vec<Int>,
}

/// All columns are at zero, so the value of a line is `entries[0] / den`; slacks on lines are not negative.
#[derive(Clone, Debug)]
pub(crate) struct Tableau {
    lines: Vec<Line>,
    columns: Vec<Unknown>,
}

enum Minimum {
    Unbounded,
    /// Numerator and denominator.
    Finite(Int, Int),
}

impl Tableau {
    /// `None` when the system has no rational solution. Inequality `i` gets number `2 * eqs.len() + i`.
    pub(crate) fn new(sys: &System, budget: &mut Budget) -> Result<Option<Tableau>> {
        let mut tableau = Tableau {
            lines: Vec::with_capacity(sys.ges.len() + sys.n),
            columns: (0..sys.n).map(Unknown::Var).collect(),
        };
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

    /// Adds `row >= 0` after all others; `false` when that leaves no rational point.
    fn push(&mut self, row: &[Int], budget: &mut Budget) -> Result<bool> {
        let unknowns = self
            .lines
            .iter()
            .map(|l| l.unknown)
            .chain(self.columns.iter().copied());
        let id = unknowns.filter_map(|u| match u {
            Unknown::Slack(i) => Some(i + 1),
            Unknown::Var(_) => None,
        });
        let id = id.max().unwrap_or(0);
        self.insert(row, id, budget)
    }

    fn insert(&mut self, row: &[Int], id: usize, budget: &mut Budget) -> Result<bool> {
        let line = self.express(row, Unknown::Slack(id))?;
        self.lines.push(line);
        let at = self.lines.len() - 1;
        // Raise the new line to zero: minimise its negation.
        while self.lines[at].entries[0] < 0 {
            let Some((column, up)) = self.improving_column(at, false) else {
                return Ok(false);
            };
            let mut first = at;
            if let Some(other) = self.limiting_line(column, up, at)?
                && compare_ratio(&self.lines[at], &self.lines[other], column)? == Ordering::Greater
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

    /// An affine row in terms of the current columns.
    fn express(&self, row: &[Int], unknown: Unknown) -> Result<Line> {
        let mut den: Int = 1;
        let mut entries = vec![0; self.columns.len() + 1];
        entries[0] = row[0];
        for (j, u) in self.columns.iter().enumerate() {
            if let Unknown::Var(v) = u {
                entries[j + 1] = row[v + 1];
            }
        }
        for l in &self.lines {
            let Unknown::Var(v) = l.unknown else { continue };
            let c = row[v + 1];
            if c == 0 {
                continue;
            }
            // entries / den + c * l.entries / l.den
            let g = gcd(den, l.den)?;
            let (p, q) = (l.den / g, mul(c, den / g)?);
            for (e, &x) in entries.iter_mut().zip(&l.entries) {
                *e = add(mul(*e, p)?, mul(q, x)?)?;
            }
            den = mul(den, p)?;
        }
        let mut line = Line {
            unknown,
            den,
            entries,
        };
        line.reduce()?;
        Ok(line)
    }

    /// The first column (Bland's rule) whose move raises (`lower = false`) or lowers the line, and the direction.
    fn improving_column(&self, at: usize, lower: bool) -> Option<(usize, bool)> {
        let entries = &self.lines[at].entries;
        let mut best: Option<(usize, bool, (u8, usize))> = None;
        for (j, &u) in self.columns.iter().enumerate() {
            let c = entries[j + 1];
            if c == 0 {
                continue;
            }
            let up = (c > 0) != lower;
            let key = order(u);
            let allowed = up || matches!(u, Unknown::Var(_));
            if allowed && best.as_ref().is_none_or(|b| key < b.2) {
                best = Some((j, up, key));
            }
        }
        best.map(|(j, up, _)| (j, up))
    }

    /// The slack line that first reaches zero when the column moves; ties go to the least unknown (Bland).
    fn limiting_line(&self, column: usize, up: bool, except: usize) -> Result<Option<usize>> {
        let mut best: Option<usize> = None;
        for (i, l) in self.lines.iter().enumerate() {
            if i == except || matches!(l.unknown, Unknown::Var(_)) {
                continue;
            }
            let c = l.entries[column + 1];
            let falls = if up { c < 0 } else { c > 0 };
            if !falls {
                continue;
            }
            best = Some(match best {
                None => i,
                Some(b) => {
                    let other = &self.lines[b];
                    match compare_ratio(l, other, column)? {
                        Ordering::Less => i,
                        Ordering::Greater => b,
                        Ordering::Equal if order(l.unknown) < order(other.unknown) => i,
                        Ordering::Equal => b,
                    }
                }
            });
        }
        Ok(best)
    }

    fn pivot(&mut self, at: usize, column: usize, budget: &mut Budget) -> Result<()> {
        budget.spend(self.lines.len())?;
        let line = &self.lines[at];
        let a = line.entries[column + 1];
        let sign = a.signum();
        // column = (den * line - sum of the others) / a
        let mut entries = Vec::with_capacity(line.entries.len());
        for &e in &line.entries {
            entries.push(mul(-sign, e)?);
        }
        entries[column + 1] = mul(sign, line.den)?;
        let mut pivoted = Line {
            unknown: self.columns[column],
            den: a.checked_abs().ok_or(Error::Overflow)?,
            entries,
        };
        pivoted.reduce()?;
        let leaving = line.unknown;
        for (i, l) in self.lines.iter_mut().enumerate() {
            let b = l.entries[column + 1];
            if i == at || b == 0 {
                continue;
            }
            let g = gcd(b, pivoted.den)?;
            let (p, q) = (pivoted.den / g, b / g);
            l.entries[column + 1] = 0;
            for (e, &x) in l.entries.iter_mut().zip(&pivoted.entries) {
                if *e != 0 || x != 0 {
                    *e = add(mul(*e, p)?, mul(q, x)?)?;
                }
            }
            l.den = mul(l.den, p)?;
            l.reduce()?;
        }
        self.columns[column] = leaving;
        self.lines[at] = pivoted;
        Ok(())
    }

    /// Lowers line `at`, whose own sign does not matter, as far as it goes; with `stop`, until it is at most -1.
    fn minimize(&mut self, at: usize, stop: bool, budget: &mut Budget) -> Result<Minimum> {
        loop {
            let l = &self.lines[at];
            if stop && add(l.entries[0], l.den)? <= 0 {
                return Ok(Minimum::Finite(l.entries[0], l.den));
            }
            let Some((column, up)) = self.improving_column(at, true) else {
                let l = &self.lines[at];
                return Ok(Minimum::Finite(l.entries[0], l.den));
            };
            match self.limiting_line(column, up, at)? {
                None => return Ok(Minimum::Unbounded),
                Some(other) => self.pivot(other, column, budget)?,
            }
        }
    }

    /// The smallest value of an affine row, rounded up to an integer; `None` when it is unbounded.
    pub(crate) fn minimum_of(mut self, row: &[Int], budget: &mut Budget) -> Result<Option<Int>> {
        let line = self.express(row, Unknown::Var(usize::MAX))?;
        self.lines.push(line);
        let at = self.lines.len() - 1;
        match self.minimize(at, false, budget)? {
            Minimum::Unbounded => Ok(None),
            Minimum::Finite(n, d) => Ok(Some(ceil_div(n, d)?)),
        }
    }

    /// Whether inequality `id` follows from the others on integer points because they keep it above -1.
    fn is_redundant(&self, id: usize, budget: &mut Budget) -> Result<bool> {
        let mut t = self.clone();
        let slack = Unknown::Slack(id);
        let at = match t.lines.iter().position(|l| l.unknown == slack) {
            Some(at) => at,
            None => {
                let Some(column) = t.columns.iter().position(|&u| u == slack) else {
                    return Ok(false);
                };
                t.columns[column] = released(id);
                let mut entries = vec![0; t.columns.len() + 1];
                entries[column + 1] = 1;
                t.lines.push(Line {
                    unknown: slack,
                    den: 1,
                    entries,
                });
                t.lines.len() - 1
            }
        };
        Ok(match t.minimize(at, true, budget)? {
            Minimum::Unbounded => false,
            Minimum::Finite(n, d) => add(n, d)? > 0,
        })
    }

    /// Lets the value of inequality `id` have any sign.
    fn forget(&mut self, id: usize) {
        let slack = Unknown::Slack(id);
        self.lines.retain(|l| l.unknown != slack);
        for u in &mut self.columns {
            if *u == slack {
                *u = released(id);
            }
        }
    }

    /// The coordinates of the current vertex, as numerator and denominator.
    fn vertex(&self, n: usize) -> Vec<(Int, Int)> {
        let mut x = vec![(0, 1); n];
        for l in &self.lines {
            if let Unknown::Var(v) = l.unknown
                && let Some(c) = x.get_mut(v)
            {
                *c = (l.entries[0], l.den);
            }
        }
        x
    }
}

impl Line {
    fn reduce(&mut self) -> Result<()> {
        let mut g = self.den;
        for &e in &self.entries {
            if g == 1 {
                return Ok(());
            }
            if e != 0 {
                g = gcd(g, e)?;
            }
        }
        if g > 1 {
            self.den = exact_quotient(self.den, g);
            for e in &mut self.entries {
                *e = exact_quotient(*e, g);
            }
        }
        Ok(())
    }
}

/// An unknown of any sign in place of a slack.
fn released(id: usize) -> Unknown {
    Unknown::Var(usize::MAX - 1 - id)
}

fn order(u: Unknown) -> (u8, usize) {
    match u {
        Unknown::Var(v) => (0, v),
        Unknown::Slack(i) => (1, i),
    }
}

/// Compares `value / |coefficient of column|` of two lines.
fn compare_ratio(a: &Line, b: &Line, column: usize) -> Result<Ordering> {
    let (ca, cb) = (
        a.entries[column + 1].unsigned_abs(),
        b.entries[column + 1].unsigned_abs(),
    );
    let left = a.entries[0].unsigned_abs().checked_mul(cb);
    let right = b.entries[0].unsigned_abs().checked_mul(ca);
    match (left, right) {
        (Some(l), Some(r)) => Ok(l.cmp(&r)),
        _ => Err(Error::Overflow),
    }
}

/// Drops inequalities that follow from the rest over the rationals (or nearly, for integer points), latest first.
/// Rows for which `keep` holds stay. Returns `false` when the system has no rational point.
pub(crate) fn remove_redundant(
    sys: &mut System,
    keep: impl Fn(&Row) -> bool,
    budget: &mut Budget,
) -> Result<bool> {
    let Some(mut tableau) = Tableau::new(sys, budget)? else {
        return Ok(false);
    };
    let first = 2 * sys.eqs.len();
    for i in (0..sys.ges.len()).rev() {
        if !keep(&sys.ges[i]) && tableau.is_redundant(first + i, budget)? {
            tableau.forget(first + i);
            sys.ges.remove(i);
        }
    }
    Ok(true)
}

/// What branch and bound found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No integer point.
    Empty,
    /// One of them.
    Point(Vec<Int>),
    /// Neither within the given number of relaxations.
    Open,
}

/// Branch and bound with at most `nodes` relaxations.
pub(crate) fn search(sys: &System, nodes: usize, budget: &mut Budget) -> Result<Found> {
    let Some(tableau) = Tableau::new(sys, budget)? else {
        return Ok(Found::Empty);
    };
    let mut todo = vec![tableau];
    let mut left = nodes;
    while let Some(t) = todo.pop() {
        let x = t.vertex(sys.n);
        let Some(v) = x.iter().position(|&(_, d)| d != 1) else {
            return Ok(Found::Point(
                x.into_iter().map(|(value, _)| value).collect(),
            ));
        };
        if left == 0 {
            return Ok(Found::Open);
        }
        left -= 1;
        let floor = floor_div(x[v].0, x[v].1)?;
        let mut row = vec![0; sys.n + 1];
        let mut above = t.clone();
        row[v + 1] = 1;
        row[0] = sub(neg(floor)?, 1)?;
        if above.push(&row, budget)? {
            todo.push(above);
        }
        let mut below = t;
        row[v + 1] = -1;
        row[0] = floor;
        if below.push(&row, budget)? {
            todo.push(below);
        }
    }
    Ok(Found::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_and_bound_ends_on_a_small_box() {
        let sys = System {
            n: 2,
            eqs: vec![],
            ges: vec![
                vec![3, 1, 0],
                vec![3, -1, 0],
                vec![-1, -3, -4],
                vec![2, 3, 4],
            ],
        };
        let mut budget = Budget::new(10_000);
        assert!(matches!(search(&sys, 60, &mut budget), Ok(Found::Point(_))));
    }
}
