//! Questions about conditions: answered exactly, or left undecided.

use affine::Space;
use systola_ir::form::Cond;
use systola_ir::sets::{SetError, is_empty, set_of};

/// Why a question has no answer for all sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A parameter multiplies an iterator: the question can be decided at given sizes.
    NeedsSizes(String),
    /// The arithmetic exceeded its number range or its budget.
    TooComplex(affine::Error),
}

impl From<SetError> for Undecided {
    fn from(error: SetError) -> Self {
        match error {
            SetError::NotAffine(_) => {
                Undecided::NeedsSizes("a parameter multiplies an iterator or a parameter".into())
            }
            SetError::Affine(error) => Undecided::TooComplex(error),
        }
    }
}

impl From<affine::Error> for Undecided {
    fn from(error: affine::Error) -> Self {
        Undecided::TooComplex(error)
    }
}

impl From<systola_ir::form::Overflow> for Undecided {
    fn from(_: systola_ir::form::Overflow) -> Self {
        Undecided::TooComplex(affine::Error::Overflow)
    }
}

/// Parameters and points.
pub type Sample = (Vec<i128>, Vec<i128>);

/// Decides questions for all parameters in a context.
#[derive(Clone, Debug)]
pub struct Decide {
    pub n_params: usize,
    pub context: Cond,
}

impl Decide {
    /// Does the condition hold nowhere?
    pub fn is_empty(&self, cond: &Cond, n_dims: usize) -> Result<bool, Undecided> {
        let all = self.context.clone().and(cond.clone());
        Ok(is_empty(&all, Space::new(self.n_params, n_dims))?)
    }

    /// A sample at which the condition holds.
    pub fn sample(&self, cond: &Cond, n_dims: usize) -> Result<Option<Sample>, Undecided> {
        let all = self.context.clone().and(cond.clone());
        let space = Space::new(self.n_params, n_dims);
        if is_empty(&all, space)? {
            return Ok(None);
        }
        Ok(set_of(&all, space)?.sample()?)
    }
}
