//! Values, and what every operator does to them.
//!
//! `systola_ir::scalar` states the rules; this file is their only implementation. What they leave
//! open is fixed here: `%` on floats keeps the sign of the dividend (C's `fmod`); `pow` on integers
//! wraps; a cast to `bool` compares with zero, so that NaN is true; f16 and bf16 convert and
//! compute through f32 and round once per operator; `min` and `max` on `bool` are `&&` and `||`.

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use systola_ir::{BinOp, Literal, Scalar, Type, UnOp};

/// One value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    F16(f16),
    BF16(bf16),
    F32(f32),
    F64(f64),
    Tuple(Arc<[Value]>),
}

/// Why an operator has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    #[error("integer division by zero in `{0}`")]
    DivisionByZero(&'static str),
    #[error("an integer is raised to the power {0}")]
    NegativeExponent(i64),
    #[error("`{op}` is not defined on {operands}")]
    Types { op: &'static str, operands: String },
}

impl Value {
    pub fn ty(&self) -> Type {
        match self {
            Value::Tuple(parts) => Type::Tuple(parts.iter().map(Value::ty).collect()),
            Value::Bool(_) => Scalar::Bool.into(),
            Value::I8(_) => Scalar::I8.into(),
            Value::I16(_) => Scalar::I16.into(),
            Value::I32(_) => Scalar::I32.into(),
            Value::I64(_) => Scalar::I64.into(),
            Value::U8(_) => Scalar::U8.into(),
            Value::U16(_) => Scalar::U16.into(),
            Value::U32(_) => Scalar::U32.into(),
            Value::U64(_) => Scalar::U64.into(),
            Value::F16(_) => Scalar::F16.into(),
            Value::BF16(_) => Scalar::BF16.into(),
            Value::F32(_) => Scalar::F32.into(),
            Value::F64(_) => Scalar::F64.into(),
        }
    }

    pub fn zero(ty: Scalar) -> Value {
        literal(ty, Literal::Int(0))
    }

    /// The value of an integer or `bool`; `None` for floats and tuples.
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            Value::Bool(x) => Some(x.into()),
            Value::I8(x) => Some(x.into()),
            Value::I16(x) => Some(x.into()),
            Value::I32(x) => Some(x.into()),
            Value::I64(x) => Some(x.into()),
            Value::U8(x) => Some(x.into()),
            Value::U16(x) => Some(x.into()),
            Value::U32(x) => Some(x.into()),
            Value::U64(x) => Some(x.into()),
            Value::F16(_) | Value::BF16(_) | Value::F32(_) | Value::F64(_) | Value::Tuple(_) => {
                None
            }
        }
    }

    /// The value of a float, exactly; `None` for all others.
    pub fn as_float(&self) -> Option<f64> {
        match *self {
            Value::F16(x) => Some(x.to_f64()),
            Value::BF16(x) => Some(x.to_f64()),
            Value::F32(x) => Some(x.into()),
            Value::F64(x) => Some(x),
            Value::Bool(_)
            | Value::I8(_)
            | Value::I16(_)
            | Value::I32(_)
            | Value::I64(_)
            | Value::U8(_)
            | Value::U16(_)
            | Value::U32(_)
            | Value::U64(_)
            | Value::Tuple(_) => None,
        }
    }

    /// The nearest f64 of any scalar.
    pub fn to_f64(&self) -> Option<f64> {
        self.as_float().or_else(|| self.as_int().map(|x| x as f64))
    }

    /// Equal to the last bit, NaN and the sign of zero included.
    pub fn is_identical(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::F16(a), Value::F16(b)) => a.to_bits() == b.to_bits(),
            (Value::BF16(a), Value::BF16(b)) => a.to_bits() == b.to_bits(),
            (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
            (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.is_identical(b))
            }
            (a, b) => a == b,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(x) => x.fmt(f),
            Value::I8(x) => x.fmt(f),
            Value::I16(x) => x.fmt(f),
            Value::I32(x) => x.fmt(f),
            Value::I64(x) => x.fmt(f),
            Value::U8(x) => x.fmt(f),
            Value::U16(x) => x.fmt(f),
            Value::U32(x) => x.fmt(f),
            Value::U64(x) => x.fmt(f),
            Value::F16(x) => write!(f, "{:?}", x.to_f32()),
            Value::BF16(x) => write!(f, "{:?}", x.to_f32()),
            Value::F32(x) => write!(f, "{x:?}"),
            Value::F64(x) => write!(f, "{x:?}"),
            Value::Tuple(parts) => {
                f.write_str("(")?;
                for (n, part) in parts.iter().enumerate() {
                    let comma = if n > 0 { ", " } else { "" };
                    write!(f, "{comma}{part}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// A written value, wrapped, rounded or saturated to its type.
pub fn literal(ty: Scalar, value: Literal) -> Value {
    match value {
        Literal::Bool(x) => int_to(ty, x.into()),
        Literal::Int(x) => int_to(ty, x),
        Literal::Float(x) => float_to(ty, x),
    }
}

/// The conversion `ty(value)`.
pub fn cast(ty: Scalar, value: &Value) -> Result<Value, OpError> {
    if let Some(x) = value.as_int() {
        Ok(int_to(ty, x))
    } else if let Some(x) = value.as_float() {
        Ok(float_to(ty, x))
    } else {
        Err(OpError::Types {
            op: ty.name(),
            operands: value.ty().to_string(),
        })
    }
}

fn int_to(ty: Scalar, x: i128) -> Value {
    match ty {
        Scalar::Bool => Value::Bool(x != 0),
        Scalar::I8 => Value::I8(x as i8),
        Scalar::I16 => Value::I16(x as i16),
        Scalar::I32 => Value::I32(x as i32),
        Scalar::I64 => Value::I64(x as i64),
        Scalar::U8 => Value::U8(x as u8),
        Scalar::U16 => Value::U16(x as u16),
        Scalar::U32 => Value::U32(x as u32),
        Scalar::U64 => Value::U64(x as u64),
        Scalar::F16 => Value::F16(f16::from_f32(x as f32)),
        Scalar::BF16 => Value::BF16(bf16::from_f32(x as f32)),
        Scalar::F32 => Value::F32(x as f32),
        Scalar::F64 => Value::F64(x as f64),
    }
}

fn float_to(ty: Scalar, x: f64) -> Value {
    match ty {
        Scalar::Bool => Value::Bool(x != 0.0),
        Scalar::I8 => Value::I8(x as i8),
        Scalar::I16 => Value::I16(x as i16),
        Scalar::I32 => Value::I32(x as i32),
        Scalar::I64 => Value::I64(x as i64),
        Scalar::U8 => Value::U8(x as u8),
        Scalar::U16 => Value::U16(x as u16),
        Scalar::U32 => Value::U32(x as u32),
        Scalar::U64 => Value::U64(x as u64),
        Scalar::F16 => Value::F16(f16::from_f32(x as f32)),
        Scalar::BF16 => Value::BF16(bf16::from_f32(x as f32)),
        Scalar::F32 => Value::F32(x as f32),
        Scalar::F64 => Value::F64(x),
    }
}

/// Signed and unsigned integers differ in these two only.
trait Magnitude {
    fn magnitude(self) -> Self;
}

macro_rules! magnitude {
    ($($signed:ty, $unsigned:ty;)*) => {$(
        impl Magnitude for $signed {
            fn magnitude(self) -> Self {
                self.wrapping_abs()
            }
        }
        impl Magnitude for $unsigned {
            fn magnitude(self) -> Self {
                self
            }
        }
    )*};
}
magnitude! { i8, u8; i16, u16; i32, u32; i64, u64; }

/// The result of an operator of one operand.
pub fn unary(op: UnOp, a: &Value) -> Result<Value, OpError> {
    let undefined = || OpError::Types {
        op: op.name(),
        operands: a.ty().to_string(),
    };
    macro_rules! int {
        ($variant:ident, $x:expr) => {
            match op {
                UnOp::Neg => Ok(Value::$variant($x.wrapping_neg())),
                UnOp::Not => Ok(Value::$variant(!$x)),
                UnOp::Abs => Ok(Value::$variant($x.magnitude())),
                UnOp::Sqrt
                | UnOp::Rsqrt
                | UnOp::Exp
                | UnOp::Log
                | UnOp::Floor
                | UnOp::Ceil
                | UnOp::Sin
                | UnOp::Cos
                | UnOp::Tanh => Err(undefined()),
            }
        };
    }
    macro_rules! float {
        ($x:expr, $wrap:expr) => {
            match op {
                UnOp::Neg => Ok($wrap(-$x)),
                UnOp::Abs => Ok($wrap($x.abs())),
                UnOp::Sqrt => Ok($wrap($x.sqrt())),
                UnOp::Rsqrt => Ok($wrap($x.sqrt().recip())),
                UnOp::Exp => Ok($wrap($x.exp())),
                UnOp::Log => Ok($wrap($x.ln())),
                UnOp::Floor => Ok($wrap($x.floor())),
                UnOp::Ceil => Ok($wrap($x.ceil())),
                UnOp::Sin => Ok($wrap($x.sin())),
                UnOp::Cos => Ok($wrap($x.cos())),
                UnOp::Tanh => Ok($wrap($x.tanh())),
                UnOp::Not => Err(undefined()),
            }
        };
    }
    match *a {
        Value::Bool(x) if op == UnOp::Not => Ok(Value::Bool(!x)),
        Value::Bool(_) | Value::Tuple(_) => Err(undefined()),
        Value::I8(x) => int!(I8, x),
        Value::I16(x) => int!(I16, x),
        Value::I32(x) => int!(I32, x),
        Value::I64(x) => int!(I64, x),
        Value::U8(x) => int!(U8, x),
        Value::U16(x) => int!(U16, x),
        Value::U32(x) => int!(U32, x),
        Value::U64(x) => int!(U64, x),
        Value::F16(x) => float!(x.to_f32(), |y| Value::F16(f16::from_f32(y))),
        Value::BF16(x) => float!(x.to_f32(), |y| Value::BF16(bf16::from_f32(y))),
        Value::F32(x) => float!(x, Value::F32),
        Value::F64(x) => float!(x, Value::F64),
    }
}

/// The result of an operator of two operands of one type.
pub fn binary(op: BinOp, a: &Value, b: &Value) -> Result<Value, OpError> {
    macro_rules! int {
        ($variant:ident, $x:expr, $y:expr) => {{
            let (x, y) = ($x, $y);
            Ok(Value::$variant(match op {
                BinOp::Add => x.wrapping_add(y),
                BinOp::Sub => x.wrapping_sub(y),
                BinOp::Mul => x.wrapping_mul(y),
                BinOp::Div | BinOp::Rem if y == 0 => {
                    return Err(OpError::DivisionByZero(op.name()));
                }
                BinOp::Div => floor_div(x.into(), y.into()) as _,
                BinOp::Rem => floor_rem(x.into(), y.into()) as _,
                BinOp::Min => x.min(y),
                BinOp::Max => x.max(y),
                BinOp::Pow => {
                    let exponent =
                        u64::try_from(y).map_err(|_| OpError::NegativeExponent(y as i64))?;
                    let (mut base, mut exponent, mut power) = (x, exponent, 1);
                    while exponent > 0 {
                        if exponent & 1 == 1 {
                            power = base.wrapping_mul(power);
                        }
                        base = base.wrapping_mul(base);
                        exponent >>= 1;
                    }
                    power
                }
                BinOp::BitAnd => x & y,
                BinOp::BitOr => x | y,
                BinOp::BitXor => x ^ y,
                // The wrapping shifts take the count modulo the width, and the low 32 bits of a
                // negative count have the right remainder.
                BinOp::Shl => x.wrapping_shl(y as u32),
                BinOp::Shr => x.wrapping_shr(y as u32),
                BinOp::Eq => return Ok(Value::Bool(x == y)),
                BinOp::Ne => return Ok(Value::Bool(x != y)),
                BinOp::Lt => return Ok(Value::Bool(x < y)),
                BinOp::Le => return Ok(Value::Bool(x <= y)),
                BinOp::Gt => return Ok(Value::Bool(x > y)),
                BinOp::Ge => return Ok(Value::Bool(x >= y)),
                BinOp::And | BinOp::Or => return Err(undefined(op, a, b)),
            }))
        }};
    }
    macro_rules! float {
        ($x:expr, $y:expr, $wrap:expr) => {{
            let (x, y) = ($x, $y);
            Ok($wrap(match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                BinOp::Rem => x % y,
                BinOp::Min if x < y || y.is_nan() || (x == y && x.is_sign_negative()) => x,
                BinOp::Max if x > y || y.is_nan() || (x == y && x.is_sign_positive()) => x,
                BinOp::Min | BinOp::Max => y,
                BinOp::Pow => x.powf(y),
                BinOp::Eq => return Ok(Value::Bool(x == y)),
                BinOp::Ne => return Ok(Value::Bool(x != y)),
                BinOp::Lt => return Ok(Value::Bool(x < y)),
                BinOp::Le => return Ok(Value::Bool(x <= y)),
                BinOp::Gt => return Ok(Value::Bool(x > y)),
                BinOp::Ge => return Ok(Value::Bool(x >= y)),
                BinOp::And
                | BinOp::Or
                | BinOp::BitAnd
                | BinOp::BitOr
                | BinOp::BitXor
                | BinOp::Shl
                | BinOp::Shr => return Err(undefined(op, a, b)),
            }))
        }};
    }
    match (a, b) {
        (Value::F32(x), Value::F32(y)) => float!(*x, *y, Value::F32),
        (Value::F64(x), Value::F64(y)) => float!(*x, *y, Value::F64),
        (Value::I64(x), Value::I64(y)) => int!(I64, *x, *y),
        (Value::I32(x), Value::I32(y)) => int!(I32, *x, *y),
        (Value::I16(x), Value::I16(y)) => int!(I16, *x, *y),
        (Value::I8(x), Value::I8(y)) => int!(I8, *x, *y),
        (Value::U64(x), Value::U64(y)) => int!(U64, *x, *y),
        (Value::U32(x), Value::U32(y)) => int!(U32, *x, *y),
        (Value::U16(x), Value::U16(y)) => int!(U16, *x, *y),
        (Value::U8(x), Value::U8(y)) => int!(U8, *x, *y),
        (Value::F16(x), Value::F16(y)) => {
            float!(x.to_f32(), y.to_f32(), |z| Value::F16(f16::from_f32(z)))
        }
        (Value::BF16(x), Value::BF16(y)) => {
            float!(x.to_f32(), y.to_f32(), |z| Value::BF16(bf16::from_f32(z)))
        }
        (Value::Bool(x), Value::Bool(y)) => Ok(Value::Bool(match op {
            BinOp::And | BinOp::BitAnd | BinOp::Min => x & y,
            BinOp::Or | BinOp::BitOr | BinOp::Max => x | y,
            BinOp::BitXor | BinOp::Ne => x != y,
            BinOp::Eq => x == y,
            BinOp::Lt => !x & y,
            BinOp::Le => !x | y,
            BinOp::Gt => x & !y,
            BinOp::Ge => x | !y,
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::Rem
            | BinOp::Pow
            | BinOp::Shl
            | BinOp::Shr => return Err(undefined(op, a, b)),
        })),
        _ => Err(undefined(op, a, b)),
    }
}

/// The neutral element of an operator, where a reduction over nothing has a value.
pub fn identity(op: BinOp, ty: Scalar) -> Option<Value> {
    match (op, ty) {
        (BinOp::Min, Scalar::Bool) => Some(Value::Bool(true)),
        (BinOp::Max, Scalar::Bool) => Some(Value::Bool(false)),
        _ => Some(literal(ty, op.identity(ty)?)),
    }
}

fn undefined(op: BinOp, a: &Value, b: &Value) -> OpError {
    OpError::Types {
        op: op.name(),
        operands: format!("{} and {}", a.ty(), b.ty()),
    }
}

fn floor_div(x: i128, y: i128) -> i128 {
    let quotient = x / y;
    quotient - i128::from(x % y != 0 && (x < 0) != (y < 0))
}

fn floor_rem(x: i128, y: i128) -> i128 {
    x - y * floor_div(x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(op: BinOp, a: Value, b: Value, expect: Value) {
        let found = binary(op, &a, &b);
        assert!(
            found.as_ref().is_ok_and(|v| v.is_identical(&expect)),
            "{a:?} {} {b:?} = {found:?}, expected {expect:?}",
            op.name()
        );
    }

    /// Every operator on every pair of these, against Rust on the type itself.
    macro_rules! check_ints {
        ($($t:ident $variant:ident),*) => {$({
            let samples = [
                <$t>::MIN, <$t>::MIN + 1, <$t>::MAX, <$t>::MAX - 1,
                (0 as $t).wrapping_sub(7), (0 as $t).wrapping_sub(1), 0, 1, 2, 3, 5, 7, 100,
            ];
            for x in samples {
                for y in samples {
                    let check = |op, expect| check(op, Value::$variant(x), Value::$variant(y), expect);
                    check(BinOp::Add, Value::$variant(x.wrapping_add(y)));
                    check(BinOp::Sub, Value::$variant(x.wrapping_sub(y)));
                    check(BinOp::Mul, Value::$variant(x.wrapping_mul(y)));
                    check(BinOp::Min, Value::$variant(if x < y { x } else { y }));
                    check(BinOp::Max, Value::$variant(if x > y { x } else { y }));
                    check(BinOp::BitAnd, Value::$variant(x & y));
                    check(BinOp::BitOr, Value::$variant(x | y));
                    check(BinOp::BitXor, Value::$variant(x ^ y));
                    let count = (y as i128).rem_euclid(<$t>::BITS as i128) as u32;
                    check(BinOp::Shl, Value::$variant(x << count));
                    check(BinOp::Shr, Value::$variant(x >> count));
                    check(BinOp::Eq, Value::Bool(x == y));
                    check(BinOp::Ne, Value::Bool(x != y));
                    check(BinOp::Lt, Value::Bool(x < y));
                    check(BinOp::Le, Value::Bool(x <= y));
                    check(BinOp::Gt, Value::Bool(x > y));
                    check(BinOp::Ge, Value::Bool(x >= y));
                    if y != 0 {
                        let quotient = (x as f64 / y as f64).floor();
                        // f64 holds these quotients exactly up to 32 bits.
                        if <$t>::BITS <= 32 {
                            check(BinOp::Div, Value::$variant(quotient as i128 as $t));
                        }
                        let rest = binary(BinOp::Rem, &Value::$variant(x), &Value::$variant(y)).unwrap();
                        let rest = rest.as_int().unwrap();
                        let divisor = y as i128;
                        assert!(if divisor > 0 { 0 <= rest && rest < divisor } else { divisor < rest && rest <= 0 });
                        assert_eq!((x as i128 - rest) % divisor, 0);
                    } else {
                        for op in [BinOp::Div, BinOp::Rem] {
                            let found = binary(op, &Value::$variant(x), &Value::$variant(y));
                            assert_eq!(found, Err(OpError::DivisionByZero(op.name())));
                        }
                    }
                    if (0..=100).contains(&y) {
                        let power = (0..y as u32).fold(1 as $t, |p, _| p.wrapping_mul(x));
                        check(BinOp::Pow, Value::$variant(power));
                    }
                }
                let un = |op| unary(op, &Value::$variant(x)).unwrap();
                assert_eq!(un(UnOp::Neg), Value::$variant(x.wrapping_neg()));
                assert_eq!(un(UnOp::Not), Value::$variant(!x));
                assert_eq!(un(UnOp::Abs), Value::$variant((x as i128).unsigned_abs() as $t));
            }
        })*};
    }

    #[test]
    fn integers_wrap_and_round_down() {
        check_ints!(i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64);
        check(BinOp::Div, Value::I32(-7), Value::I32(2), Value::I32(-4));
        check(BinOp::Rem, Value::I32(-7), Value::I32(2), Value::I32(1));
        check(BinOp::Rem, Value::I32(7), Value::I32(-2), Value::I32(-1));
        check(
            BinOp::Div,
            Value::I64(i64::MIN),
            Value::I64(-1),
            Value::I64(i64::MIN),
        );
        let power = binary(BinOp::Pow, &Value::I8(2), &Value::I8(-1));
        assert_eq!(power, Err(OpError::NegativeExponent(-1)));
    }

    #[test]
    fn floats_follow_ieee() {
        let samples = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            1e30,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        // A total order, in which -0.0 is less than 0.0, on all but NaN.
        macro_rules! least {
            ($a:expr, $b:expr) => {{
                let (a, b) = ($a, $b);
                if b.is_nan() || (!a.is_nan() && a.total_cmp(&b).is_le()) {
                    a
                } else {
                    b
                }
            }};
        }
        type Case = (BinOp, fn(f32, f32) -> f32, fn(f64, f64) -> f64);
        let cases: [Case; 8] = [
            (BinOp::Add, |a, b| a + b, |a, b| a + b),
            (BinOp::Sub, |a, b| a - b, |a, b| a - b),
            (BinOp::Mul, |a, b| a * b, |a, b| a * b),
            (BinOp::Div, |a, b| a / b, |a, b| a / b),
            (BinOp::Rem, |a, b| a % b, |a, b| a % b),
            (BinOp::Min, |a, b| least!(a, b), |a, b| least!(a, b)),
            (BinOp::Max, |a, b| -least!(-a, -b), |a, b| -least!(-a, -b)),
            (BinOp::Pow, f32::powf, f64::powf),
        ];
        for x in samples {
            for y in samples {
                for (op, f, g) in cases {
                    let (a, b) = (x as f32, y as f32);
                    check(op, Value::F32(a), Value::F32(b), Value::F32(f(a, b)));
                    check(op, Value::F64(x), Value::F64(y), Value::F64(g(x, y)));
                    let (h, k) = (f16::from_f32(a), f16::from_f32(b));
                    let rounded = f16::from_f32(f(h.to_f32(), k.to_f32()));
                    check(op, Value::F16(h), Value::F16(k), Value::F16(rounded));
                    let (h, k) = (bf16::from_f32(a), bf16::from_f32(b));
                    let rounded = bf16::from_f32(f(h.to_f32(), k.to_f32()));
                    check(op, Value::BF16(h), Value::BF16(k), Value::BF16(rounded));
                }
                check(BinOp::Lt, Value::F64(x), Value::F64(y), Value::Bool(x < y));
                check(BinOp::Ne, Value::F64(x), Value::F64(y), Value::Bool(x != y));
            }
        }
        check(
            BinOp::Min,
            Value::F32(f32::NAN),
            Value::F32(2.0),
            Value::F32(2.0),
        );
        check(
            BinOp::Max,
            Value::F32(2.0),
            Value::F32(f32::NAN),
            Value::F32(2.0),
        );
        assert_eq!(
            unary(UnOp::Sqrt, &Value::F64(2.0)),
            Ok(Value::F64(2f64.sqrt()))
        );
        assert_eq!(
            unary(UnOp::Exp, &Value::F32(1.0)),
            Ok(Value::F32(1f32.exp()))
        );
        assert_eq!(
            unary(UnOp::Log, &Value::F32(3.0)),
            Ok(Value::F32(3f32.ln()))
        );
        for (op, expect) in [
            (UnOp::Rsqrt, 1.0 / 2.25f64.sqrt()),
            (UnOp::Floor, 2.0),
            (UnOp::Ceil, 3.0),
            (UnOp::Sin, 2.25f64.sin()),
            (UnOp::Cos, 2.25f64.cos()),
            (UnOp::Tanh, 2.25f64.tanh()),
        ] {
            assert_eq!(unary(op, &Value::F64(2.25)), Ok(Value::F64(expect)));
            assert!(unary(op, &Value::I32(2)).is_err());
        }
        let down = unary(UnOp::Floor, &Value::F32(-0.5));
        assert_eq!(down, Ok(Value::F32(-1.0)));
        let up = unary(UnOp::Ceil, &Value::F32(-0.5)).expect("defined");
        assert!(up.is_identical(&Value::F32(-0.0)));
    }

    #[test]
    fn bools_have_their_own_operators() {
        for x in [false, true] {
            for y in [false, true] {
                let check =
                    |op, expect| check(op, Value::Bool(x), Value::Bool(y), Value::Bool(expect));
                check(BinOp::And, x && y);
                check(BinOp::Or, x || y);
                check(BinOp::BitXor, x ^ y);
                check(BinOp::Min, x.min(y));
                check(BinOp::Max, x.max(y));
                #[expect(clippy::bool_comparison, reason = "the order itself is tested")]
                {
                    check(BinOp::Lt, x < y);
                    check(BinOp::Le, x <= y);
                    check(BinOp::Gt, x > y);
                    check(BinOp::Ge, x >= y);
                }
                assert!(binary(BinOp::Add, &Value::Bool(x), &Value::Bool(y)).is_err());
            }
        }
    }

    #[test]
    fn casts_wrap_saturate_and_round() {
        let check = |ty, from: Value, expect: Value| assert_eq!(cast(ty, &from), Ok(expect));
        check(Scalar::I8, Value::I32(300), Value::I8(44));
        check(Scalar::U8, Value::I32(-1), Value::U8(255));
        check(Scalar::U64, Value::I8(-1), Value::U64(u64::MAX));
        check(Scalar::I8, Value::F32(300.0), Value::I8(127));
        check(Scalar::U32, Value::F64(-3.0), Value::U32(0));
        check(Scalar::I32, Value::F64(-3.9), Value::I32(-3));
        check(Scalar::I32, Value::F32(f32::NAN), Value::I32(0));
        check(Scalar::Bool, Value::F32(0.5), Value::Bool(true));
        check(Scalar::F32, Value::Bool(true), Value::F32(1.0));
        check(Scalar::F16, Value::I32(70000), Value::F16(f16::INFINITY));
        check(
            Scalar::F64,
            Value::BF16(bf16::from_f32(1.5)),
            Value::F64(1.5),
        );
        assert!(cast(Scalar::F32, &Value::Tuple(Arc::new([]))).is_err());
        assert_eq!(literal(Scalar::U8, Literal::Int(-1)), Value::U8(255));
        assert_eq!(literal(Scalar::F32, Literal::Int(3)), Value::F32(3.0));
    }

    #[test]
    fn identities_are_neutral() {
        let ops = [
            BinOp::Add,
            BinOp::Mul,
            BinOp::Min,
            BinOp::Max,
            BinOp::And,
            BinOp::Or,
            BinOp::BitAnd,
            BinOp::BitOr,
            BinOp::BitXor,
        ];
        for ty in Scalar::ALL {
            for x in [0, 1, 5] {
                let x = literal(ty, Literal::Int(x));
                for op in ops {
                    if binary(op, &x, &x).is_ok() {
                        let neutral = identity(op, ty).unwrap();
                        assert_eq!(
                            binary(op, &neutral, &x),
                            Ok(x.clone()),
                            "{} {ty}",
                            op.name()
                        );
                    }
                }
            }
        }
    }
}
