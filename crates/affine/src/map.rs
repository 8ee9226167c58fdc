//! Quasi-affine maps between spaces.

use crate::basic::BasicSet;
use crate::builder::BasicSetBuilder;
use crate::error::{Error, Result};
use crate::expr::{LinExpr, Space};

/// A map from points to points whose components are affine in the parameters, dimensions and
/// existentials of its domain, so that they can express floors and remainders by constants.
///
/// Its existentials must be determined by the point wherever the outputs use them, as those made by
/// [`BasicSetBuilder::floor_div`] and [`BasicSetBuilder::modulo`] are; otherwise it stands for a
/// relation.
#[derive(Clone, Debug)]
pub struct Map {
    pub(crate) domain: BasicSet,
    pub(crate) outputs: Vec<LinExpr>,
}

impl Map {
    /// A map defined on `domain`; outputs are over `[params | dims | exists]` of the domain.
    pub fn new(domain: BasicSet, outputs: Vec<LinExpr>) -> Result<Self> {
        for e in &outputs {
            if e.n_columns() > domain.sys.n {
                return Err(Error::OutOfRange {
                    index: e.n_columns() - 1,
                    len: domain.sys.n,
                });
            }
        }
        Ok(Map { domain, outputs })
    }

    /// An affine map on the whole space.
    pub fn affine(space: Space, outputs: Vec<LinExpr>) -> Result<Self> {
        BasicSetBuilder::new(space).build_map(outputs)
    }

    /// The map from every point to itself.
    pub fn identity(space: Space) -> Self {
        Map {
            domain: BasicSet::universe(space),
            outputs: (space.n_params..space.n_vars()).map(LinExpr::var).collect(),
        }
    }

    /// Where the map is defined.
    pub fn domain(&self) -> &BasicSet {
        &self.domain
    }

    /// The components, over `[params | dims | exists]` of the domain.
    pub fn outputs(&self) -> &[LinExpr] {
        &self.outputs
    }

    /// The space of the images.
    pub fn target_space(&self) -> Space {
        Space::new(self.domain.space.n_params, self.outputs.len())
    }
}
