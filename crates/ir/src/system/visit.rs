//! Walking and rewriting expressions.

use std::convert::Infallible;

use crate::id::DimId;
use crate::system::Expr;

/// Calls `f` on the expression and all below it, outermost first.
pub fn walk<'a>(expr: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    f(expr);
    for child in children(expr) {
        walk(child, f);
    }
}

/// The operands of an expression, in the order in which they are written.
pub fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Port(_) => Vec::new(),
        Expr::Lookup { index, .. } => index.iter().collect(),
        Expr::Unary(_, a) | Expr::Cast(_, a) | Expr::Field(a, _) => vec![a],
        Expr::Binary(_, a, b) => vec![a, b],
        Expr::Guard {
            then, otherwise, ..
        } => {
            let mut list: Vec<&Expr> = vec![then];
            list.extend(otherwise.as_deref());
            list
        }
        Expr::Select {
            cond,
            then,
            otherwise,
        } => vec![cond, then, otherwise],
        Expr::Tuple(parts) | Expr::Call(_, parts) => parts.iter().collect(),
        Expr::Let { value, body, .. } => vec![value, body],
        Expr::Reduce { body, .. } | Expr::Scan { body, .. } => vec![body],
    }
}

/// Rebuilds an expression bottom-up: `f` gets each node after its operands have been rebuilt.
pub fn map_expr<E>(expr: &Expr, f: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Expr, E> {
    let rebuilt = map_children(expr, &mut |child| map_expr(child, f))?;
    f(rebuilt)
}

/// Replaces iterators: those that stand as values, and those that sums bind.
pub fn map_iterators(
    expr: &Expr,
    value: &dyn Fn(DimId) -> Expr,
    bound: &dyn Fn(DimId) -> Vec<DimId>,
) -> Expr {
    let mapped = map_expr(expr, &mut |e| {
        Ok::<_, Infallible>(match e {
            Expr::Iter(d) => value(d),
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => Expr::Reduce {
                op,
                dims: dims.into_iter().flat_map(bound).collect(),
                body,
                span,
            },
            other => other,
        })
    });
    match mapped {
        Ok(mapped) => mapped,
        Err(never) => match never {},
    }
}

/// The expression with each operand replaced.
pub fn map_children<E>(
    expr: &Expr,
    f: &mut dyn FnMut(&Expr) -> Result<Expr, E>,
) -> Result<Expr, E> {
    let mut boxed = |e: &Expr| f(e).map(Box::new);
    Ok(match expr {
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Input { .. }
        | Expr::Port(_) => expr.clone(),
        Expr::Lookup { input, index, span } => Expr::Lookup {
            input: *input,
            index: index.iter().map(f).collect::<Result<_, _>>()?,
            span: *span,
        },
        Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)?),
        Expr::Cast(ty, a) => Expr::Cast(*ty, boxed(a)?),
        Expr::Field(a, n) => Expr::Field(boxed(a)?, *n),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a)?, boxed(b)?),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => Expr::Guard {
            cond: cond.clone(),
            then: boxed(then)?,
            otherwise: otherwise.as_deref().map(boxed).transpose()?,
        },
        Expr::Select {
            cond,
            then,
            otherwise,
        } => Expr::Select {
            cond: boxed(cond)?,
            then: boxed(then)?,
            otherwise: boxed(otherwise)?,
        },
        Expr::Tuple(parts) => Expr::Tuple(parts.iter().map(f).collect::<Result<_, _>>()?),
        Expr::Call(function, parts) => {
            Expr::Call(*function, parts.iter().map(f).collect::<Result<_, _>>()?)
        }
        Expr::Let {
            local,
            name,
            value,
            body,
        } => Expr::Let {
            local: *local,
            name: name.clone(),
            value: boxed(value)?,
            body: boxed(body)?,
        },
        Expr::Reduce {
            op,
            dims,
            body,
            span,
        } => Expr::Reduce {
            op: *op,
            dims: dims.clone(),
            body: boxed(body)?,
            span: *span,
        },
        Expr::Scan {
            op,
            dim,
            body,
            span,
        } => Expr::Scan {
            op: *op,
            dim: *dim,
            body: boxed(body)?,
            span: *span,
        },
    })
}
