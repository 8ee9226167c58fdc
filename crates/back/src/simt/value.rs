//! Operators on the values of a lane, and their moves between lanes.

use systola_ir::form::Form;
use systola_ir::{BinOp, Scalar, UnOp, ValueId};

use super::{Language, Simt};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;
use crate::prelude::{File, Prelude};
use crate::scalar::{self, c_type, unsigned};

/// Signed integers that C computes without conversion: an overflow would be undefined.
fn must_wrap(ty: Scalar) -> bool {
    ty.is_signed_int() && ty.bits() >= 32
}

pub fn unary(prelude: &mut Prelude, op: UnOp, ty: Scalar, a: &Expr) -> Result<Expr, Fault> {
    let section = match op {
        UnOp::Neg if ty == Scalar::I32 => "wrap_neg_32",
        UnOp::Neg if must_wrap(ty) => "wrap_neg",
        UnOp::Abs if must_wrap(ty) => "wrap_abs",
        UnOp::Rsqrt if ty.is_float() => return rsqrt(prelude, ty, a),
        UnOp::Neg
        | UnOp::Abs
        | UnOp::Not
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Exp
        | UnOp::Log
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh => {
            return scalar::unary(prelude, op, ty, a);
        }
    };
    let name = match op {
        UnOp::Neg => format!("neg_{ty}"),
        UnOp::Abs
        | UnOp::Not
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Exp
        | UnOp::Log
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh => format!("abs_{ty}"),
    };
    let letters = [
        ('T', c_type(ty)?),
        ('N', ty.name()),
        ('U', c_type(unsigned(ty))?),
    ];
    prelude.add(&name, File::Simt, section, &letters);
    Ok(Expr::call(&name, std::slice::from_ref(a)))
}

fn rsqrt(prelude: &mut Prelude, ty: Scalar, a: &Expr) -> Result<Expr, Fault> {
    let name = format!("rsqrt_{ty}");
    let suffix = if ty == Scalar::F32 { "f" } else { "" };
    let letters = [('T', c_type(ty)?), ('N', ty.name()), ('F', suffix)];
    prelude.add(&name, File::Simt, "rsqrt", &letters);
    Ok(Expr::call(&name, std::slice::from_ref(a)))
}

pub fn binary(
    prelude: &mut Prelude,
    op: BinOp,
    ty: Scalar,
    a: &Expr,
    b: &Expr,
) -> Result<Expr, Fault> {
    if op == BinOp::Sub && must_wrap(ty) && a.text == "0" {
        return unary(prelude, UnOp::Neg, ty, b);
    }
    let (wrapping, extremum) = match op {
        BinOp::Add if must_wrap(ty) => (Some(("add", "+")), None),
        BinOp::Sub if must_wrap(ty) => (Some(("sub", "-")), None),
        // Two of 16 bits would be multiplied as ints.
        BinOp::Mul if must_wrap(ty) || ty == Scalar::U16 => (Some(("mul", "*")), None),
        BinOp::Min if ty.is_float() => (None, Some(("min", "fmin"))),
        BinOp::Max if ty.is_float() => (None, Some(("max", "fmax"))),
        BinOp::Add
        | BinOp::Sub
        | BinOp::Mul
        | BinOp::Div
        | BinOp::Rem
        | BinOp::Min
        | BinOp::Max
        | BinOp::Pow
        | BinOp::Eq
        | BinOp::Ne
        | BinOp::Lt
        | BinOp::Le
        | BinOp::Gt
        | BinOp::Ge
        | BinOp::And
        | BinOp::Or
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor
        | BinOp::Shl
        | BinOp::Shr => (None, None),
    };
    let name = if let Some((name, sign)) = wrapping {
        let wide = if ty == Scalar::U16 {
            "uint32_t"
        } else {
            c_type(unsigned(ty))?
        };
        let letters = [
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('U', wide),
            ('F', name),
            ('O', sign),
        ];
        let full = format!("{name}_{ty}");
        prelude.add(&full, File::Simt, "wrap", &letters);
        full
    } else if let Some((name, function)) = extremum {
        let suffix = if ty == Scalar::F32 { "f" } else { "" };
        let (order, preferred) = match op {
            BinOp::Min => ("<", "signbit(a)"),
            _ => (">", "!signbit(a)"),
        };
        let letters = [
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('F', name),
            ('G', &format!("{function}{suffix}")),
            ('O', order),
            ('H', preferred),
        ];
        let full = format!("{name}_{ty}");
        prelude.add(&full, File::Simt, "extremum", &letters);
        full
    } else {
        return scalar::binary(prelude, op, ty, a, b);
    };
    Ok(Expr::call(&name, &[a.clone(), b.clone()]))
}

/// How values move between lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// From the lane that a form names.
    Lane,
    /// From the lane this number of lanes below.
    Up,
    /// From the lane this number of lanes above.
    Down,
}

impl Move {
    /// The prefix of the function's name.
    pub fn name(self) -> &'static str {
        match self {
            Move::Lane => "lane",
            Move::Up => "up",
            Move::Down => "down",
        }
    }
}

impl<L: Language> Simt<L> {
    /// The function for a move of values of a type.
    fn mover(&self, prelude: &mut Prelude, ty: Scalar, by: Move) -> Result<String, Fault> {
        let full = format!("{}_{ty}", by.name());
        if !prelude.has(&full) {
            self.language.mover(prelude, ty, by, self.lanes)?;
        }
        Ok(full)
    }

    /// The value of another lane.
    pub(super) fn shuffle(
        &self,
        cx: &mut Context<'_>,
        value: ValueId,
        from: &Form,
    ) -> Result<Expr, Fault> {
        let ty = cx.kernel.values[value.index()].ty;
        let a = cx.take(value);
        if self.lanes == 1 {
            return Ok(a);
        }
        let mover = self.mover(cx.prelude, ty, Move::Lane)?;
        let from = Expr::cast("int", &cx.form(from)?);
        Ok(Expr::call(&mover, &[a, from]))
    }

    pub(super) fn lane_shift(
        &mut self,
        cx: &mut Context<'_>,
        low: Option<ValueId>,
        high: Option<ValueId>,
        by: u32,
    ) -> Result<Expr, Fault> {
        let lanes = self.lanes;
        let ty = |cx: &Context<'_>, v: ValueId| cx.kernel.values[v.index()].ty;
        match (low, high) {
            (_, Some(high)) if by == 0 => {
                low.map(|v| cx.take(v));
                Ok(cx.take(high))
            }
            (Some(low), _) if by >= lanes => {
                high.map(|v| cx.take(v));
                Ok(cx.take(low))
            }
            (None, Some(only)) => {
                let mover = self.mover(cx.prelude, ty(cx, only), Move::Up)?;
                Ok(Expr::call(&mover, &[cx.take(only), number(by.into())?]))
            }
            (Some(only), None) => {
                let mover = self.mover(cx.prelude, ty(cx, only), Move::Down)?;
                let by = number((lanes - by.min(lanes)).into())?;
                Ok(Expr::call(&mover, &[cx.take(only), by]))
            }
            (Some(low), Some(high)) => {
                let ty = ty(cx, low);
                let mover = self.mover(cx.prelude, ty, Move::Lane)?;
                let lane = self.lane.clone();
                self.uses_lane = true;
                let (low, high) = (cx.take(low), cx.take(high));
                if low == high {
                    // A rotation.
                    let from = Expr::binary("+", &Expr::atom(lane), &number((lanes - by).into())?);
                    return Ok(Expr::call(&mover, &[low, from]));
                }
                let name = format!("lane_shift_{ty}");
                let letters = [
                    ('T', c_type(ty)?),
                    ('N', ty.name()),
                    ('L', &lanes.to_string()),
                ];
                cx.prelude.add(&name, File::Simt, "lane_shift", &letters);
                let by = number(by.into())?;
                Ok(Expr::call(&name, &[low, high, by, Expr::atom(lane)]))
            }
            (None, None) => Err(Fault::unsupported("a lane shift of no vector")),
        }
    }
}
