//! Types of expressions, for the variables that localisation adds.

use systola_ir::system::{Expr, System};
use systola_ir::{Scalar, Type};

/// The type of an expression of a checked system; `None` only inside a function's body.
pub fn type_of(system: &System, expr: &Expr) -> Option<Type> {
    Some(match expr {
        Expr::Lit(ty, _) => Type::Scalar(*ty),
        Expr::Const(c) => Type::Scalar(system.consts[c.index()].ty),
        Expr::Iter(_) | Expr::Param(_) => Type::Scalar(Scalar::I64),
        Expr::Local(_) | Expr::Port(_) => return None,
        Expr::Var { var, .. } => system.vars[var.index()].ty.clone(),
        Expr::Input { input, .. } | Expr::Lookup { input, .. } => {
            Type::Scalar(system.inputs[input.index()].ty)
        }
        Expr::Unary(_, a) => type_of(system, a)?,
        Expr::Binary(op, ..) if op.is_comparison() => Type::Scalar(Scalar::Bool),
        Expr::Binary(_, a, b) => type_of(system, a).or_else(|| type_of(system, b))?,
        Expr::Cast(ty, _) => Type::Scalar(*ty),
        Expr::Guard {
            then, otherwise, ..
        } => type_of(system, then)
            .or_else(|| otherwise.as_deref().and_then(|e| type_of(system, e)))?,
        Expr::Select {
            then, otherwise, ..
        } => type_of(system, then).or_else(|| type_of(system, otherwise))?,
        Expr::Tuple(parts) => Type::Tuple(
            parts
                .iter()
                .map(|p| type_of(system, p))
                .collect::<Option<_>>()?,
        ),
        Expr::Field(a, n) => match type_of(system, a)? {
            Type::Tuple(parts) => parts.get(*n)?.clone(),
            Type::Scalar(_) => return None,
        },
        Expr::Call(f, _) => system.functions[f.index()].result.clone(),
        Expr::Let { body, .. } => type_of(system, body)?,
        Expr::Reduce { body, .. } | Expr::Scan { body, .. } => type_of(system, body)?,
    })
}
