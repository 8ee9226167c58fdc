//! Element types, literals and operators.
//!
//! This file defines the meaning of the operators: integers wrap in two's complement; `/` and `%`
//! on integers round towards minus infinity, in an index and in a value alike; a shift counts
//! modulo the width; a cast between integers keeps the low bits; a cast from a float saturates (NaN
//! becomes 0); `min` and `max` on floats ignore one NaN and treat −0.0 as less than 0.0, so that
//! the order of their operands does not matter. Integer division by zero and a table lookup out of
//! range are run-time errors.
//!
//! `+ - * / %`, `sqrt`, `abs`, `min`, `max`, `floor` and `ceil` of floats are exact or rounded
//! once; a product may be fused with a sum. `rsqrt exp log sin cos tanh pow` are accurate to 2
//! units in the last place on CPUs, for all numbers; on other devices they are as accurate as the
//! device's library.

use std::fmt;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Scalar {
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }

    pub fn is_int(self) -> bool {
        !self.is_float() && self != Scalar::Bool
    }

    pub fn is_signed_int(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Width in bits; a `bool` is stored in a byte.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 64,
        }
    }

    /// Least and greatest value, for integer types.
    pub fn int_range(self) -> Option<(i128, i128)> {
        let bits = self.bits();
        if self.is_signed_int() {
            Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        } else if self.is_int() {
            Some((0, (1 << bits) - 1))
        } else {
            None
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a variable: a scalar, or a tuple that is carried as one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Scalar(Scalar),
    Tuple(Vec<Type>),
}

impl Type {
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(*s),
            Type::Tuple(_) => None,
        }
    }

    /// How many machine registers hold one value of this type.
    pub fn n_scalars(&self) -> usize {
        match self {
            Type::Scalar(_) => 1,
            Type::Tuple(parts) => parts.iter().map(Type::n_scalars).sum(),
        }
    }
}

impl From<Scalar> for Type {
    fn from(s: Scalar) -> Self {
        Type::Scalar(s)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(s) => s.fmt(f),
            Type::Tuple(parts) => {
                f.write_str("(")?;
                for (n, part) in parts.iter().enumerate() {
                    if n > 0 {
                        f.write_str(", ")?;
                    }
                    part.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// A literal as written, before it is rounded or wrapped to its type.
///
/// Floats compare by their bits, so that a program with a NaN equals itself.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    Bool(bool),
    Int(i128),
    Float(f64),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl fmt::Display for Literal {
    /// As the text language writes it; a float always shows that it is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Float(x) if x.is_nan() => f.write_str("nan"),
            Literal::Float(x) if x.is_infinite() => {
                f.write_str(if *x > 0.0 { "inf" } else { "-inf" })
            }
            Literal::Float(x) => write!(f, "{x:?}"),
        }
    }
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    Neg,
    /// Logical on `bool`, bitwise on integers.
    Not,
    Abs,
    Sqrt,
    /// 1 / √a
    Rsqrt,
    Exp,
    Log,
    /// To the integer below.
    Floor,
    /// To the integer above.
    Ceil,
    Sin,
    Cos,
    Tanh,
}

impl UnOp {
    /// Those that are written like a function.
    pub const FUNCTIONS: [UnOp; 10] = [
        UnOp::Abs,
        UnOp::Sqrt,
        UnOp::Rsqrt,
        UnOp::Exp,
        UnOp::Log,
        UnOp::Floor,
        UnOp::Ceil,
        UnOp::Sin,
        UnOp::Cos,
        UnOp::Tanh,
    ];

    /// The function of this name.
    pub fn function(name: &str) -> Option<UnOp> {
        UnOp::FUNCTIONS.into_iter().find(|op| op.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            UnOp::Neg => "-",
            UnOp::Not => "!",
            UnOp::Abs => "abs",
            UnOp::Sqrt => "sqrt",
            UnOp::Rsqrt => "rsqrt",
            UnOp::Exp => "exp",
            UnOp::Log => "log",
            UnOp::Floor => "floor",
            UnOp::Ceil => "ceil",
            UnOp::Sin => "sin",
            UnOp::Cos => "cos",
            UnOp::Tanh => "tanh",
        }
    }
}

/// Operators of two operands of the same type (also the count of a shift).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    Pow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `&&`, on `bool`.
    And,
    /// `||`, on `bool`.
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

impl BinOp {
    pub fn name(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            BinOp::Min => "min",
            BinOp::Max => "max",
            BinOp::Pow => "pow",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::And => "&&",
            BinOp::Or => "||",
            BinOp::BitAnd => "&",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
        }
    }

    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
        )
    }

    /// Can a `reduce` use it? Such operators are associative and commutative in exact arithmetic.
    pub fn is_reduction(self) -> bool {
        matches!(
            self,
            BinOp::Add
                | BinOp::Mul
                | BinOp::Min
                | BinOp::Max
                | BinOp::And
                | BinOp::Or
                | BinOp::BitAnd
                | BinOp::BitOr
                | BinOp::BitXor
        )
    }

    /// Is regrouping and reordering exact on this type, without a promise by the user? It is for
    /// wrapping integer arithmetic and `min`/`max`, and not for float sums.
    pub fn is_exactly_reorderable(self, ty: Scalar) -> bool {
        match self {
            BinOp::Add | BinOp::Mul => ty.is_int(),
            BinOp::Min | BinOp::Max => true,
            BinOp::And | BinOp::Or => ty == Scalar::Bool,
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => !ty.is_float(),
            _ => false,
        }
    }

    /// The neutral element on a type, where a `reduce` over nothing has a value.
    pub fn identity(self, ty: Scalar) -> Option<Literal> {
        let (least, greatest) = match ty.int_range() {
            Some((least, greatest)) => (Literal::Int(least), Literal::Int(greatest)),
            None if ty == Scalar::Bool => (Literal::Bool(false), Literal::Bool(true)),
            None => (
                Literal::Float(f64::NEG_INFINITY),
                Literal::Float(f64::INFINITY),
            ),
        };
        let number = |n: i128| {
            if ty.is_float() {
                Literal::Float(n as f64)
            } else {
                Literal::Int(n)
            }
        };
        match self {
            BinOp::Add => Some(number(0)),
            BinOp::Mul => Some(number(1)),
            BinOp::Min => Some(greatest),
            BinOp::Max => Some(least),
            BinOp::And => Some(Literal::Bool(true)),
            BinOp::Or => Some(Literal::Bool(false)),
            BinOp::BitAnd if ty == Scalar::Bool => Some(Literal::Bool(true)),
            BinOp::BitAnd => Some(Literal::Int(-1)),
            BinOp::BitOr | BinOp::BitXor if ty == Scalar::Bool => Some(Literal::Bool(false)),
            BinOp::BitOr | BinOp::BitXor => Some(Literal::Int(0)),
            _ => None,
        }
    }
}
