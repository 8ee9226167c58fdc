//! The cast that makes two types one, as text to copy: which value is converted, how, and what the
//! conversion loses.

use systola_ir::{BinOp, Scalar, UnOp};

use crate::elaborate::infer::Ty;
use crate::tree::{Expr, ExprKind};

/// A longer expression is shown as `…`.
const LONGEST: usize = 48;

/// How to make a value of another type: ``write `f32(n)`: exact up to 2^24``.
pub fn conversion(tree: Option<&Expr>, from: &Ty, to: Scalar) -> String {
    let tree = tree.map(unwrapped);
    let text = tree.and_then(written).unwrap_or_else(|| "…".to_string());
    if let (Some(parts), true) = (tree.and_then(quotient), is_integer(from) && to.is_float()) {
        return format!(
            "`/` of integers rounds down: write `{}` for the quotient, `{to}({text})` for the \
             rounded one",
            parts.map(|part| format!("{to}({part})")).join(" / ")
        );
    }
    match (from, to) {
        (Ty::Float, to) if to.is_int() => format!(
            "`{text}` is no {to}: write a whole number, or `{to}({text})`, which drops the fraction"
        ),
        (Ty::Int, Scalar::Bool) => "write `true` or `false`".to_string(),
        (Ty::Known(_), Scalar::Bool) => {
            let is_compound = tree.is_some_and(|tree| {
                matches!(
                    tree.kind,
                    ExprKind::Binary(..) | ExprKind::Chain(..) | ExprKind::Let(..)
                )
            });
            let text = if is_compound {
                format!("({text})")
            } else {
                text
            };
            format!("write a condition: `{text} != 0`")
        }
        (Ty::Known(from), to) => format!("write `{to}({text})`: {}", loss(*from, to)),
        (Ty::Int | Ty::Float | Ty::Tuple(_), _) => format!("write `{to}({text})`"),
    }
}

/// The expression inside parentheses: a cast brings its own.
fn unwrapped(tree: &Expr) -> &Expr {
    match &tree.kind {
        ExprKind::Paren(inner) => unwrapped(inner),
        _ => tree,
    }
}

/// Dividend and divisor.
fn quotient(tree: &Expr) -> Option<[String; 2]> {
    match &tree.kind {
        ExprKind::Binary(BinOp::Div, left, right) => {
            Some([written(unwrapped(left))?, written(unwrapped(right))?])
        }
        _ => None,
    }
}

fn is_integer(ty: &Ty) -> bool {
    matches!(ty, Ty::Int) || matches!(ty, Ty::Known(scalar) if scalar.is_int())
}

/// Which of two operands to convert, and how: the one that loses less.
pub fn common(left: (Option<&Expr>, &Ty), right: (Option<&Expr>, &Ty)) -> Option<String> {
    match (left.1, right.1) {
        (Ty::Known(a), Ty::Known(b)) => Some(if rank(*a) < rank(*b) {
            conversion(left.0, left.1, *b)
        } else {
            conversion(right.0, right.1, *a)
        }),
        // A literal with a fraction and a value without: the value becomes a float.
        (Ty::Known(_), Ty::Float) => Some(to_float(left)),
        (Ty::Float, Ty::Known(_)) => Some(to_float(right)),
        (Ty::Known(_), Ty::Int) => Some(to_integer(left)),
        (Ty::Int, Ty::Known(_)) => Some(to_integer(right)),
        (Ty::Tuple(_) | Ty::Int | Ty::Float, _) | (_, Ty::Tuple(_)) => None,
    }
}

fn to_float((tree, ty): (Option<&Expr>, &Ty)) -> String {
    let text = conversion(tree, ty, Scalar::F32);
    let wide = conversion(tree, ty, Scalar::F64);
    let wide = wide.split('`').nth(1).unwrap_or_default().to_string();
    format!("{text}; or `{wide}` among f64")
}

/// The only type that integer literals do not take is bool.
fn to_integer((tree, ty): (Option<&Expr>, &Ty)) -> String {
    conversion(tree, ty, Scalar::I32)
}

/// The greater, the more values it has, roughly: conversions go upwards.
fn rank(ty: Scalar) -> (bool, bool, u32, bool) {
    (
        ty != Scalar::Bool,
        ty.is_float(),
        ty.bits(),
        ty.is_signed_int(),
    )
}

/// The bits of the significand of a float.
fn precision(ty: Scalar) -> u32 {
    match ty {
        Scalar::F16 => 11,
        Scalar::BF16 => 8,
        Scalar::F32 => 24,
        _ => 53,
    }
}

/// What a cast between two types loses.
fn loss(from: Scalar, to: Scalar) -> String {
    match (from, to) {
        (Scalar::Bool, _) => "1 where it holds, 0 elsewhere".to_string(),
        (from, to) if from.is_int() && to.is_float() => {
            let digits = from.bits() - u32::from(from.is_signed_int());
            if digits <= precision(to) {
                "nothing is lost".to_string()
            } else {
                format!("integers beyond 2^{} are rounded", precision(to))
            }
        }
        (from, to) if from.is_float() && to.is_int() => {
            format!(
                "the fraction is dropped, and values beyond those of {to} become its first or last"
            )
        }
        (from, to) if from.is_int() => match (from.int_range(), to.int_range()) {
            (Some(from), Some(to)) if to.0 <= from.0 && from.1 <= to.1 => {
                "nothing is lost".to_string()
            }
            _ => format!("values that {to} does not have wrap around"),
        },
        (from, to) if precision(from) <= precision(to) && from != Scalar::BF16 => {
            "nothing is lost".to_string()
        }
        (Scalar::BF16, Scalar::F32 | Scalar::F64) => "nothing is lost".to_string(),
        (Scalar::BF16, _) => "large values become infinite".to_string(),
        (_, to) => format!("it is rounded to {} binary digits", precision(to)),
    }
}

/// A short expression as it was written.
fn written(tree: &Expr) -> Option<String> {
    let mut text = String::new();
    write(tree, &mut text)?;
    Some(text)
}

/// None where it becomes too long, or is nothing that is written in one line.
fn write(tree: &Expr, text: &mut String) -> Option<()> {
    let list = |open: &str, list: &[Expr], close: &str, text: &mut String| {
        text.push_str(open);
        for (n, part) in list.iter().enumerate() {
            text.push_str(if n > 0 { ", " } else { "" });
            write(part, text)?;
        }
        text.push_str(close);
        Some(())
    };
    let suffix = |ty: &Option<Scalar>| ty.map_or("", Scalar::name);
    match &tree.kind {
        ExprKind::Int(value, ty) => text.push_str(&format!("{value}{}", suffix(ty))),
        ExprKind::Float(value, ty) if value.is_finite() => {
            text.push_str(&format!("{value:?}{}", suffix(ty)));
        }
        ExprKind::Bool(value) => text.push_str(&value.to_string()),
        ExprKind::Name(name) => text.push_str(name),
        ExprKind::Apply(name, parts) => {
            text.push_str(&name.text);
            list("(", parts, ")", text)?;
        }
        ExprKind::Element(name, parts) => {
            text.push_str(&name.text);
            list("[", parts, "]", text)?;
        }
        ExprKind::Unary(op @ (UnOp::Neg | UnOp::Not), operand) => {
            text.push_str(op.name());
            write(operand, text)?;
        }
        ExprKind::Binary(op, left, right) if is_infix(*op) => {
            write(left, text)?;
            text.push_str(&format!(" {} ", op.name()));
            write(right, text)?;
        }
        ExprKind::Field(tuple, field) => {
            write(tuple, text)?;
            text.push_str(&format!(".{field}"));
        }
        ExprKind::Paren(inner) => list("(", std::slice::from_ref(inner), ")", text)?,
        ExprKind::Float(..)
        | ExprKind::At(..)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Chain(..)
        | ExprKind::Tuple(..)
        | ExprKind::Let(..)
        | ExprKind::Reduce(..)
        | ExprKind::Scan(..)
        | ExprKind::Around(..)
        | ExprKind::Mistake(..) => return None,
    }
    (text.len() <= LONGEST).then_some(())
}

fn is_infix(op: BinOp) -> bool {
    !matches!(op, BinOp::Min | BinOp::Max | BinOp::Pow)
}
