//! One conjunction of affine constraints, with existential variables.

use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::{Int, add, neg, sub};
use crate::map::Map;
use crate::omega::{self, Role, floor_definition};
use crate::simplex;
use crate::system::{Budget, Row, System, negate};

/// The integer points that satisfy a conjunction of equalities and inequalities.
///
/// The constraints may use existential variables: a point belongs to the set when some integer values for them
/// satisfy all constraints. Strides (`exists q: i = 2 q`), floors and remainders are written that way; see
/// [`BasicSetBuilder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicSet {
    pub(crate) space: Space,
    pub(crate) sys: System,
}

/// An existential variable that is a function of visible (and earlier) ones: `floor(numerator / divisor)`.
#[derive(Clone, Debug)]
pub(crate) struct Div {
    pub var: usize,
    pub numerator: Row,
    pub divisor: Int,
}

impl Div {
    /// The two inequalities `0 <= numerator - divisor * var <= divisor - 1`.
    pub(crate) fn rows(&self) -> Result<[Row; 2]> {
        let mut upper = self.numerator.clone();
        upper[self.var + 1] = neg(self.divisor)?;
        let mut lower = negate(&upper)?;
        lower[0] = add(lower[0], self.divisor - 1)?;
        Ok([upper, lower])
    }
}

impl BasicSet {
    /// All points of the space.
    pub fn universe(space: Space) -> Self {
        BasicSet {
            space,
            sys: System::new(space.n_vars()),
        }
    }

    /// No point.
    pub fn empty(space: Space) -> Self {
        let mut set = BasicSet::universe(space);
        let mut row = vec![0; space.n_vars() + 1];
        row[0] = -1;
        set.sys.ges.push(row);
        set
    }

    /// The points that satisfy all constraints, which use the columns of the space only.
    pub fn from_constraints(
        space: Space,
        constraints: impl IntoIterator<Item = Constraint>,
    ) -> Result<Self> {
        let mut builder = BasicSetBuilder::new(space);
        for c in constraints {
            builder.constrain(&c)?;
        }
        Ok(builder.build())
    }

    /// The space of the points.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Number of existential variables.
    pub fn n_exists(&self) -> usize {
        self.sys.n - self.space.n_vars()
    }

    /// The constraints, over the columns `[params | dims | exists]`.
    pub fn constraints(&self) -> Vec<Constraint> {
        let eqs = self
            .sys
            .eqs
            .iter()
            .map(|r| Constraint::Eq(LinExpr::from_row(r)));
        let ges = self
            .sys
            .ges
            .iter()
            .map(|r| Constraint::Ge(LinExpr::from_row(r)));
        eqs.chain(ges).collect()
    }

    /// The existential variables as functions of the columns before them in this list: `(column, e, m)` stands for
    /// `column = floor(e / m)`. `None` when some existential is not determined by the point; see
    /// [`Set::div_form`](crate::Set::div_form).
    pub fn divs(&self) -> Result<Option<Vec<(usize, LinExpr, Int)>>> {
        Ok(self.div_definitions()?.map(|divs| {
            divs.iter()
                .map(|d| (d.var, LinExpr::from_row(&d.numerator), d.divisor))
                .collect()
        }))
    }

    /// The points in both sets.
    pub fn intersect(&self, other: &BasicSet) -> Result<BasicSet> {
        self.space.require_same(other.space)?;
        let visible = self.space.n_vars();
        let n = self.sys.n + other.n_exists();
        let mut sys = self.sys.clone();
        sys.add_vars(other.n_exists());
        let columns: Vec<usize> = (0..other.sys.n)
            .map(|v| if v < visible { v } else { v + self.n_exists() })
            .collect();
        let moved = other.sys.remap(n, &columns);
        sys.eqs.extend(moved.eqs);
        sys.ges.extend(moved.ges);
        Ok(BasicSet {
            space: self.space,
            sys,
        })
    }

    /// The set with one more constraint over its columns (existentials included).
    pub fn with_constraint(&self, constraint: &Constraint) -> Result<BasicSet> {
        let mut builder = BasicSetBuilder {
            space: self.space,
            sys: self.sys.clone(),
        };
        builder.constrain(constraint)?;
        Ok(builder.build())
    }

    /// Whether there is no integer point, for any values of the parameters.
    pub fn is_empty(&self) -> Result<bool> {
        self.is_empty_in(&mut Budget::default())
    }

    pub(crate) fn is_empty_in(&self, budget: &mut Budget) -> Result<bool> {
        omega::is_empty(self.sys.clone(), budget)
    }

    /// Whether the point belongs to the set.
    pub fn contains(&self, params: &[Int], dims: &[Int]) -> Result<bool> {
        check_len(params, self.space.n_params)?;
        check_len(dims, self.space.n_dims)?;
        if self.n_exists() == 0 {
            let value = |r: &Row| -> Result<Int> {
                let a = crate::matrix::dot(&r[1..=params.len()], params)?;
                let b = crate::matrix::dot(&r[1 + params.len()..], dims)?;
                add(r[0], add(a, b)?)
            };
            for r in &self.sys.eqs {
                if value(r)? != 0 {
                    return Ok(false);
                }
            }
            for r in &self.sys.ges {
                if value(r)? < 0 {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let mut sys = self.sys.clone();
        for (v, &value) in params.iter().chain(dims).enumerate() {
            sys.fix(v, value)?;
        }
        Ok(!omega::is_empty(sys, &mut Budget::default())?)
    }

    /// Simplified: normalised and tightened rows, equalities used to remove variables, no redundant inequality.
    pub fn simplify(&self) -> Result<BasicSet> {
        self.simplify_in(&mut Budget::default())
    }

    pub(crate) fn simplify_in(&self, budget: &mut Budget) -> Result<BasicSet> {
        let Some(mut set) = self.tidied(budget)? else {
            return Ok(BasicSet::empty(self.space));
        };
        if !set.reduce_equalities(budget)? {
            return Ok(BasicSet::empty(self.space));
        }
        if set.is_empty_in(budget)? {
            return Ok(BasicSet::empty(self.space));
        }
        set.remove_redundant(budget)?;
        Ok(set)
    }

    /// Rows normalised, unused existentials dropped, equal floors merged; `None` for a plain contradiction.
    pub(crate) fn tidied(&self, budget: &mut Budget) -> Result<Option<BasicSet>> {
        let sys = omega::tidy(self.sys.clone(), self.space.n_vars(), budget)?;
        Ok(sys.map(|sys| BasicSet {
            space: self.space,
            sys,
        }))
    }

    /// Solves equalities for a variable with coefficient 1 (an existential before a dimension, the last dimension
    /// first, before a parameter) and uses it everywhere else.
    fn reduce_equalities(&mut self, budget: &mut Budget) -> Result<bool> {
        let visible = self.space.n_vars();
        let params = self.space.n_params;
        let mut solved: Vec<Row> = Vec::new();
        loop {
            if !self.sys.normalize(budget)? {
                return Ok(false);
            }
            let rank = |v: usize| match v {
                v if v >= visible => 0,
                v if v >= params => 1 + (visible - v),
                v => 1 + visible + (params - v),
            };
            let pick = self
                .sys
                .eqs
                .iter()
                .enumerate()
                .flat_map(|(e, r)| {
                    // A stride such as i = 2 q stays as it is: putting 2 q for i would hide the dimension.
                    let plain = r[1 + visible..].iter().all(|&c| c == 0);
                    (0..self.sys.n)
                        .filter(move |&v| matches!(r[v + 1], 1 | -1) && (plain || v >= visible))
                        .map(move |v| (e, v))
                })
                .min_by_key(|&(_, v)| rank(v));
            let Some((e, v)) = pick else { break };
            let row = self.sys.eqs.swap_remove(e);
            self.sys.substitute(v, &row, budget)?;
            let unit = row[v + 1];
            for r in &mut solved {
                let c = r[v + 1];
                if c != 0 {
                    *r = crate::system::combine(1, r, neg(c)? * unit, &row)?;
                }
            }
            if v < visible {
                solved.push(row);
            }
        }
        solved.reverse();
        self.sys.eqs.splice(0..0, solved);
        omega::compact(&mut self.sys, visible);
        Ok(true)
    }

    /// Drops inequalities that follow from the others. Rows that define a floor stay, so that the set keeps its
    /// div form.
    fn remove_redundant(&mut self, budget: &mut Budget) -> Result<()> {
        let visible = self.space.n_vars();
        let hidden: Vec<usize> = (visible..self.sys.n).collect();
        let needed = omega::definition_rows(&self.sys.ges, &hidden);
        simplex::remove_redundant(&mut self.sys, |r| needed.contains(r), budget)?;
        Ok(())
    }

    /// Definitions of all existentials, each using visible columns and earlier definitions only.
    pub(crate) fn div_definitions(&self) -> Result<Option<Vec<Div>>> {
        let visible = self.space.n_vars();
        let n = self.sys.n;
        let mut known: Vec<bool> = (0..n).map(|v| v < visible).collect();
        let mut divs = Vec::new();
        loop {
            let mut progress = false;
            for q in visible..n {
                if known[q] {
                    continue;
                }
                let only_known =
                    |r: &Row| (visible..n).all(|w| w == q || known[w] || r[w + 1] == 0);
                let eq = self.sys.eqs.iter().find(|r| r[q + 1] != 0 && only_known(r));
                let definition = if let Some(r) = eq {
                    // h q + e = 0 gives q = floor(-e / h).
                    let r = if r[q + 1] > 0 { negate(r)? } else { r.clone() };
                    let m = neg(r[q + 1])?;
                    let mut e = r;
                    e[q + 1] = 0;
                    Some((e, m))
                } else {
                    let rows: Vec<Row> = self
                        .sys
                        .ges
                        .iter()
                        .filter(|r| r[q + 1] != 0 && only_known(r))
                        .cloned()
                        .collect();
                    floor_definition(&rows, q)?
                };
                if let Some((numerator, divisor)) = definition {
                    known[q] = true;
                    progress = true;
                    divs.push(Div {
                        var: q,
                        numerator,
                        divisor,
                    });
                }
            }
            if !progress {
                break;
            }
        }
        Ok((divs.len() == n - visible).then_some(divs))
    }

    /// Pieces whose union is this set and whose existentials are all determined by the point.
    pub(crate) fn div_form(&self, budget: &mut Budget) -> Result<Vec<BasicSet>> {
        if self.n_exists() == 0 || self.div_definitions()?.is_some() {
            return Ok(vec![self.clone()]);
        }
        self.eliminate(|_| false, budget)
    }

    /// Projects out the existentials and the visible columns chosen by `out`, which then become zero columns.
    /// What cannot vanish stays as existential in div form.
    pub(crate) fn eliminate(
        &self,
        out: impl Fn(usize) -> bool,
        budget: &mut Budget,
    ) -> Result<Vec<BasicSet>> {
        let visible = self.space.n_vars();
        let mut sys = self.sys.clone();
        // Chosen columns move behind the existentials, so that what is kept of them is an existential too.
        let chosen: Vec<usize> = (0..visible).filter(|&v| out(v)).collect();
        if !chosen.is_empty() {
            let n = sys.n + chosen.len();
            let mut next = sys.n;
            let columns: Vec<usize> = (0..sys.n)
                .map(|v| {
                    if v < visible && out(v) {
                        next += 1;
                        next - 1
                    } else {
                        v
                    }
                })
                .collect();
            sys = sys.remap(n, &columns);
        }
        let roles = (0..sys.n)
            .map(|v| {
                if v < visible {
                    Role::Visible
                } else {
                    Role::Free
                }
            })
            .collect();
        let mut pieces = Vec::new();
        for (sys, _) in omega::project(sys, roles, budget)? {
            if let Some(sys) = omega::tidy(sys, visible, budget)? {
                let piece = BasicSet {
                    space: self.space,
                    sys,
                };
                if !pieces.contains(&piece) {
                    pieces.push(piece);
                }
            }
        }
        Ok(pieces)
    }

    /// Moves the boundary between columns: the same rows over another space with as many visible columns.
    pub(crate) fn with_space(mut self, space: Space) -> BasicSet {
        self.space = space;
        self
    }

    /// Deletes visible columns that no row mentions.
    pub(crate) fn delete_columns(&self, space: Space, gone: impl Fn(usize) -> bool) -> BasicSet {
        let strip = |rows: &[Row]| -> Vec<Row> {
            rows.iter()
                .map(|r| {
                    r.iter()
                        .enumerate()
                        .filter(|&(i, _)| i == 0 || !gone(i - 1))
                        .map(|(_, &c)| c)
                        .collect()
                })
                .collect()
        };
        let eqs = strip(&self.sys.eqs);
        let ges = strip(&self.sys.ges);
        BasicSet {
            space,
            sys: System {
                n: space.n_vars() + self.n_exists(),
                eqs,
                ges,
            },
        }
    }

    /// The set with numbers in place of all parameters.
    pub(crate) fn fix_params(&self, params: &[Int]) -> Result<BasicSet> {
        check_len(params, self.space.n_params)?;
        let mut set = self.clone();
        for (v, &value) in params.iter().enumerate() {
            set.sys.fix(v, value)?;
        }
        let k = params.len();
        Ok(set.delete_columns(Space::new(0, self.space.n_dims), |v| v < k))
    }
}

pub(crate) fn check_len(values: &[Int], expected: usize) -> Result<()> {
    if values.len() != expected {
        return Err(Error::Shape {
            expected,
            found: values.len(),
        });
    }
    Ok(())
}

/// Builds a [`BasicSet`] or a [`Map`], adding existential variables as it goes.
///
/// ```
/// use affine::{BasicSetBuilder, Space};
/// # fn main() -> Result<(), affine::Error> {
/// let space = Space::new(0, 1);
/// let i = space.dim(0)?;
/// let mut b = BasicSetBuilder::new(space);
/// let r = b.modulo(&i, 3)?; // i mod 3
/// b.eq(&r, &2.into())?;
/// let set = b.build();
/// assert!(set.contains(&[], &[5])? && !set.contains(&[], &[6])?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BasicSetBuilder {
    pub(crate) space: Space,
    pub(crate) sys: System,
}

impl BasicSetBuilder {
    /// Starts with all points of the space.
    pub fn new(space: Space) -> Self {
        BasicSetBuilder {
            space,
            sys: System::new(space.n_vars()),
        }
    }

    /// The space of the points.
    pub fn space(&self) -> Space {
        self.space
    }

    /// A new existential variable.
    pub fn exists(&mut self) -> LinExpr {
        self.sys.add_vars(1);
        LinExpr::var(self.sys.n - 1)
    }

    /// `floor(e / divisor)` for a positive divisor.
    pub fn floor_div(&mut self, e: &LinExpr, divisor: Int) -> Result<LinExpr> {
        if divisor <= 0 {
            return Err(Error::Divisor(divisor));
        }
        if divisor == 1 {
            return Ok(e.clone());
        }
        let row = e.to_row(self.sys.n)?;
        if e.is_constant() {
            return Ok(LinExpr::constant(crate::int::floor_div(row[0], divisor)?));
        }
        self.sys.add_vars(1);
        let q = self.sys.n - 1;
        let mut numerator = row;
        numerator.push(0);
        let div = Div {
            var: q,
            numerator,
            divisor,
        };
        self.sys.ges.extend(div.rows()?);
        Ok(LinExpr::var(q))
    }

    /// `ceil(e / divisor)` for a positive divisor.
    pub fn ceil_div(&mut self, e: &LinExpr, divisor: Int) -> Result<LinExpr> {
        self.floor_div(&e.plus(sub(divisor, 1)?)?, divisor)
    }

    /// `e mod modulus`, in `0..modulus`, for a positive modulus.
    pub fn modulo(&mut self, e: &LinExpr, modulus: Int) -> Result<LinExpr> {
        let q = self.floor_div(e, modulus)?;
        e.add_scaled(neg(modulus)?, &q)
    }

    /// Adds a constraint over the columns made so far.
    pub fn constrain(&mut self, constraint: &Constraint) -> Result<()> {
        let row = constraint.expr().to_row(self.sys.n)?;
        match constraint {
            Constraint::Eq(_) => self.sys.eqs.push(row),
            Constraint::Ge(_) => self.sys.ges.push(row),
        }
        Ok(())
    }

    /// Adds `a = b`.
    pub fn eq(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::eq(a, b)?)
    }

    /// Adds `a >= b`.
    pub fn ge(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::ge(a, b)?)
    }

    /// Adds `a <= b`.
    pub fn le(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::le(a, b)?)
    }

    /// Adds `a < b`.
    pub fn lt(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::lt(a, b)?)
    }

    /// Adds `a > b`.
    pub fn gt(&mut self, a: &LinExpr, b: &LinExpr) -> Result<()> {
        self.constrain(&Constraint::gt(a, b)?)
    }

    /// Adds `low <= e < high`.
    pub fn range(&mut self, low: &LinExpr, e: &LinExpr, high: &LinExpr) -> Result<()> {
        self.le(low, e)?;
        self.lt(e, high)
    }

    /// The set of points that satisfy what was added.
    pub fn build(self) -> BasicSet {
        BasicSet {
            space: self.space,
            sys: self.sys,
        }
    }

    /// The map that sends the points satisfying what was added to the values of `outputs`.
    pub fn build_map(self, outputs: Vec<LinExpr>) -> Result<Map> {
        Map::new(self.build(), outputs)
    }
}
