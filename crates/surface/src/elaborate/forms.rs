//! Converts index expressions and conditions on them to quasi-affine forms.

use systola_ir::codes::{syntax, types};
use systola_ir::form::LIMIT;
use systola_ir::{BinOp, Cond, Diagnostic, DimId, Form, Literal, ParamId, Poly, Span, UnOp};

use super::names::{Entity, Names};
use super::{shorten, size};
use crate::tree::{Expr, ExprKind, relation};

/// The maximum number of terms of a form, including those in its floors. Every operation copies the
/// form.
const MAX_TERMS: usize = 128;

/// The names that an index expression may use.
pub struct FormScope<'a> {
    pub names: &'a Names,
    pub consts: &'a [systola_ir::system::Const],
    pub sees: Sees,
}

/// The iterators that an index expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// None: the expression is a size.
    Parameters,
    /// The iterators before this one: the expression is in its range.
    Before(usize),
    All,
}

type Formed<T> = Result<T, Box<Diagnostic>>;

impl FormScope<'_> {
    pub fn form(&self, expr: &Expr) -> Formed<Form> {
        let form = match &expr.kind {
            ExprKind::Paren(inner) => return self.form(inner),
            ExprKind::Int(value, ty) => {
                if value.unsigned_abs() >= LIMIT.unsigned_abs() || ty.is_some_and(|ty| !ty.is_int())
                {
                    return Err(too_large(expr.span));
                }
                Form::from(*value)
            }
            ExprKind::Name(name) => return self.named(name, expr.span),
            ExprKind::Unary(UnOp::Neg, inner) => self.form(inner)?.neg(),
            ExprKind::Binary(op, left, right) => match op {
                BinOp::Add => self.form(left)?.add(&self.form(right)?),
                BinOp::Sub => self.form(left)?.sub(&self.form(right)?),
                BinOp::Mul => self.product(left, right, expr.span)?,
                BinOp::Div => self.form(left)?.floor_div(self.divisor(right, "/")?),
                BinOp::Rem => self.form(left)?.modulo(self.divisor(right, "%")?),
                _ => {
                    return Err(no_index(
                        expr.span,
                        &format!("the operator `{}`", op.name()),
                    ));
                }
            },
            ExprKind::Float(..) => return Err(no_index(expr.span, "a float")),
            ExprKind::Bool(_) | ExprKind::Chain(..) => {
                return Err(no_index(expr.span, "a truth value"));
            }
            ExprKind::Apply(name, _) => {
                return Err(no_index(expr.span, &format!("a call of `{}`", name.text)));
            }
            ExprKind::Element(name, _) => {
                let what = format!("an element of `{}`", name.text);
                let error = no_index(expr.span, &what);
                return Err(Box::new(error.help(
                    "only a `table` can be indexed by values: declare the array that is indexed as one",
                )));
            }
            ExprKind::Unary(op, _) => {
                return Err(no_index(
                    expr.span,
                    &format!("the operator `{}`", op.name()),
                ));
            }
            ExprKind::Field(..) => return Err(no_index(expr.span, "a field of a tuple")),
            ExprKind::Tuple(_) => return Err(no_index(expr.span, "a tuple")),
            ExprKind::Let(..) => return Err(no_index(expr.span, "`let`")),
            ExprKind::Reduce(..) => return Err(no_index(expr.span, "`reduce`")),
            ExprKind::Scan(..) => return Err(no_index(expr.span, "`scan`")),
            ExprKind::Around(..) => return Err(no_index(expr.span, "`over`")),
            ExprKind::At(name, _) => {
                return Err(no_index(expr.span, &format!("`{}` at an index", name.text)));
            }
            ExprKind::Mistake(error) => return Err(error.clone()),
        };
        measured(form, expr.span)
    }

    fn named(&self, name: &str, span: Span) -> Formed<Form> {
        match self.names.get(name) {
            Some(Entity::Param(p)) => Ok(Form::from(p)),
            Some(Entity::Dim(d)) if self.sees_dim(d) => Ok(Form::from(d)),
            Some(Entity::Dim(_)) => Err(Box::new(self.hidden(name, span))),
            Some(Entity::Const(c)) => match self.consts.get(c.index()).map(|c| (c.value, c.ty)) {
                Some((Literal::Int(value), _)) => Ok(Form::from(value)),
                Some((_, ty)) => Err(no_index(
                    span,
                    &format!("`{name}`, a constant of type {ty},"),
                )),
                None => Err(no_index(span, &format!("the constant `{name}`"))),
            },
            Some(other) => {
                let what = format!("`{name}`, {},", other.describe());
                Err(no_index(span, &what))
            }
            None => Err(Box::new(self.names.unknown(name, span))),
        }
    }

    fn sees_dim(&self, d: DimId) -> bool {
        match self.sees {
            Sees::Parameters => false,
            Sees::Before(n) => d.index() < n,
            Sees::All => true,
        }
    }

    fn hidden(&self, name: &str, span: Span) -> Diagnostic {
        let error = match self.sees {
            Sees::Before(_) => Diagnostic::new(
                &types::ITERATOR_NOT_SEEN,
                span,
                format!("a range uses the iterators before it only, and `{name}` is not one"),
            )
            .help(format!(
                "reorder the iterators, or say it with `where`: `index …, {name} where …`"
            )),
            Sees::Parameters | Sees::All => Diagnostic::new(
                &types::ITERATOR_NOT_SEEN,
                span,
                format!("`{name}` is an iterator; only parameters and constants have a value here"),
            )
            .help("use the bound of the iterator instead"),
        };
        match self.names.span(name) {
            Some(declared) => error.also(declared, format!("`{name}` is declared here")),
            None => error,
        }
    }

    fn product(&self, left: &Expr, right: &Expr, span: Span) -> Formed<Form> {
        let (a, b) = (self.form(left)?, self.form(right)?);
        if a.as_poly().is_none() && b.as_poly().is_none() {
            return Err(Box::new(
                Diagnostic::new(
                    &types::NOT_AFFINE,
                    span,
                    "this multiplies two expressions in iterators, so it is not affine",
                )
                .also(left.span, "depends on an iterator")
                .also(right.span, "so does this")
                .help("one factor must be built of integers and parameters only"),
            ));
        }
        if n_terms(&a).saturating_mul(n_terms(&b)) > MAX_TERMS {
            return Err(too_many_terms(span));
        }
        match a.mul(&b) {
            Some(Ok(form)) => Ok(form),
            Some(Err(_)) | None => Err(too_large(span)),
        }
    }

    fn divisor(&self, expr: &Expr, op: &str) -> Formed<i128> {
        let form = self.form(expr)?;
        match form.as_constant() {
            Some(c) if c > 0 => Ok(c),
            Some(c) => Err(Box::new(
                Diagnostic::new(
                    &types::BAD_DIVISOR,
                    expr.span,
                    format!("`{op} {c}`: an index is divided by positive constants only"),
                )
                .help(if c == 0 {
                    "nothing can be divided by zero".to_string()
                } else {
                    format!(
                        "divide by {} and negate the result as needed; / rounds down",
                        c.unsigned_abs()
                    )
                }),
            )),
            None => Err(Box::new(
                Diagnostic::new(
                    &types::DIVISOR_NOT_CONSTANT,
                    expr.span,
                    format!("`{op}` in an index needs a constant on its right"),
                )
                .help("replace it by a number; only then can the compiler reason about it exactly"),
            )),
        }
    }

    pub fn cond(&self, expr: &Expr) -> Formed<Cond> {
        match &expr.kind {
            ExprKind::Paren(inner) => self.cond(inner),
            ExprKind::Bool(value) => Ok(Cond::Const(*value)),
            ExprKind::Unary(UnOp::Not, inner) => Ok(Cond::Not(Box::new(self.cond(inner)?))),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), ..) => {
                let mut parts = Vec::new();
                for operand in expr.operands(*op) {
                    match (op, self.cond(operand)?, &operand.kind) {
                        (BinOp::And, Cond::And(links), ExprKind::Chain(..)) => parts.extend(links),
                        (_, cond, _) => parts.push(cond),
                    }
                }
                Ok(if *op == BinOp::And {
                    Cond::And(parts)
                } else {
                    Cond::Or(parts)
                })
            }
            ExprKind::Binary(op, left, right) => match relation(*op) {
                Some(rel) => Ok(Cond::Cmp(rel, self.form(left)?, self.form(right)?)),
                None => Err(no_condition(expr.span)),
            },
            ExprKind::Chain(first, rest) => {
                let mut left = self.form(first)?;
                let mut parts = Vec::new();
                for (op, right) in rest {
                    let right = self.form(right)?;
                    if let Some(rel) = relation(*op) {
                        parts.push(Cond::Cmp(rel, left, right.clone()));
                    }
                    left = right;
                }
                Ok(Cond::And(parts))
            }
            ExprKind::Name(name) if self.names.get(name).is_none() => {
                Err(Box::new(self.names.unknown(name, expr.span)))
            }
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Name(_)
            | ExprKind::Apply(..)
            | ExprKind::Element(..)
            | ExprKind::At(..)
            | ExprKind::Unary(..)
            | ExprKind::Field(..)
            | ExprKind::Tuple(_)
            | ExprKind::Let(..)
            | ExprKind::Reduce(..)
            | ExprKind::Scan(..)
            | ExprKind::Around(..) => Err(no_condition(expr.span)),
            ExprKind::Mistake(error) => Err(error.clone()),
        }
    }
}

fn no_condition(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &types::NOT_A_CONDITION,
            span,
            "expected a condition on iterators and parameters",
        )
        .help("compare index expressions and join them by && || !, as in `i == 0 || j < N - 1`"),
    )
}

fn no_index(span: Span, what: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &types::VALUE_IN_INDEX,
            span,
            format!("{what} cannot stand in an index expression"),
        )
        .help(
            "an index is built of iterators, parameters and integers by + - * / %, such as `i / 2`",
        ),
    )
}

fn too_large(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &types::COEFFICIENT_TOO_LARGE,
            span,
            "a coefficient of this index expression is larger than 2^80",
        )
        .help("no array is that large; make the constants smaller"),
    )
}

fn too_many_terms(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &syntax::TOO_LARGE,
            span,
            format!("this index expression has more than {MAX_TERMS} terms"),
        )
        .help("simplify it"),
    )
}

fn measured(form: Form, span: Span) -> Formed<Form> {
    if n_terms(&form) > MAX_TERMS {
        return Err(too_many_terms(span));
    }
    if size::of_form(&form) > size::MAX_NESTING {
        return Err(Box::new(size::too_deep(span)));
    }
    let fits = |poly: &Poly| poly.terms().all(|(_, c)| c.abs() < LIMIT);
    if fits(form.constant_part()) && form.terms().all(|(_, c)| fits(c)) {
        Ok(form)
    } else {
        Err(too_large(span))
    }
}

/// The size of a form: its terms and their factors, including those in floors and remainders.
fn n_terms(form: &Form) -> usize {
    use systola_ir::Atom;
    let of_poly = |poly: &Poly| poly.terms().map(|(m, _)| 1 + m.len()).sum::<usize>();
    let atoms: usize = form
        .terms()
        .map(|(atom, c)| {
            of_poly(c)
                * match atom {
                    Atom::Dim(_) => 1,
                    Atom::Floor(inner, _) | Atom::Mod(inner, _) => 1 + n_terms(inner),
                }
        })
        .sum();
    of_poly(form.constant_part()) + atoms
}

/// Substitutes a form for each parameter.
pub fn instantiate(form: &Form, args: &[Form]) -> Option<Form> {
    let poly = |poly: &Poly| -> Option<Form> {
        let mut sum = Form::zero();
        for (monomial, c) in poly.terms() {
            let mut term = Form::from(c);
            for p in monomial {
                let factor: &Form = args.get(ParamId::index(*p))?;
                if n_terms(&term).saturating_mul(n_terms(factor)) > MAX_TERMS {
                    return None;
                }
                term = term.mul(factor)?.ok()?;
            }
            sum = sum.add(&term);
        }
        Some(sum)
    };
    let mut result = poly(form.constant_part())?;
    for (atom, c) in form.terms() {
        use systola_ir::Atom;
        let atom = match atom {
            Atom::Dim(d) => Form::from(*d),
            Atom::Floor(inner, k) => instantiate(inner, args)?.floor_div(*k),
            Atom::Mod(inner, k) => instantiate(inner, args)?.modulo(*k),
        };
        result = result.add(&atom.mul(&poly(c)?)?.ok()?);
    }
    Some(result)
}

/// A list of names for a message.
pub fn listed(names: &[String]) -> String {
    shorten(&names.iter().map(String::as_str).collect::<Vec<_>>())
}
