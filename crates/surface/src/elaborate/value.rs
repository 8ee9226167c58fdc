//! Right-hand sides: resolves names, infers types, and sets the types of literals.

use systola_ir::codes::{stencil, syntax, types};
use systola_ir::mapping::Name;
use systola_ir::system::{Expr, visit};
use systola_ir::{BinOp, Diagnostic, FnId, Literal, LocalId, Scalar, Span, Type, UnOp};

use super::infer::{Class, Ty, fit, no_operator, settle};
use super::names::Entity;
use super::system::Elaborator;
use super::{Elaborated, Failed};
use crate::tree::{self, ExprKind};

mod casts;
mod reads;
mod sums;

/// The maximum number of nodes that the chained comparisons of one body may copy.
pub const COPIES: usize = 1 << 14;

/// An expression with its type and its source location.
#[derive(Debug)]
pub struct Typed<'t> {
    pub expr: Expr,
    pub ty: Ty,
    pub span: Span,
    /// What was written, where it is one expression.
    pub tree: Option<&'t tree::Expr>,
}

impl Elaborator<'_> {
    /// Elaborates a value of a declared type.
    pub fn value_of(&mut self, tree: &tree::Expr, ty: &Type, what: &str) -> Elaborated<Expr> {
        let value = self.value(tree)?;
        self.coerce(value, ty, what)
    }

    fn coerce(&mut self, value: Typed<'_>, ty: &Type, what: &str) -> Elaborated<Expr> {
        let Typed {
            mut expr,
            ty: found,
            span,
            tree,
        } = value;
        if found.join(&Ty::from(ty)) != Some(Ty::from(ty)) {
            let error = Diagnostic::new(
                &types::TYPE_MISMATCH,
                span,
                format!("{what} is {ty}, but this is {}", found.describe()),
            );
            return self.errors.fail(match (ty, &found) {
                (Type::Scalar(to), Ty::Known(_) | Ty::Int | Ty::Float) => {
                    error.help(casts::conversion(tree, &found, *to))
                }
                (Type::Tuple(parts), Ty::Tuple(found)) if parts.len() != found.len() => {
                    error.help(format!("give it {} fields", parts.len()))
                }
                (Type::Tuple(_), Ty::Tuple(_)) => error.help("convert its fields one by one"),
                (Type::Scalar(_), Ty::Tuple(_)) => error.help("take one of its fields: `.0`"),
                (Type::Tuple(_), _) => error.help(format!("write a tuple of type {ty}")),
            });
        }
        self.settle(&mut expr, &found, &Ty::from(ty), span)?;
        Ok(expr)
    }

    fn settle(&mut self, expr: &mut Expr, from: &Ty, to: &Ty, span: Span) -> Elaborated<()> {
        settle(expr, from, to, span).or_else(|error| self.errors.fail(*error))
    }

    /// Elaborates a value without a declared type; literals get default types.
    fn decided(&mut self, tree: &tree::Expr) -> Elaborated<(Expr, Type)> {
        let value = self.value(tree)?;
        self.decide(value)
    }

    fn decide(&mut self, value: Typed<'_>) -> Elaborated<(Expr, Type)> {
        let Typed {
            mut expr, ty, span, ..
        } = value;
        let to = ty.default();
        self.settle(&mut expr, &ty, &Ty::from(&to), span)?;
        Ok((expr, to))
    }

    /// Converts two values to their common type.
    fn join(
        &mut self,
        left: Typed<'_>,
        right: Typed<'_>,
        what: &str,
    ) -> Elaborated<(Expr, Expr, Ty)> {
        let Some(ty) = left.ty.join(&right.ty) else {
            let error = Diagnostic::new(
                &types::TYPE_MISMATCH,
                right.span,
                format!(
                    "{what} one type, but these are {} and {}",
                    left.ty.describe(),
                    right.ty.describe()
                ),
            )
            .here(right.ty.describe())
            .also(left.span, left.ty.describe());
            let cast = casts::common((left.tree, &left.ty), (right.tree, &right.ty));
            let cast = cast.unwrap_or_else(|| "make them alike".to_string());
            return self.errors.fail(error.help(cast));
        };
        let (mut a, mut b) = (left.expr, right.expr);
        self.settle(&mut a, &left.ty, &ty, left.span)?;
        self.settle(&mut b, &right.ty, &ty, right.span)?;
        Ok((a, b, ty))
    }

    pub fn value<'t>(&mut self, tree: &'t tree::Expr) -> Elaborated<Typed<'t>> {
        let span = tree.span;
        let (expr, ty) = match &tree.kind {
            ExprKind::Int(value, ty) => self.literal(Literal::Int(*value), *ty, span)?,
            ExprKind::Float(value, ty) => self.literal(Literal::Float(*value), *ty, span)?,
            ExprKind::Bool(value) => (
                Expr::Lit(Scalar::Bool, Literal::Bool(*value)),
                Ty::Known(Scalar::Bool),
            ),
            ExprKind::Name(name) => self.named(name, span)?,
            ExprKind::Apply(name, args) => self.apply(name, args, span)?,
            ExprKind::Element(name, index) => self.element(name, index, span)?,
            ExprKind::At(name, list) => self.at(name, list, span)?,
            ExprKind::Mistake(error) => return self.errors.fail((**error).clone()),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, span)?,
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(left), self.value(right));
                self.binary(*op, left?, right?, span)?
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest, span)?,
            ExprKind::Field(tuple, field) => self.field(tuple, *field, span)?,
            ExprKind::Tuple(parts) => self.tuple(parts)?,
            ExprKind::Paren(inner) => {
                let inner = self.value(inner)?;
                (inner.expr, inner.ty)
            }
            ExprKind::Let(bindings, body) => self.let_in(bindings, body)?,
            ExprKind::Reduce(op, dims, body) => self.reduce(op, dims, body, span)?,
            ExprKind::Scan(op, dim, body) => self.scan(op, dim, body, span)?,
            ExprKind::Around(..) => {
                return self.errors.fail(
                    Diagnostic::new(
                        &stencil::NOT_IN_STENCIL,
                        span,
                        "a neighbourhood is given by a word in the equations of a `stencil` only",
                    )
                    .help("write it as a `reduce`"),
                );
            }
        };
        Ok(Typed {
            expr,
            ty,
            span,
            tree: Some(tree),
        })
    }

    fn values<'t>(&mut self, list: &'t [tree::Expr]) -> Elaborated<Vec<Typed<'t>>> {
        // All of them are elaborated, so that all errors are found.
        let values: Vec<_> = list.iter().map(|e| self.value(e)).collect();
        values.into_iter().collect()
    }

    fn literal(
        &mut self,
        literal: Literal,
        suffix: Option<Scalar>,
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        match (suffix, literal) {
            (Some(ty), _) => match fit(literal, ty, span) {
                Ok(literal) => Ok((Expr::Lit(ty, literal), Ty::Known(ty))),
                Err(error) => self.errors.fail(*error),
            },
            (None, Literal::Float(_)) => Ok((Expr::Lit(Scalar::F64, literal), Ty::Float)),
            (None, _) => Ok((Expr::Lit(Scalar::I64, literal), Ty::Int)),
        }
    }

    fn wrong_kind<T>(
        &mut self,
        name: &str,
        entity: Entity,
        wanted: &str,
        help: &str,
        span: Span,
    ) -> Elaborated<T> {
        let error = Diagnostic::new(
            &types::WRONG_KIND,
            span,
            format!("`{name}` is {}, not {wanted}", entity.describe()),
        )
        .help(help);
        self.errors.fail(match self.names.span(name) {
            Some(declared) => error.also(declared, "declared here"),
            None => error,
        })
    }

    fn wrong_count<T>(
        &mut self,
        what: &str,
        expected: &str,
        found: usize,
        span: Span,
    ) -> Elaborated<T> {
        self.errors.fail(
            Diagnostic::new(
                &types::WRONG_COUNT,
                span,
                format!("{what} takes {expected}, found {found}"),
            )
            .help("give exactly as many as it takes"),
        )
    }

    fn apply(&mut self, name: &Name, args: &[tree::Expr], span: Span) -> Elaborated<(Expr, Ty)> {
        let text = name.text.as_str();
        if let Some(op) = UnOp::function(text) {
            return match args {
                [operand] => self.unary(op, operand, span),
                _ => self.wrong_count(&format!("`{text}`"), "1 argument", args.len(), span),
            };
        }
        if let Some(scalar) = Scalar::from_name(text) {
            return self.cast(scalar, args, span);
        }
        match text {
            "select" => return self.select(args, span),
            "min" => return self.fold(BinOp::Min, args, span),
            "max" => return self.fold(BinOp::Max, args, span),
            "pow" => {
                if args.len() != 2 {
                    return self.wrong_count("`pow`", "2 arguments", args.len(), span);
                }
                return self.fold(BinOp::Pow, args, span);
            }
            _ => {}
        }
        match self.names.get(text) {
            Some(Entity::Var(var)) => self.var_call(text, var, args, span),
            Some(Entity::Fn(function)) => self.call(text, function, args, span),
            Some(entity @ Entity::Input(_)) => {
                let help = format!("elements of an array are in brackets: `{text}[…]`");
                self.wrong_kind(text, entity, "a function or a variable", &help, name.span)
            }
            Some(entity) => {
                let help = format!("write `{text}` without arguments");
                self.wrong_kind(text, entity, "a function or a variable", &help, name.span)
            }
            None => {
                let error = self.names.unknown(text, name.span);
                self.errors.fail(error)
            }
        }
    }

    /// Elaborates an index or a call, depending on the declaration of the name.
    fn at(&mut self, name: &Name, list: &[tree::Expr], span: Span) -> Elaborated<(Expr, Ty)> {
        let text = name.text.as_str();
        match self.names.get(text) {
            Some(Entity::Var(var)) => self.var_call(text, var, list, span),
            Some(Entity::Fn(function)) => self.call(text, function, list, span),
            Some(Entity::Input(input)) => self.element_of(text, input, list, span),
            Some(entity) => {
                let wanted = "an array, a function or a variable";
                let help = format!("write `{text}` without an index");
                self.wrong_kind(text, entity, wanted, &help, name.span)
            }
            None => {
                let error = self.names.unknown(text, name.span);
                self.errors.fail(error)
            }
        }
    }

    fn call(
        &mut self,
        name: &str,
        function: FnId,
        args: &[tree::Expr],
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        let Some(signature) = self.system.functions.get(function.index()) else {
            return Err(Failed);
        };
        let params = signature.params.clone();
        let result = Ty::from(&signature.result);
        self.calls.push((function, span));
        if args.len() != params.len() {
            let n = params.len();
            let expected = format!("{n} argument{}", if n == 1 { "" } else { "s" });
            return self.wrong_count(
                &format!("the function `{name}`"),
                &expected,
                args.len(),
                span,
            );
        }
        let elaborated: Vec<_> = args
            .iter()
            .zip(&params)
            .map(|(arg, (param, ty))| self.value_of(arg, ty, &format!("`{param}` of `{name}`")))
            .collect();
        let args = elaborated.into_iter().collect::<Elaborated<_>>()?;
        Ok((Expr::Call(function, args), result))
    }

    fn cast(&mut self, to: Scalar, args: &[tree::Expr], span: Span) -> Elaborated<(Expr, Ty)> {
        let [operand] = args else {
            return self.wrong_count(&format!("the cast `{to}`"), "1 argument", args.len(), span);
        };
        let (expr, ty) = self.decided(operand)?;
        if ty.scalar().is_none() {
            return self.errors.fail(
                Diagnostic::new(
                    &types::TYPE_MISMATCH,
                    operand.span,
                    format!("only scalars are cast, and this is {ty}"),
                )
                .help("take a field of it first: `.0`"),
            );
        }
        Ok((Expr::Cast(to, Box::new(expr)), Ty::Known(to)))
    }

    fn select(&mut self, args: &[tree::Expr], span: Span) -> Elaborated<(Expr, Ty)> {
        let (cond, then, otherwise) = match args {
            [cond, then] => (cond, then, None),
            [cond, then, otherwise] => (cond, then, Some(otherwise)),
            _ => return self.wrong_count("`select`", "2 or 3 arguments", args.len(), span),
        };
        let guard = self.scope().cond(cond);
        // In source order, since this numbers locals and iterators of sums.
        let by_value = match &guard {
            Ok(_) => None,
            Err(_) => Some(self.value_of(cond, &Type::Scalar(Scalar::Bool), "a condition")),
        };
        let then = self.value(then);
        let otherwise = otherwise.map(|e| self.value(e));
        if let (Ok(cond), None) = (&guard, &otherwise) {
            let then = then?;
            let guard = Expr::Guard {
                cond: cond.clone(),
                then: Box::new(then.expr),
                otherwise: None,
            };
            return Ok((guard, then.ty));
        }
        let by_value = by_value.transpose()?;
        let then = then?;
        let Some(otherwise) = otherwise.transpose()? else {
            let mut error = Diagnostic::new(
                &types::SELECT_NEEDS_ELSE,
                span,
                "a `select` by a computed condition needs both branches",
            )
            .also(cond.span, "known only when the values are")
            .help("add a third argument");
            if let Err(reason) = guard {
                error = error.note(format!(
                    "it is no condition on the position: {}",
                    reason.message
                ));
            }
            return self.errors.fail(error);
        };
        let (then, otherwise, ty) = self.join(then, otherwise, "both branches of `select` have")?;
        let (then, otherwise) = (Box::new(then), Box::new(otherwise));
        Ok(match (guard, by_value) {
            (Ok(cond), _) => (
                Expr::Guard {
                    cond,
                    then,
                    otherwise: Some(otherwise),
                },
                ty,
            ),
            (Err(_), Some(cond)) => (
                Expr::Select {
                    cond: Box::new(cond),
                    then,
                    otherwise,
                },
                ty,
            ),
            (Err(_), None) => return Err(Failed),
        })
    }

    /// `min(a, b, c)` is `min(min(a, b), c)`.
    fn fold(&mut self, op: BinOp, args: &[tree::Expr], span: Span) -> Elaborated<(Expr, Ty)> {
        if args.len() < 2 {
            let what = format!("`{}`", op.name());
            return self.wrong_count(&what, "at least 2 arguments", args.len(), span);
        }
        let mut values = self.values(args)?.into_iter();
        let Some(mut folded) = values.next() else {
            return Err(Failed);
        };
        for value in values {
            let joined = folded.span.to(value.span);
            let (expr, ty) = self.binary(op, folded, value, span)?;
            folded = Typed {
                expr,
                ty,
                span: joined,
                tree: None,
            };
        }
        Ok((folded.expr, folded.ty))
    }

    fn unary(&mut self, op: UnOp, operand: &tree::Expr, span: Span) -> Elaborated<(Expr, Ty)> {
        let operand = self.value(operand)?;
        let class = Class::of_unary(op);
        match class.narrow(&operand.ty) {
            Some(ty) => Ok((Expr::Unary(op, Box::new(operand.expr)), ty)),
            None => self
                .errors
                .fail(*no_operator(op.name(), class, &operand.ty, span)),
        }
    }

    fn binary(
        &mut self,
        op: BinOp,
        left: Typed<'_>,
        right: Typed<'_>,
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        let class = Class::of_binary(op);
        for side in [&left, &right] {
            if class.narrow(&side.ty).is_none() {
                let error = no_operator(op.name(), class, &side.ty, span);
                return self.errors.fail(error.also(side.span, side.ty.describe()));
            }
        }
        let right_span = right.span;
        let what = format!("the operands of `{}` have", op.name());
        let (left, mut right, ty) = self.join(left, right, &what)?;
        let ty = class.narrow(&ty).unwrap_or(ty);
        let mut left = left;
        if op.is_comparison() {
            let decided = Ty::from(&ty.default());
            self.settle(&mut left, &ty, &decided, span)?;
            self.settle(&mut right, &ty, &decided, right_span)?;
            return Ok((Expr::binary(op, left, right), Ty::Known(Scalar::Bool)));
        }
        let by_zero = matches!(op, BinOp::Div | BinOp::Rem)
            && matches!(ty, Ty::Known(s) if s.is_int())
            && matches!(right, Expr::Lit(_, Literal::Int(0)));
        if by_zero {
            return self.errors.fail(
                Diagnostic::new(
                    &types::BAD_DIVISOR,
                    right_span,
                    format!("`{} 0` on integers has no value", op.name()),
                )
                .help("divide by something else, or guard it with `select`"),
            );
        }
        Ok((Expr::binary(op, left, right), ty))
    }

    /// `a <= b < c`: `a <= b && b < c`.
    fn chain(
        &mut self,
        first: &tree::Expr,
        rest: &[(BinOp, tree::Expr)],
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        let mut left = self.value(first)?;
        let mut chain: Option<Expr> = None;
        for (op, right) in rest {
            let right = self.value(right)?;
            let copy = self.copy(&right)?;
            let (comparison, _) = self.binary(*op, left, right, span)?;
            chain = Some(match chain {
                None => comparison,
                Some(before) => Expr::binary(BinOp::And, before, comparison),
            });
            left = copy;
        }
        chain
            .map(|expr| (expr, Ty::Known(Scalar::Bool)))
            .ok_or(Failed)
    }

    fn copy<'t>(&mut self, value: &Typed<'t>) -> Elaborated<Typed<'t>> {
        let mut nodes = 0;
        visit::walk(&value.expr, &mut |_| nodes += 1);
        match self.copies.checked_sub(nodes) {
            Some(left) if !binds(&value.expr) => {
                self.copies = left;
                Ok(Typed {
                    expr: value.expr.clone(),
                    ty: value.ty.clone(),
                    span: value.span,
                    tree: value.tree,
                })
            }
            _ => self.errors.fail(
                Diagnostic::new(
                    &syntax::TOO_LARGE,
                    value.span,
                    "the middle of a chained comparison is written out twice, and this is too large for it",
                )
                .help("give it a name with `let`, or write the comparisons with `&&`"),
            ),
        }
    }

    fn field(&mut self, tuple: &tree::Expr, field: usize, span: Span) -> Elaborated<(Expr, Ty)> {
        let (expr, ty) = self.decided(tuple)?;
        let help = match &ty {
            Type::Tuple(parts) => match parts.get(field) {
                Some(part) => {
                    let part = Ty::from(part);
                    return Ok((Expr::Field(Box::new(expr), field), part));
                }
                None => format!("its fields are .0 to .{}", parts.len().saturating_sub(1)),
            },
            Type::Scalar(_) => "only tuples have fields".to_string(),
        };
        self.errors.fail(
            Diagnostic::new(
                &types::NO_SUCH_FIELD,
                span,
                format!("there is no field .{field} in {ty}"),
            )
            .help(help),
        )
    }

    fn tuple(&mut self, parts: &[tree::Expr]) -> Elaborated<(Expr, Ty)> {
        let values = self.values(parts)?;
        let (exprs, types) = values.into_iter().map(|v| (v.expr, v.ty)).unzip();
        Ok((Expr::Tuple(exprs), Ty::Tuple(types)))
    }

    fn let_in(
        &mut self,
        bindings: &[(Name, tree::Expr)],
        body: &tree::Expr,
    ) -> Elaborated<(Expr, Ty)> {
        let mut bound = Vec::new();
        let result = self
            .bind_all(bindings, &mut bound)
            .and_then(|()| self.value(body));
        for (_, name, _) in &bound {
            self.names.forget(name);
        }
        let body = result?;
        let expr = bound
            .into_iter()
            .rev()
            .fold(body.expr, |body, (local, name, value)| Expr::Let {
                local,
                name,
                value: Box::new(value),
                body: Box::new(body),
            });
        Ok((expr, body.ty))
    }

    fn bind_all(
        &mut self,
        bindings: &[(Name, tree::Expr)],
        bound: &mut Vec<(LocalId, String, Expr)>,
    ) -> Elaborated<()> {
        for (name, value) in bindings {
            // Locals are numbered in source order.
            let local = LocalId::from(self.locals.len());
            self.locals.push(Type::Scalar(Scalar::I64));
            let (value, ty) = self.decided(value)?;
            if let Some(slot) = self.locals.get_mut(local.index()) {
                *slot = ty;
            }
            if !self.names.declare(name, Entity::Local(local), self.errors) {
                return Err(Failed);
            }
            bound.push((local, name.text.clone(), value));
        }
        Ok(())
    }
}

/// Whether an expression binds a name. A copy would bind the name twice.
fn binds(expr: &Expr) -> bool {
    let mut found = false;
    visit::walk(expr, &mut |e| {
        found |= matches!(e, Expr::Let { .. } | Expr::Reduce { .. });
    });
    found
}
