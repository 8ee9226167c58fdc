//! Changing columns: fixing values, parameters to dimensions and back, reordering, products.

use crate::basic::{BasicSet, check_len};
use crate::error::{Error, Result};
use crate::expr::{Constraint, Space};
use crate::int::Int;
use crate::set::Set;
use crate::system::{Row, System};
impl Set {
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

    /// The dimensions in another order: new dimension `i` is old dimension `order[i]`.
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

    /// All pairs of a point of this set and a point of `other`, as points with the dimensions of
    /// both.
    pub fn product(&self, other: &Set) -> Result<Set> {
        if self.space.n_params != other.space.n_params {
            return self.space.require_same(other.space).map(|()| self.clone());
        }
        let left = self.insert_dims(self.space.n_dims, other.space.n_dims)?;
        let right = other.insert_dims(0, self.space.n_dims)?;
        left.intersect(&right)
    }

    fn map_pieces(&self, space: Space, f: impl Fn(&BasicSet) -> Result<BasicSet>) -> Result<Set> {
        Ok(Set {
            space,
            pieces: self.pieces.iter().map(f).collect::<Result<_>>()?,
        })
    }
}

impl BasicSet {
    /// Moves the boundary between parameters and dimensions: the same rows over another space with
    /// as many visible columns.
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
