//! Values: the right-hand sides of equations.

use systola_ir::codes::{syntax, types as codes};
use systola_ir::system::{Dim, Expr as Value, InputKind};
use systola_ir::{BinOp, Diagnostic, DimId, FnId, InputId, Literal, LocalId, Scalar, Span, Type};

use super::form::Sees;
use super::names::Entity;
use super::types::{self, Ty, fit, mismatch, settle};
use super::{Lowered, Lowering, Place};
use crate::expr::{Combine, Expr, Node, Range};

impl Lowering {
    pub(crate) fn value(&mut self, expr: &Expr) -> Lowered<(Value, Ty)> {
        match &*expr.node {
            Node::Int(value, None) => Ok((Value::Lit(Scalar::I64, Literal::Int(*value)), Ty::Int)),
            Node::Float(value, None) => {
                Ok((Value::Lit(Scalar::F64, Literal::Float(*value)), Ty::Float))
            }
            Node::Int(value, Some(ty)) => Ok((
                Value::Lit(*ty, fit(Literal::Int(*value), *ty)?),
                Ty::Known(*ty),
            )),
            Node::Float(value, Some(ty)) => Ok((
                Value::Lit(*ty, fit(Literal::Float(*value), *ty)?),
                Ty::Known(*ty),
            )),
            Node::Bool(value) => Ok((
                Value::Lit(Scalar::Bool, Literal::Bool(*value)),
                Ty::Known(Scalar::Bool),
            )),
            Node::Name(name) => self.name_value(name),
            Node::At(name, index) => self.at(name, index),
            Node::Unary(op, a) => {
                let (a, ty) = self.value(a)?;
                let ty = types::unary(*op, &ty)?;
                Ok((Value::Unary(*op, Box::new(a)), ty))
            }
            Node::Binary(op, a, b) => self.binary(*op, a, b),
            Node::Cast(ty, a) => {
                let (a, from) = self.defaulted(a)?;
                if matches!(from, Type::Tuple(_)) {
                    return Err(mismatch(&from.to_string(), "a scalar"));
                }
                Ok((Value::Cast(*ty, Box::new(a)), Ty::Known(*ty)))
            }
            Node::Select(cond, then, otherwise) => self.select(cond, then, otherwise.as_ref()),
            Node::Tuple(parts) => {
                let mut values = Vec::with_capacity(parts.len());
                let mut tys = Vec::with_capacity(parts.len());
                for part in parts {
                    let (value, ty) = self.value(part)?;
                    values.push(value);
                    tys.push(ty);
                }
                Ok((Value::Tuple(values), Ty::Tuple(tys)))
            }
            Node::Field(a, n) => {
                let (a, ty) = self.defaulted(a)?;
                match &ty {
                    Type::Tuple(parts) if *n < parts.len() => {
                        let ty = Ty::from(&parts[*n]);
                        Ok((Value::Field(Box::new(a), *n), ty))
                    }
                    Type::Tuple(_) | Type::Scalar(_) => Err(mismatch(
                        &ty.to_string(),
                        &format!("a tuple with a field {n}"),
                    )),
                }
            }
            Node::Let(name, value, body) => {
                // Locals are numbered in the order in which their names are written.
                let local = LocalId::from(self.locals.len());
                self.locals.push(Type::Scalar(Scalar::I64));
                let (value, ty) = self.defaulted(value)?;
                self.locals[local.index()] = ty;
                self.names.declare(name, Entity::Local(local))?;
                let body = self.value(body);
                self.names.forget(name);
                let (body, ty) = body?;
                let bound = Value::Let {
                    local,
                    name: name.clone(),
                    value: Box::new(value),
                    body: Box::new(body),
                };
                Ok((bound, ty))
            }
            Node::Reduce(op, ranges, body) => self.reduce(op, ranges, body),
            Node::Scan(op, name, body) => {
                self.may_reduce("scan")?;
                let dim = match self.names.get(name) {
                    Some(Entity::Dim(d)) if d.index() < self.system.dims.len() => d,
                    Some(other) => {
                        return Err(wrong_kind(name, other, "an iterator of the index space"));
                    }
                    None => return Err(Box::new(self.names.unknown(name))),
                };
                let (body, op, ty) = self.combined(op, body)?;
                let scan = Value::Scan {
                    op,
                    dim,
                    body: Box::new(body),
                    span: Span::NONE,
                };
                Ok((scan, ty))
            }
            Node::TooLarge(message) => Err(Box::new(
                Diagnostic::new(&syntax::TOO_LARGE, Span::NONE, message.clone())
                    .help("give a part of it a variable of its own, or a name: `bind`"),
            )),
            Node::Mistake(message) => Err(Box::new(
                Diagnostic::new(&codes::VALUE_IN_INDEX, Span::NONE, message.clone())
                    .help("start from a name: `name(\"X\")`"),
            )),
        }
    }

    /// A value whose type nothing else decides.
    fn defaulted(&mut self, expr: &Expr) -> Lowered<(Value, Type)> {
        let (mut value, ty) = self.value(expr)?;
        let to = ty.default();
        settle(&mut value, &ty, &Ty::from(&to))?;
        Ok((value, to))
    }

    fn name_value(&mut self, name: &str) -> Lowered<(Value, Ty)> {
        match self.names.get(name) {
            Some(Entity::Param(p)) => Ok((Value::Param(p), Ty::Known(Scalar::I64))),
            Some(Entity::Dim(d)) => {
                self.pure(name)?;
                Ok((Value::Iter(d), Ty::Known(Scalar::I64)))
            }
            Some(Entity::Const(c)) => {
                let ty = self.system.consts[c.index()].ty;
                Ok((Value::Const(c), Ty::Known(ty)))
            }
            Some(Entity::Local(l)) => Ok((Value::Local(l), Ty::from(&self.locals[l.index()]))),
            Some(Entity::Var(var)) => {
                self.pure(name)?;
                let value = Value::Var {
                    var,
                    index: self.system.identity_index(),
                    span: Span::NONE,
                };
                Ok((value, Ty::from(&self.system.vars[var.index()].ty)))
            }
            Some(Entity::Input(input)) if self.system.inputs[input.index()].axes.is_empty() => {
                self.element(input, name, &[])
            }
            Some(other @ (Entity::Batch | Entity::Input(_) | Entity::Fn(_) | Entity::Output)) => {
                Err(wrong_kind(name, other, "a value"))
            }
            None => Err(Box::new(self.names.unknown(name))),
        }
    }

    fn at(&mut self, name: &str, index: &[Expr]) -> Lowered<(Value, Ty)> {
        let of = format!("`{name}`");
        match self.names.get(name) {
            Some(Entity::Var(var)) => {
                self.pure(name)?;
                let index = self.index(index, self.system.dims.len(), &of)?;
                if self.place == Place::Write && index != self.system.identity_index() {
                    return Err(Box::new(
                        Diagnostic::new(
                            &codes::READ_ELSEWHERE,
                            Span::NONE,
                            format!("an output is written from the values of its own point, but this reads {of} at another one"),
                        )
                        .help(format!("write {of}, and choose the point with `write_when`")),
                    ));
                }
                let value = Value::Var {
                    var,
                    index,
                    span: Span::NONE,
                };
                Ok((value, Ty::from(&self.system.vars[var.index()].ty)))
            }
            Some(Entity::Input(input)) => self.element(input, name, index),
            Some(Entity::Fn(function)) => self.call(function, &of, index),
            Some(other) => Err(wrong_kind(
                name,
                other,
                "a variable, an array or a function",
            )),
            None => Err(Box::new(self.names.unknown(name))),
        }
    }

    /// Refuses what depends on the point inside of a function.
    fn pure(&self, name: &str) -> Lowered<()> {
        if self.place != Place::Function {
            return Ok(());
        }
        Err(Box::new(
            Diagnostic::new(
                &codes::IMPURE_FUNCTION,
                Span::NONE,
                format!("a function can not use `{name}`, whose value depends on the point"),
            )
            .help("pass its value as an argument"),
        ))
    }

    fn may_reduce(&self, what: &str) -> Lowered<()> {
        let place = match self.place {
            Place::Equation => return Ok(()),
            Place::Function => "a function",
            Place::Write => "an output",
        };
        Err(Box::new(
            Diagnostic::new(
                &codes::MISPLACED_REDUCE,
                Span::NONE,
                format!("`{what}` stands in equations, not in {place}"),
            )
            .help("give it a variable of its own and use that"),
        ))
    }

    fn element(&mut self, input: InputId, name: &str, index: &[Expr]) -> Lowered<(Value, Ty)> {
        let declared = &self.system.inputs[input.index()];
        let (n_axes, ty) = (declared.axes.len(), Ty::Known(declared.ty));
        let is_table = matches!(declared.kind, InputKind::Table { .. });
        if !is_table {
            self.pure(name)?;
        }
        let span = Span::NONE;
        match self.index(index, n_axes, &format!("`{name}`")) {
            Ok(index) => Ok((Value::Input { input, index, span }, ty)),
            Err(error) if !is_table || index.len() != n_axes => Err(error),
            Err(_) => {
                let mut values = Vec::with_capacity(n_axes);
                for e in index {
                    let (value, found) = self.defaulted(e)?;
                    if !found.scalar().is_some_and(Scalar::is_int) {
                        return Err(mismatch(&found.to_string(), "an integer"));
                    }
                    values.push(value);
                }
                let lookup = Value::Lookup {
                    input,
                    index: values,
                    span,
                };
                Ok((lookup, ty))
            }
        }
    }

    fn call(&mut self, function: FnId, of: &str, arguments: &[Expr]) -> Lowered<(Value, Ty)> {
        self.calls.push(function);
        let declared = &self.system.functions[function.index()];
        let result = Ty::from(&declared.result);
        let expected: Vec<Type> = declared.params.iter().map(|(_, ty)| ty.clone()).collect();
        if expected.len() != arguments.len() {
            return Err(Box::new(
                Diagnostic::new(
                    &codes::WRONG_COUNT,
                    Span::NONE,
                    format!(
                        "{of} takes {} arguments, {} are given",
                        expected.len(),
                        arguments.len()
                    ),
                )
                .help("give one for each parameter"),
            ));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(&expected) {
            values.push(self.typed(argument, ty)?);
        }
        Ok((Value::Call(function, values), result))
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Lowered<(Value, Ty)> {
        let (mut a, a_ty) = self.value(a)?;
        let (mut b, b_ty) = self.value(b)?;
        let joined = types::binary(op, &a_ty.join(&b_ty)?)?;
        let ty = if op.is_comparison() {
            let operands = Ty::from(&joined.default());
            settle(&mut a, &a_ty, &operands)?;
            settle(&mut b, &b_ty, &operands)?;
            Ty::Known(Scalar::Bool)
        } else {
            settle(&mut a, &a_ty, &joined)?;
            settle(&mut b, &b_ty, &joined)?;
            joined
        };
        Ok((Value::binary(op, a, b), ty))
    }

    fn select(
        &mut self,
        cond: &Expr,
        then: &Expr,
        otherwise: Option<&Expr>,
    ) -> Lowered<(Value, Ty)> {
        let by_position = self.cond(cond, Sees::All);
        let (mut then, then_ty) = self.value(then)?;
        let (mut otherwise, ty) = match otherwise {
            None => (None, then_ty.clone()),
            Some(otherwise) => {
                let (mut value, found) = self.value(otherwise)?;
                let joined = then_ty.join(&found)?;
                settle(&mut value, &found, &joined)?;
                (Some(Box::new(value)), joined)
            }
        };
        settle(&mut then, &then_ty, &ty)?;
        let then = Box::new(then);
        if let Ok(cond) = by_position {
            let guard = Value::Guard {
                cond,
                then,
                otherwise,
            };
            return Ok((guard, ty));
        }
        let (cond, cond_ty) = self.value(cond)?;
        if cond_ty != Ty::Known(Scalar::Bool) {
            return Err(mismatch(&cond_ty.default().to_string(), "bool"));
        }
        let Some(otherwise) = otherwise.take() else {
            return Err(Box::new(
                Diagnostic::new(
                    &codes::SELECT_NEEDS_ELSE,
                    Span::NONE,
                    "a `select` without a last branch needs a condition on iterators and parameters",
                )
                .help("use `select` with three arguments"),
            ));
        };
        let select = Value::Select {
            cond: Box::new(cond),
            then,
            otherwise,
        };
        Ok((select, ty))
    }

    fn reduce(&mut self, op: &Combine, ranges: &[Range], body: &Expr) -> Lowered<(Value, Ty)> {
        self.may_reduce("reduce")?;
        let mut dims = Vec::with_capacity(ranges.len());
        let mut declared = Ok(());
        for range in ranges {
            let Some((lo, hi)) = &range.bounds else {
                return Err(Box::new(
                    Diagnostic::new(
                        &codes::VALUE_IN_INDEX,
                        Span::NONE,
                        format!("the iterator `{}` of a reduction has no range", range.name),
                    )
                    .help("write it as `q.range(lo, hi)`"),
                ));
            };
            let bounds = (self.form(lo, Sees::All)?, self.form(hi, Sees::All)?);
            let d = DimId::from(self.system.dims.len() + self.system.bound.len());
            declared = self.names.declare(&range.name, Entity::Dim(d));
            if declared.is_err() {
                break;
            }
            self.system.bound.push(Dim {
                name: range.name.clone(),
                range: Some(bounds),
                span: Span::NONE,
            });
            dims.push(d);
        }
        let combined = match declared {
            Ok(()) => self.combined(op, body),
            Err(error) => Err(error),
        };
        for range in ranges.iter().take(dims.len()) {
            self.names.forget(&range.name);
        }
        let (body, op, ty) = combined?;
        let reduce = Value::Reduce {
            op,
            dims,
            body: Box::new(body),
            span: Span::NONE,
        };
        Ok((reduce, ty))
    }

    /// The body of a reduction, of a type that its operator is defined on.
    fn combined(
        &mut self,
        op: &Combine,
        body: &Expr,
    ) -> Lowered<(Value, systola_ir::system::Combine, Ty)> {
        match op {
            Combine::Op(op) => {
                let (body, ty) = self.value(body)?;
                if !op.is_reduction() {
                    return Err(Box::new(
                        Diagnostic::new(
                            &codes::BAD_COMBINE,
                            Span::NONE,
                            format!("`{}` does not sum", op.name()),
                        )
                        .help("use one of + * min max && || & | ^, or a function"),
                    ));
                }
                let ty = types::binary(*op, &ty)?;
                Ok((body, systola_ir::system::Combine::Op(*op), ty))
            }
            Combine::Fn(name) => match self.names.get(name) {
                Some(Entity::Fn(function)) => {
                    let signature = &self.system.functions[function.index()];
                    let ty = signature.result.clone();
                    if signature.params.len() != 2 || signature.params.iter().any(|(_, p)| *p != ty)
                    {
                        return Err(Box::new(
                            Diagnostic::new(
                                &codes::BAD_COMBINE,
                                Span::NONE,
                                format!("a sum needs a function (T, T) -> T, and `{name}` is none"),
                            )
                            .help("give it two parameters of the type of its result"),
                        ));
                    }
                    let body = self.typed(body, &ty)?;
                    Ok((
                        body,
                        systola_ir::system::Combine::Fn(function),
                        Ty::from(&ty),
                    ))
                }
                Some(other) => Err(wrong_kind(name, other, "a function")),
                None => Err(Box::new(self.names.unknown(name))),
            },
        }
    }
}

fn wrong_kind(name: &str, entity: Entity, wanted: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            &codes::WRONG_KIND,
            Span::NONE,
            format!("`{name}` is {}, not {wanted}", entity.describe()),
        )
        .help("check what the name was declared as"),
    )
}
