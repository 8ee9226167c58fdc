//! Parametric integer programming: the lexicographic minimum of a polyhedron as a function of parameters.
//!
//! Feautrier's algorithm ("Parametric integer programming", 1988) runs the lexicographic dual simplex method on a
//! tableau whose constants are affine in the parameters. Where the sign of a constant depends on the parameters,
//! their domain (the *context*) is split. Where a coordinate is not integral, a Gomory cut is added; its remainder
//! may need a floor of the parameters, which joins them as a new one. Variables of any sign are written
//! `x = x' - M` with `x' >= 0` and `M` beyond all bounds, and divisible by every number that asks.
//!
//! The domain of the minimum is also the exact projection onto the parameters, with every new parameter a floor:
//! this is how existential variables are eliminated when Fourier-Motzkin steps would not be exact.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::int::{Int, add, gcd, modulo, mul, neg, sub};
use crate::omega;
use crate::system::{Budget, Row, System, negate, negate_ge};

/// A part of the parameter domain and the minimum there.
pub(crate) struct Leaf {
    /// Conditions over the parameters and then the new ones, definitions included.
    pub context: System,
    /// For each variable the pair `(row, m)` of its value `row / m`, which is integral on the context, or `None`
    /// where it is unbounded from below.
    pub minimum: Vec<Option<(Row, Int)>>,
}

/// The leaves of `min { x : sys }`, where the columns from `n_params` on are the variables `x`, in order.
/// Their contexts are disjoint and cover exactly the parameters for which the system has a point.
pub(crate) fn lexmin(sys: &System, n_params: usize, budget: &mut Budget) -> Result<Vec<Leaf>> {
    let mut context = System::new(n_params);
    let mut constraints = Vec::new();
    let pure = |r: &Row| r[1 + n_params..].iter().all(|&c| c == 0);
    for r in &sys.eqs {
        if pure(r) {
            context.eqs.push(r[..=n_params].to_vec());
        } else {
            constraints.push(r.clone());
            constraints.push(negate(r)?);
        }
    }
    for r in &sys.ges {
        if pure(r) {
            context.ges.push(r[..=n_params].to_vec());
        } else {
            constraints.push(r.clone());
        }
    }
    let n_x = sys.n - n_params;
    let mut lines = Vec::new();
    for r in constraints {
        let coeffs = r[1 + n_params..].to_vec();
        let mut big = 0;
        for &c in &coeffs {
            big = sub(big, c)?;
        }
        lines.push(Line {
            variable: None,
            den: 1,
            constant: r[..=n_params].to_vec(),
            big,
            coeffs,
            settled: false,
        });
    }
    let start = Problem {
        lines,
        columns: (0..n_x).map(Some).collect(),
        context,
        divs: Vec::new(),
        n_x,
    };
    let mut leaves = Vec::new();
    if omega::is_empty(start.context.clone(), budget)? {
        return Ok(leaves);
    }
    let mut todo = vec![start];
    while let Some(problem) = todo.pop() {
        leaves.extend(problem.solve(&mut todo, budget)?);
    }
    Ok(leaves)
}

/// `unknown = (constant + big * M + sum coeffs[j] * column_j) / den`
#[derive(Clone)]
struct Line {
    /// Which `x'` this is; `None` for a slack.
    variable: Option<usize>,
    den: Int,
    constant: Row,
    big: Int,
    coeffs: Vec<Int>,
    /// Known not to be negative anywhere on the context.
    settled: bool,
}

#[derive(Clone)]
struct Problem {
    lines: Vec<Line>,
    columns: Vec<Option<usize>>,
    context: System,
    /// New parameters: numerator, divisor, column.
    divs: Vec<(Row, Int, usize)>,
    n_x: usize,
}

enum Sign {
    NotNegative,
    Negative,
    Mixed,
}

impl Problem {
    /// Runs to a leaf (`None` when there is no point), leaving the other sides of splits in `todo`.
    fn solve(mut self, todo: &mut Vec<Problem>, budget: &mut Budget) -> Result<Option<Leaf>> {
        loop {
            let mut mixed = None;
            let mut negative = None;
            for i in 0..self.lines.len() {
                match self.sign(i, budget)? {
                    Sign::NotNegative => self.lines[i].settled = true,
                    Sign::Negative => {
                        negative = Some(i);
                        break;
                    }
                    Sign::Mixed => mixed = mixed.or(Some(i)),
                }
            }
            if let Some(i) = negative {
                if !self.raise(i, budget)? {
                    return Ok(None);
                }
                continue;
            }
            if let Some(i) = mixed {
                let row = self.lines[i].constant.clone();
                if self.lines[i].coeffs.iter().all(|&c| c <= 0) {
                    self.context.ges.push(row);
                    continue;
                }
                budget.spend(self.lines.len())?;
                let mut other = self.clone();
                other.context.ges.push(row.clone());
                other.lines[i].settled = true;
                todo.push(other);
                self.context.ges.push(negate_ge(&row)?);
                if !self.raise(i, budget)? {
                    return Ok(None);
                }
                continue;
            }
            if !self.cut(budget)? {
                return Ok(Some(self.into_leaf()?));
            }
        }
    }

    fn sign(&self, i: usize, budget: &mut Budget) -> Result<Sign> {
        let line = &self.lines[i];
        if line.settled || line.big > 0 {
            return Ok(Sign::NotNegative);
        }
        if line.big < 0 {
            return Ok(Sign::Negative);
        }
        if line.constant[1..].iter().all(|&c| c == 0) {
            return Ok(if line.constant[0] >= 0 {
                Sign::NotNegative
            } else {
                Sign::Negative
            });
        }
        let mut below = self.context.clone();
        below.ges.push(negate_ge(&line.constant)?);
        if omega::is_empty(below, budget)? {
            return Ok(Sign::NotNegative);
        }
        let mut above = self.context.clone();
        above.ges.push(line.constant.clone());
        Ok(if omega::is_empty(above, budget)? {
            Sign::Negative
        } else {
            Sign::Mixed
        })
    }

    /// Exchanges a negative line with the column that keeps all columns lexicographically positive; `false` when
    /// no column can raise it.
    fn raise(&mut self, at: usize, budget: &mut Budget) -> Result<bool> {
        let mut best: Option<usize> = None;
        for j in 0..self.columns.len() {
            if self.lines[at].coeffs[j] > 0 {
                best = Some(match best {
                    Some(b) if self.compare_columns(at, b, j)? != Ordering::Greater => b,
                    _ => j,
                });
            }
        }
        let Some(column) = best else {
            return Ok(false);
        };
        self.pivot(at, column, budget)?;
        Ok(true)
    }

    /// Compares the columns, each divided by its coefficient in line `at`, over the variables in order.
    fn compare_columns(&self, at: usize, a: usize, b: usize) -> Result<Ordering> {
        let (ca, cb) = (self.lines[at].coeffs[a], self.lines[at].coeffs[b]);
        for x in 0..self.n_x {
            let (va, vb) = match self.lines.iter().find(|l| l.variable == Some(x)) {
                Some(l) => (l.coeffs[a], l.coeffs[b]),
                None => (
                    Int::from(self.columns[a] == Some(x)),
                    Int::from(self.columns[b] == Some(x)),
                ),
            };
            match mul(va, cb)?.cmp(&mul(vb, ca)?) {
                Ordering::Equal => {}
                other => return Ok(other),
            }
        }
        Ok(Ordering::Equal)
    }

    fn pivot(&mut self, at: usize, column: usize, budget: &mut Budget) -> Result<()> {
        budget.spend(self.lines.len())?;
        let line = &self.lines[at];
        let a = line.coeffs[column];
        let flip = |v: &Int| mul(neg(a.signum())?, *v);
        let mut pivoted = Line {
            variable: self.columns[column],
            den: a.checked_abs().ok_or(Error::Overflow)?,
            constant: line.constant.iter().map(flip).collect::<Result<_>>()?,
            big: flip(&line.big)?,
            coeffs: line.coeffs.iter().map(flip).collect::<Result<_>>()?,
            settled: false,
        };
        pivoted.coeffs[column] = mul(a.signum(), line.den)?;
        pivoted.reduce()?;
        let leaving = line.variable;
        for (i, l) in self.lines.iter_mut().enumerate() {
            let b = l.coeffs[column];
            if i == at || b == 0 {
                continue;
            }
            let g = gcd(b, pivoted.den)?;
            let (p, q) = (pivoted.den / g, b / g);
            l.coeffs[column] = 0;
            let mix = |x: &mut Int, y: Int| -> Result<()> {
                *x = add(mul(*x, p)?, mul(q, y)?)?;
                Ok(())
            };
            for (x, &y) in l.constant.iter_mut().zip(&pivoted.constant) {
                mix(x, y)?;
            }
            mix(&mut l.big, pivoted.big)?;
            for (x, &y) in l.coeffs.iter_mut().zip(&pivoted.coeffs) {
                mix(x, y)?;
            }
            l.den = mul(l.den, p)?;
            l.settled = false;
            l.reduce()?;
        }
        self.columns[column] = leaving;
        self.lines[at] = pivoted;
        Ok(())
    }

    /// Adds a Gomory cut for the first coordinate that is not integral; `false` when all are.
    fn cut(&mut self, budget: &mut Budget) -> Result<bool> {
        for x in 0..self.n_x {
            let Some(line) = self.lines.iter().find(|l| l.variable == Some(x)) else {
                continue;
            };
            let d = line.den;
            if d == 1 {
                continue;
            }
            // -constant modulo d
            let mut residue: Row = Vec::with_capacity(line.constant.len());
            for &c in &line.constant {
                residue.push(modulo(neg(modulo(c, d)?)?, d)?);
            }
            if residue.iter().all(|&c| c == 0) {
                continue;
            }
            let mut coeffs = Vec::with_capacity(line.coeffs.len());
            for &c in &line.coeffs {
                coeffs.push(modulo(c, d)?);
            }
            let mut constant = negate(&residue)?;
            if residue[1..].iter().any(|&c| c != 0) {
                if self.is_always_divisible(&residue, d, budget)? {
                    continue;
                }
                let q = self.floor(&residue, d)?;
                constant.resize(self.context.n + 1, 0);
                constant[q + 1] = add(constant[q + 1], d)?;
            }
            budget.spend(self.lines.len())?;
            let mut cut = Line {
                variable: None,
                den: d,
                constant,
                big: 0,
                coeffs,
                settled: false,
            };
            cut.reduce()?;
            self.lines.push(cut);
            return Ok(true);
        }
        Ok(false)
    }

    fn is_always_divisible(&self, row: &Row, d: Int, budget: &mut Budget) -> Result<bool> {
        let mut sys = self.context.clone();
        sys.add_vars(1);
        let mut above = row.clone();
        above.resize(sys.n, 0);
        above.push(neg(d)?);
        let mut below = negate(&above)?;
        above[0] = sub(above[0], 1)?;
        below[0] = add(below[0], d - 1)?;
        sys.ges.push(above);
        sys.ges.push(below);
        omega::is_empty(sys, budget)
    }

    /// The parameter `floor(row / d)`, made if there is none yet.
    fn floor(&mut self, row: &Row, d: Int) -> Result<usize> {
        let mut row = row.clone();
        row.resize(self.context.n + 1, 0);
        for (r, m, q) in &self.divs {
            let same = r.iter().chain(std::iter::repeat(&0)).zip(&row).all(|(a, b)| a == b);
            if *m == d && same {
                return Ok(*q);
            }
        }
        self.context.add_vars(1);
        for l in &mut self.lines {
            l.constant.push(0);
        }
        let q = self.context.n - 1;
        self.divs.push((row.clone(), d, q));
        let mut upper = row;
        upper.push(neg(d)?);
        let mut lower = negate(&upper)?;
        lower[0] = add(lower[0], d - 1)?;
        self.context.ges.push(upper);
        self.context.ges.push(lower);
        Ok(q)
    }

    fn into_leaf(self) -> Result<Leaf> {
        let mut minimum = Vec::with_capacity(self.n_x);
        for x in 0..self.n_x {
            // x = x' - M: the minimum is finite exactly when M cancels.
            minimum.push(match self.lines.iter().find(|l| l.variable == Some(x)) {
                Some(l) if l.big == l.den => Some((l.constant.clone(), l.den)),
                _ => None,
            });
        }
        Ok(Leaf {
            context: self.context,
            minimum,
        })
    }
}

impl Line {
    fn reduce(&mut self) -> Result<()> {
        let mut g = gcd(self.den, self.big)?;
        for &v in self.constant.iter().chain(&self.coeffs) {
            if g == 1 {
                return Ok(());
            }
            if v != 0 {
                g = gcd(g, v)?;
            }
        }
        if g > 1 {
            self.den /= g;
            self.big /= g;
            for v in self.constant.iter_mut().chain(&mut self.coeffs) {
                *v /= g;
            }
        }
        Ok(())
    }
}
