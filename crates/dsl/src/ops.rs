//! Operators on expressions, by value and by reference. Either operand can be a number.

use std::ops;

use systola_ir::{BinOp, Scalar, UnOp};
use systola_surface::tree::ExprKind;

use crate::expr::{Expr, binary};

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Self {
        expr.clone()
    }
}

impl From<bool> for Expr {
    fn from(value: bool) -> Self {
        ExprKind::Bool(value).into()
    }
}

/// Numbers without a type take the type of the other operand.
macro_rules! untyped {
    ($node:ident as $as:ty: $($ty:ty),*) => {$(
        impl From<$ty> for Expr {
            fn from(value: $ty) -> Self {
                ExprKind::$node(<$as>::from(value), None).into()
            }
        }
    )*};
}

untyped! { Int as i128: i32, i64, u32, u64, i128 }
untyped! { Float as f64: f32, f64 }

/// A number with a type: `0i32`.
pub fn int(value: i128, ty: Scalar) -> Expr {
    if ty.is_float() {
        return ExprKind::Float(value as f64, Some(ty)).into();
    }
    ExprKind::Int(value, Some(ty)).into()
}

/// A number with a type: `1.5f32`.
pub fn float(value: f64, ty: Scalar) -> Expr {
    ExprKind::Float(value, Some(ty)).into()
}

macro_rules! binary_operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<R: Into<Expr>> ops::$trait<R> for Expr {
            type Output = Expr;

            fn $method(self, other: R) -> Expr {
                binary(BinOp::$op, self, other)
            }
        }

        impl<R: Into<Expr>> ops::$trait<R> for &Expr {
            type Output = Expr;

            fn $method(self, other: R) -> Expr {
                binary(BinOp::$op, self, other)
            }
        }

        binary_operators! { @numbers $trait $method $op: i32, i64, f32, f64 }
    )*};
    (@numbers $trait:ident $method:ident $op:ident: $($ty:ty),*) => {$(
        impl ops::$trait<Expr> for $ty {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                binary(BinOp::$op, self, other)
            }
        }

        impl ops::$trait<&Expr> for $ty {
            type Output = Expr;

            fn $method(self, other: &Expr) -> Expr {
                binary(BinOp::$op, self, other)
            }
        }
    )*};
}

binary_operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Rem;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl Shl;
    Shr shr Shr;
}

impl ops::Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        match self.0.kind {
            // As in the text language, a minus sign before a number is a part of it.
            ExprKind::Int(value, ty) => match value.checked_neg() {
                Some(value) => ExprKind::Int(value, ty).into(),
                None => ExprKind::Unary(UnOp::Neg, Box::new(self.0)).into(),
            },
            ExprKind::Float(value, ty) => ExprKind::Float(-value, ty).into(),
            _ => ExprKind::Unary(UnOp::Neg, Box::new(self.0)).into(),
        }
    }
}

impl ops::Neg for &Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        -self.clone()
    }
}

impl ops::Not for Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        ExprKind::Unary(UnOp::Not, Box::new(self.0)).into()
    }
}

impl ops::Not for &Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        !self.clone()
    }
}
