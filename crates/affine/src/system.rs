//! Systems of linear equalities and inequalities over integer variables, and the steps shared by
//! all decisions: normalisation, substitution, unimodular changes of variables and Fourier-Motzkin
//! pairs.

use crate::error::{Error, Result};
use crate::int::{Int, add, floor_div, gcd, gcd_all, mul, nearest_quotient, neg, sub};

/// The constant at index 0, the coefficient of variable `v` at index `v + 1`.
pub(crate) type Row = Vec<Int>;

/// Elementary steps (roughly: rows made or visited) that one public operation may take.
pub(crate) const DEFAULT_BUDGET: u64 = 3_000_000;

/// Counts work, so that every operation ends after a number of steps that does not depend on the
/// machine.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    total: u64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        Budget { left: total, total }
    }

    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<()> {
        crate::cancel::check();
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Error::TooComplex { budget: self.total })
            }
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Runs an optional improvement with a smaller budget; its steps are charged here too.
    pub(crate) fn try_within<T>(
        &mut self,
        steps: u64,
        f: impl FnOnce(&mut Budget) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut inner = Budget::new(steps.min(self.left));
        let result = f(&mut inner);
        self.left -= inner.total - inner.left;
        match result {
            Ok(v) => Ok(Some(v)),
            Err(Error::TooComplex { .. } | Error::Overflow) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(DEFAULT_BUDGET)
    }
}

/// A conjunction of `row = 0` and `row >= 0` over `n` integer variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct System {
    pub n: usize,
    pub eqs: Vec<Row>,
    pub ges: Vec<Row>,
}

/// Which sides of a variable are bounded, and how.
#[derive(Clone, Copy, Default)]
pub(crate) struct Occurrence {
    pub n_lower: usize,
    pub n_upper: usize,
    pub max_lower: Int,
    pub max_upper: Int,
}

impl Occurrence {
    pub(crate) fn is_used(self) -> bool {
        self.n_lower + self.n_upper > 0
    }

    pub(crate) fn is_one_sided(self) -> bool {
        self.n_lower == 0 || self.n_upper == 0
    }

    /// Rows that eliminating the variable adds.
    pub(crate) fn growth(self) -> i64 {
        let (l, u) = (self.n_lower as i64, self.n_upper as i64);
        l * u - l - u
    }
}

/// A lower and an upper bound of one variable, combined.
pub(crate) struct Pair {
    /// The row of the real shadow.
    pub row: Row,
    /// Its smaller constant in the dark shadow.
    pub dark: Int,
    /// The inequalities that were combined.
    pub lower: usize,
    pub upper: usize,
}

impl Pair {
    pub(crate) fn is_exact(&self) -> bool {
        self.row[0] == self.dark
    }

    pub(crate) fn dark_row(&self) -> Row {
        let mut row = self.row.clone();
        row[0] = self.dark;
        row
    }
}

/// The pairs of lower and upper bounds of one variable, combined.
pub(crate) struct Shadow {
    /// All pairs that are not trivially true.
    pub pairs: Vec<Pair>,
    /// Rows that do not mention the variable.
    pub rest: Vec<Row>,
    /// Whether the real and the dark shadow coincide, so that the elimination loses nothing.
    pub exact: bool,
}

/// `p * a + q * b`
pub(crate) fn combine(p: Int, a: &[Int], q: Int, b: &[Int]) -> Result<Row> {
    let mut row = Vec::with_capacity(a.len());
    for (&x, &y) in a.iter().zip(b) {
        row.push(match (x, y) {
            (0, 0) => 0,
            (x, 0) => mul(p, x)?,
            (0, y) => mul(q, y)?,
            (x, y) => add(mul(p, x)?, mul(q, y)?)?,
        });
    }
    Ok(row)
}

pub(crate) fn negate(row: &[Int]) -> Result<Row> {
    row.iter().map(|&c| neg(c)).collect()
}

/// The row of `not (row >= 0)`.
pub(crate) fn negate_ge(row: &[Int]) -> Result<Row> {
    let mut r = negate(row)?;
    r[0] = sub(r[0], 1)?;
    Ok(r)
}

/// The result of dividing a row by the content of its coefficients.
pub(crate) enum Verdict {
    Keep,
    Always,
    Never,
}

pub(crate) fn normalize_eq(row: &mut [Int]) -> Result<Verdict> {
    let g = gcd_all(&row[1..])?;
    if g == 0 {
        return Ok(if row[0] == 0 {
            Verdict::Always
        } else {
            Verdict::Never
        });
    }
    if g > 1 {
        if row[0] % g != 0 {
            return Ok(Verdict::Never);
        }
        for c in row.iter_mut() {
            *c /= g;
        }
    }
    Ok(Verdict::Keep)
}

pub(crate) fn normalize_ge(row: &mut [Int]) -> Result<Verdict> {
    let g = gcd_all(&row[1..])?;
    if g == 0 {
        return Ok(if row[0] >= 0 {
            Verdict::Always
        } else {
            Verdict::Never
        });
    }
    if g > 1 {
        for c in row[1..].iter_mut() {
            *c /= g;
        }
        // For integers, the constant can be rounded down, which cuts off rational points.
        row[0] = floor_div(row[0], g)?;
    }
    Ok(Verdict::Keep)
}

/// A hash of the normal of a row that is the same for a normal and its negation.
fn normal_hash(row: &[Int]) -> u64 {
    let sign = row[1..].iter().find(|&&c| c != 0).map_or(1, |c| c.signum());
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for &c in &row[1..] {
        h = (h ^ (c.wrapping_mul(sign) as u64)).wrapping_mul(0x0000_0100_0000_01b3);
        h ^= h >> 29;
    }
    h
}

fn opposite(a: &[Int], b: &[Int]) -> bool {
    a.iter().zip(b).all(|(&x, &y)| x == y.wrapping_neg())
}

impl System {
    pub(crate) fn new(n: usize) -> Self {
        System {
            n,
            eqs: Vec::new(),
            ges: Vec::new(),
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.eqs.len() + self.ges.len()
    }

    /// Appends variables without constraints.
    pub(crate) fn add_vars(&mut self, k: usize) {
        self.n += k;
        for row in self.eqs.iter_mut().chain(&mut self.ges) {
            row.resize(self.n + 1, 0);
        }
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.eqs.iter_mut().chain(self.ges.iter_mut())
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.eqs.iter().chain(self.ges.iter())
    }

    /// The same rows over `n` columns, old column `i` going to `columns[i]`.
    pub(crate) fn remap(&self, n: usize, columns: &[usize]) -> System {
        let map = |rows: &[Row]| -> Vec<Row> {
            rows.iter()
                .map(|r| {
                    let mut row = vec![0; n + 1];
                    row[0] = r[0];
                    for (&to, &c) in columns.iter().zip(&r[1..]) {
                        row[to + 1] = c;
                    }
                    row
                })
                .collect()
        };
        System {
            n,
            eqs: map(&self.eqs),
            ges: map(&self.ges),
        }
    }

    /// Divides every row by its content, tightens it, merges parallel rows and turns opposite pairs
    /// into equalities. Returns `false` when it finds a contradiction.
    pub(crate) fn normalize(&mut self, budget: &mut Budget) -> Result<bool> {
        budget.spend(self.n_rows())?;
        let mut i = 0;
        while i < self.eqs.len() {
            match normalize_eq(&mut self.eqs[i])? {
                Verdict::Never => return Ok(false),
                Verdict::Always => {
                    self.eqs.remove(i);
                }
                Verdict::Keep => i += 1,
            }
        }
        let mut i = 0;
        while i < self.ges.len() {
            match normalize_ge(&mut self.ges[i])? {
                Verdict::Never => return Ok(false),
                Verdict::Always => {
                    self.ges.remove(i);
                }
                Verdict::Keep => i += 1,
            }
        }
        self.merge_parallel()
    }

    fn merge_parallel(&mut self) -> Result<bool> {
        let mut keys: Vec<(u64, usize)> = self
            .ges
            .iter()
            .enumerate()
            .map(|(i, r)| (normal_hash(r), i))
            .collect();
        keys.sort_unstable();
        let mut dead = vec![false; self.ges.len()];
        let mut any = false;
        let mut start = 0;
        while start < keys.len() {
            let mut end = start + 1;
            while end < keys.len() && keys[end].0 == keys[start].0 {
                end += 1;
            }
            for x in start..end {
                for y in x + 1..end {
                    let (i, j) = (keys[x].1, keys[y].1);
                    if dead[i] || dead[j] {
                        continue;
                    }
                    if self.ges[i][1..] == self.ges[j][1..] {
                        any = true;
                        if self.ges[j][0] < self.ges[i][0] {
                            self.ges[i][0] = self.ges[j][0];
                        }
                        dead[j] = true;
                    }
                }
            }
            for x in start..end {
                for y in x + 1..end {
                    let (i, j) = (keys[x].1, keys[y].1);
                    if dead[i] || dead[j] || !opposite(&self.ges[i][1..], &self.ges[j][1..]) {
                        continue;
                    }
                    let width = add(self.ges[i][0], self.ges[j][0])?;
                    if width < 0 {
                        return Ok(false);
                    }
                    if width == 0 {
                        any = true;
                        dead[i] = true;
                        dead[j] = true;
                        self.eqs.push(self.ges[i].clone());
                    }
                }
            }
            start = end;
        }
        if any {
            let mut i = 0;
            self.ges.retain(|_| {
                i += 1;
                !dead[i - 1]
            });
        }
        Ok(true)
    }

    /// Replaces variable `v` everywhere by the equality `row`, in which it has coefficient 1 or -1.
    pub(crate) fn substitute(&mut self, v: usize, row: &[Int], budget: &mut Budget) -> Result<()> {
        let unit = row[v + 1];
        budget.spend(self.n_rows())?;
        for r in self.rows_mut() {
            let c = r[v + 1];
            if c != 0 {
                let factor = mul(neg(c)?, unit)?;
                for (x, &y) in r.iter_mut().zip(row) {
                    if y != 0 {
                        *x = add(*x, mul(factor, y)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces a variable by a number.
    pub(crate) fn fix(&mut self, v: usize, value: Int) -> Result<()> {
        for r in self.rows_mut() {
            let c = r[v + 1];
            if c != 0 {
                r[0] = add(r[0], mul(c, value)?)?;
                r[v + 1] = 0;
            }
        }
        Ok(())
    }

    /// One step of Euclid's algorithm on the coefficients of `vars` in equality `eq`, as a
    /// unimodular change of variables of the whole system. Repeated, it leaves a single variable of
    /// `vars` in the equality.
    pub(crate) fn euclid_step(
        &mut self,
        eq: usize,
        vars: &[usize],
        budget: &mut Budget,
    ) -> Result<()> {
        let Some(&pivot) = vars
            .iter()
            .min_by_key(|&&v| self.eqs[eq][v + 1].unsigned_abs())
        else {
            return Ok(());
        };
        let p = self.eqs[eq][pivot + 1];
        let mut quotients = Vec::with_capacity(vars.len());
        for &v in vars {
            if v != pivot {
                let q = nearest_quotient(self.eqs[eq][v + 1], p)?;
                if q != 0 {
                    quotients.push((v, q));
                }
            }
        }
        budget.spend(self.n_rows())?;
        // x_pivot = x_pivot' - sum q_v x_v
        for r in self.rows_mut() {
            let c = r[pivot + 1];
            if c != 0 {
                for &(v, q) in &quotients {
                    r[v + 1] = sub(r[v + 1], mul(q, c)?)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn occurrences(&self) -> Vec<Occurrence> {
        let mut occ = vec![Occurrence::default(); self.n];
        for row in &self.ges {
            for (o, &c) in occ.iter_mut().zip(&row[1..]) {
                if c > 0 {
                    o.n_lower += 1;
                    o.max_lower = o.max_lower.max(c);
                } else if c < 0 {
                    o.n_upper += 1;
                    o.max_upper = o.max_upper.max(c.saturating_neg());
                }
            }
        }
        occ
    }

    /// Combines every lower with every upper bound of `v` among the inequalities.
    pub(crate) fn shadow(&self, v: usize, budget: &mut Budget) -> Result<Shadow> {
        let mut lower = Vec::new();
        let mut upper = Vec::new();
        let mut rest = Vec::new();
        for (i, row) in self.ges.iter().enumerate() {
            match row[v + 1].signum() {
                1 => lower.push((i, row)),
                -1 => upper.push((i, row)),
                _ => rest.push(row.clone()),
            }
        }
        budget.spend(lower.len() * upper.len())?;
        let mut pairs = Vec::with_capacity(lower.len() * upper.len());
        let mut exact = true;
        for &(i, l) in &lower {
            let b = l[v + 1];
            for &(j, u) in &upper {
                let a = neg(u[v + 1])?;
                let g = gcd(a, b)?;
                let mut row = combine(a / g, l, b / g, u)?;
                let slack = mul(a - 1, b - 1)?;
                let slack = if slack == 0 {
                    0
                } else {
                    crate::int::ceil_div(slack, g)?
                };
                let mut dark = sub(row[0], slack)?;
                let content = gcd_all(&row[1..])?;
                if content == 0 {
                    if row[0] >= 0 && dark >= 0 {
                        continue;
                    }
                } else if content > 1 {
                    for c in row[1..].iter_mut() {
                        *c /= content;
                    }
                    row[0] = floor_div(row[0], content)?;
                    dark = floor_div(dark, content)?;
                }
                // A pair that is never satisfied cannot lose anything.
                if content == 0 && row[0] < 0 {
                    dark = row[0];
                }
                exact &= dark == row[0];
                pairs.push(Pair {
                    row,
                    dark,
                    lower: i,
                    upper: j,
                });
            }
        }
        Ok(Shadow { pairs, rest, exact })
    }

    pub(crate) fn drop_inequalities_of(&mut self, v: usize) {
        self.ges.retain(|r| r[v + 1] == 0);
    }
}

impl Shadow {
    pub(crate) fn real(&self) -> Vec<Row> {
        let mut rows = self.rest.clone();
        rows.extend(self.pairs.iter().map(|p| p.row.clone()));
        rows
    }

    pub(crate) fn into_real(self) -> Vec<Row> {
        let mut rows = self.rest;
        rows.extend(self.pairs.into_iter().map(|p| p.row));
        rows
    }

    pub(crate) fn dark(&self) -> Vec<Row> {
        let mut rows = self.rest.clone();
        rows.extend(self.pairs.iter().map(Pair::dark_row));
        rows
    }
}
