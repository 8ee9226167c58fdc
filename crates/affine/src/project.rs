//! Exact projections.

use crate::basic::BasicSet;
use crate::error::{Error, Result};
use crate::expr::Space;
use crate::omega::{self, Role};
use crate::set::Set;
use crate::system::Budget;
impl Set {
    /// The exact projection that removes the dimensions in `range`.
    pub fn project_out(&self, range: std::ops::Range<usize>) -> Result<Set> {
        self.project_out_in(range, &mut Budget::default())
    }

    pub(crate) fn project_out_in(
        &self,
        range: std::ops::Range<usize>,
        budget: &mut Budget,
    ) -> Result<Set> {
        if range.end > self.space.n_dims || range.start > range.end {
            return Err(Error::OutOfRange {
                index: range.end.max(range.start),
                len: self.space.n_dims,
            });
        }
        let first = self.space.n_params + range.start;
        let last = self.space.n_params + range.end;
        let gone = |v: usize| (first..last).contains(&v);
        let space = Space::new(self.space.n_params, self.space.n_dims - range.len());
        let mut pieces: Vec<BasicSet> = Vec::new();
        for p in &self.pieces {
            let mut parts = Vec::new();
            for q in p.eliminate(gone, budget)? {
                let q = q.delete_columns(space, gone);
                if !q.is_empty_in(budget)? {
                    parts.push(q);
                }
            }
            if parts.len() > 1 {
                let joined =
                    budget.try_within(100_000, |b| whole_shadow(p, space, gone, &parts, b))?;
                if let Some(Some(shadow)) = joined {
                    parts = vec![shadow];
                }
            }
            for q in parts {
                if !pieces.contains(&q) {
                    pieces.push(q);
                }
            }
        }
        Ok(Set { space, pieces })
    }

    /// The projection onto the dimensions in `range`.
    pub fn project_onto(&self, range: std::ops::Range<usize>) -> Result<Set> {
        let budget = &mut Budget::default();
        let after =
            self.project_out_in(range.end.min(self.space.n_dims)..self.space.n_dims, budget)?;
        if range.end > self.space.n_dims {
            return Err(Error::OutOfRange {
                index: range.end,
                len: self.space.n_dims,
            });
        }
        after.project_out_in(0..range.start, budget)
    }

    /// The first components of a set of pairs: the projection onto the first `n` dimensions.
    pub fn domain_of(&self, n: usize) -> Result<Set> {
        self.project_onto(0..n)
    }

    /// The second components of a set of pairs: the projection onto the dimensions from `n` on.
    pub fn range_of(&self, n: usize) -> Result<Set> {
        self.project_out(0..n)
    }

    /// The parameter values for which the set has a point, as a set without dimensions.
    pub fn params(&self) -> Result<Set> {
        self.project_out(0..self.space.n_dims)
    }
}

impl BasicSet {
    /// Projects out the existentials and the visible columns chosen by `out`, which then become
    /// zero columns. Variables that cannot be eliminated stay as existentials in div form.
    pub(crate) fn eliminate(
        &self,
        out: impl Fn(usize) -> bool,
        budget: &mut Budget,
    ) -> Result<Vec<BasicSet>> {
        let visible = self.space.n_vars();
        let mut sys = self.sys.clone();
        // Chosen columns move after the existentials, so that those that stay become existentials
        // too.
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
}

/// The rational projection of `p`, if the exact projection in `parts` is equal to it.
fn whole_shadow(
    p: &BasicSet,
    space: Space,
    gone: impl Fn(usize) -> bool,
    parts: &[BasicSet],
    budget: &mut Budget,
) -> Result<Option<BasicSet>> {
    let visible = p.space.n_vars();
    let Some(mut sys) = omega::real_shadow(p.sys.clone(), |v| v < visible && !gone(v), budget)?
    else {
        return Ok(None);
    };
    omega::compact(&mut sys, visible);
    let shadow = BasicSet {
        space: p.space,
        sys,
    }
    .delete_columns(space, gone);
    let parts = Set {
        space,
        pieces: parts.to_vec(),
    };
    let fills = Set::from(shadow.clone()).is_subset_in(&parts, budget)?;
    Ok(if fills {
        Some(shadow.simplify_in(budget)?)
    } else {
        None
    })
}
