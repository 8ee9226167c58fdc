//! `reduce` and `scan`.

use systola_ir::codes::{syntax, types};
use systola_ir::mapping::Name;
use systola_ir::system::{Combine, Dim, Expr};
use systola_ir::{Diagnostic, DimId, Span};

use super::Typed;
use crate::elaborate::infer::{Class, Ty, no_operator};
use crate::elaborate::names::Entity;
use crate::elaborate::system::{Elaborator, Place};
use crate::elaborate::{Elaborated, Failed};
use crate::tree::{self, ReduceOpKind};

impl Elaborator<'_> {
    pub(super) fn reduce(
        &mut self,
        op: &tree::ReduceOp,
        dims: &[tree::Dim],
        body: &tree::Expr,
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        self.may_reduce("reduce", span)?;
        let mut bound = Vec::new();
        let result = self
            .bind_dims(dims, &mut bound)
            .and_then(|()| self.value(body));
        for (_, name) in &bound {
            self.names.forget(name);
        }
        let (op, body, ty) = self.combine(op, result?)?;
        let reduce = Expr::Reduce {
            op,
            dims: bound.into_iter().map(|(d, _)| d).collect(),
            body: Box::new(body),
            span,
        };
        Ok((reduce, ty))
    }

    fn bind_dims(
        &mut self,
        dims: &[tree::Dim],
        bound: &mut Vec<(DimId, String)>,
    ) -> Elaborated<()> {
        for dim in dims {
            let Some((lo, hi)) = &dim.range else {
                return self.errors.fail(
                    Diagnostic::new(
                        &syntax::NO_RANGE,
                        dim.span,
                        format!("the iterator `{}` of a sum has no range", dim.name.text),
                    )
                    .help("say where it begins and ends"),
                );
            };
            let (lo, hi) = (self.form(lo), self.form(hi));
            let range = Some((lo?, hi?));
            let id = DimId::from(self.dims.len() + self.system.bound.len());
            if !self.names.declare(&dim.name, Entity::Dim(id), self.errors) {
                return Err(Failed);
            }
            bound.push((id, dim.name.text.clone()));
            self.system.bound.push(Dim {
                name: dim.name.text.clone(),
                range,
                span: dim.span,
            });
        }
        Ok(())
    }

    pub(super) fn scan(
        &mut self,
        op: &tree::ReduceOp,
        dim: &Name,
        body: &tree::Expr,
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        self.may_reduce("scan", span)?;
        let along = match self.names.get(&dim.text) {
            Some(Entity::Dim(d)) if d.index() < self.dims.len() => d,
            Some(entity) => {
                let help = "a scan runs along an iterator of the index space";
                return self.wrong_kind(
                    &dim.text,
                    entity,
                    "an iterator of the index space",
                    help,
                    dim.span,
                );
            }
            None => {
                let error = self.names.unknown(&dim.text, dim.span);
                return self.errors.fail(error);
            }
        };
        let body = self.value(body)?;
        let (op, body, ty) = self.combine(op, body)?;
        let scan = Expr::Scan {
            op,
            dim: along,
            body: Box::new(body),
            span,
        };
        Ok((scan, ty))
    }

    fn may_reduce(&mut self, what: &str, span: Span) -> Elaborated<()> {
        let place = match self.place {
            Place::Equation => return Ok(()),
            Place::Function => "a function",
            Place::Write => "an output",
        };
        self.errors.fail(
            Diagnostic::new(
                &types::MISPLACED_REDUCE,
                span,
                format!("`{what}` stands in equations, not in {place}"),
            )
            .help("give it a variable of its own and use that"),
        )
    }

    /// The operator of a sum, checked against the type of its terms.
    fn combine(&mut self, op: &tree::ReduceOp, body: Typed<'_>) -> Elaborated<(Combine, Expr, Ty)> {
        let name = match &op.kind {
            ReduceOpKind::Op(combine) if !combine.is_reduction() => {
                return self.errors.fail(
                    Diagnostic::new(
                        &types::BAD_COMBINE,
                        op.span,
                        format!("`{}` does not sum", combine.name()),
                    )
                    .help("use one of + * min max && || & | ^, or a function"),
                );
            }
            ReduceOpKind::Op(op) => {
                let class = Class::of_binary(*op);
                return match class.narrow(&body.ty) {
                    Some(ty) => Ok((Combine::Op(*op), body.expr, ty)),
                    None => self
                        .errors
                        .fail(*no_operator(op.name(), class, &body.ty, body.span)),
                };
            }
            ReduceOpKind::Fn(name) => name,
        };
        let function = match self.names.get(name) {
            Some(Entity::Fn(function)) => function,
            Some(entity) => {
                return self.wrong_kind(
                    name,
                    entity,
                    "a function",
                    "use a `fn` of two arguments",
                    op.span,
                );
            }
            None => {
                let error = self.names.unknown(name, op.span);
                return self.errors.fail(error);
            }
        };
        let Some(signature) = self.system.functions.get(function.index()) else {
            return Err(Failed);
        };
        let ty = signature.result.clone();
        let fits = signature.params.len() == 2 && signature.params.iter().all(|(_, p)| *p == ty);
        if !fits {
            let params: Vec<String> = signature
                .params
                .iter()
                .map(|(_, p)| p.to_string())
                .collect();
            return self.errors.fail(
                Diagnostic::new(
                    &types::BAD_COMBINE,
                    op.span,
                    format!(
                        "a sum needs a function (T, T) -> T, and `{name}` is ({}) -> {ty}",
                        params.join(", ")
                    ),
                )
                .help(format!(
                    "give `{name}` two parameters of the type of its result"
                )),
            );
        }
        let what = format!("what `{name}` combines");
        let body = self.coerce(body, &ty, &what)?;
        Ok((Combine::Fn(function), body, Ty::from(&ty)))
    }
}
