//! From declarations over names to the representation: names resolved, literals typed.
//!
//! The rules are those of the text language, so that the same program gives the same value either way.

mod form;
mod names;
mod types;
mod value;

use systola_ir::codes::{stencil, types as codes};
use systola_ir::system::{
    Batch, Const, Dim, Function, Input, InputKind, Output, Param, System, Var, Write,
};
use systola_ir::{
    Cond, ConstId, Diagnostic, DimId, FnId, Form, InputId, Literal, LocalId, ParamId, Scalar, Span,
    Type, VarId,
};

use systola_stencil::{Border, write_borders};

use crate::builder::{Axis, SystemBuilder};
use crate::expr::{Expr, Node, Range};
use crate::stencil::{of_type, wrong_type};
use form::Sees;
use names::{Entity, Names};
use types::{Ty, fit, settle};

pub(crate) type Lowered<T> = Result<T, Box<Diagnostic>>;

pub(crate) fn lower_system(builder: &SystemBuilder) -> Result<System, Vec<Diagnostic>> {
    let mut lowering = Lowering::default();
    lowering.system.name.clone_from(&builder.name);
    lowering.declare(builder);
    lowering.sizes(builder);
    lowering.functions(builder);
    lowering.equations(builder);
    lowering.outputs(builder);
    lowering.borders(builder);
    if lowering.errors.is_empty() {
        Ok(lowering.system)
    } else {
        Err(lowering.errors)
    }
}

/// A size in the parameters and constants of a system.
pub(crate) fn lower_size(builder: &SystemBuilder, size: &Expr) -> Lowered<Form> {
    let mut lowering = Lowering::default();
    lowering.declare(builder);
    lowering.form(size, Sees::Parameters)
}

/// A literal as one of a type, if it is one.
pub(crate) fn fitted(value: Literal, ty: Scalar) -> Lowered<Literal> {
    fit(value, ty)
}

/// Where a value stands, which decides what it may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Equation,
    Function,
    Write,
}

/// A system that is being lowered.
#[derive(Default)]
pub(crate) struct Lowering {
    pub system: System,
    pub names: Names,
    pub place: Place,
    /// The types of the locals of the body at hand.
    pub locals: Vec<Type>,
    /// The functions that the body at hand calls.
    pub calls: Vec<FnId>,
    pub errors: Vec<Diagnostic>,
}

impl Lowering {
    /// Every name of the system, before any expression is looked at.
    fn declare(&mut self, builder: &SystemBuilder) {
        for (n, name) in builder.params.iter().enumerate() {
            self.name(name, Entity::Param(ParamId::from(n)));
            self.system.params.push(Param {
                name: name.clone(),
                span: Span::NONE,
            });
        }
        for (n, declared) in builder.consts.iter().enumerate() {
            self.name(&declared.name, Entity::Const(ConstId::from(n)));
            let place = format!("the constant `{}`", declared.name);
            let value = literal(&declared.value, declared.ty);
            let value = self.or_report(&place, value, Literal::Int(0));
            self.system.consts.push(Const {
                name: declared.name.clone(),
                ty: declared.ty,
                value,
                span: Span::NONE,
            });
        }
        for (n, declared) in builder.inputs.iter().enumerate() {
            self.name(&declared.name, Entity::Input(InputId::from(n)));
        }
        for (n, declared) in builder.functions.iter().enumerate() {
            self.name(&declared.name, Entity::Fn(FnId::from(n)));
        }
        if let Some((range, _)) = &builder.batch {
            self.name(&range.name, Entity::Batch);
        }
        for (n, range) in builder.index.iter().enumerate() {
            self.name(&range.name, Entity::Dim(DimId::from(n)));
        }
        for (n, declared) in builder.vars.iter().enumerate() {
            self.name(&declared.name, Entity::Var(VarId::from(n)));
            self.system.vars.push(Var {
                name: declared.name.clone(),
                ty: declared.ty.clone(),
                law: declared.law,
                on: Vec::new(),
                body: systola_ir::system::Expr::int(Scalar::I64, 0),
                span: Span::NONE,
            });
        }
        for declared in &builder.outputs {
            self.name(&declared.name, Entity::Output);
        }
    }

    fn name(&mut self, name: &str, entity: Entity) {
        if let Err(diagnostic) = self.names.declare(name, entity) {
            self.errors.push(*diagnostic);
        }
    }

    /// Context, index space, arrays: all that is written in sizes.
    fn sizes(&mut self, builder: &SystemBuilder) {
        for cond in &builder.context {
            let cond = self.cond(cond, Sees::Parameters);
            let cond = self.or_report("the context", cond, Cond::TRUE);
            self.system.context.push(cond);
        }
        for (n, range) in builder.index.iter().enumerate() {
            let dim = self.dim(range, Sees::Before(n));
            self.system.dims.push(dim);
        }
        for cond in &builder.domain {
            let cond = self.cond(cond, Sees::All);
            let cond = self.or_report("the index space", cond, Cond::TRUE);
            self.system.domain.push(cond);
        }
        for declared in &builder.inputs {
            let place = format!("the input `{}`", declared.name);
            let axes = self.axes(&place, &declared.axes);
            let outside = declared.outside.as_ref().map(|value| {
                let value = literal(value, declared.ty);
                self.or_report(&place, value, Literal::Int(0))
            });
            let kind = match &declared.table {
                None => InputKind::Array,
                Some(None) => InputKind::Table { data: None },
                Some(Some(data)) => InputKind::Table {
                    data: Some(self.contents(&place, declared.ty, &axes, data)),
                },
            };
            self.system.inputs.push(Input {
                name: declared.name.clone(),
                ty: declared.ty,
                kind,
                axes,
                outside,
                span: Span::NONE,
            });
        }
        if let Some((range, shared)) = &builder.batch {
            self.batch(range, shared);
        }
    }

    /// Reads of inputs as their boundary conditions say.
    fn borders(&mut self, builder: &SystemBuilder) {
        let mut borders = Vec::new();
        for (n, declared) in builder.inputs.iter().enumerate() {
            let Some(border) = declared.border else {
                continue;
            };
            self.errors.extend(wrong_type(border, declared.ty));
            match of_type(border, declared.ty) {
                Border::Interior | Border::Held => self.errors.push(
                    Diagnostic::new(
                        &stencil::UNKNOWN_BORDER,
                        Span::NONE,
                        format!(
                            "`{}` is an input of a system: nothing is left out or kept at its ends",
                            declared.name
                        ),
                    )
                    .help("take another boundary condition"),
                ),
                border => borders.push((InputId::from(n), border)),
            }
        }
        write_borders(&mut self.system, &borders);
    }

    fn contents(
        &mut self,
        place: &str,
        ty: Scalar,
        axes: &[systola_ir::system::Axis],
        data: &[Literal],
    ) -> Vec<Literal> {
        let lengths: Option<i128> = axes
            .iter()
            .map(|axis| Some(axis.hi.as_constant()? - axis.lo.as_constant()?))
            .product();
        if lengths != Some(data.len() as i128) {
            let expected = lengths.map_or("a constant number".to_string(), |n| n.to_string());
            let error = Diagnostic::new(
                &codes::TABLE_SHAPE,
                Span::NONE,
                format!(
                    "{place} has {} values, its axes hold {expected}",
                    data.len()
                ),
            );
            self.errors
                .push(error.help("give the values in row-major order, for constant axes"));
        }
        data.iter()
            .map(|value| {
                let value = fit(*value, ty);
                self.or_report(place, value, Literal::Int(0))
            })
            .collect()
    }

    fn batch(&mut self, range: &Range, shared: &[String]) {
        let dim = self.dim(range, Sees::Parameters);
        let shared = shared
            .iter()
            .filter_map(|name| match self.names.get(name) {
                Some(Entity::Input(input)) => Some(input),
                _ => {
                    let unknown = self.names.unknown(name);
                    self.errors
                        .push(unknown.note("in the `shared` list of the batch"));
                    None
                }
            })
            .collect();
        let Some(range) = dim.range else {
            let error = Diagnostic::new(
                &codes::VALUE_IN_INDEX,
                Span::NONE,
                format!("the batch `{}` has no range", dim.name),
            );
            self.errors.push(error.help("write it as `n.range(0, &b)`"));
            return;
        };
        self.system.batch = Some(Batch {
            name: dim.name,
            range,
            shared,
            span: Span::NONE,
        });
    }

    fn dim(&mut self, range: &Range, sees: Sees) -> Dim {
        let place = format!("the range of `{}`", range.name);
        let bounds = range.bounds.as_ref().map(|(lo, hi)| {
            let lo = self.form(lo, sees);
            let hi = self.form(hi, sees);
            (
                self.or_report(&place, lo, Form::zero()),
                self.or_report(&place, hi, Form::zero()),
            )
        });
        Dim {
            name: range.name.clone(),
            range: bounds,
            span: Span::NONE,
        }
    }

    fn axes(&mut self, place: &str, axes: &[Axis]) -> Vec<systola_ir::system::Axis> {
        axes.iter()
            .map(|axis| {
                let lo = self.form(&axis.lo, Sees::Parameters);
                let hi = self.form(&axis.hi, Sees::Parameters);
                systola_ir::system::Axis {
                    lo: self.or_report(place, lo, Form::zero()),
                    hi: self.or_report(place, hi, Form::zero()),
                }
            })
            .collect()
    }

    fn functions(&mut self, builder: &SystemBuilder) {
        for declared in &builder.functions {
            self.system.functions.push(Function {
                name: declared.name.clone(),
                params: declared.params.clone(),
                result: declared.result.clone(),
                law: declared.law,
                body: systola_ir::system::Expr::int(Scalar::I64, 0),
                span: Span::NONE,
            });
        }
        let mut calls = Vec::new();
        for (n, declared) in builder.functions.iter().enumerate() {
            let place = format!("the function `{}`", declared.name);
            self.locals.clear();
            self.calls.clear();
            self.place = Place::Function;
            for (m, (name, ty)) in declared.params.iter().enumerate() {
                self.name(name, Entity::Local(LocalId::from(m)));
                self.locals.push(ty.clone());
            }
            let body = self.typed(&declared.body, &declared.result);
            let empty = self.system.functions[n].body.clone();
            self.system.functions[n].body = self.or_report(&place, body, empty);
            for (name, _) in &declared.params {
                self.names.forget(name);
            }
            calls.push(std::mem::take(&mut self.calls));
        }
        self.place = Place::Equation;
        if let Some(n) = recursive(&calls) {
            let name = &self.system.functions[n].name;
            let error = Diagnostic::new(
                &codes::RECURSIVE_FUNCTION,
                Span::NONE,
                format!("the function `{name}` leads back to itself"),
            );
            self.errors.push(
                error.help("recurrences are equations: make it a variable that reads itself"),
            );
        }
    }

    fn equations(&mut self, builder: &SystemBuilder) {
        for (n, declared) in builder.vars.iter().enumerate() {
            let place = format!("the equation of `{}`", declared.name);
            for cond in &declared.on {
                let cond = self.cond(cond, Sees::All);
                let cond = self.or_report(&place, cond, Cond::TRUE);
                self.system.vars[n].on.push(cond);
            }
            self.locals.clear();
            let body = self.typed(&declared.body, &declared.ty);
            let empty = self.system.vars[n].body.clone();
            self.system.vars[n].body = self.or_report(&place, body, empty);
        }
    }

    fn outputs(&mut self, builder: &SystemBuilder) {
        self.place = Place::Write;
        for declared in &builder.outputs {
            let place = format!("the output `{}`", declared.name);
            let axes = self.axes(&place, &declared.axes);
            let mut writes = Vec::new();
            for (value, index, when) in &declared.writes {
                self.locals.clear();
                let write = self.write(declared.ty, axes.len(), value, index, when.as_ref());
                match write {
                    Ok(write) => writes.push(write),
                    Err(error) => self.report(&place, *error),
                }
            }
            let fill = declared.fill.as_ref().map(|value| {
                let value = literal(value, declared.ty);
                self.or_report(&place, value, Literal::Int(0))
            });
            self.system.outputs.push(Output {
                name: declared.name.clone(),
                ty: declared.ty,
                axes,
                writes,
                fill,
                span: Span::NONE,
            });
        }
    }

    fn write(
        &mut self,
        ty: Scalar,
        n_axes: usize,
        value: &Expr,
        index: &[Expr],
        when: Option<&Expr>,
    ) -> Lowered<Write> {
        let value = self.typed(value, &Type::Scalar(ty))?;
        let index = self.index(index, n_axes, "the output")?;
        let when = match when {
            None => Cond::TRUE,
            Some(cond) => self.cond(cond, Sees::All)?,
        };
        Ok(Write {
            value,
            index,
            when,
            span: Span::NONE,
        })
    }

    /// A value of a given type.
    fn typed(&mut self, expr: &Expr, ty: &Type) -> Lowered<systola_ir::system::Expr> {
        let (mut value, found) = self.value(expr)?;
        let ty = Ty::from(ty);
        if found.join(&ty)? != ty {
            return Err(types::mismatch(&found.describe(), &ty.describe()));
        }
        settle(&mut value, &found, &ty)?;
        Ok(value)
    }

    fn or_report<T>(&mut self, place: &str, result: Lowered<T>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.report(place, *error);
            otherwise
        })
    }

    fn report(&mut self, place: &str, error: Diagnostic) {
        self.errors.push(error.note(format!("in {place}")));
    }
}

/// A function on a cycle of calls.
fn recursive(calls: &[Vec<FnId>]) -> Option<usize> {
    let mut reach = vec![vec![false; calls.len()]; calls.len()];
    for (f, callees) in calls.iter().enumerate() {
        for callee in callees {
            reach[f][callee.index()] = true;
        }
    }
    for via in 0..calls.len() {
        let from_via = reach[via].clone();
        for row in reach.iter_mut().filter(|row| row[via]) {
            for (to, reached) in row.iter_mut().zip(&from_via) {
                *to |= reached;
            }
        }
    }
    (0..calls.len()).find(|f| reach[*f][*f])
}

/// A written literal as a value of a type.
pub(crate) fn literal(expr: &Expr, ty: Scalar) -> Lowered<Literal> {
    let (value, own) = match &*expr.node {
        Node::Int(value, own) => (Literal::Int(*value), *own),
        Node::Float(value, own) => (Literal::Float(*value), *own),
        Node::Bool(value) => (Literal::Bool(*value), None),
        _ => {
            return Err(Box::new(
                Diagnostic::new(&codes::TYPE_MISMATCH, Span::NONE, "expected a literal")
                    .help("write a number, or `true` or `false`"),
            ));
        }
    };
    match own {
        Some(own) if own != ty => Err(types::mismatch(&own.to_string(), &ty.to_string())),
        _ => fit(value, ty),
    }
}
