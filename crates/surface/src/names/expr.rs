//! Names in expressions.

use systola_ir::{Scalar, Span, UnOp};

use super::build::Builder;
use super::{NameKind, Role};
use crate::tree::{Dim, Expr, ExprKind, ReduceOp, ReduceOpKind};

/// Functions of the language, beside those of one argument and casts.
const BUILT_IN: &[&str] = &["select", "min", "max", "pow"];

impl Builder {
    pub fn exprs<'a>(&mut self, list: impl IntoIterator<Item = &'a Expr>) {
        list.into_iter().for_each(|expr| self.expr(expr));
    }

    pub fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Mistake(_) => {}
            ExprKind::Name(name) => self.read(name, expr.span),
            ExprKind::Apply(name, args) => {
                if !is_built_in(&name.text) {
                    self.read_name(name);
                }
                self.exprs(args);
            }
            ExprKind::Element(name, index) | ExprKind::At(name, index) => {
                self.read_name(name);
                self.exprs(index);
            }
            ExprKind::Unary(_, inner) | ExprKind::Field(inner, _) | ExprKind::Paren(inner) => {
                self.expr(inner);
            }
            ExprKind::Binary(_, left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Chain(first, rest) => {
                self.expr(first);
                self.exprs(rest.iter().map(|(_, right)| right));
            }
            ExprKind::Tuple(parts) => self.exprs(parts),
            ExprKind::Let(bindings, body) => {
                let n_before = self.locals.len();
                for (name, value) in bindings {
                    self.expr(value);
                    let extent = name.span.to(value.span);
                    let scope = value.span.to(expr.span);
                    self.declare_local(NameKind::Let, name, extent, scope);
                }
                self.expr(body);
                self.locals.truncate(n_before);
            }
            ExprKind::Reduce(op, dims, body) => self.reduce(op, dims, body, expr.span),
            ExprKind::Scan(op, dim, body) => {
                self.reduce_op(op);
                self.read_name(dim);
                self.expr(body);
            }
            ExprKind::Around(_, weights, field, _) => {
                if let Some(weights) = weights {
                    self.read_name(weights);
                }
                self.read_name(field);
            }
        }
    }

    fn reduce(&mut self, op: &ReduceOp, dims: &[Dim], body: &Expr, span: Span) {
        self.reduce_op(op);
        let n_before = self.locals.len();
        for dim in dims {
            if let Some((lo, hi)) = &dim.range {
                self.expr(lo);
                self.expr(hi);
            }
            match self.scope.sums.get(&dim.name.text).copied() {
                Some(id) => {
                    self.refer(dim.name.span, id, Role::Declares);
                    self.locals.push((dim.name.text.clone(), id));
                    // It is seen wherever one of its sums stands.
                    let scope = &mut self.index.definitions[id.0].scope;
                    *scope = scope.to(span);
                }
                None => {
                    self.declare_local(NameKind::SumIterator, &dim.name, dim.span, span);
                    if let Some((name, id)) = self.locals.last().cloned() {
                        self.scope.sums.insert(name, id);
                    }
                }
            }
        }
        self.expr(body);
        self.locals.truncate(n_before);
    }

    fn reduce_op(&mut self, op: &ReduceOp) {
        match &op.kind {
            ReduceOpKind::Op(_) => {}
            ReduceOpKind::Fn(name) => self.read(name, op.span),
        }
    }
}

fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name) || UnOp::function(name).is_some() || Scalar::from_name(name).is_some()
}
