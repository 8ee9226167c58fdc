//! Types of values while they are inferred: a literal takes the type of what it meets.

use systola_ir::codes::types as codes;
use systola_ir::system::Expr;
use systola_ir::{BinOp, Diagnostic, Literal, Scalar, Span, Type, UnOp};

use super::Lowered;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    Known(Scalar),
    /// Integer literals only: any number type.
    Int,
    /// Literals, some with a fraction: any float type.
    Float,
    Tuple(Vec<Ty>),
}

impl From<&Type> for Ty {
    fn from(ty: &Type) -> Self {
        match ty {
            Type::Scalar(s) => Ty::Known(*s),
            Type::Tuple(parts) => Ty::Tuple(parts.iter().map(Ty::from).collect()),
        }
    }
}

impl Ty {
    /// What it is if nothing else decides.
    pub(crate) fn default(&self) -> Type {
        match self {
            Ty::Known(s) => Type::Scalar(*s),
            Ty::Int => Type::Scalar(Scalar::I64),
            Ty::Float => Type::Scalar(Scalar::F64),
            Ty::Tuple(parts) => Type::Tuple(parts.iter().map(Ty::default).collect()),
        }
    }

    fn is_decided(&self) -> bool {
        match self {
            Ty::Known(_) => true,
            Ty::Int | Ty::Float => false,
            Ty::Tuple(parts) => parts.iter().all(Ty::is_decided),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Ty::Known(s) => s.to_string(),
            Ty::Int => "an integer literal".to_string(),
            Ty::Float => "a float literal".to_string(),
            Ty::Tuple(_) => self.default().to_string(),
        }
    }

    /// The type that both can have.
    pub(crate) fn join(&self, other: &Ty) -> Lowered<Ty> {
        let refuse = || mismatch(&other.describe(), &self.describe());
        match (self, other) {
            (Ty::Known(a), Ty::Known(b)) if a == b => Ok(self.clone()),
            (Ty::Int, Ty::Int) => Ok(Ty::Int),
            (Ty::Int | Ty::Float, Ty::Int | Ty::Float) => Ok(Ty::Float),
            (Ty::Int, Ty::Known(s)) | (Ty::Known(s), Ty::Int) if *s != Scalar::Bool => {
                Ok(Ty::Known(*s))
            }
            (Ty::Float, Ty::Known(s)) | (Ty::Known(s), Ty::Float) if s.is_float() => {
                Ok(Ty::Known(*s))
            }
            (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => {
                let parts = a.iter().zip(b).map(|(a, b)| a.join(b));
                Ok(Ty::Tuple(parts.collect::<Result<_, _>>()?))
            }
            (Ty::Known(_) | Ty::Int | Ty::Float | Ty::Tuple(_), _) => Err(refuse()),
        }
    }
}

/// Is an operator of one operand defined on a type?
pub(crate) fn unary(op: UnOp, ty: &Ty) -> Lowered<Ty> {
    let float = matches!(
        op,
        UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Exp
            | UnOp::Log
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh
    );
    match ty {
        Ty::Known(s) => {
            let fits = match op {
                UnOp::Neg | UnOp::Abs => *s != Scalar::Bool,
                UnOp::Not => !s.is_float(),
                UnOp::Sqrt
                | UnOp::Rsqrt
                | UnOp::Exp
                | UnOp::Log
                | UnOp::Floor
                | UnOp::Ceil
                | UnOp::Sin
                | UnOp::Cos
                | UnOp::Tanh => s.is_float(),
            };
            if fits {
                Ok(ty.clone())
            } else {
                Err(no_operator(op.name(), ty))
            }
        }
        Ty::Int if float => Ok(Ty::Float),
        Ty::Int => Ok(Ty::Int),
        Ty::Float if op != UnOp::Not => Ok(Ty::Float),
        Ty::Float | Ty::Tuple(_) => Err(no_operator(op.name(), ty)),
    }
}

/// Is an operator of two operands defined on a type? The type narrowed to those it is defined on.
pub(crate) fn binary(op: BinOp, ty: &Ty) -> Lowered<Ty> {
    let fits = |s: Scalar| match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max => {
            s != Scalar::Bool
        }
        BinOp::Rem | BinOp::Shl | BinOp::Shr => s.is_int(),
        BinOp::Pow => s.is_float(),
        BinOp::Eq | BinOp::Ne => true,
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => s != Scalar::Bool,
        BinOp::And | BinOp::Or => s == Scalar::Bool,
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => !s.is_float(),
    };
    match ty {
        Ty::Known(s) if fits(*s) => Ok(ty.clone()),
        Ty::Int if fits(Scalar::I64) => Ok(Ty::Int),
        Ty::Int | Ty::Float if fits(Scalar::F64) => Ok(Ty::Float),
        Ty::Known(_) | Ty::Int | Ty::Float | Ty::Tuple(_) => Err(no_operator(op.name(), ty)),
    }
}

/// Gives the literals of an expression of type `from` the types that `to` says.
pub(crate) fn settle(expr: &mut Expr, from: &Ty, to: &Ty) -> Lowered<()> {
    if from == to || from.is_decided() {
        return Ok(());
    }
    match expr {
        Expr::Lit(ty, literal) => {
            if let Ty::Known(s) = to {
                *literal = fit(*literal, *s)?;
                *ty = *s;
            }
            Ok(())
        }
        Expr::Unary(op, a) => {
            unary(*op, to)?;
            settle(a, from, to)
        }
        Expr::Binary(op, a, b) => {
            binary(*op, to)?;
            settle(a, from, to)?;
            settle(b, from, to)
        }
        Expr::Guard {
            then, otherwise, ..
        } => {
            settle(then, from, to)?;
            otherwise.iter_mut().try_for_each(|e| settle(e, from, to))
        }
        Expr::Select {
            then, otherwise, ..
        } => {
            settle(then, from, to)?;
            settle(otherwise, from, to)
        }
        Expr::Tuple(parts) => match (from, to) {
            (Ty::Tuple(from), Ty::Tuple(to)) => parts
                .iter_mut()
                .zip(from.iter().zip(to))
                .try_for_each(|(part, (from, to))| settle(part, from, to)),
            _ => Ok(()),
        },
        Expr::Let { body, .. } | Expr::Reduce { body, .. } | Expr::Scan { body, .. } => {
            settle(body, from, to)
        }
        // Their types are known from the start.
        Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Lookup { .. }
        | Expr::Cast(..)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Port(_) => Ok(()),
    }
}

fn no_operator(name: &str, ty: &Ty) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &codes::NO_SUCH_OPERATOR,
            Span::NONE,
            format!("`{name}` is not defined on {}", ty.describe()),
        )
        .help("cast the operand first, or use another operator"),
    )
}

pub(crate) fn mismatch(found: &str, expected: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &codes::TYPE_MISMATCH,
            Span::NONE,
            format!("expected {expected}, found {found}"),
        )
        .help("convert with `cast`; an integer literal may become a float, never the reverse"),
    )
}

/// A literal as a value of a type, if it is one.
pub(crate) fn fit(literal: Literal, ty: Scalar) -> Lowered<Literal> {
    let refuse = || {
        Box::new(
            Diagnostic::new(
                &codes::LITERAL_RANGE,
                Span::NONE,
                format!("{literal} is no {ty}"),
            )
            .help("take a wider type, or another value"),
        )
    };
    // Halfway between the largest value and the next power of two, everything rounds to infinity.
    let bound = match ty {
        Scalar::F16 => 65520.0,
        Scalar::BF16 => 3.396e38,
        Scalar::F32 => 3.402_823_567_797_336_6e38,
        _ => f64::INFINITY,
    };
    match literal {
        Literal::Bool(_) if ty == Scalar::Bool => Ok(literal),
        Literal::Int(value) if ty.is_float() => {
            let value = value as f64;
            if value.abs() < bound {
                Ok(Literal::Float(value))
            } else {
                Err(refuse())
            }
        }
        Literal::Int(value) => match ty.int_range() {
            Some((least, greatest)) if (least..=greatest).contains(&value) => Ok(literal),
            Some(_) | None => Err(refuse()),
        },
        Literal::Float(value) if ty.is_float() => {
            if !value.is_finite() || value.abs() < bound {
                Ok(literal)
            } else {
                Err(refuse())
            }
        }
        Literal::Float(_) | Literal::Bool(_) => Err(refuse()),
    }
}
