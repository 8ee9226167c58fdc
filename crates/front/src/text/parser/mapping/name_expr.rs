//! Index expressions and conditions of mappings: their names stay unresolved.

use systola_ir::codes::syntax;
use systola_ir::mapping::{NameCond, NameExpr, NameExprKind, NameOp};
use systola_ir::{BinOp, Diagnostic, Span, UnOp};

use super::super::{Parsed, Parser};
use systola_surface::tree::{Expr, ExprKind, relation};

impl Parser<'_> {
    pub(super) fn name_exprs(&mut self, list: &[Expr]) -> Parsed<Vec<NameExpr>> {
        list.iter().map(|e| self.name_expr(e)).collect()
    }

    pub(super) fn name_expr(&mut self, expr: &Expr) -> Parsed<NameExpr> {
        let kind = match &expr.kind {
            ExprKind::Int(value, None) => NameExprKind::Int(*value),
            ExprKind::Name(name) => NameExprKind::Name(name.clone()),
            ExprKind::Paren(inner) => return self.name_expr(inner),
            ExprKind::Unary(UnOp::Neg, inner) => {
                NameExprKind::Neg(Box::new(self.name_expr(inner)?))
            }
            ExprKind::Binary(op, left, right) => {
                let op = match op {
                    BinOp::Add => NameOp::Add,
                    BinOp::Sub => NameOp::Sub,
                    BinOp::Mul => NameOp::Mul,
                    BinOp::Div => NameOp::Div,
                    BinOp::Rem => NameOp::Mod,
                    _ => return self.no_form(expr.span, &format!("`{}`", op.name())),
                };
                NameExprKind::Binary(
                    op,
                    Box::new(self.name_expr(left)?),
                    Box::new(self.name_expr(right)?),
                )
            }
            ExprKind::Int(_, Some(ty)) => {
                return self.no_form(expr.span, &format!("a literal of type {ty}"));
            }
            ExprKind::Float(..) => return self.no_form(expr.span, "a float"),
            ExprKind::Bool(_) => return self.no_form(expr.span, "a truth value"),
            ExprKind::Apply(name, _) => {
                return self.no_form(expr.span, &format!("the call of `{}`", name.text));
            }
            ExprKind::Element(name, _) => {
                return self.no_form(expr.span, &format!("an element of `{}`", name.text));
            }
            ExprKind::Unary(op, _) => {
                return self.no_form(expr.span, &format!("`{}`", op.name()));
            }
            ExprKind::Chain(..) => return self.no_form(expr.span, "a comparison"),
            ExprKind::Field(..) => return self.no_form(expr.span, "a field"),
            ExprKind::Tuple(_) => return self.no_form(expr.span, "a tuple"),
            ExprKind::Let(..) => return self.no_form(expr.span, "`let`"),
            ExprKind::Reduce(..) => return self.no_form(expr.span, "`reduce`"),
            ExprKind::Scan(..) => return self.no_form(expr.span, "`scan`"),
            ExprKind::Around(..) => return self.no_form(expr.span, "`over`"),
        };
        Ok(NameExpr {
            kind,
            span: expr.span,
        })
    }

    fn no_form<T>(&mut self, span: Span, what: &str) -> Parsed<T> {
        let error = Diagnostic::new(
            &syntax::NO_MAPPING_FORM,
            span,
            format!("{what} can not stand in an index expression of a mapping"),
        );
        self.fail(error.help("use names, integers and + - * / %"))
    }

    pub(super) fn name_cond(&mut self, expr: &Expr) -> Parsed<NameCond> {
        match &expr.kind {
            ExprKind::Paren(inner) => self.name_cond(inner),
            ExprKind::Unary(UnOp::Not, inner) => {
                Ok(NameCond::Not(Box::new(self.name_cond(inner)?)))
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), ..) => {
                let mut operands = Vec::new();
                for operand in expr.operands(*op) {
                    match (op, self.name_cond(operand)?, &operand.kind) {
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
                Some(rel) => Ok(NameCond::Cmp(
                    rel,
                    self.name_expr(left)?,
                    self.name_expr(right)?,
                )),
                None => self.no_condition(expr.span),
            },
            ExprKind::Chain(first, rest) => {
                let mut left = self.name_expr(first)?;
                let mut parts = Vec::new();
                for (op, right) in rest {
                    let right = self.name_expr(right)?;
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
            | ExprKind::Around(..) => self.no_condition(expr.span),
        }
    }

    fn no_condition<T>(&mut self, span: Span) -> Parsed<T> {
        let error = Diagnostic::new(
            &syntax::NO_MAPPING_FORM,
            span,
            "expected a condition: comparisons joined by && || !",
        );
        self.fail(error.help("compare it with something, such as `c < 4`"))
    }
}
