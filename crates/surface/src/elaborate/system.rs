//! Systems: declares all names, then elaborates the sizes, then the bodies.

use systola_ir::codes::{stencil, types};
use systola_ir::mapping::Name;
use systola_ir::system::{
    Axis, Batch, Const, Dim, Expr, Function, Input, InputKind, Output, Param, System, Var, Write,
};
use systola_ir::{
    Cond, ConstId, Diagnostic, DimId, FnId, Form, InputId, Literal, ParamId, Scalar, Span, Type,
    VarId,
};

use systola_stencil::{Boundary, write_boundaries};

use super::forms::{FormScope, Sees};
use super::infer::fit;
use super::names::{Entity, Names, check_name};
use super::stencil::elaborate_boundary;
use super::value::COPIES;
use super::{Elaborated, Errors, Failed, functions, size, table};
use crate::tree::{self, ExprKind, Origin};

/// The position of a value, which determines the names it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Equation,
    Function,
    Write,
}

/// A system under construction. Each body is a placeholder until it is elaborated.
pub struct Elaborator<'e> {
    pub system: System,
    pub names: Names,
    pub errors: &'e mut Errors,
    pub place: Place,
    /// The iterators of the current equation or write.
    pub dims: Vec<Dim>,
    /// The types of the locals in the current body.
    pub locals: Vec<Type>,
    /// The number of nodes that may still be copied in the current body.
    pub copies: usize,
    /// The functions that the current body calls.
    pub calls: Vec<(FnId, Span)>,
    sees: Sees,
}

const PLACEHOLDER: Expr = Expr::Lit(Scalar::Bool, Literal::Bool(false));

pub fn elaborate(tree: &tree::System, errors: &mut Errors) -> System {
    let mut elaborator = Elaborator::of_sizes(errors);
    elaborator.system.name.clone_from(&tree.name.text);
    elaborator.system.span = tree.origin.span();
    let what = format!("the system `{}`", tree.name.text);
    elaborator.errors.within(&what, tree.origin);
    check_name(&tree.name, "a system", elaborator.errors);
    elaborator.declare(tree);
    elaborator.sizes(tree);
    elaborator.bodies(tree);
    let boundaries = elaborator.boundaries(tree);
    elaborator.errors.outside();
    write_boundaries(&mut elaborator.system, &boundaries);
    elaborator.system
}

impl<'e> Elaborator<'e> {
    /// An elaborator for an empty system; index expressions can use parameters only.
    pub fn of_sizes(errors: &'e mut Errors) -> Self {
        Elaborator {
            system: System::default(),
            names: Names::default(),
            errors,
            place: Place::Equation,
            dims: Vec::new(),
            locals: Vec::new(),
            copies: COPIES,
            calls: Vec::new(),
            sees: Sees::Parameters,
        }
    }

    /// Declares the parameters and constants of a system, whose names are known to be valid.
    pub fn sizes_of(&mut self, system: &System) {
        for (n, param) in system.params.iter().enumerate() {
            let entity = Entity::Param(ParamId::from(n));
            self.names.assume(&param.name, param.span, entity);
        }
        for (n, constant) in system.consts.iter().enumerate() {
            let entity = Entity::Const(ConstId::from(n));
            self.names.assume(&constant.name, constant.span, entity);
        }
        self.system.consts.clone_from(&system.consts);
    }

    /// The names that index expressions can use here.
    pub fn scope(&self) -> FormScope<'_> {
        let sees = if self.place == Place::Function {
            Sees::Parameters
        } else {
            self.sees
        };
        FormScope {
            names: &self.names,
            consts: &self.system.consts,
            sees,
        }
    }

    pub fn form(&mut self, tree: &tree::Expr) -> Elaborated<Form> {
        let form = self.scope().form(tree);
        form.or_else(|error| self.errors.fail(*error))
    }

    pub fn forms(&mut self, list: &[tree::Expr]) -> Elaborated<Vec<Form>> {
        let forms: Vec<_> = list.iter().map(|e| self.form(e)).collect();
        forms.into_iter().collect()
    }

    pub fn conds(&mut self, list: &[tree::Expr]) -> Vec<Cond> {
        list.iter().filter_map(|e| self.cond(e).ok()).collect()
    }

    fn cond(&mut self, tree: &tree::Expr) -> Elaborated<Cond> {
        match self.scope().cond(tree) {
            Ok(cond) if size::of_cond(&cond) > size::MAX_NESTING => {
                self.errors.fail(size::too_deep(tree.span))
            }
            Ok(cond) => Ok(cond),
            Err(error) => self.errors.fail(*error),
        }
    }

    fn declare(&mut self, tree: &tree::System) {
        for (n, name) in tree.params.iter().enumerate() {
            self.declare_name(name, Entity::Param(ParamId::from(n)));
            self.system.params.push(param(name));
        }
        for (n, constant) in tree.consts.iter().enumerate() {
            let what = format!("the constant `{}`", constant.name.text);
            self.errors.within(&what, constant.origin);
            self.declare_name(&constant.name, Entity::Const(ConstId::from(n)));
            let ty = self.scalar(&constant.ty, "constant");
            let value = self.declared_literal(&constant.value, ty);
            self.system.consts.push(Const {
                name: constant.name.text.clone(),
                ty,
                value: value.unwrap_or(Literal::Int(0)),
                span: constant.origin.span(),
            });
        }
        self.errors
            .within(&format!("the system `{}`", tree.name.text), tree.origin);
        for (n, input) in tree.inputs.iter().enumerate() {
            self.declare_name(&input.name, Entity::Input(InputId::from(n)));
        }
        for (n, function) in tree.functions.iter().enumerate() {
            self.declare_name(&function.name, Entity::Fn(FnId::from(n)));
            self.system.functions.push(Function {
                name: function.name.text.clone(),
                params: function
                    .params
                    .iter()
                    .map(|(name, ty)| (name.text.clone(), ty.ty.clone()))
                    .collect(),
                result: function.result.ty.clone(),
                law: function.law,
                body: PLACEHOLDER,
                span: function.origin.span(),
            });
        }
        if let Some(batch) = &tree.batch {
            self.declare_name(&batch.name, Entity::Batch);
        }
        for (n, dim) in tree.index.iter().flat_map(|i| &i.dims).enumerate() {
            self.declare_name(&dim.name, Entity::Dim(DimId::from(n)));
            self.system.dims.push(self::dim(dim));
        }
        for (n, var) in tree.vars.iter().enumerate() {
            self.declare_name(&var.name, Entity::Var(VarId::from(n)));
            self.system.vars.push(Var {
                name: var.name.text.clone(),
                ty: var.ty.ty.clone(),
                law: var.law,
                own: var.own.as_ref().map(|dims| dims.iter().map(dim).collect()),
                on: Vec::new(),
                body: PLACEHOLDER,
                span: var.origin.span(),
            });
        }
        for output in &tree.outputs {
            self.declare_name(&output.name, Entity::Output);
        }
    }

    fn declare_name(&mut self, name: &Name, entity: Entity) {
        self.names.declare(name, entity, self.errors);
    }

    fn sizes(&mut self, tree: &tree::System) {
        self.sees = Sees::Parameters;
        self.errors.within("the context", tree.origin);
        self.system.context = self.conds(&tree.context);
        for input in &tree.inputs {
            let input = self.input(input);
            self.system.inputs.push(input);
        }
        if let Some(batch) = &tree.batch {
            self.system.batch = self.batch(batch).ok();
        }
        let Some(index) = &tree.index else {
            return;
        };
        self.system.dims = self.ranges(&index.dims, index.origin);
        self.errors.within("the index space", index.origin);
        self.system.domain = self.conds(&index.domain);
    }

    /// Iterators with their ranges.
    fn ranges(&mut self, list: &[tree::Dim], origin: Origin) -> Vec<Dim> {
        let mut dims: Vec<Dim> = list.iter().map(dim).collect();
        for (n, declared) in list.iter().enumerate() {
            self.sees = Sees::Before(n);
            let what = format!("the range of `{}`", declared.name.text);
            self.errors.within(&what, origin);
            if let Some((lo, hi)) = &declared.range {
                let range = (self.form(lo), self.form(hi));
                if let (Ok(lo), Ok(hi)) = range {
                    dims[n].range = Some((lo, hi));
                }
            }
        }
        self.sees = Sees::All;
        dims
    }

    /// The boundary conditions of inputs.
    fn boundaries(&mut self, tree: &tree::System) -> Vec<(InputId, Boundary)> {
        let mut boundaries = Vec::new();
        for (n, input) in tree.inputs.iter().enumerate() {
            let Some((boundary, span)) = &input.boundary else {
                continue;
            };
            let what = format!("the input `{}`", input.name.text);
            self.errors.within(&what, input.origin);
            match elaborate_boundary(boundary, &input.ty, self.errors) {
                Boundary::Interior | Boundary::Fixed => self.errors.report(
                    Diagnostic::new(
                        &stencil::UNKNOWN_BOUNDARY,
                        *span,
                        format!(
                            "`{}` is an input, not a field: nothing is left out or kept at its ends",
                            input.name.text
                        ),
                    )
                    .help("write `clamp`, `mirror`, `reflect`, `wrap` or `constant` and a number"),
                ),
                boundary => boundaries.push((InputId::from(n), boundary)),
            }
        }
        boundaries
    }

    pub fn input(&mut self, input: &tree::Input) -> Input {
        let what = match input.kind {
            tree::InputKind::Array => "input",
            tree::InputKind::Table(_) => "table",
        };
        self.errors
            .within(&format!("the {what} `{}`", input.name.text), input.origin);
        let ty = self.scalar(&input.ty, what);
        let axes = self.axes(&input.axes);
        let outside = input
            .outside
            .as_ref()
            .and_then(|value| self.declared_literal(value, ty).ok());
        let kind = match &input.kind {
            tree::InputKind::Array => InputKind::Array,
            tree::InputKind::Table(data) => InputKind::Table {
                data: data.as_ref().and_then(|data| {
                    table::contents(&input.name.text, data, &axes, ty, self.errors).ok()
                }),
            },
        };
        Input {
            name: input.name.text.clone(),
            ty,
            kind,
            axes,
            outside,
            span: input.origin.span(),
        }
    }

    fn axes(&mut self, axes: &[tree::Axis]) -> Vec<Axis> {
        axes.iter()
            .map(|axis| {
                let lo = axis.lo.as_ref().map(|lo| self.form(lo));
                let hi = self.form(&axis.hi);
                Axis {
                    lo: lo.and_then(Result::ok).unwrap_or_default(),
                    hi: hi.unwrap_or_default(),
                }
            })
            .collect()
    }

    fn batch(&mut self, batch: &tree::Batch) -> Elaborated<Batch> {
        let what = format!("the batch `{}`", batch.name.text);
        self.errors.within(&what, batch.origin);
        let (lo, hi) = (self.form(&batch.range.0), self.form(&batch.range.1));
        let mut shared: Vec<InputId> = Vec::new();
        for name in &batch.shared {
            match self.names.get(&name.text) {
                Some(Entity::Input(input)) if !shared.contains(&input) => shared.push(input),
                Some(Entity::Input(_)) => self.errors.report(
                    Diagnostic::new(
                        &types::DUPLICATE_NAME,
                        name.span,
                        format!("`{}` is shared twice", name.text),
                    )
                    .help("name it once"),
                ),
                Some(entity) => self.errors.report(
                    Diagnostic::new(
                        &types::WRONG_KIND,
                        name.span,
                        format!("`{}` is {}, not an input", name.text, entity.describe()),
                    )
                    .help("only inputs are shared by a batch"),
                ),
                None => {
                    let error = self.names.unknown(&name.text, name.span);
                    self.errors.report(error);
                }
            }
        }
        Ok(Batch {
            name: batch.name.text.clone(),
            range: (lo?, hi?),
            shared,
            span: batch.origin.span(),
        })
    }

    fn bodies(&mut self, tree: &tree::System) {
        self.sees = Sees::All;
        let mut calls = Vec::new();
        for (n, function) in tree.functions.iter().enumerate() {
            self.place = Place::Function;
            let what = format!("the function `{}`", function.name.text);
            self.errors.within(&what, function.origin);
            let body = self.function_body(function);
            if let (Ok(body), Some(slot)) = (body, self.system.functions.get_mut(n)) {
                slot.body = body;
            }
            calls.push(std::mem::take(&mut self.calls));
        }
        functions::check_calls(&self.system.functions, &calls, self.errors);
        self.place = Place::Equation;
        for (n, var) in tree.vars.iter().enumerate() {
            let hidden = self.enter(var.own.as_deref(), true);
            if let Some(list) = &var.own {
                let dims = self.ranges(list, var.origin);
                if let Some(slot) = self.system.vars.get_mut(n) {
                    slot.own = Some(dims);
                }
            }
            let equation = format!("the equation of `{}`", var.name.text);
            self.errors.within(&equation, var.origin);
            let on = self.conds(&var.on);
            self.start_body(Vec::new());
            let what = format!("`{}`", var.name.text);
            let body = self.body(&var.body, &var.ty.ty, &what);
            self.leave(hidden);
            if let Some(slot) = self.system.vars.get_mut(n) {
                slot.on = on;
                if let Ok(body) = body {
                    slot.body = body;
                }
            }
        }
        self.place = Place::Write;
        for output in &tree.outputs {
            let output = self.output(output, tree);
            self.system.outputs.push(output);
        }
    }

    /// Enters an equation or write with the iterators of the index space, or with others in their
    /// place. `new`: a name of these that is taken is an error. Returns the iterators that are not
    /// seen meanwhile.
    fn enter(&mut self, own: Option<&[tree::Dim]>, new: bool) -> Option<Vec<Dim>> {
        self.dims.clone_from(&self.system.dims);
        let own = own?;
        let hidden = std::mem::replace(&mut self.dims, own.iter().map(dim).collect());
        for dim in &hidden {
            self.names.forget(&dim.name);
        }
        for (n, dim) in own.iter().enumerate() {
            let entity = Entity::Dim(DimId::from(n));
            match new {
                true => self.declare_name(&dim.name, entity),
                false => self.names.assume(&dim.name.text, dim.name.span, entity),
            }
        }
        Some(hidden)
    }

    /// Leaves it; the hidden iterators are seen again.
    fn leave(&mut self, hidden: Option<Vec<Dim>>) {
        let own = std::mem::take(&mut self.dims);
        let Some(hidden) = hidden else { return };
        for (n, dim) in own.iter().enumerate() {
            let entity = Entity::Dim(DimId::from(n));
            if self.names.get(&dim.name) == Some(entity) {
                self.names.forget(&dim.name);
            }
        }
        for (n, dim) in hidden.iter().enumerate() {
            let entity = Entity::Dim(DimId::from(n));
            self.names.assume(&dim.name, dim.span, entity);
        }
    }

    /// The index list of the current point.
    pub fn here(&self) -> Vec<Form> {
        let dims = 0..self.dims.len();
        dims.map(|n| Form::from(DimId::from(n))).collect()
    }

    fn start_body(&mut self, locals: Vec<Type>) {
        self.locals = locals;
        self.copies = COPIES;
        self.calls.clear();
    }

    /// Elaborates a right-hand side.
    fn body(&mut self, tree: &tree::Expr, ty: &Type, what: &str) -> Elaborated<Expr> {
        let body = self.value_of(tree, ty, what)?;
        if size::of_expr(&body) > size::MAX_NESTING {
            return self.errors.fail(size::too_deep(tree.span));
        }
        if size::height(&body) > size::MAX_HEIGHT {
            return self.errors.fail(size::too_high(tree.span));
        }
        Ok(body)
    }

    fn function_body(&mut self, function: &tree::Function) -> Elaborated<Expr> {
        self.start_body(
            function
                .params
                .iter()
                .map(|(_, ty)| ty.ty.clone())
                .collect(),
        );
        let mut declared = Vec::new();
        let mut distinct = true;
        for (n, (name, _)) in function.params.iter().enumerate() {
            if self
                .names
                .declare(name, Entity::Local(n.into()), self.errors)
            {
                declared.push(name);
            } else {
                distinct = false;
            }
        }
        let what = format!("the result of `{}`", function.name.text);
        let body = if distinct {
            self.body(&function.body, &function.result.ty, &what)
        } else {
            Err(Failed)
        };
        for name in declared {
            self.names.forget(&name.text);
        }
        body
    }

    fn output(&mut self, output: &tree::Output, tree: &tree::System) -> Output {
        self.errors
            .within(&format!("the output `{}`", output.name.text), output.origin);
        self.sees = Sees::Parameters;
        let axes = self.axes(&output.axes);
        self.sees = Sees::All;
        let ty = self.scalar(&output.ty, "output");
        let writes = output
            .writes
            .iter()
            .filter_map(|write| {
                let of = tree.written(write);
                let own = of.and_then(|n| tree.vars[n].own.as_deref());
                let hidden = self.enter(own, false);
                let written = self.write(write, output, ty, of.map(VarId::from));
                self.leave(hidden);
                written.ok()
            })
            .collect();
        let fill = output
            .fill
            .as_ref()
            .and_then(|value| self.declared_literal(value, ty).ok());
        Output {
            name: output.name.text.clone(),
            ty,
            axes,
            writes,
            fill,
            span: output.origin.span(),
        }
    }

    fn write(
        &mut self,
        write: &tree::Write,
        output: &tree::Output,
        ty: Scalar,
        of: Option<VarId>,
    ) -> Elaborated<Write> {
        self.start_body(Vec::new());
        let what = format!("`{}`", output.name.text);
        let value = self.body(&write.value, &Type::Scalar(ty), &what);
        if write.index.len() != output.axes.len() {
            let n = output.axes.len();
            self.errors.report(
                Diagnostic::new(
                    &types::WRONG_COUNT,
                    write.index_span,
                    format!(
                        "the output `{}` has {n} ax{}, but {} indices are given",
                        output.name.text,
                        if n == 1 { "is" } else { "es" },
                        write.index.len()
                    ),
                )
                .help("give one index for each axis"),
            );
        }
        let index = self.forms(&write.index);
        let when = match &write.when {
            Some(cond) => self.cond(cond),
            None => Ok(Cond::TRUE),
        };
        Ok(Write {
            of,
            value: value?,
            index: index?,
            when: when?,
            span: write.span,
        })
    }

    /// The declared type, which must be a scalar.
    fn scalar(&mut self, declared: &tree::DeclaredType, what: &str) -> Scalar {
        declared.ty.scalar().unwrap_or_else(|| {
            self.errors.report(
                Diagnostic::new(
                    &types::NOT_SCALAR,
                    declared.span,
                    format!(
                        "the type of {} {what} is a scalar, not {}",
                        article(what),
                        declared.ty
                    ),
                )
                .help(format!(
                    "make it one {what} for each field; only variables and functions carry tuples"
                )),
            );
            Scalar::F32
        })
    }

    fn declared_literal(&mut self, tree: &tree::Expr, ty: Scalar) -> Elaborated<Literal> {
        literal(tree, ty, self.errors)
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

/// An iterator whose range is elaborated later.
fn dim(tree: &tree::Dim) -> Dim {
    Dim {
        name: tree.name.text.clone(),
        range: None,
        span: tree.span,
    }
}

pub fn param(name: &Name) -> Param {
    Param {
        name: name.text.clone(),
        span: name.span,
    }
}

/// Converts a literal to a declared type.
pub fn literal(tree: &tree::Expr, ty: Scalar, errors: &mut Errors) -> Elaborated<Literal> {
    let (literal, suffix) = match tree.kind {
        ExprKind::Int(value, suffix) => (Literal::Int(value), suffix),
        ExprKind::Float(value, suffix) => (Literal::Float(value), suffix),
        ExprKind::Bool(value) => (Literal::Bool(value), None),
        _ => {
            let error = match &tree.kind {
                ExprKind::Mistake(error) => (**error).clone(),
                _ => Diagnostic::new(&types::TYPE_MISMATCH, tree.span, "expected a literal")
                    .help("write a number, or `true` or `false`"),
            };
            return errors.fail(error);
        }
    };
    if let Some(suffix) = suffix.filter(|suffix| *suffix != ty) {
        return errors.fail(
            Diagnostic::new(
                &types::TYPE_MISMATCH,
                tree.span,
                format!("expected {ty}, found a literal of type {suffix}"),
            )
            .help("leave the suffix away"),
        );
    }
    fit(literal, ty, tree.span).or_else(|error| errors.fail(*error))
}
