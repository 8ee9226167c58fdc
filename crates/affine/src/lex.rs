//! Lexicographic order on pairs of points, and parametric lexicographic optima.

use crate::basic::{BasicSet, BasicSetBuilder};
use crate::error::Result;
use crate::expr::Space;
use crate::int::{Int, mul, neg};
use crate::pip;
use crate::set::Set;
use crate::system::Budget;

impl Set {
    /// The pairs `(x, y)` of `n`-dimensional points with `x` lexicographically before `y`, over `2 n` dimensions.
    pub fn lex_lt(n_params: usize, n: usize) -> Result<Set> {
        let space = Space::new(n_params, 2 * n);
        let mut pieces = Vec::new();
        for level in 0..n {
            let mut b = BasicSetBuilder::new(space);
            for i in 0..level {
                b.eq(&space.dim(i)?, &space.dim(n + i)?)?;
            }
            b.lt(&space.dim(level)?, &space.dim(n + level)?)?;
            pieces.push(b.build());
        }
        Set::from_pieces(space, pieces)
    }

    /// The pairs `(x, y)` with `x` lexicographically before or equal to `y`.
    pub fn lex_le(n_params: usize, n: usize) -> Result<Set> {
        let space = Space::new(n_params, 2 * n);
        let mut b = BasicSetBuilder::new(space);
        for i in 0..n {
            b.eq(&space.dim(i)?, &space.dim(n + i)?)?;
        }
        Set::lex_lt(n_params, n)?.union(&b.build().into())
    }

    /// The pairs `(x, y)` with `x` lexicographically after `y`.
    pub fn lex_gt(n_params: usize, n: usize) -> Result<Set> {
        let order: Vec<usize> = (n..2 * n).chain(0..n).collect();
        Set::lex_lt(n_params, n)?.permute_dims(&order)
    }

    /// The pairs `(x, y)` with `x` lexicographically after or equal to `y`.
    pub fn lex_ge(n_params: usize, n: usize) -> Result<Set> {
        let order: Vec<usize> = (n..2 * n).chain(0..n).collect();
        Set::lex_le(n_params, n)?.permute_dims(&order)
    }

    /// For each value of the parameters, the lexicographically smallest point, where there is one.
    pub fn lexmin(&self) -> Result<Set> {
        self.lex_optimum(false)
    }

    /// For each value of the parameters, the lexicographically largest point, where there is one.
    pub fn lexmax(&self) -> Result<Set> {
        self.lex_optimum(true)
    }

    fn lex_optimum(&self, largest: bool) -> Result<Set> {
        let budget = &mut Budget::default();
        let mut optima = Vec::new();
        for p in &self.pieces {
            let optimum = piece_optimum(p, largest, budget)?;
            if !optimum.is_empty() {
                optima.push(Set::from_pieces(self.space, optimum)?);
            }
        }
        // With several pieces, an optimum counts where no other piece has a better one.
        let d = self.space.n_dims;
        let mut best = Set::empty(self.space);
        for (i, candidate) in optima.iter().enumerate() {
            let mut rest = candidate.clone();
            for (j, other) in optima.iter().enumerate() {
                if i == j {
                    continue;
                }
                let n_params = self.space.n_params;
                let order = match largest {
                    false => Set::lex_gt(n_params, d)?,
                    true => Set::lex_lt(n_params, d)?,
                };
                let beaten = other
                    .insert_dims(0, d)?
                    .intersect_in(&order, budget)?
                    .project_out_in(d..2 * d, budget)?;
                rest = rest.subtract_in(&beaten, budget)?;
            }
            best.pieces.extend(rest.pieces);
        }
        best.simplify_in(budget)
    }
}

/// The optimum of one piece: the existentials come last in the order, so they do not matter.
fn piece_optimum(p: &BasicSet, largest: bool, budget: &mut Budget) -> Result<Vec<BasicSet>> {
    let (k, d) = (p.space.n_params, p.space.n_dims);
    let mut sys = p.sys.clone();
    if !sys.normalize(budget)? {
        return Ok(Vec::new());
    }
    let sign: Int = if largest { -1 } else { 1 };
    for row in sys.rows_mut() {
        for c in &mut row[1 + k..1 + k + d] {
            *c = mul(sign, *c)?;
        }
    }
    let mut pieces = Vec::new();
    for leaf in pip::lexmin(&sys, k, budget)? {
        // Columns: params, dims, then the new parameters as existentials.
        let n_new = leaf.context.n - k;
        let n = k + d + n_new;
        let columns: Vec<usize> = (0..k).chain(k + d..n).collect();
        let mut sys = leaf.context.remap(n, &columns);
        let bounded = leaf.minimum[..d].iter().all(Option::is_some);
        if !bounded {
            continue;
        }
        for (i, (row, m)) in leaf.minimum[..d].iter().flatten().enumerate() {
            let mut eq = vec![0; n + 1];
            eq[0] = row[0];
            for (&to, &c) in columns.iter().zip(&row[1..]) {
                eq[to + 1] = c;
            }
            eq[k + i + 1] = mul(neg(*m)?, sign)?;
            sys.eqs.push(eq);
        }
        pieces.push(BasicSet {
            space: p.space,
            sys,
        });
    }
    Ok(pieces)
}
