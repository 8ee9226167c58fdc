//! Reads at computed indices.
//!
//! Each index is clamped to its axis, so that no index reads outside the array. Short indices
//! suffice for a small array, and a register holds more of them: 32 bits for elements of 32 bits,
//! 16 bits for narrower ones. Whether an array is small is decided at run time, unless its extents
//! are numbers.

use systola_ir::kernel::Memory;
use systola_ir::{Form, Literal, Scalar};

use super::lanes::Vector;
use super::memory::both;
use super::transfer::Transfer;
use super::vector::Operand;
use super::{Cpu, Rep};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::{Stride, number};
use crate::prelude::File;
use crate::scalar;

/// Do short indices reach all elements of the array?
enum Reach {
    Near,
    Far,
    /// This expression decides at run time.
    Test(Expr),
}

impl Cpu {
    pub(super) fn lookup(
        &mut self,
        cx: &mut Context<'_>,
        memory: Memory,
        index: &[Operand],
        ty: Scalar,
    ) -> Result<(Expr, Rep), Fault> {
        let array = Expr::atom(cx.pointer(memory));
        let element = Self::memory_type(cx, memory);
        let vector = Vector::new(element, self.lanes);
        if index.iter().all(|i| i.rep != Rep::Vector) {
            let at = self.address(cx, memory, index, Scalar::I64)?;
            let there = Expr::index(&array.text, &at);
            let e = self.unless_empty(cx, memory, there, Rep::Scalar, element)?;
            return Ok(self.as_value(e, Rep::Scalar, ty));
        }
        let (short, most) = if element.bits() < 32 {
            (Scalar::U16, 1 << 16)
        } else {
            (Scalar::I32, i128::from(i32::MAX))
        };
        let reach = self.reach(cx, memory, vector, most)?;
        let near = match &reach {
            Reach::Far => None,
            Reach::Near | Reach::Test(_) => {
                let at = self.address(cx, memory, index, short)?;
                let function = Transfer::Lookup.function(cx.prelude, vector)?;
                Some(Expr::call(&function, &[array.clone(), at]))
            }
        };
        let far = match &reach {
            Reach::Near => None,
            Reach::Far | Reach::Test(_) => {
                let at = self.address(cx, memory, index, Scalar::I64)?;
                let there = if near.is_some() {
                    let function = Transfer::LookupFar.function(cx.prelude, vector)?;
                    let wide = Vector::new(Scalar::I64, self.lanes).name(cx.prelude)?;
                    let at = Expr::compound(&format!("const {wide}[1]"), &at);
                    Expr::call(&function, &[array, at])
                } else {
                    let function = Transfer::GatherAt.function(cx.prelude, vector)?;
                    Expr::call(&function, &[array, at])
                };
                Some(self.unless_empty(cx, memory, there, Rep::Vector, element)?)
            }
        };
        let e = match (reach, near, far) {
            (Reach::Test(test), Some(near), Some(far)) => Expr::ternary(&test, &near, &far),
            (_, Some(only), None) | (_, None, Some(only)) => only,
            _ => unreachable!("a lookup is near or far"),
        };
        Ok(self.as_value(e, Rep::Vector, ty))
    }

    /// The position of the element, in integers of type `ty`.
    fn address(
        &self,
        cx: &mut Context<'_>,
        memory: Memory,
        index: &[Operand],
        ty: Scalar,
    ) -> Result<Expr, Fault> {
        let wide = Vector::new(ty, self.lanes);
        let c = scalar::c_type(ty)?;
        let short = |e: &Expr| match ty {
            Scalar::I64 => e.clone(),
            _ => Expr::cast(c, e),
        };
        // The uniform terms are added up separately, in 64 bits.
        let mut uniform: Option<Expr> = None;
        let mut varying: Option<Expr> = None;
        let extents = cx.extents(memory);
        for (axis, (i, extent)) in index.iter().zip(&extents).enumerate() {
            let extent = cx.form(extent)?;
            let stride = match cx.stride(memory, axis)? {
                Stride::Const(1) => None,
                Stride::Const(c) => Some(number(c)?),
                Stride::Named(stride) => Some(Expr::atom(stride)),
            };
            let (sum, inside, stride) = if i.rep == Rep::Vector {
                let name = format!("clamp_index_{}", wide.name(cx.prelude)?);
                wide.add_from(cx.prelude, File::Memory, &name, "clamp_index", &[])?;
                let i = if i.ty == ty {
                    i.expr.clone()
                } else {
                    let ty = Expr::atom(wide.name(cx.prelude)?);
                    Expr::call("__builtin_convertvector", &[i.expr.clone(), ty])
                };
                let inside = Expr::call(&name, &[i, extent]);
                (&mut varying, inside, stride.map(|s| short(&s)))
            } else {
                cx.prelude
                    .add("clamp_index", File::Scalar, "clamp_index", &[]);
                let inside = Expr::call("clamp_index", &[i.expr.clone(), extent]);
                (&mut uniform, inside, stride)
            };
            let term = match stride {
                None => inside,
                Some(stride) => Expr::binary("*", &stride, &inside),
            };
            *sum = Some(match sum.take() {
                None => term,
                Some(so_far) => Expr::binary("+", &so_far, &term),
            });
        }
        Ok(match (uniform, varying) {
            (None, None) => Expr::atom("0"),
            (Some(one), None) | (None, Some(one)) => one,
            (Some(uniform), Some(varying)) => Expr::binary("+", &short(&uniform), &varying),
        })
    }

    /// Decides how the elements are reached. They are read four bytes at a time, so the array must
    /// have at least four bytes.
    fn reach(
        &mut self,
        cx: &mut Context<'_>,
        memory: Memory,
        vector: Vector,
        most: i128,
    ) -> Result<Reach, Fault> {
        let bytes = vector.ty.bits() / 8;
        if bytes > 4 || !vector.lanes.is_multiple_of(8) {
            return Ok(Reach::Far);
        }
        let least = i128::from(4 / bytes);
        let extents = cx.extents(memory);
        let volume = extents
            .iter()
            .try_fold(1, |product: i128, e| product.checked_mul(e.as_constant()?));
        if let Some(volume) = volume {
            let near = extents.iter().all(is_positive) && (least..=most).contains(&volume);
            return Ok(if near { Reach::Near } else { Reach::Far });
        }
        if let Some(name) = self.near.get(&memory) {
            return Ok(Reach::Test(Expr::atom(name.clone())));
        }
        let name = cx.names.claim(&format!("{}_near", cx.memory_name(memory)));
        let volume = cx.volume(memory)?;
        let enough = Expr::binary(">=", &volume, &number(least)?);
        let few = Expr::binary("<=", &volume, &number(most)?);
        let test = Expr::binary("&&", &enough, &few);
        cx.constants
            .push(format!("const bool {name} = {};", test.text));
        self.near.insert(memory, name.clone());
        Ok(Reach::Test(Expr::atom(name)))
    }

    /// A read that is skipped for an array without elements: not even its first element may be
    /// read.
    fn unless_empty(
        &self,
        cx: &mut Context<'_>,
        memory: Memory,
        there: Expr,
        rep: Rep,
        element: Scalar,
    ) -> Result<Expr, Fault> {
        let mut unsure = cx.extents(memory);
        unsure.retain(|extent| !is_positive(extent));
        unsure.dedup();
        let mut some: Option<Expr> = None;
        for extent in &unsure {
            let positive = Expr::binary(">", &cx.form(extent)?, &Expr::atom("0"));
            some = Some(both(some, positive));
        }
        let Some(some) = some else {
            return Ok(there);
        };
        let zero = Operand {
            expr: scalar::literal(cx.prelude, element, Literal::Int(0))?,
            ty: element,
            rep: Rep::Scalar,
            literal: None,
        };
        if rep == Rep::Scalar {
            return scalar::choice(element, &some, &there, &zero.expr);
        }
        let zero = self.vector(cx, &zero)?;
        Ok(Expr::ternary(&some, &there, &zero))
    }
}

fn is_positive(extent: &Form) -> bool {
    extent.as_constant().is_some_and(|c| c > 0)
}
