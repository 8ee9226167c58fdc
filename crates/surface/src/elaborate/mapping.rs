//! Converts index expressions and conditions of mappings. Their names stay unresolved.

use systola_ir::codes::syntax;
use systola_ir::mapping::{NameCond, NameExpr, NameExprKind, NameOp};
use systola_ir::{BinOp, Diagnostic, Span, UnOp};

use crate::tree::{Expr, ExprKind, relation};

type Formed<T> = Result<T, Box<Diagnostic>>;

/// An index expression of a mapping.
pub fn name_expr(expr: &Expr) -> Formed<NameExpr> {
    let kind = match &expr.kind {
        ExprKind::Int(value, None) => NameExprKind::Int(*value),
        ExprKind::Name(name) => NameExprKind::Name(name.clone()),
        ExprKind::Paren(inner) => return name_expr(inner),
        ExprKind::Unary(UnOp::Neg, inner) => NameExprKind::Neg(Box::new(name_expr(inner)?)),
        ExprKind::Binary(op, left, right) => {
            let op = match op {
                BinOp::Add => NameOp::Add,
                BinOp::Sub => NameOp::Sub,
                BinOp::Mul => NameOp::Mul,
                BinOp::Div => NameOp::Div,
                BinOp::Rem => NameOp::Mod,
                _ => return no_form(expr.span, &format!("`{}`", op.name())),
            };
            NameExprKind::Binary(op, Box::new(name_expr(left)?), Box::new(name_expr(right)?))
        }
        ExprKind::Int(_, Some(ty)) => {
            return no_form(expr.span, &format!("a literal of type {ty}"));
        }
        ExprKind::Float(..) => return no_form(expr.span, "a float"),
        ExprKind::Bool(_) => return no_form(expr.span, "a truth value"),
        ExprKind::Apply(name, _) => {
            return no_form(expr.span, &format!("the call of `{}`", name.text));
        }
        ExprKind::Element(name, _) => {
            return no_form(expr.span, &format!("an element of `{}`", name.text));
        }
        ExprKind::Unary(op, _) => {
            return no_form(expr.span, &format!("`{}`", op.name()));
        }
        ExprKind::Chain(..) => return no_form(expr.span, "a comparison"),
        ExprKind::Field(..) => return no_form(expr.span, "a field"),
        ExprKind::Tuple(_) => return no_form(expr.span, "a tuple"),
        ExprKind::Let(..) => return no_form(expr.span, "`let`"),
        ExprKind::Reduce(..) => return no_form(expr.span, "`reduce`"),
        ExprKind::Scan(..) => return no_form(expr.span, "`scan`"),
        ExprKind::Around(..) => return no_form(expr.span, "`over`"),
        ExprKind::At(name, _) => {
            return no_form(expr.span, &format!("`{}` at an index", name.text));
        }
        ExprKind::Mistake(error) => return Err(error.clone()),
    };
    Ok(NameExpr {
        kind,
        span: expr.span,
    })
}

fn no_form<T>(span: Span, what: &str) -> Formed<T> {
    let error = Diagnostic::new(
        &syntax::NO_MAPPING_FORM,
        span,
        format!("{what} cannot stand in an index expression of a mapping"),
    );
    Err(Box::new(error.help("use names, integers and + - * / %")))
}

/// A condition of a mapping.
pub fn name_cond(expr: &Expr) -> Formed<NameCond> {
    match &expr.kind {
        ExprKind::Paren(inner) => name_cond(inner),
        ExprKind::Unary(UnOp::Not, inner) => Ok(NameCond::Not(Box::new(name_cond(inner)?))),
        ExprKind::Binary(op @ (BinOp::And | BinOp::Or), ..) => {
            let mut operands = Vec::new();
            for operand in expr.operands(*op) {
                match (op, name_cond(operand)?, &operand.kind) {
                    (BinOp::And, NameCond::And(links), ExprKind::Chain(..)) => {
                        operands.extend(links);
                    }
                    (_, cond, _) => operands.push(cond),
                }
            }
            Ok(if *op == BinOp::And {
                NameCond::And(operands)
            } else {
                NameCond::Or(operands)
            })
        }
        ExprKind::Binary(op, left, right) => match relation(*op) {
            Some(rel) => Ok(NameCond::Cmp(rel, name_expr(left)?, name_expr(right)?)),
            None => no_condition(expr.span),
        },
        ExprKind::Chain(first, rest) => {
            let mut left = name_expr(first)?;
            let mut parts = Vec::new();
            for (op, right) in rest {
                let right = name_expr(right)?;
                if let Some(rel) = relation(*op) {
                    parts.push(NameCond::Cmp(rel, left, right.clone()));
                }
                left = right;
            }
            Ok(NameCond::And(parts))
        }
        ExprKind::Int(..)
        | ExprKind::Float(..)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Apply(..)
        | ExprKind::Element(..)
        | ExprKind::Unary(..)
        | ExprKind::Field(..)
        | ExprKind::Tuple(_)
        | ExprKind::Let(..)
        | ExprKind::Reduce(..)
        | ExprKind::Scan(..)
        | ExprKind::At(..)
        | ExprKind::Around(..) => no_condition(expr.span),
        ExprKind::Mistake(error) => Err(error.clone()),
    }
}

fn no_condition<T>(span: Span) -> Formed<T> {
    let error = Diagnostic::new(
        &syntax::NO_MAPPING_FORM,
        span,
        "expected a condition: comparisons joined by && || !",
    );
    Err(Box::new(
        error.help("compare it with something, such as `c < 4`"),
    ))
}
