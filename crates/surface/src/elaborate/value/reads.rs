//! Uses of names in values: iterators, variables at points, elements of arrays and tables.

use systola_ir::codes::types;
use systola_ir::mapping::Name;
use systola_ir::system::{Expr, InputKind};
use systola_ir::{Diagnostic, Form, InputId, Scalar, Span, VarId};

use super::casts;
use crate::elaborate::infer::Ty;
use crate::elaborate::names::Entity;
use crate::elaborate::system::{Elaborator, Place};
use crate::elaborate::{Elaborated, Failed};
use crate::tree;

impl Elaborator<'_> {
    pub(super) fn named(&mut self, name: &str, span: Span) -> Elaborated<(Expr, Ty)> {
        let Some(entity) = self.names.get(name) else {
            let error = self.names.unknown(name, span);
            return self.errors.fail(error);
        };
        match entity {
            Entity::Param(p) => Ok((Expr::Param(p), Ty::Known(Scalar::I64))),
            Entity::Const(c) => match self.system.consts.get(c.index()) {
                Some(constant) => Ok((Expr::Const(c), Ty::Known(constant.ty))),
                None => Err(Failed),
            },
            Entity::Dim(d) => {
                self.pure(name, entity, span)?;
                Ok((Expr::Iter(d), Ty::Known(Scalar::I64)))
            }
            Entity::Local(local) => match self.locals.get(local.index()) {
                Some(ty) => Ok((Expr::Local(local), Ty::from(ty))),
                None => Err(Failed),
            },
            Entity::Var(var) => {
                let here: Vec<&String> = self.dims.iter().map(|d| &d.name).collect();
                let of_var: Vec<String> = self.system.names_of(var);
                if self.place != Place::Function && !of_var.iter().eq(here) {
                    return self.other_iterators(name, &of_var, span);
                }
                self.var_at(name, var, self.here(), span)
            }
            Entity::Input(input) if self.axes_of(input) == Some(0) => {
                self.element_of(name, input, &[], span)
            }
            Entity::Input(_) => {
                let help = format!("say which element: `{name}[…]`");
                self.wrong_kind(name, entity, "a value", &help, span)
            }
            Entity::Fn(_) => {
                let help = format!("call it: `{name}(…)`");
                self.wrong_kind(name, entity, "a value", &help, span)
            }
            Entity::Output => {
                let help = "read the variable that is written to it".to_string();
                self.wrong_kind(name, entity, "a value", &help, span)
            }
            Entity::Batch => {
                let help = "make it an iterator of `index` if equations need it".to_string();
                self.wrong_kind(name, entity, "a value", &help, span)
            }
            Entity::Stage(_) => Err(Failed),
        }
    }

    /// Inside of a function, refuses names that depend on the point.
    fn pure(&mut self, name: &str, entity: Entity, span: Span) -> Elaborated<()> {
        if self.place != Place::Function {
            return Ok(());
        }
        self.errors.fail(
            Diagnostic::new(
                &types::IMPURE_FUNCTION,
                span,
                format!("a function cannot use `{name}`, {}", entity.describe()),
            )
            .help("pass its value as an argument"),
        )
    }

    fn var_at(
        &mut self,
        name: &str,
        var: VarId,
        index: Vec<Form>,
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        self.pure(name, Entity::Var(var), span)?;
        if self.place == Place::Write && index != self.here() {
            return self.errors.fail(
                Diagnostic::new(
                    &types::READ_ELSEWHERE,
                    span,
                    format!("an output is written from the values of its own point, but this reads `{name}` at another one"),
                )
                .help(format!("write `{name}`, and choose the point with `when`")),
            );
        }
        let Some(declared) = self.system.vars.get(var.index()) else {
            return Err(Failed);
        };
        let ty = Ty::from(&declared.ty);
        Ok((Expr::Var { var, index, span }, ty))
    }

    /// The error for a name alone of a variable with other iterators than those here.
    fn other_iterators<T>(&mut self, name: &str, dims: &[String], span: Span) -> Elaborated<T> {
        let dims = dims.join(", ");
        self.errors.fail(
            Diagnostic::new(
                &types::WRONG_COUNT,
                span,
                format!("`{name}` has iterators of its own, ({dims}), and its name alone does not say which value is read"),
            )
            .help(format!("give one index for each of its iterators, such as `{name}({dims})`")),
        )
    }

    pub(super) fn var_call(
        &mut self,
        name: &str,
        var: VarId,
        args: &[tree::Expr],
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        let dims = self.system.names_of(var);
        if args.len() != dims.len() {
            let expected = format!("{} indices ({})", dims.len(), dims.join(", "));
            let error = Diagnostic::new(
                &types::WRONG_COUNT,
                span,
                format!(
                    "the variable `{name}` takes {expected}, found {}",
                    args.len()
                ),
            );
            return self.errors.fail(error.help(format!(
                "give one index for each of its iterators, such as `{name}({})`",
                dims.join(", ")
            )));
        }
        let index = self.forms(args)?;
        self.var_at(name, var, index, span)
    }

    fn axes_of(&self, input: InputId) -> Option<usize> {
        self.system.inputs.get(input.index()).map(|i| i.axes.len())
    }

    pub(super) fn element(
        &mut self,
        name: &Name,
        index: &[tree::Expr],
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        match self.names.get(&name.text) {
            Some(Entity::Input(input)) => self.element_of(&name.text, input, index, span),
            Some(entity @ Entity::Var(_)) => {
                let help = format!(
                    "a variable at a point is in parentheses: `{}(…)`",
                    name.text
                );
                self.wrong_kind(&name.text, entity, "an array", &help, name.span)
            }
            Some(entity) => {
                let help = "only inputs and tables have elements";
                self.wrong_kind(&name.text, entity, "an array", help, name.span)
            }
            None => {
                let error = self.names.unknown(&name.text, name.span);
                self.errors.fail(error)
            }
        }
    }

    pub(super) fn element_of(
        &mut self,
        name: &str,
        input: InputId,
        index: &[tree::Expr],
        span: Span,
    ) -> Elaborated<(Expr, Ty)> {
        let Some(declared) = self.system.inputs.get(input.index()) else {
            return Err(Failed);
        };
        let ty = Ty::Known(declared.ty);
        let n_axes = declared.axes.len();
        let is_table = match declared.kind {
            InputKind::Array => false,
            InputKind::Table { .. } => true,
        };
        if index.len() != n_axes {
            let expected = format!("{n_axes} {}", if n_axes == 1 { "index" } else { "indices" });
            let declared = declared.span;
            let error = Diagnostic::new(
                &types::WRONG_COUNT,
                span,
                format!("the array `{name}` takes {expected}, found {}", index.len()),
            );
            let help = match vec!["…"; n_axes].join(", ") {
                none if none.is_empty() => format!("`{name}` is a scalar: write `{name}[]`"),
                indices => format!("give one index for each axis: `{name}[{indices}]`"),
            };
            let error = error.also(declared, format!("`{name}` is declared here"));
            return self.errors.fail(error.help(help));
        }
        if !is_table {
            self.pure(name, Entity::Input(input), span)?;
            let index = self.forms(index)?;
            return Ok((Expr::Input { input, index, span }, ty));
        }
        let scope = self.scope();
        let forms: Option<Vec<Form>> = index.iter().map(|e| scope.form(e).ok()).collect();
        if let Some(index) = forms {
            return Ok((Expr::Input { input, index, span }, ty));
        }
        let elaborated: Vec<_> = index.iter().map(|e| self.lookup_index(e)).collect();
        let index = elaborated.into_iter().collect::<Elaborated<_>>()?;
        Ok((Expr::Lookup { input, index, span }, ty))
    }

    fn lookup_index(&mut self, tree: &tree::Expr) -> Elaborated<Expr> {
        let (expr, ty) = self.decided(tree)?;
        match ty.scalar() {
            Some(s) if s.is_int() => Ok(expr),
            _ => self.errors.fail(
                Diagnostic::new(
                    &types::TYPE_MISMATCH,
                    tree.span,
                    format!("a table is indexed by integers, and this is {ty}"),
                )
                .help(casts::conversion(Some(tree), &Ty::from(&ty), Scalar::I32)),
            ),
        }
    }
}
