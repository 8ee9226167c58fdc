//! Values that move between lanes: shuffles and lane shifts.

use systola_ir::form::{Atom, Form};
use systola_ir::{DimId, Scalar, ValueId};

use super::lane_affine::split;
use super::lanes::Vector;
use super::vector::{Operand, Printed};
use super::{Cpu, Rep};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::modulo;
use crate::scalar::{c_type, signed};

impl Cpu {
    /// A value as the vector that moves between lanes, and its type: masks move as they are.
    fn movable(&self, cx: &mut Context<'_>, a: &Operand) -> Result<(Expr, Vector), Fault> {
        match a.rep {
            Rep::Mask(bits) => Ok((a.expr.clone(), Vector::new(signed(bits), self.lanes))),
            Rep::Scalar | Rep::Vector => Ok((self.vector(cx, a)?, Vector::new(a.ty, self.lanes))),
        }
    }

    pub fn shuffle(&self, cx: &mut Context<'_>, value: ValueId, from: &Form) -> Printed {
        if self.reps[value.index()] == Rep::Scalar {
            return Ok((self.read(cx, value).expr, Rep::Scalar));
        }
        let lanes = i128::from(self.lanes);
        let Some(lane) = self.lane.filter(|lane| from.dims().contains(lane)) else {
            let name = self.named(cx, value)?;
            let at = cx.form(from)?;
            let at = modulo(cx.prelude, &at, lanes)?;
            let element = Expr::index(&name, &at);
            return Ok((self.element(cx, value, element), Rep::Scalar));
        };
        let a = self.read(cx, value);
        let (e, vector) = self.movable(cx, &a)?;
        if let Some(places) = self.known_places(from, lane) {
            let identity = places.iter().copied().eq(0..self.lanes);
            if identity {
                return Ok((e, a.rep));
            }
            let permute = vector.permute(cx.prelude, &places)?;
            return Ok((Expr::call(&permute, &[e]), a.rep));
        }
        let bits = vector.ty.bits();
        let places = match split(from, lane, self.lanes) {
            Some((uniform, small)) => {
                let rest = uniform.modulo(lanes);
                let width = small
                    .bits(self.lanes)
                    .unwrap_or(32)
                    .max(bits.min(32))
                    .max(16);
                let small = self.small(cx, &small, width)?;
                let narrow = c_type(signed(width))?;
                let rest = Expr::cast(narrow, &cx.form(&rest)?);
                self.resized(cx, Expr::binary("+", &small, &rest), width, bits)?
            }
            None => {
                let wide = self.index_vector(cx, from)?;
                self.resized(cx, wide, 64, bits)?
            }
        };
        let pick = vector.pick(cx.prelude)?;
        Ok((Expr::call(&pick, &[e, places]), a.rep))
    }

    /// The lane from which each lane reads, if it is known at compile time; lanes beyond the last
    /// wrap around.
    fn known_places(&self, from: &Form, lane: DimId) -> Option<Vec<u32>> {
        if from.dims() != [lane] || has_params(from) {
            return None;
        }
        let mut dims = vec![0i128; lane.index() + 1];
        (0..self.lanes)
            .map(|l| {
                dims[lane.index()] = l.into();
                let place = from.eval(&[], &dims).ok()?.rem_euclid(self.lanes.into());
                u32::try_from(place).ok()
            })
            .collect()
    }

    pub fn lane_shift(
        &self,
        cx: &mut Context<'_>,
        low: Option<ValueId>,
        high: Option<ValueId>,
        by: u32,
    ) -> Printed {
        let (low, high) = (
            low.map(|v| self.read(cx, v)),
            high.map(|v| self.read(cx, v)),
        );
        let (low, high) = match (low, high) {
            (Some(low), Some(high)) => (low, high),
            (Some(only), None) | (None, Some(only)) => (only.clone(), only),
            (None, None) => return Err(Fault::unsupported("a lane shift of no vector")),
        };
        if by == 0 {
            return Ok((high.expr, high.rep));
        }
        if by >= self.lanes {
            return Ok((low.expr, low.rep));
        }
        if low.rep == Rep::Scalar && high.rep == Rep::Scalar && low.expr == high.expr {
            return Ok((low.expr, Rep::Scalar));
        }
        let bits = self.choice_width(&low, &high, 8);
        if low.ty == Scalar::Bool {
            let vector = Vector::new(signed(bits), self.lanes);
            let shift = vector.lane_shift(cx.prelude, by)?;
            let args = [
                self.mask_value(cx, &low, bits)?,
                self.mask_value(cx, &high, bits)?,
            ];
            return Ok((Expr::call(&shift, &args), Rep::Mask(bits)));
        }
        let shift = Vector::new(low.ty, self.lanes).lane_shift(cx.prelude, by)?;
        let args = [self.vector(cx, &low)?, self.vector(cx, &high)?];
        Ok((Expr::call(&shift, &args), Rep::Vector))
    }
}

fn has_params(form: &Form) -> bool {
    form.constant_part().as_constant().is_none()
        || form.terms().any(|(atom, coefficient)| {
            coefficient.as_constant().is_none()
                || match atom {
                    Atom::Dim(_) => false,
                    Atom::Floor(inner, _) | Atom::Mod(inner, _) => has_params(inner),
                }
        })
}
