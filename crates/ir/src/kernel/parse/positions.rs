//! Forms, conditions and ranges.

use super::expr::{Expr, ExprKind};
use super::names::{Named, Names};
use super::{ParseError, Parser};
use crate::form::{Atom, Cond, Form, LIMIT, Rel};
use crate::scalar::{BinOp, Literal, UnOp};

impl Parser {
    /// `0..N`, `max(0, i - 3)..min(N, i + 3)`.
    pub(super) fn range(&mut self, names: &Names) -> Result<(Vec<Form>, Vec<Form>), ParseError> {
        let (lo, hi) = self.bounds()?;
        Ok((lo.bound("max", names)?, hi.bound("min", names)?))
    }

    /// The two sides of a range.
    pub(super) fn bounds(&mut self) -> Result<(Expr, Expr), ParseError> {
        let lo = self.expr()?;
        self.expect("..")?;
        Ok((lo, self.expr()?))
    }

    /// ` when i < N`, or nothing.
    pub(super) fn when(&mut self, names: &Names) -> Result<Option<Cond>, ParseError> {
        match self.eat_word("when") {
            true => Ok(Some(self.expr()?.cond(names)?)),
            false => Ok(None),
        }
    }
}

impl Expr {
    /// One side of a range: a form, or the greatest or least of several.
    pub(super) fn bound(&self, of: &str, names: &Names) -> Result<Vec<Form>, ParseError> {
        match &self.kind {
            ExprKind::Call(name, args) if name == of => {
                args.iter().map(|arg| arg.form(names)).collect()
            }
            _ => Ok(vec![self.form(names)?]),
        }
    }

    pub(super) fn form(&self, names: &Names) -> Result<Form, ParseError> {
        let wrong = |message: &str| self.at.error(message);
        match &self.kind {
            ExprKind::Name(name) => match names.find(name) {
                Some(Named::Param(param)) => Ok(Form::from(param)),
                Some(Named::Var(var)) => Ok(Form::from(var)),
                Some(other) => Err(wrong(&format!("`{name}` is {}, no position", other.kind()))),
                None => Err(names.unknown(self.at, name)),
            },
            ExprKind::Lit(Literal::Int(value), None) => {
                match value.unsigned_abs() < LIMIT.unsigned_abs() {
                    true => Ok(Form::from(*value)),
                    false => Err(wrong("a position is smaller than 2^80")),
                }
            }
            ExprKind::Group(of) => of.form(names),
            ExprKind::Unary(UnOp::Neg, of) => Ok(of.form(names)?.neg()),
            ExprKind::Binary(op, left, right) => {
                let (a, b) = (left.form(names)?, right.form(names)?);
                match op {
                    BinOp::Add => Ok(a.add(&b)),
                    BinOp::Sub => Ok(a.sub(&b)),
                    BinOp::Mul => match a.mul(&b) {
                        Some(product) => product.map_err(|overflow| wrong(&overflow.to_string())),
                        None => Err(wrong("a product of index variables is no position")),
                    },
                    // Built as written: the text shows forms that are folded already.
                    BinOp::Div | BinOp::Rem => match b.as_constant() {
                        Some(c) if c > 0 && *op == BinOp::Div => {
                            Ok(Form::atom(Atom::Floor(Box::new(a), c)))
                        }
                        Some(c) if c > 0 => Ok(Form::atom(Atom::Mod(Box::new(a), c))),
                        Some(_) | None => Err(wrong("a position is divided by positive numbers")),
                    },
                    _ => Err(wrong(&format!("`{}` is not used in positions", op.name()))),
                }
            }
            ExprKind::Lit(..)
            | ExprKind::Unary(..)
            | ExprKind::Call(..)
            | ExprKind::Element { .. } => Err(wrong("expected a position")),
        }
    }

    pub(super) fn cond(&self, names: &Names) -> Result<Cond, ParseError> {
        match &self.kind {
            ExprKind::Group(of) => of.cond(names),
            ExprKind::Lit(Literal::Bool(value), None) => Ok(Cond::Const(*value)),
            ExprKind::Unary(UnOp::Not, of) => Ok(Cond::Not(Box::new(of.cond(names)?))),
            ExprKind::Binary(BinOp::And, ..) => Ok(Cond::And(self.parts(BinOp::And, names)?)),
            ExprKind::Binary(BinOp::Or, ..) => Ok(Cond::Or(self.parts(BinOp::Or, names)?)),
            ExprKind::Binary(op, left, right) if op.is_comparison() => {
                let rel = match op {
                    BinOp::Eq => Rel::Eq,
                    BinOp::Ne => Rel::Ne,
                    BinOp::Lt => Rel::Lt,
                    BinOp::Le => Rel::Le,
                    BinOp::Gt => Rel::Gt,
                    _ => Rel::Ge,
                };
                Ok(Cond::Cmp(rel, left.form(names)?, right.form(names)?))
            }
            ExprKind::Name(_)
            | ExprKind::Lit(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Call(..)
            | ExprKind::Element { .. } => Err(self.at.error("expected a condition on positions")),
        }
    }

    /// The operands that one operator joins, from left to right.
    fn parts(&self, joined: BinOp, names: &Names) -> Result<Vec<Cond>, ParseError> {
        match &self.kind {
            ExprKind::Binary(op, left, right) if *op == joined => {
                let mut parts = left.parts(joined, names)?;
                parts.push(right.cond(names)?);
                Ok(parts)
            }
            _ => Ok(vec![self.cond(names)?]),
        }
    }

    /// Does the expression consist of positions only?
    pub(super) fn is_position(&self, names: &Names) -> bool {
        match &self.kind {
            ExprKind::Name(name) => {
                matches!(names.find(name), Some(Named::Param(_) | Named::Var(_)))
            }
            ExprKind::Lit(value, ty) => !matches!(value, Literal::Float(_)) && ty.is_none(),
            ExprKind::Unary(_, of) | ExprKind::Group(of) => of.is_position(names),
            ExprKind::Binary(_, left, right) => left.is_position(names) && right.is_position(names),
            ExprKind::Call(..) | ExprKind::Element { .. } => false,
        }
    }
}
