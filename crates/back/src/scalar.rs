//! Scalar operators in C, with exactly the meaning that `systola_ir::scalar` defines.
//!
//! Printed code is compiled so that signed arithmetic wraps. C computes on `int` for narrower
//! types, so results of narrow types are cast back; every expression printed here has exactly the C
//! type of its element type.

use systola_ir::{BinOp, Literal, Scalar, UnOp};

use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::{File, Prelude};

/// The C type of a value.
pub fn c_type(ty: Scalar) -> Result<&'static str, Fault> {
    Ok(match ty {
        Scalar::Bool => "bool",
        Scalar::I8 => "int8_t",
        Scalar::I16 => "int16_t",
        Scalar::I32 => "int32_t",
        Scalar::I64 => "int64_t",
        Scalar::U8 => "uint8_t",
        Scalar::U16 => "uint16_t",
        Scalar::U32 => "uint32_t",
        Scalar::U64 => "uint64_t",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::F16 | Scalar::BF16 => {
            return Err(Fault::unsupported(format!(
                "this target has no arithmetic on {ty}; use f32"
            )));
        }
    })
}

/// The unsigned type of the same width.
pub fn unsigned(ty: Scalar) -> Scalar {
    match ty.bits() {
        8 => Scalar::U8,
        16 => Scalar::U16,
        32 => Scalar::U32,
        _ => Scalar::U64,
    }
}

/// The signed type of the same width.
pub fn signed(bits: u32) -> Scalar {
    match bits {
        8 => Scalar::I8,
        16 => Scalar::I16,
        32 => Scalar::I32,
        _ => Scalar::I64,
    }
}

fn is_narrow(ty: Scalar) -> bool {
    ty.is_int() && ty.bits() < 32
}

/// A result that C may have computed as an `int`.
fn narrowed(ty: Scalar, e: Expr) -> Result<Expr, Fault> {
    Ok(if is_narrow(ty) {
        Expr::cast(c_type(ty)?, &e)
    } else {
        e
    })
}

/// One of two values, with exactly their type.
pub fn choice(ty: Scalar, cond: &Expr, then: &Expr, otherwise: &Expr) -> Result<Expr, Fault> {
    narrowed(ty, Expr::ternary(cond, then, otherwise))
}

/// A written value, wrapped, rounded or saturated to its type.
pub fn literal(prelude: &mut Prelude, ty: Scalar, value: Literal) -> Result<Expr, Fault> {
    let int = match (value, ty.int_range()) {
        (Literal::Bool(b), _) => i128::from(b),
        (Literal::Int(x), _) => x,
        (Literal::Float(x), Some((least, greatest))) => (x as i128).clamp(least, greatest),
        (Literal::Float(x), None) => i128::from(x != 0.0),
    };
    let float = match value {
        Literal::Bool(b) => f64::from(u8::from(b)),
        Literal::Int(x) => x as f64,
        Literal::Float(x) => x,
    };
    Ok(match ty {
        Scalar::Bool => Expr::atom(if int != 0 { "true" } else { "false" }),
        Scalar::F32 => {
            // An integer is rounded once, not first to a double.
            let x = match value {
                Literal::Int(x) => x as f32,
                Literal::Bool(_) | Literal::Float(_) => float as f32,
            };
            special(prelude, x.into()).unwrap_or_else(|| Expr::number(format!("{x:?}f")))
        }
        Scalar::F64 => match special(prelude, float) {
            Some(e) => Expr::cast("double", &e),
            None => Expr::number(format!("{float:?}")),
        },
        Scalar::I8 => Expr::cast("int8_t", &Expr::number((int as i8).to_string())),
        Scalar::I16 => Expr::cast("int16_t", &Expr::number((int as i16).to_string())),
        Scalar::U8 => Expr::cast("uint8_t", &Expr::number((int as u8).to_string())),
        Scalar::U16 => Expr::cast("uint16_t", &Expr::number((int as u16).to_string())),
        Scalar::I32 if int as i32 == i32::MIN => Expr::atom("INT32_MIN"),
        Scalar::I32 => Expr::number((int as i32).to_string()),
        Scalar::U32 => Expr::number(format!("{}u", int as u32)),
        Scalar::I64 => index_literal(int as i64, true),
        Scalar::U64 => Expr::atom(format!("UINT64_C({})", int as u64)),
        Scalar::F16 | Scalar::BF16 => Expr::atom(c_type(ty)?),
    })
}

/// Values for which C has no literal.
fn special(prelude: &mut Prelude, x: f64) -> Option<Expr> {
    let text = match x {
        _ if x.is_nan() => "NAN",
        f64::INFINITY => "INFINITY",
        f64::NEG_INFINITY => "-INFINITY",
        _ => return None,
    };
    prelude.include("math.h");
    Some(Expr::number(text))
}

/// A 64-bit integer; `exact`: also where C would give a plain number the type `int`.
pub fn index_literal(x: i64, exact: bool) -> Expr {
    if x == i64::MIN {
        Expr::atom("INT64_MIN")
    } else if !exact && i32::try_from(x).is_ok() {
        Expr::number(x.to_string())
    } else if x < 0 {
        Expr::number(format!("-INT64_C({})", x.unsigned_abs()))
    } else {
        Expr::atom(format!("INT64_C({x})"))
    }
}

pub fn unary(prelude: &mut Prelude, op: UnOp, ty: Scalar, a: &Expr) -> Result<Expr, Fault> {
    match op {
        UnOp::Neg => narrowed(ty, Expr::unary("-", a)),
        UnOp::Not if ty == Scalar::Bool => Ok(Expr::unary("!", a)),
        UnOp::Not => narrowed(ty, Expr::unary("~", a)),
        UnOp::Abs if !ty.is_float() && !ty.is_signed_int() => Ok(a.clone()),
        UnOp::Abs
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Exp
        | UnOp::Log
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh => Ok(Expr::call(
            &unary_helper(prelude, op, ty)?,
            std::slice::from_ref(a),
        )),
    }
}

/// The function for a unary operator that C does not have.
pub fn unary_helper(prelude: &mut Prelude, op: UnOp, ty: Scalar) -> Result<String, Fault> {
    if op == UnOp::Abs && ty.is_signed_int() {
        let name = format!("abs_{ty}");
        prelude.add(
            &name,
            File::Scalar,
            "abs",
            &[('T', c_type(ty)?), ('N', ty.name())],
        );
        return Ok(name);
    }
    let function = match op {
        UnOp::Abs => "fabs",
        UnOp::Rsqrt => return libm(prelude, "rsqrt", op.name(), "sqrt", ty),
        UnOp::Sqrt
        | UnOp::Exp
        | UnOp::Log
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh => op.name(),
        UnOp::Neg | UnOp::Not => unreachable!("`{}` is an operator of C", op.name()),
    };
    libm(prelude, "libm1", op.name(), function, ty)
}

fn libm(
    prelude: &mut Prelude,
    section: &str,
    name: &str,
    function: &str,
    ty: Scalar,
) -> Result<String, Fault> {
    if !ty.is_float() {
        return Err(Fault::unsupported(format!(
            "`{name}` is not defined on {ty}"
        )));
    }
    let full = format!("{name}_{ty}");
    let suffix = if ty == Scalar::F32 { "f" } else { "" };
    prelude.include("math.h");
    prelude.add(
        &full,
        File::Scalar,
        section,
        &[
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('F', name),
            ('G', &format!("{function}{suffix}")),
        ],
    );
    Ok(full)
}

pub fn binary(
    prelude: &mut Prelude,
    op: BinOp,
    ty: Scalar,
    a: &Expr,
    b: &Expr,
) -> Result<Expr, Fault> {
    if ty == Scalar::Bool {
        return bool_binary(op, a, b);
    }
    let plain = |sign: &str| Expr::binary(sign, a, b);
    match op {
        BinOp::Add => narrowed(ty, plain("+")),
        BinOp::Sub => narrowed(ty, plain("-")),
        BinOp::Mul => narrowed(ty, plain("*")),
        BinOp::Div if ty.is_float() => Ok(plain("/")),
        BinOp::BitAnd => narrowed(ty, plain("&")),
        BinOp::BitOr => narrowed(ty, plain("|")),
        BinOp::BitXor => narrowed(ty, plain("^")),
        BinOp::Shr => {
            let count = Expr::binary("&", b, &Expr::number((ty.bits() - 1).to_string()));
            narrowed(ty, Expr::binary(">>", a, &count))
        }
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
            Ok(plain(op.name()))
        }
        BinOp::Div | BinOp::Rem | BinOp::Min | BinOp::Max | BinOp::Pow | BinOp::Shl => {
            let helper = binary_helper(prelude, op, ty)?;
            Ok(Expr::call(&helper, &[a.clone(), b.clone()]))
        }
        BinOp::And | BinOp::Or => Err(undefined(op, ty)),
    }
}

/// The function for a binary operator that C does not have, or that has another meaning in C.
pub fn binary_helper(prelude: &mut Prelude, op: BinOp, ty: Scalar) -> Result<String, Fault> {
    let (name, section) = match op {
        BinOp::Min if ty.is_float() => ("min", "min_float"),
        BinOp::Max if ty.is_float() => ("max", "max_float"),
        BinOp::Min => ("min", "min"),
        BinOp::Max => ("max", "max"),
        BinOp::Rem if ty.is_float() => return libm(prelude, "libm2", "rem", "fmod", ty),
        BinOp::Pow if ty.is_float() => return libm(prelude, "libm2", "pow", "pow", ty),
        BinOp::Div if ty.is_signed_int() => ("div", "div_signed"),
        BinOp::Div => ("div", "div_unsigned"),
        BinOp::Rem if ty.is_signed_int() => ("rem", "rem_signed"),
        BinOp::Rem => ("rem", "rem_unsigned"),
        BinOp::Pow => ("pow", "pow_int"),
        BinOp::Shl => ("shl", "shl"),
        BinOp::Add
        | BinOp::Sub
        | BinOp::Mul
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
        | BinOp::Shr => return Err(undefined(op, ty)),
    };
    let full = format!("{name}_{ty}");
    if section.ends_with("_float") {
        prelude.include("math.h");
    }
    prelude.add(
        &full,
        File::Scalar,
        section,
        &[
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('U', c_type(unsigned(ty))?),
            ('W', &(ty.bits() - 1).to_string()),
        ],
    );
    Ok(full)
}

fn bool_binary(op: BinOp, a: &Expr, b: &Expr) -> Result<Expr, Fault> {
    let sign = match op {
        BinOp::And | BinOp::BitAnd | BinOp::Min => "&&",
        BinOp::Or | BinOp::BitOr | BinOp::Max => "||",
        BinOp::BitXor | BinOp::Ne => "!=",
        BinOp::Eq => "==",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::Add
        | BinOp::Sub
        | BinOp::Mul
        | BinOp::Div
        | BinOp::Rem
        | BinOp::Pow
        | BinOp::Shl
        | BinOp::Shr => return Err(undefined(op, Scalar::Bool)),
    };
    Ok(Expr::binary(sign, a, b))
}

pub fn undefined(op: BinOp, ty: Scalar) -> Fault {
    Fault::unsupported(format!("`{}` is not defined on {ty}", op.name()))
}

/// The conversion of a value of type `from`.
pub fn cast(prelude: &mut Prelude, from: Scalar, to: Scalar, a: &Expr) -> Result<Expr, Fault> {
    if from == to {
        return Ok(a.clone());
    }
    if to == Scalar::Bool {
        return Ok(Expr::binary("!=", a, &Expr::atom("0")));
    }
    if from.is_float() && to.is_int() {
        return Ok(Expr::call(
            &saturating(prelude, from, to)?,
            std::slice::from_ref(a),
        ));
    }
    c_type(from)?;
    Ok(Expr::cast(c_type(to)?, a))
}

/// The bounds of a conversion from a float: below `.0` it gives `.1`, from `.2` on it gives `.3`.
pub fn saturation(
    prelude: &mut Prelude,
    from: Scalar,
    to: Scalar,
) -> Result<(String, String, String, String), Fault> {
    let Some((least, greatest)) = to.int_range() else {
        return Err(Fault::unsupported(format!("no saturating cast to {to}")));
    };
    // Both are zero or a power of two, which every float type represents exactly.
    let suffix = if from == Scalar::F32 { "f" } else { "" };
    let bound = |x: i128| format!("{:?}{suffix}", x as f64);
    Ok((
        bound(least),
        literal(prelude, to, Literal::Int(least))?.text,
        bound(greatest + 1),
        literal(prelude, to, Literal::Int(greatest))?.text,
    ))
}

/// The function for a conversion from float to integer.
pub fn saturating(prelude: &mut Prelude, from: Scalar, to: Scalar) -> Result<String, Fault> {
    let name = format!("{to}_from_{from}");
    let (low, least, high, greatest) = saturation(prelude, from, to)?;
    prelude.add(
        &name,
        File::Scalar,
        "saturate",
        &[
            ('T', c_type(to)?),
            ('N', to.name()),
            ('F', from.name()),
            ('G', c_type(from)?),
            ('A', &low),
            ('B', &least),
            ('C', &high),
            ('D', &greatest),
        ],
    );
    Ok(name)
}
