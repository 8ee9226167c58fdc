//! Walking and rewriting expressions.

use crate::system::Expr;

/// Calls `f` on the expression and all below it, outermost first.
pub fn walk<'a>(expr: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
    f(expr);
    for child in children(expr) {
        walk(child, f);
    }
}

/// The operands of an expression, in the order they are written.
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

/// Rebuilds an expression bottom-up: `f` sees each node after its operands were rebuilt.
pub fn map_expr<E>(expr: &Expr, f: &mut impl FnMut(Expr) -> Result<Expr, E>) -> Result<Expr, E> {
    let mut again = |e: &Expr| map_expr(e, f).map(Box::new);
    let rebuilt = match expr {
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
            index: map_all(index, f)?,
            span: *span,
        },
        Expr::Unary(op, a) => Expr::Unary(*op, again(a)?),
        Expr::Cast(ty, a) => Expr::Cast(*ty, again(a)?),
        Expr::Field(a, n) => Expr::Field(again(a)?, *n),
        Expr::Binary(op, a, b) => Expr::Binary(*op, again(a)?, again(b)?),
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => Expr::Guard {
            cond: cond.clone(),
            then: again(then)?,
            otherwise: otherwise.as_deref().map(again).transpose()?,
        },
        Expr::Select {
            cond,
            then,
            otherwise,
        } => Expr::Select {
            cond: again(cond)?,
            then: again(then)?,
            otherwise: again(otherwise)?,
        },
        Expr::Tuple(parts) => Expr::Tuple(map_all(parts, f)?),
        Expr::Call(function, parts) => Expr::Call(*function, map_all(parts, f)?),
        Expr::Let {
            local,
            name,
            value,
            body,
        } => Expr::Let {
            local: *local,
            name: name.clone(),
            value: again(value)?,
            body: again(body)?,
        },
        Expr::Reduce {
            op,
            dims,
            body,
            span,
        } => Expr::Reduce {
            op: *op,
            dims: dims.clone(),
            body: again(body)?,
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
            body: again(body)?,
            span: *span,
        },
    };
    f(rebuilt)
}

fn map_all<E>(list: &[Expr], f: &mut impl FnMut(Expr) -> Result<Expr, E>) -> Result<Vec<Expr>, E> {
    list.iter().map(|e| map_expr(e, f)).collect()
}
