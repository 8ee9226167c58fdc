//! Lexicographic order on pairs of points, and parametric lexicographic optima.

use crate::builder::BasicSetBuilder;
use crate::error::Result;
use crate::expr::Space;
use crate::set::Set;
use crate::system::Budget;

impl Set {
    /// The pairs `(x, y)` of `n`-dimensional points with `x` lexicographically before `y`, over
    /// `2 n` dimensions.
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

    /// The set minus all points that another one precedes. For each level, those are the points `x`
    /// for which some `y < x[level]` (or `>`) exists with `(x[..level], y)` in the projection onto
    /// the first dimensions.
    fn lex_optimum(&self, largest: bool) -> Result<Set> {
        let budget = &mut Budget::default();
        let d = self.space.n_dims;
        let k = self.space.n_params;
        let mut best = self.simplify_in(budget)?;
        let mut prefix = best.clone();
        for level in (0..d).rev() {
            // prefix: over the dimensions 0..=level. Dimension level becomes y, a fresh one takes
            // its place.
            let pairs = prefix.insert_dims(level, 1)?;
            let space = Space::new(k, level + 2);
            let mut b = BasicSetBuilder::new(space);
            let (x, y) = (space.dim(level)?, space.dim(level + 1)?);
            if largest {
                b.gt(&y, &x)?;
            } else {
                b.lt(&y, &x)?;
            }
            let preceded = pairs
                .intersect_in(&b.build().into(), budget)?
                .project_out_in(level + 1..level + 2, budget)?
                .insert_dims(level + 1, d - level - 1)?;
            best = best.subtract_in(&preceded, budget)?;
            prefix = prefix.project_out_in(level..level + 1, budget)?;
        }
        best.simplify_in(budget)
    }
}
