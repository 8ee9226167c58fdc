//! Index expressions and conditions on them.

use systola_ir::codes::types as codes;
use systola_ir::form::LIMIT;
use systola_ir::{BinOp, Cond, Diagnostic, DimId, Form, Literal, Span, UnOp};

use super::names::Entity;
use super::{Lowered, Lowering, Place};
use crate::expr::{Expr, Node};
use crate::mapping::relation;

/// Which iterators can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sees {
    /// None: the expression is a size.
    Parameters,
    /// Those before this one, in its range.
    Before(usize),
    All,
}

impl Sees {
    fn dim(self, d: DimId) -> bool {
        match self {
            Sees::Parameters => false,
            Sees::Before(n) => d.index() < n,
            Sees::All => true,
        }
    }
}

impl Lowering {
    pub(crate) fn index(&self, list: &[Expr], expected: usize, of: &str) -> Lowered<Vec<Form>> {
        if list.len() != expected {
            return Err(Box::new(
                Diagnostic::new(
                    &codes::WRONG_COUNT,
                    Span::NONE,
                    format!("{of} takes {expected} indices, {} are given", list.len()),
                )
                .help("give one index for each axis or iterator"),
            ));
        }
        list.iter().map(|e| self.form(e, Sees::All)).collect()
    }

    pub(crate) fn form(&self, expr: &Expr, sees: Sees) -> Lowered<Form> {
        let form = match &*expr.node {
            Node::Int(value, ty) => {
                if value.unsigned_abs() >= LIMIT.unsigned_abs() || ty.is_some_and(|ty| !ty.is_int())
                {
                    return Err(too_large());
                }
                Form::from(*value)
            }
            Node::Name(name) => self.named(name, sees)?,
            Node::Unary(UnOp::Neg, inner) => self.form(inner, sees)?.neg(),
            Node::Binary(op, left, right) => {
                let a = self.form(left, sees)?;
                let b = self.form(right, sees)?;
                match op {
                    BinOp::Add => a.add(&b),
                    BinOp::Sub => a.sub(&b),
                    BinOp::Mul => match a.mul(&b) {
                        Some(Ok(product)) => product,
                        Some(Err(_)) => return Err(too_large()),
                        None => {
                            return Err(refuse(
                                &codes::NOT_AFFINE,
                                "a product of two expressions in iterators is not affine",
                                "one factor must be built of integers and parameters only",
                            ));
                        }
                    },
                    BinOp::Div => a.floor_div(divisor(&b)?),
                    BinOp::Rem => a.modulo(divisor(&b)?),
                    _ => return Err(no_index(&format!("the operator `{}`", op.name()))),
                }
            }
            Node::Float(..) => return Err(no_index("a float")),
            Node::Bool(_) => return Err(no_index("a truth value")),
            Node::At(name, _) => return Err(no_index(&format!("`{name}` at an index"))),
            Node::Unary(op, _) => return Err(no_index(&format!("the operator `{}`", op.name()))),
            Node::Cast(ty, _) => return Err(no_index(&format!("a cast to {ty}"))),
            Node::Select(..) => return Err(no_index("`select`")),
            Node::Tuple(_) => return Err(no_index("a tuple")),
            Node::Field(..) => return Err(no_index("a field of a tuple")),
            Node::Let(..) => return Err(no_index("`let`")),
            Node::Reduce(..) => return Err(no_index("`reduce`")),
            Node::Scan(..) => return Err(no_index("`scan`")),
            Node::Mistake(message) | Node::TooLarge(message) => return Err(no_index(message)),
        };
        let small = |poly: &systola_ir::Poly| poly.terms().all(|(_, c)| c.abs() < LIMIT);
        if small(form.constant_part()) && form.terms().all(|(_, c)| small(c)) {
            Ok(form)
        } else {
            Err(too_large())
        }
    }

    fn named(&self, name: &str, sees: Sees) -> Lowered<Form> {
        match self.names.get(name) {
            Some(Entity::Param(p)) => Ok(Form::from(p)),
            Some(Entity::Dim(d)) if sees.dim(d) && self.place != Place::Function => {
                Ok(Form::from(d))
            }
            Some(Entity::Dim(_)) => Err(refuse(
                &codes::ITERATOR_NOT_SEEN,
                &format!("the iterator `{name}` has no value here"),
                "sizes use parameters only, a range also the iterators before it",
            )),
            Some(Entity::Const(c)) => match self.system.consts.get(c.index()).map(|c| c.value) {
                Some(Literal::Int(value)) => Ok(Form::from(value)),
                Some(Literal::Bool(_) | Literal::Float(_)) | None => {
                    Err(no_index(&format!("the constant `{name}`")))
                }
            },
            Some(other) => Err(no_index(&format!("`{name}`, {},", other.describe()))),
            None => Err(Box::new(self.names.unknown(name))),
        }
    }

    pub(crate) fn cond(&self, expr: &Expr, sees: Sees) -> Lowered<Cond> {
        match &*expr.node {
            Node::Bool(value) => Ok(Cond::Const(*value)),
            Node::Unary(UnOp::Not, inner) => Ok(Cond::Not(Box::new(self.cond(inner, sees)?))),
            Node::Binary(op @ (BinOp::And | BinOp::Or), ..) => {
                let parts = expr
                    .operands(*op)
                    .into_iter()
                    .map(|part| self.cond(part, sees))
                    .collect::<Result<_, _>>()?;
                Ok(if *op == BinOp::And {
                    Cond::And(parts)
                } else {
                    Cond::Or(parts)
                })
            }
            Node::Binary(op, left, right) if op.is_comparison() => Ok(Cond::Cmp(
                relation(*op),
                self.form(left, sees)?,
                self.form(right, sees)?,
            )),
            _ => Err(refuse(
                &codes::NOT_A_CONDITION,
                "expected a condition on iterators and parameters",
                "compare index expressions and join them by `and`, `or` and `!`",
            )),
        }
    }
}

fn refuse(code: &'static systola_ir::codes::Code, message: &str, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(code, Span::NONE, message).help(help))
}

fn no_index(what: &str) -> Box<Diagnostic> {
    refuse(
        &codes::VALUE_IN_INDEX,
        &format!("{what} can not stand in an index expression"),
        "an index is built of iterators, parameters and integers by + - * / %",
    )
}

fn too_large() -> Box<Diagnostic> {
    refuse(
        &codes::COEFFICIENT_TOO_LARGE,
        "a coefficient of an index expression is larger than 2^80",
        "no array is that large; make the constants smaller",
    )
}

fn divisor(form: &Form) -> Lowered<i128> {
    match form.as_constant() {
        Some(c) if c > 0 => Ok(c),
        Some(c) => Err(refuse(
            &codes::BAD_DIVISOR,
            &format!("an index is divided by {c}"),
            "divide by positive constants only; / rounds down",
        )),
        None => Err(refuse(
            &codes::DIVISOR_NOT_CONSTANT,
            "an index is divided by something that is no constant",
            "replace the divisor by a number",
        )),
    }
}
