//! Types of values during inference.
//!
//! A literal has no type of its own: it takes the type of the other operands. Until that type is
//! known, an expression of literals is [`Ty::Int`] or [`Ty::Float`]; then [`settle`] writes the
//! type into the literals. Every node is settled once, so inference is linear.

use systola_ir::codes::types;
use systola_ir::system::Expr;
use systola_ir::{BinOp, Diagnostic, Literal, Scalar, Span, Type, UnOp};

#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    Known(Scalar),
    /// Integer literals only; fits any number type.
    Int,
    /// Literals, at least one with a fraction; fits any float type.
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
    /// The type if the context does not determine one.
    pub fn default(&self) -> Type {
        match self {
            Ty::Known(s) => Type::Scalar(*s),
            Ty::Int => Type::Scalar(Scalar::I64),
            Ty::Float => Type::Scalar(Scalar::F64),
            Ty::Tuple(parts) => Type::Tuple(parts.iter().map(Ty::default).collect()),
        }
    }

    pub fn is_decided(&self) -> bool {
        match self {
            Ty::Known(_) => true,
            Ty::Int | Ty::Float => false,
            Ty::Tuple(parts) => parts.iter().all(Ty::is_decided),
        }
    }

    /// The type as text for a message.
    pub fn describe(&self) -> String {
        match self {
            Ty::Known(s) => s.name().to_string(),
            Ty::Int => "an integer literal".to_string(),
            Ty::Float => "a float literal".to_string(),
            Ty::Tuple(_) => self.default().to_string(),
        }
    }

    /// The common type of both, if there is one.
    pub fn join(&self, other: &Ty) -> Option<Ty> {
        match (self, other) {
            (Ty::Known(a), Ty::Known(b)) => (a == b).then(|| self.clone()),
            (Ty::Int, Ty::Int) => Some(Ty::Int),
            (Ty::Int | Ty::Float, Ty::Int | Ty::Float) => Some(Ty::Float),
            (Ty::Int, Ty::Known(s)) | (Ty::Known(s), Ty::Int) => {
                (*s != Scalar::Bool).then_some(Ty::Known(*s))
            }
            (Ty::Float, Ty::Known(s)) | (Ty::Known(s), Ty::Float) => {
                s.is_float().then_some(Ty::Known(*s))
            }
            (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => a
                .iter()
                .zip(b)
                .map(|(a, b)| a.join(b))
                .collect::<Option<_>>()
                .map(Ty::Tuple),
            (Ty::Tuple(_), _) | (_, Ty::Tuple(_)) => None,
        }
    }
}

/// The types for which an operator is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Numbers,
    Integers,
    Floats,
    Bool,
    IntegersOrBool,
    Scalars,
}

impl Class {
    pub fn of_binary(op: BinOp) -> Class {
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max => {
                Class::Numbers
            }
            BinOp::Rem | BinOp::Shl | BinOp::Shr => Class::Integers,
            BinOp::Pow => Class::Floats,
            BinOp::Eq | BinOp::Ne => Class::Scalars,
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Class::Numbers,
            BinOp::And | BinOp::Or => Class::Bool,
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => Class::IntegersOrBool,
        }
    }

    pub fn of_unary(op: UnOp) -> Class {
        match op {
            UnOp::Neg | UnOp::Abs => Class::Numbers,
            UnOp::Not => Class::IntegersOrBool,
            UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Exp
            | UnOp::Log
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh => Class::Floats,
        }
    }

    fn has(self, s: Scalar) -> bool {
        match self {
            Class::Numbers => s != Scalar::Bool,
            Class::Integers => s.is_int(),
            Class::Floats => s.is_float(),
            Class::Bool => s == Scalar::Bool,
            Class::IntegersOrBool => !s.is_float(),
            Class::Scalars => true,
        }
    }

    /// The type restricted to this class of types; `None` if the class has no such type.
    pub fn narrow(self, ty: &Ty) -> Option<Ty> {
        match ty {
            Ty::Known(s) => self.has(*s).then(|| ty.clone()),
            Ty::Int if self == Class::Floats => Some(Ty::Float),
            Ty::Int => (self != Class::Bool).then_some(Ty::Int),
            Ty::Float => self.has(Scalar::F64).then_some(Ty::Float),
            Ty::Tuple(_) => None,
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Class::Numbers => "numbers",
            Class::Integers => "integers",
            Class::Floats => "floats",
            Class::Bool => "truth values",
            Class::IntegersOrBool => "integers and truth values",
            Class::Scalars => "scalars, field by field for tuples",
        }
    }
}

/// Sets the types of the literals in an expression of type `from`, as far as `to` is known.
pub fn settle(expr: &mut Expr, from: &Ty, to: &Ty, span: Span) -> Result<(), Box<Diagnostic>> {
    if from == to || from.is_decided() {
        return Ok(());
    }
    match expr {
        Expr::Lit(ty, literal) => {
            if let Ty::Known(s) = to {
                *literal = fit(*literal, *s, span)?;
                *ty = *s;
            }
            Ok(())
        }
        Expr::Unary(op, a) => {
            defined(op.name(), Class::of_unary(*op), to, span)?;
            settle(a, from, to, span)
        }
        Expr::Binary(op, a, b) => {
            defined(op.name(), Class::of_binary(*op), to, span)?;
            settle(a, from, to, span)?;
            settle(b, from, to, span)
        }
        Expr::Guard {
            then, otherwise, ..
        } => {
            settle(then, from, to, span)?;
            match otherwise {
                Some(otherwise) => settle(otherwise, from, to, span),
                None => Ok(()),
            }
        }
        Expr::Select {
            then, otherwise, ..
        } => {
            settle(then, from, to, span)?;
            settle(otherwise, from, to, span)
        }
        Expr::Tuple(parts) => match (from, to) {
            (Ty::Tuple(from), Ty::Tuple(to)) => parts
                .iter_mut()
                .zip(from.iter().zip(to))
                .try_for_each(|(part, (from, to))| settle(part, from, to, span)),
            _ => Ok(()),
        },
        Expr::Let { body, .. } | Expr::Reduce { body, .. } | Expr::Scan { body, .. } => {
            settle(body, from, to, span)
        }
        // Their types are already known.
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

fn defined(name: &str, class: Class, ty: &Ty, span: Span) -> Result<(), Box<Diagnostic>> {
    match class.narrow(ty) {
        Some(_) => Ok(()),
        None => Err(no_operator(name, class, ty, span)),
    }
}

pub fn no_operator(name: &str, class: Class, ty: &Ty, span: Span) -> Box<Diagnostic> {
    let error = Diagnostic::new(
        &types::NO_SUCH_OPERATOR,
        span,
        format!("`{name}` is not defined on {}", ty.describe()),
    )
    .note(format!("it is defined on {}", class.describe()));
    Box::new(match (class, ty) {
        (_, Ty::Tuple(_)) => error.help("take a field of the tuple: `.0`"),
        (Class::Floats, _) => error.help("cast to a float first: `f32(…)`"),
        (Class::Bool, _) => error.help("compare it: `… != 0`"),
        (Class::Integers | Class::IntegersOrBool, Ty::Known(s)) if s.is_float() => {
            error.help("cast to an integer first: `i32(…)`")
        }
        _ => error.help("cast the operand first, or use another operator"),
    })
}

/// Converts a literal to a type, if its value fits.
pub fn fit(literal: Literal, ty: Scalar, span: Span) -> Result<Literal, Box<Diagnostic>> {
    let out_of_range = |shown: String, range: String| {
        Box::new(
            Diagnostic::new(
                &types::LITERAL_RANGE,
                span,
                format!("{shown} is no {ty}: {range}"),
            )
            .help("take a wider type, or another value"),
        )
    };
    match literal {
        Literal::Bool(_) if ty == Scalar::Bool => Ok(literal),
        Literal::Int(value) if ty.is_float() => finite(value as f64, ty)
            .map(Literal::Float)
            .ok_or_else(|| out_of_range(value.to_string(), "it would be infinite".to_string())),
        Literal::Int(value) => match ty.int_range() {
            Some((least, greatest)) if (least..=greatest).contains(&value) => Ok(literal),
            Some((least, greatest)) => Err(out_of_range(
                value.to_string(),
                format!("those are {least} to {greatest}"),
            )),
            None => Err(mismatch(&Ty::Int, ty, span)),
        },
        Literal::Float(value) if ty.is_float() => finite(value, ty)
            .map(Literal::Float)
            .ok_or_else(|| out_of_range(format!("{value:e}"), "it would be infinite".to_string())),
        Literal::Float(_) => Err(mismatch(&Ty::Float, ty, span)),
        Literal::Bool(_) => Err(mismatch(&Ty::Known(Scalar::Bool), ty, span)),
    }
}

fn mismatch(found: &Ty, expected: Scalar, span: Span) -> Box<Diagnostic> {
    let error = Diagnostic::new(
        &types::TYPE_MISMATCH,
        span,
        format!("expected {expected}, found {}", found.describe()),
    );
    Box::new(match (found, expected) {
        (Ty::Float, s) if s.is_int() => {
            error.help("an integer literal may become a float, never the reverse")
        }
        (_, Scalar::Bool) => error.help("write `true` or `false`"),
        _ => error.help("write a number"),
    })
}

/// `None` if a finite value is too large for the type.
fn finite(value: f64, ty: Scalar) -> Option<f64> {
    // Values from here on round to infinity: halfway between the largest value and the next power
    // of two.
    let bound = match ty {
        Scalar::F16 => 65520.0,
        Scalar::BF16 => 3.396e38,
        Scalar::F32 => 3.402_823_567_797_336_6e38,
        _ => f64::INFINITY,
    };
    (!value.is_finite() || value.abs() < bound).then_some(value)
}
