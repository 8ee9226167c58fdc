//! The rational relaxation: an exact simplex tableau, and branch and bound on top of it.
//!
//! Fourier-Motzkin elimination makes many rows that say nothing new. The tableau finds them, and often settles
//! emptiness before any integer reasoning: no rational point means no integer point, and a vertex with integer
//! coordinates is one.

use crate::error::{Error, Result};
use crate::int::{Int, add, ceil_div, floor_div, gcd, mul, neg, sub};
use crate::system::{Budget, Row, System};

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
    /// `None` when the inequalities have no rational solution. The system must be free of equalities.
    pub(crate) fn new(sys: &System, budget: &mut Budget) -> Result<Option<Tableau>> {
        let mut tableau = Tableau {
            lines: Vec::with_capacity(sys.ges.len() + sys.n),
            columns: (0..sys.n).map(Unknown::Var).collect(),
        };
        for row in &sys.ges {
            if !tableau.push(row, budget)? {
                return Ok(None);
            }
        }
        Ok(Some(tableau))
    }

    /// Adds `row >= 0`; `false` when that leaves no rational point.
    pub(crate) fn push(&mut self, row: &[Int], budget: &mut Budget) -> Result<bool> {
        let id = self
            .lines
            .iter()
            .map(|l| l.unknown)
            .chain(self.columns.iter().copied())
            .filter_map(|u| match u {
                Unknown::Slack(i) => Some(i + 1),
                Unknown::Var(_) => None,
            })
            .max()
            .unwrap_or(0);
        let line = self.express(row, Unknown::Slack(id))?;
        self.lines.push(line);
        let at = self.lines.len() - 1;
        // Raise the new line to zero: minimise its negation.
        while self.lines[at].entries[0] < 0 {
            let Some((column, up)) = self.improving_column(at, false) else {
                return Ok(false);
            };
            let limit = self.limiting_line(column, up, Some(at));
            match limit {
                None => self.pivot(at, column, budget)?,
                Some(other) => {
                    // The new line itself may reach zero first.
                    if self.reaches_zero_before(at, other, column)? {
                        self.pivot(at, column, budget)?;
                    } else {
                        self.pivot(other, column, budget)?;
                    }
                }
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
    fn limiting_line(&self, column: usize, up: bool, except: Option<usize>) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (i, l) in self.lines.iter().enumerate() {
            if Some(i) == except || matches!(l.unknown, Unknown::Var(_)) {
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
                    match compare_ratio(l, other, column) {
                        std::cmp::Ordering::Less => i,
                        std::cmp::Ordering::Greater => b,
                        std::cmp::Ordering::Equal if order(l.unknown) < order(other.unknown) => i,
                        std::cmp::Ordering::Equal => b,
                    }
                }
            });
        }
        best
    }

    fn reaches_zero_before(&self, at: usize, other: usize, column: usize) -> Result<bool> {
        let ratio = compare_ratio(&self.lines[at], &self.lines[other], column);
        Ok(ratio != std::cmp::Ordering::Greater)
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

    /// Lowers line `at`, whose own sign does not matter, as far as it goes, or until it is at most -1.
    fn minimize(&mut self, at: usize, budget: &mut Budget) -> Result<Minimum> {
        loop {
            let l = &self.lines[at];
            if let Unknown::Slack(_) = l.unknown {
                if add(l.entries[0], l.den)? <= 0 {
                    return Ok(Minimum::Finite(l.entries[0], l.den));
                }
            }
            let Some((column, up)) = self.improving_column(at, true) else {
                let l = &self.lines[at];
                return Ok(Minimum::Finite(l.entries[0], l.den));
            };
            match self.limiting_line(column, up, Some(at)) {
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
        match self.minimize(at, budget)? {
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
                match t.limiting_line(column, false, None) {
                    None => {
                        // Nothing but free variables stands in the way of lowering it.
                        return Ok(false);
                    }
                    Some(at) => {
                        t.pivot(at, column, budget)?;
                        at
                    }
                }
            }
        };
        Ok(match t.minimize(at, budget)? {
            Minimum::Unbounded => false,
            Minimum::Finite(n, d) => add(n, d)? > 0,
        })
    }

    /// Forgets an inequality that was found redundant.
    fn forget(&mut self, id: usize, budget: &mut Budget) -> Result<bool> {
        let slack = Unknown::Slack(id);
        if let Some(at) = self.lines.iter().position(|l| l.unknown == slack) {
            self.lines.swap_remove(at);
            return Ok(true);
        }
        let Some(column) = self.columns.iter().position(|&u| u == slack) else {
            return Ok(true);
        };
        // Bring it onto a line first; moving it upwards keeps every slack as it should be.
        let at = match self.limiting_line(column, true, None) {
            Some(at) => at,
            None => match self.limiting_line(column, false, None) {
                Some(at) => at,
                None => return Ok(false),
            },
        };
        self.pivot(at, column, budget)?;
        if self.lines[at].entries[0] < 0 && false {
            return Ok(false);
        }
        self.lines.swap_remove(at);
        Ok(true)
    }

    /// The coordinates of the current vertex, as numerator and denominator.
    fn vertex(&self, n: usize) -> Vec<(Int, Int)> {
        let mut x = vec![(0, 1); n];
        for l in &self.lines {
            if let Unknown::Var(v) = l.unknown {
                if let Some(c) = x.get_mut(v) {
                    *c = (l.entries[0], l.den);
                }
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
            self.den /= g;
            for e in &mut self.entries {
                *e /= g;
            }
        }
        Ok(())
    }
}

fn order(u: Unknown) -> (u8, usize) {
    match u {
        Unknown::Var(v) => (0, v),
        Unknown::Slack(i) => (1, i),
    }
}

/// Compares `value / |coefficient of column|` of two lines; an overflow counts as equal, which only costs speed.
fn compare_ratio(a: &Line, b: &Line, column: usize) -> std::cmp::Ordering {
    let (ca, cb) = (
        a.entries[column + 1].unsigned_abs(),
        b.entries[column + 1].unsigned_abs(),
    );
    let left = a.entries[0].unsigned_abs().checked_mul(cb);
    let right = b.entries[0].unsigned_abs().checked_mul(ca);
    match (left, right) {
        (Some(l), Some(r)) => l.cmp(&r),
        _ => std::cmp::Ordering::Equal,
    }
}
