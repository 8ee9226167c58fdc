//! Migrating partial sums: a row is added to all sums that contain it as soon as it is available.
//!
//! The rows are the cells of one index along the first axis of the neighbourhood; in three
//! dimensions they are planes. With the row y of the previous sweep, one variable for each distance
//! d from the row of a sum to y adds the contribution of y to the sum of the row y - d:
//!
//! ```text
//! S_d(t, y) = S_(d-1)(t, y - 1) + weights of the row d * row y of the sweep before
//! ```
//!
//! The first variable begins a sum; the last, at d = `last`, ends that of the row y - `last`: so
//! the variable of a field is `last` rows behind its row. Only the partial sums are kept, one for
//! each variable, and a sweep follows the previous one at a distance of `last` rows.
//!
//! At the boundary:
//!
//! * **fixed** (Dirichlet): in the row of the sum itself, a fixed cell takes its value instead of
//!   the sum, and later rows add nothing. In fixed columns, and where a row has only one weight,
//!   that is a weight of zero, which costs nothing.
//! * **constant**: rows before the first are a constant with which the sum begins, rows after the
//!   last a constant that is added.
//! * **clamp, mirror, reflect**: a row next to the boundary is added with all weights that map to
//!   it. A row beyond the boundary maps to one whose distance from the sum is at most the reach of
//!   the neighbourhood.

use std::collections::BTreeMap;

use systola_ir::system::{Expr, Law, Var};
use systola_ir::{BinOp, Cond, Form, InputId, Rel, Scalar, Span, VarId};

use crate::boundary::{any, at_end, at_start};
use crate::iterate::Sweeps;
use crate::linear::{Linear, add, times};
use crate::reach::Margin;
use crate::{Boundary, Fresh};

/// A weighted sum by rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The axis across the rows.
    pub axis: usize,
    /// The first and the last row of the neighbourhood, from the row of the sum.
    pub first: i128,
    pub last: i128,
    /// For each row, the weight of each neighbour in it: a field, and an offset that is zero along
    /// `axis`.
    weights: BTreeMap<i128, BTreeMap<(InputId, Vec<i128>), Expr>>,
    /// The term that is added to the sum of the neighbours.
    rest: Option<Expr>,
}

impl Rows {
    /// `None` where the sum is all in one row.
    pub fn of(sum: Linear, axis: usize, boundary: Boundary) -> Option<Rows> {
        let mut weights: BTreeMap<i128, BTreeMap<_, _>> = BTreeMap::new();
        for ((input, mut offset), weight) in sum.taps {
            let row = std::mem::take(&mut offset[axis]);
            weights
                .entry(row)
                .or_default()
                .insert((input, offset), weight);
        }
        let mut first = weights.keys().next().copied().unwrap_or(0).min(0);
        let mut last = weights.keys().last().copied().unwrap_or(0).max(0);
        match boundary {
            Boundary::Clamp | Boundary::Mirror | Boundary::Reflect => {
                last = last.max(-first);
                first = -last;
            }
            Boundary::Interior | Boundary::Fixed | Boundary::Constant(_) | Boundary::Wrap => {}
        }
        (first < last).then_some(Rows {
            axis,
            first,
            last,
            weights,
            rest: sum.rest,
        })
    }

    /// The number of variables of the sum.
    pub fn n_sums(&self) -> usize {
        usize::try_from(self.last - self.first + 1).unwrap_or(1)
    }

    fn row(&self, d: i128) -> impl Iterator<Item = (&(InputId, Vec<i128>), &Expr)> {
        self.weights.get(&d).into_iter().flatten()
    }
}

/// The variables of a sum, the last partial sum first.
pub fn sums(
    sweeps: &Sweeps<'_>,
    var: VarId,
    rows: &Rows,
    name: &str,
    names: &mut Fresh,
) -> Vec<Var> {
    let kernel_var = &sweeps.kernel.vars[var.index()];
    let ty = kernel_var.ty.scalar().unwrap_or(Scalar::F32);
    let one = MigratingSum {
        sweeps,
        var,
        rows,
        ty,
        boundary: sweeps.stencil.boundaries[var.index()],
    };
    let mut list = Vec::new();
    for d in (rows.first..=rows.last).rev() {
        let name = if d == rows.last {
            name.to_string()
        } else {
            names.name(&format!("{name}{}", d - rows.first + 1))
        };
        list.push(Var {
            name,
            law: Law::Fixed,
            on: one.domain(d),
            body: one.body(d),
            ..kernel_var.clone()
        });
    }
    list
}

/// One migrating sum being written.
struct MigratingSum<'a> {
    sweeps: &'a Sweeps<'a>,
    var: VarId,
    rows: &'a Rows,
    ty: Scalar,
    boundary: Boundary,
}

impl MigratingSum<'_> {
    fn y(&self) -> &Form {
        &self.sweeps.here[self.rows.axis]
    }

    fn n(&self) -> &Form {
        &self.sweeps.sizes[self.rows.axis]
    }

    fn margin(&self, axis: usize) -> Margin {
        self.sweeps.plan.margins[self.var.index()][axis]
    }

    /// The axes other than that of the rows.
    fn columns(&self) -> impl Iterator<Item = usize> {
        let axis = self.rows.axis;
        (0..self.sweeps.here.len()).filter(move |a| *a != axis)
    }

    fn domain(&self, d: i128) -> Vec<Cond> {
        let y = self.y();
        let mut conds = Vec::new();
        let at_least = |n: i128| Cond::Cmp(Rel::Ge, y.clone(), Form::from(n));
        let at_most = |conds: &mut Vec<Cond>, past: i128| {
            if past < self.sweeps.furthest() {
                let end = self.n().plus(past - 1);
                conds.push(Cond::Cmp(Rel::Le, y.clone(), end));
            }
        };
        match self.boundary {
            Boundary::Interior => {
                for axis in 0..self.sweeps.here.len() {
                    let shift = if axis == self.rows.axis { d } else { 0 };
                    let margin = self.sweeps.lost[axis];
                    conds.extend(self.sweeps.has_value(axis, shift, margin));
                }
            }
            Boundary::Fixed => {
                // A sum needs all rows from its first; where it is fixed it needs none.
                let least = if d < 0 { d - self.rows.first } else { d };
                if least > 0 {
                    conds.push(at_least(least));
                }
                at_most(&mut conds, d.max(0));
                if d < 0 {
                    for axis in self.columns() {
                        if self.reaches_before(d, axis) {
                            let (at, n) = (&self.sweeps.here[axis], &self.sweeps.sizes[axis]);
                            let margin = self.margin(axis);
                            if margin.start > 0 {
                                let least = Form::from(margin.start);
                                conds.push(Cond::Cmp(Rel::Ge, at.clone(), least));
                            }
                            if margin.end > 0 {
                                let most = n.plus(-1 - margin.end);
                                conds.push(Cond::Cmp(Rel::Le, at.clone(), most));
                            }
                        }
                    }
                }
            }
            Boundary::Constant(_)
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => {
                if d > 0 {
                    conds.push(at_least(d));
                }
                at_most(&mut conds, d.max(0));
            }
        }
        conds
    }

    /// Whether a row up to this one reads neighbours along an axis.
    fn reaches_before(&self, d: i128, axis: usize) -> bool {
        let rows = self.rows.weights.range(..=d);
        rows.flat_map(|(_, row)| row.keys())
            .any(|(_, offset)| offset[axis] != 0)
    }

    fn body(&self, d: i128) -> Expr {
        match self.boundary {
            Boundary::Interior => self.with_terms(self.sum_so_far(d), d),
            Boundary::Fixed => self.fixed(d),
            Boundary::Constant(_)
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => self.everywhere(d),
        }
    }

    /// The partial sum of the previous rows.
    fn sum_so_far(&self, d: i128) -> Option<Expr> {
        if d == self.rows.first {
            return None;
        }
        let before_end = usize::try_from(self.rows.last - d + 1).unwrap_or(0);
        let mut index = vec![Form::from(systola_ir::DimId(0))];
        index.extend(self.sweeps.here.iter().cloned());
        index[self.rows.axis + 1] = self.y().plus(-1);
        Some(Expr::Var {
            var: self.sweeps.id(self.var, before_end),
            index,
            span: Span::NONE,
        })
    }

    fn with_terms(&self, start: Option<Expr>, d: i128) -> Expr {
        self.added(start, self.terms(d))
    }

    fn added(&self, start: Option<Expr>, terms: Vec<Expr>) -> Expr {
        let sum = start
            .into_iter()
            .chain(terms)
            .reduce(|sum, term| Expr::binary(BinOp::Add, sum, term));
        sum.unwrap_or(Expr::int(self.ty, 0))
    }

    /// The contribution of this row of the previous sweep.
    fn terms(&self, d: i128) -> Vec<Expr> {
        let mut taps: BTreeMap<&(InputId, Vec<i128>), Expr> = BTreeMap::new();
        for (tap, _) in self.rows.weights.values().flatten() {
            if let Some(weight) = self.weight(d, tap) {
                taps.insert(tap, weight);
            }
        }
        let mut taps: Vec<_> = taps.into_iter().collect();
        // Values of the lane itself are added first; those of other lanes arrive later.
        taps.sort_by_key(|((_, offset), _)| offset.iter().map(|o| o.abs()).sum::<i128>());
        let terms = taps.iter().map(|((input, offset), weight)| {
            times(self.ty, weight, self.sweeps.neighbour(*input, offset))
        });
        let mut terms: Vec<Expr> = terms.collect();
        if d == 0 {
            terms.extend(
                self.rows
                    .rest
                    .as_ref()
                    .map(|rest| self.sweeps.rewrite(rest)),
            );
        }
        terms
    }

    /// The weight of a neighbour in this row: its own, and next to the boundary also those of the
    /// rows beyond that map to it.
    fn weight(&self, d: i128, tap: &(InputId, Vec<i128>)) -> Option<Expr> {
        let of = |d: i128| self.rows.weights.get(&d).and_then(|row| row.get(tap));
        let total = |rows: Vec<i128>| {
            let weights = rows.into_iter().filter_map(of).cloned();
            weights.reduce(|a, b| add(self.ty, &a, &b))
        };
        let own = of(d).cloned();
        // The row p from the start, and the row p from the end.
        let before = |p: i128| match self.boundary {
            Boundary::Clamp if p == 0 => (self.rows.first..d).collect(),
            Boundary::Mirror if p > 0 => vec![d - 2 * p],
            Boundary::Reflect => vec![d - 2 * p - 1],
            _ => Vec::new(),
        };
        let behind = |p: i128| match self.boundary {
            Boundary::Clamp if p == 0 => (d + 1..=self.rows.last).collect(),
            Boundary::Mirror if p > 0 => vec![d + 2 * p],
            Boundary::Reflect => vec![d + 2 * p + 1],
            _ => Vec::new(),
        };
        let sum = |a: &Option<Expr>, b: Option<Expr>| match (a, b) {
            (Some(a), Some(b)) => Some(add(self.ty, a, &b)),
            (a, b) => a.clone().or(b),
        };
        let reach = 0..=self.rows.last - self.rows.first;
        let choose = |cond: Cond, then: Option<Expr>, otherwise: Option<Expr>| {
            if then == otherwise {
                return otherwise;
            }
            let zero = || Expr::int(self.ty, 0);
            Some(Expr::guard(
                cond,
                then.unwrap_or_else(zero),
                otherwise.unwrap_or_else(zero),
            ))
        };
        let near_end = |own: Option<Expr>| {
            let extra = reach.clone().filter_map(|p| Some((p, total(behind(p))?)));
            let extra: Vec<_> = extra.collect();
            extra
                .into_iter()
                .rev()
                .fold(own.clone(), |chosen, (p, extra)| {
                    let cond = Cond::Cmp(Rel::Eq, self.y().clone(), self.n().plus(-1 - p));
                    choose(cond, sum(&own, Some(extra)), chosen)
                })
        };
        let extra = reach.clone().filter_map(|p| Some((p, total(before(p))?)));
        let extra: Vec<_> = extra.collect();
        extra
            .into_iter()
            .rev()
            .fold(near_end(own.clone()), |chosen, (p, extra)| {
                let cond = Cond::Cmp(Rel::Eq, self.y().clone(), Form::from(p));
                choose(cond, near_end(sum(&own, Some(extra))), chosen)
            })
    }

    fn fixed(&self, d: i128) -> Expr {
        if d < 0 {
            return self.with_terms(self.sum_so_far(d), d);
        }
        let rows = self.margin(self.rows.axis);
        let mut fixed = Vec::new();
        fixed.extend(at_start(self.y(), d, rows.start));
        fixed.extend(at_end(self.y(), &self.n().plus(d), rows.end));
        let columns: Vec<Cond> = self
            .columns()
            .flat_map(|axis| {
                let (at, n) = (&self.sweeps.here[axis], &self.sweeps.sizes[axis]);
                let margin = self.margin(axis);
                [at_start(at, 0, margin.start), at_end(at, n, margin.end)]
            })
            .flatten()
            .collect();
        if d == 0 {
            fixed.extend(columns);
            let sum = self.with_terms(self.sum_so_far(d), d);
            let field = self.sweeps.stencil.field_of(self.var);
            return match (any(fixed), field) {
                (Some(fixed), Some(field)) => {
                    let old = self.sweeps.before(field.input, &self.sweeps.here);
                    Expr::guard(fixed, old, sum)
                }
                _ => sum,
            };
        }
        let before = self.sum_so_far(d).unwrap_or_else(|| Expr::int(self.ty, 0));
        let taps: Vec<_> = self.rows.row(d).collect();
        let sum = match (taps.as_slice(), any(columns.clone())) {
            ([], _) => return before,
            ([((input, offset), weight)], Some(columns)) if offset.iter().all(|o| *o == 0) => {
                let weight = Expr::guard(columns, Expr::int(self.ty, 0), (*weight).clone());
                let value = self.sweeps.neighbour(*input, offset);
                Expr::binary(BinOp::Add, before.clone(), times(self.ty, &weight, value))
            }
            _ => {
                fixed.extend(columns);
                self.with_terms(Some(before.clone()), d)
            }
        };
        match any(fixed) {
            Some(fixed) => Expr::guard(fixed, before, sum),
            None => sum,
        }
    }

    /// Where all cells have neighbours: a sum begins with the first existing row, and ends with the
    /// last.
    fn everywhere(&self, d: i128) -> Expr {
        let beyond = |rows: &mut dyn Iterator<Item = i128>| {
            let mut sum: Option<Expr> = None;
            for d in rows {
                for ((input, _), weight) in self.rows.row(d) {
                    let field = self.sweeps.stencil.field(*input);
                    if let Some(Boundary::Constant(value)) = field.map(|f| f.boundary) {
                        let term = times(self.ty, weight, Expr::Lit(self.ty, value));
                        let term = folded(term);
                        sum = Some(match sum {
                            Some(sum) => add(self.ty, &sum, &term),
                            None => term,
                        });
                    }
                }
            }
            sum.filter(|sum| *sum != Expr::int(self.ty, 0))
        };
        let before = self.sum_so_far(d).map(|before| {
            if d > 0 {
                return before;
            }
            let start = beyond(&mut (self.rows.first..d));
            let start = start.unwrap_or(Expr::int(self.ty, 0));
            Expr::guard(
                Cond::Cmp(Rel::Eq, self.y().clone(), Form::zero()),
                start,
                before,
            )
        });
        let sum = self.with_terms(before, d);
        if d <= 0 {
            return sum;
        }
        let past = Cond::Cmp(Rel::Ge, self.y().clone(), self.n().clone());
        let ended = beyond(&mut std::iter::once(d));
        let ended = self.added(self.sum_so_far(d), ended.into_iter().collect());
        if ended == sum {
            return sum;
        }
        Expr::guard(past, ended, sum)
    }
}

/// A product of numbers is a number; anything times zero is zero.
fn folded(term: Expr) -> Expr {
    use systola_ir::Literal;
    let Expr::Binary(BinOp::Mul, a, b) = &term else {
        return term;
    };
    match (&**a, &**b) {
        (_, Expr::Lit(ty, Literal::Float(x))) if *x == 0.0 => Expr::int(*ty, 0),
        (_, Expr::Lit(ty, Literal::Int(0))) => Expr::int(*ty, 0),
        (Expr::Lit(ty, Literal::Float(x)), Expr::Lit(_, Literal::Float(y))) => {
            Expr::Lit(*ty, Literal::Float(x * y))
        }
        (Expr::Lit(ty, Literal::Int(x)), Expr::Lit(_, Literal::Int(y))) => {
            match x.checked_mul(*y) {
                Some(n) if ty.int_range().is_some_and(|(lo, hi)| lo <= n && n <= hi) => {
                    Expr::Lit(*ty, Literal::Int(n))
                }
                _ => term.clone(),
            }
        }
        _ => term.clone(),
    }
}
