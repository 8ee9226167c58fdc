//! Operations on the columns of a set: projection, fixing, moving, and images under maps.

use crate::basic::{BasicSet, check_len};
use crate::divs;
use crate::error::{Error, Result};
use crate::expr::{Constraint, LinExpr, Space};
use crate::int::Int;
use crate::map::Map;
use crate::omega;
use crate::set::Set;
use crate::system::{Budget, Row, System};

impl Set {
    /// The projection that forgets the dimensions in `range`, exactly.
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

    /// The set with numbers in place of all parameters; the result has no parameters.
    pub fn fix_params(&self, params: &[Int]) -> Result<Set> {
        check_len(params, self.space.n_params)?;
        self.map_pieces(Space::new(0, self.space.n_dims), |p| p.fix_params(params))
    }

    /// The points whose dimension `dim` has the given value; the dimension stays.
    pub fn fix_dim(&self, dim: usize, value: Int) -> Result<Set> {
        let e = self.space.dim(dim)?.sub(&value.into())?;
        self.map_pieces(self.space, |p| {
            p.with_constraint(&Constraint::Eq(e.clone()))
        })
    }

    /// The points whose parameter `param` has the given value; the parameter stays.
    pub fn fix_param(&self, param: usize, value: Int) -> Result<Set> {
        let e = self.space.param(param)?.sub(&value.into())?;
        self.map_pieces(self.space, |p| {
            p.with_constraint(&Constraint::Eq(e.clone()))
        })
    }

    /// All parameters become leading dimensions.
    pub fn params_to_dims(&self) -> Set {
        self.with_n_params(0).unwrap_or_else(|_| self.clone())
    }

    /// The first `n` dimensions become the last parameters.
    pub fn dims_to_params(&self, n: usize) -> Result<Set> {
        self.with_n_params(self.space.n_params + n)
    }

    /// The same columns with the first `n_params` of them as parameters.
    pub fn with_n_params(&self, n_params: usize) -> Result<Set> {
        let n = self.space.n_vars();
        if n_params > n {
            return Err(Error::OutOfRange {
                index: n_params,
                len: n,
            });
        }
        let space = Space::new(n_params, n - n_params);
        self.map_pieces(space, |p| Ok(p.clone().with_space(space)))
    }

    /// `n` new dimensions without constraints, the first of them at position `at`.
    pub fn insert_dims(&self, at: usize, n: usize) -> Result<Set> {
        if at > self.space.n_dims {
            return Err(Error::OutOfRange {
                index: at,
                len: self.space.n_dims,
            });
        }
        let first = self.space.n_params + at;
        let space = Space::new(self.space.n_params, self.space.n_dims + n);
        self.map_pieces(space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| if v < first { v } else { v + n })
                .collect();
            Ok(BasicSet {
                space,
                sys: p.sys.remap(p.sys.n + n, &columns),
            })
        })
    }

    /// `n` new parameters without constraints, the first of them at position `at`.
    pub fn insert_params(&self, at: usize, n: usize) -> Result<Set> {
        if at > self.space.n_params {
            return Err(Error::OutOfRange {
                index: at,
                len: self.space.n_params,
            });
        }
        let space = Space::new(self.space.n_params + n, self.space.n_dims);
        self.map_pieces(space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| if v < at { v } else { v + n })
                .collect();
            Ok(BasicSet {
                space,
                sys: p.sys.remap(p.sys.n + n, &columns),
            })
        })
    }

    /// Dimensions in another order: new dimension `i` is old dimension `order[i]`.
    pub fn permute_dims(&self, order: &[usize]) -> Result<Set> {
        let d = self.space.n_dims;
        if order.len() != d {
            return Err(Error::Shape {
                expected: d,
                found: order.len(),
            });
        }
        let mut place = vec![usize::MAX; d];
        for (new, &old) in order.iter().enumerate() {
            if old >= d || place[old] != usize::MAX {
                return Err(Error::OutOfRange { index: old, len: d });
            }
            place[old] = new;
        }
        let k = self.space.n_params;
        self.map_pieces(self.space, |p| {
            let columns: Vec<usize> = (0..p.sys.n)
                .map(|v| {
                    if v >= k && v < k + d {
                        k + place[v - k]
                    } else {
                        v
                    }
                })
                .collect();
            Ok(BasicSet {
                space: self.space,
                sys: p.sys.remap(p.sys.n, &columns),
            })
        })
    }

    /// All pairs of a point of this set and a point of `other`, as points with the dimensions of both.
    pub fn product(&self, other: &Set) -> Result<Set> {
        if self.space.n_params != other.space.n_params {
            return self.space.require_same(other.space).map(|()| self.clone());
        }
        let left = self.insert_dims(self.space.n_dims, other.space.n_dims)?;
        let right = other.insert_dims(0, self.space.n_dims)?;
        left.intersect(&right)
    }

    /// The image under an affine map given by its components over `[params | dims]`.
    pub fn apply(&self, outputs: &[LinExpr]) -> Result<Set> {
        self.image(&Map::affine(self.space, outputs.to_vec())?)
    }

    /// The image under a map: all `f(x)` for points `x` of the set in the domain of `f`.
    pub fn image(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.domain.space)?;
        let budget = &mut Budget::default();
        let (k, d, m) = (self.space.n_params, self.space.n_dims, map.outputs.len());
        let source = Set::from(map.domain.clone());
        let mut graph = Vec::new();
        for p in &self.pieces {
            for f in &source.pieces {
                // The domain goes first, so that the columns of the outputs stay what they are.
                let both = f.intersect(p)?;
                let n = both.sys.n + m;
                let columns: Vec<usize> = (0..both.sys.n)
                    .map(|v| if v < k + d { v } else { v + m })
                    .collect();
                let mut sys = both.sys.remap(n, &columns);
                for (i, e) in map.outputs.iter().enumerate() {
                    let row = e.to_row(both.sys.n)?;
                    let mut eq = vec![0; n + 1];
                    eq[0] = row[0];
                    for (&to, &c) in columns.iter().zip(&row[1..]) {
                        eq[to + 1] = c;
                    }
                    eq[k + d + i + 1] = -1;
                    sys.eqs.push(eq);
                }
                graph.push(BasicSet {
                    space: Space::new(k, d + m),
                    sys,
                });
            }
        }
        let graph = Set {
            space: Space::new(k, d + m),
            pieces: graph,
        };
        graph.project_out_in(0..d, budget)
    }

    /// The points of the domain of `map` that it sends into this set.
    pub fn preimage(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.target_space())?;
        let domain = &map.domain;
        let (k, m) = (self.space.n_params, map.outputs.len());
        let mut pieces = Vec::new();
        for p in &self.pieces {
            let n = domain.sys.n + p.n_exists();
            let mut images: Vec<LinExpr> = (0..k).map(LinExpr::var).collect();
            images.extend(map.outputs.iter().cloned());
            images.extend((0..p.n_exists()).map(|q| LinExpr::var(domain.sys.n + q)));
            debug_assert_eq!(images.len(), k + m + p.n_exists());
            let moved = |rows: &[Row]| -> Result<Vec<Row>> {
                rows.iter()
                    .map(|r| LinExpr::from_row(r).substitute(&images)?.to_row(n))
                    .collect()
            };
            let mut sys: System = domain.sys.clone();
            sys.add_vars(p.n_exists());
            sys.eqs.extend(moved(&p.sys.eqs)?);
            sys.ges.extend(moved(&p.sys.ges)?);
            pieces.push(BasicSet {
                space: domain.space,
                sys,
            });
        }
        Ok(Set {
            space: domain.space,
            pieces,
        })
    }
}

/// The rational projection of `p`, if the exact projection in `parts` fills it.
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
    divs::compact(&mut sys, visible);
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
