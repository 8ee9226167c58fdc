//! Forms and conditions over the lanes of a warp.
//!
//! Most forms are a uniform part plus a multiple of the lane: the uniform part is then evaluated
//! once for the warp.

use systola_ir::form::Overflow;
use systola_ir::kernel::Kernel;
use systola_ir::{Cond, DimId, Form};

use crate::linear::{Linear, Test};

/// A form at concrete parameters.
pub(super) struct LaneForm {
    rest: Linear,
    /// The stride per lane; `None`: the lane occurs in a floor or remainder, so that `rest` is the
    /// whole form.
    step: Option<i64>,
}

impl LaneForm {
    pub fn compile(
        form: &Form,
        lane: Option<DimId>,
        params: &[i128],
    ) -> Result<LaneForm, Overflow> {
        let Some(lane) = lane else {
            return Ok(LaneForm {
                rest: Linear::compile(form, params)?,
                step: Some(0),
            });
        };
        let step = form.coefficient(lane);
        let rest = form.sub(&Form::from(lane).scale(&step)?);
        if rest.dims().contains(&lane) {
            return Ok(LaneForm {
                rest: Linear::compile(form, params)?,
                step: None,
            });
        }
        Ok(LaneForm {
            rest: Linear::compile(&rest, params)?,
            step: Some(i64::try_from(step.eval(params)?).map_err(|_| Overflow)?),
        })
    }

    /// The part that all lanes share, to be passed to [`LaneForm::at`].
    #[inline]
    pub fn shared_part(&self, point: &[i64]) -> Option<i64> {
        match self.step {
            Some(_) => self.rest.eval(point),
            None => Some(0),
        }
    }

    /// The value in a lane, which is also set in the point. `None`: it leaves 64 bits.
    #[inline]
    pub fn at(&self, shared_part: Option<i64>, point: &[i64], lane: usize) -> Option<i64> {
        match self.step {
            Some(step) => shared_part?.checked_add(step.checked_mul(lane as i64)?),
            None => self.rest.eval(point),
        }
    }
}

/// A condition at concrete parameters.
pub(super) struct LaneTest {
    test: Test,
    is_uniform: bool,
}

impl LaneTest {
    pub fn compile(cond: &Cond, kernel: &Kernel, params: &[i128]) -> Result<LaneTest, Overflow> {
        Ok(LaneTest {
            test: Test::compile(cond, params)?,
            is_uniform: kernel.cond_is_uniform(cond),
        })
    }

    /// Its value in all lanes, if it does not depend on them; to be passed to [`LaneTest::at`].
    #[inline]
    pub fn shared_part(&self, point: &[i64]) -> Option<bool> {
        match self.is_uniform {
            true => self.test.eval(point),
            false => Some(false),
        }
    }

    /// The value in a lane, which is also set in the point.
    #[inline]
    pub fn at(&self, shared_part: Option<bool>, point: &[i64]) -> Option<bool> {
        match self.is_uniform {
            true => shared_part,
            false => self.test.eval(point),
        }
    }
}
