//! The rational relaxation of a conjunction that is being built.

use crate::basic::charge;
use crate::builder::BasicSetBuilder;
use crate::error::Result;
use crate::expr::Space;
use crate::int::Int;
use crate::omega::{SEARCH_NODES, SEARCH_STEPS};
use crate::simplex::{Found, Growing};

/// The result of a rational relaxation of a conjunction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relaxation {
    /// The conjunction has no integer point.
    Empty,
    /// The conjunction has this integer point.
    Point {
        /// The values of the parameters.
        params: Vec<Int>,
        /// The values of the dimensions.
        dims: Vec<Int>,
    },
    /// The conjunction may have an integer point.
    Open,
}

/// The relaxation of a conjunction under construction. When the builder is copied, it is copied
/// with it.
///
/// ```
/// use affine::{BasicSetBuilder, Relaxation, Relaxer, Space};
/// # fn main() -> Result<(), affine::Error> {
/// let space = Space::new(0, 1);
/// let i = space.dim(0)?;
/// let (mut set, mut relaxer) = (BasicSetBuilder::new(space), Relaxer::new(space));
/// let mut steps = 1000;
/// set.ge(&i, &3.into())?;
/// let found = relaxer.relax(&set, &mut steps)?;
/// assert_eq!(found, Relaxation::Point { params: vec![], dims: vec![3] });
/// set.lt(&i, &3.into())?;
/// assert_eq!(relaxer.relax(&set, &mut steps)?, Relaxation::Empty);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Relaxer {
    space: Space,
    growing: Growing,
}

impl Relaxer {
    /// A relaxer for builders that start with all points of the space.
    pub fn new(space: Space) -> Self {
        Relaxer {
            space,
            growing: Growing::new(space.n_vars()),
        }
    }

    /// The result of the rational relaxation and a few branches: cheaper than
    /// [`is_empty`](crate::BasicSet::is_empty), and often sufficient. The builder must be that of
    /// the last call, possibly with more constraints. The steps taken are subtracted from `steps`.
    pub fn relax(&mut self, set: &BasicSetBuilder, steps: &mut u64) -> Result<Relaxation> {
        let found = charge(steps, |budget| {
            budget.try_within(SEARCH_STEPS, |budget| {
                self.growing.search(&set.sys, SEARCH_NODES, budget)
            })
        })?;
        Ok(match found {
            Some(Found::Empty) => Relaxation::Empty,
            Some(Found::Point(mut point)) => {
                point.truncate(self.space.n_vars());
                let dims = point.split_off(self.space.n_params);
                Relaxation::Point {
                    params: point,
                    dims,
                }
            }
            Some(Found::Open) | None => Relaxation::Open,
        })
    }
}
