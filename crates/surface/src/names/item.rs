//! Names of systems, stencils and convolutions: first all declarations, then the expressions.

use systola_ir::mapping::Name;

use super::build::Builder;
use super::{DefinitionId, NameKind, Role};
use crate::tree::{
    Axis, Batch, Boundary, Const, Conv, Data, DataKind, Expr, Function, Input, InputKind, Stencil,
    System,
};

impl Builder {
    pub fn system(&mut self, system: &System, id: DefinitionId) {
        self.enter(id);
        self.head(&system.params);
        self.consts(&system.consts);
        for input in &system.inputs {
            self.input(input);
        }
        self.functions(&system.functions);
        self.batch(system.batch.as_ref());
        for dim in system.index.iter().flat_map(|index| &index.dims) {
            self.declare(NameKind::Iterator, &dim.name, dim.span);
        }
        for var in &system.vars {
            self.declare(NameKind::Variable, &var.name, var.origin.span());
        }
        for output in &system.outputs {
            self.declare(NameKind::Output, &output.name, output.origin.span());
        }

        self.exprs(&system.context);
        system.inputs.iter().for_each(|i| self.array(i));
        self.batch_body(system.batch.as_ref());
        if let Some(index) = &system.index {
            let ranges = index.dims.iter().filter_map(|dim| dim.range.as_ref());
            self.exprs(ranges.flat_map(|(lo, hi)| [lo, hi]));
            self.exprs(&index.domain);
        }
        self.function_bodies(&system.functions);
        let mut own = Vec::new();
        for var in &system.vars {
            let first = self.locals.len();
            for dim in var.own.iter().flatten() {
                let ranges = dim.range.iter().flat_map(|(lo, hi)| [lo, hi]);
                self.exprs(ranges);
                self.declare_local(NameKind::Iterator, &dim.name, dim.span, var.origin.span());
            }
            self.exprs(&var.on);
            self.expr(&var.body);
            own.push(self.locals.split_off(first));
        }
        for output in &system.outputs {
            self.axes(&output.axes);
            for write in &output.writes {
                let of = system.written(write).map(|n| own[n].clone());
                for (_, id) in of.iter().flatten() {
                    // Outputs that take the variable see its iterators.
                    let scope = &mut self.index.definitions[id.0].scope;
                    *scope = scope.to(write.span);
                }
                self.locals.extend(of.into_iter().flatten());
                self.expr(&write.value);
                self.exprs(&write.index);
                self.exprs(&write.when);
                self.locals.clear();
            }
        }
        self.leave();
    }

    pub fn stencil(&mut self, stencil: &Stencil, id: DefinitionId) {
        self.enter(id);
        self.head(&stencil.params);
        self.consts(&stencil.consts);
        for (field, _) in &stencil.fields {
            self.declare(NameKind::Field, &field.name, field.origin.span());
        }
        for input in &stencil.inputs {
            self.input(input);
        }
        self.functions(&stencil.functions);
        self.batch(stencil.batch.as_ref());
        for name in stencil.index.iter().flat_map(|(names, _)| names) {
            self.declare(NameKind::Iterator, name, name.span);
        }
        for equation in stencil.equations.iter().filter(|e| e.between.is_some()) {
            self.declare(NameKind::Variable, &equation.name, equation.origin.span());
        }
        for (name, what) in &stencil.outputs {
            self.declare(NameKind::Output, name, name.span.to(what.span));
        }

        self.exprs(&stencil.context);
        for (field, boundary) in &stencil.fields {
            self.array(field);
            self.boundary(boundary);
        }
        stencil.inputs.iter().for_each(|i| self.array(i));
        self.batch_body(stencil.batch.as_ref());
        self.exprs(stencil.steps.iter().map(|(steps, _)| steps));
        self.function_bodies(&stencil.functions);
        for equation in &stencil.equations {
            match &equation.between {
                Some((_, boundary)) => self.boundary(boundary),
                None => match self.find(&equation.name.text) {
                    Some(field) => self.refer(equation.name.span, field, Role::Writes),
                    None => self.unknown(&equation.name.text, equation.name.span),
                },
            }
            self.expr(&equation.body);
        }
        for (_, what) in &stencil.outputs {
            self.read_name(what);
        }
        self.generated_of(stencil);
        self.leave();
    }

    /// The names that mappings use, as `docs/language.md` lists them, where they can be told from
    /// the tree. A mapping may use others, such as partial sums.
    fn generated_of(&mut self, stencil: &Stencil) {
        if let Some((_, span)) = &stencil.steps {
            self.generate_free("t", *span);
        }
        for equation in &stencil.equations {
            let upper = equation.name.text.to_uppercase();
            if upper != equation.name.text {
                self.generate_free(&upper, equation.name.span);
            }
        }
        let Some((field, _)) = stencil.fields.first() else {
            return;
        };
        if stencil.index.is_none() {
            let words = ["x", "y", "z", "w", "v", "u"];
            for word in words.iter().take(field.axes.len()).rev() {
                self.generate_free(word, field.name.span);
            }
        }
    }

    /// A generated name gets a `_` where a user has taken it.
    fn generate_free(&mut self, wanted: &str, from: systola_ir::Span) {
        let mut name = wanted.to_string();
        while self.scope.names.contains_key(&name) {
            name.push('_');
        }
        let id = self.generate(&name, from);
        self.scope.names.insert(name, id);
    }

    pub fn conv(&mut self, conv: &Conv, id: DefinitionId) {
        self.enter(id);
        self.head(&conv.params);
        if let Some((input, _)) = &conv.input {
            self.declare(NameKind::Input, &input.name, input.origin.span());
        }
        if let Some(filter) = &conv.filter {
            self.declare(NameKind::Filter, &filter.name, filter.origin.span());
        }
        self.batch(conv.batch.as_ref());
        self.exprs(&conv.context);
        if let Some((input, boundary)) = &conv.input {
            self.array(input);
            self.boundary(boundary);
        }
        if let Some(filter) = &conv.filter {
            self.array(filter);
        }
        self.batch_body(conv.batch.as_ref());
        self.leave();
    }

    pub fn head(&mut self, params: &[Name]) {
        for param in params {
            self.declare(NameKind::Parameter, param, param.span);
        }
    }

    fn consts(&mut self, consts: &[Const]) {
        for constant in consts {
            self.declare(NameKind::Constant, &constant.name, constant.origin.span());
        }
    }

    pub fn input(&mut self, input: &Input) {
        let kind = match input.kind {
            InputKind::Array => NameKind::Input,
            InputKind::Table(_) => NameKind::Table,
        };
        self.declare(kind, &input.name, input.origin.span());
    }

    fn functions(&mut self, functions: &[Function]) {
        for function in functions {
            self.declare(NameKind::Function, &function.name, function.origin.span());
        }
    }

    fn function_bodies(&mut self, functions: &[Function]) {
        for function in functions {
            for (name, ty) in &function.params {
                let extent = name.span.to(ty.span);
                self.declare_local(NameKind::Argument, name, extent, function.origin.span());
            }
            self.expr(&function.body);
            self.locals.clear();
        }
    }

    fn batch(&mut self, batch: Option<&Batch>) {
        if let Some(batch) = batch {
            self.declare(NameKind::Batch, &batch.name, batch.origin.span());
        }
    }

    fn batch_body(&mut self, batch: Option<&Batch>) {
        if let Some(batch) = batch {
            self.expr(&batch.range.0);
            self.expr(&batch.range.1);
            for name in &batch.shared {
                self.read_name(name);
            }
        }
    }

    /// The sizes and contents of an array.
    pub fn array(&mut self, input: &Input) {
        self.axes(&input.axes);
        self.exprs(&input.outside);
        if let Some((boundary, _)) = &input.boundary {
            self.boundary(boundary);
        }
        match &input.kind {
            InputKind::Array | InputKind::Table(None) => {}
            InputKind::Table(Some(data)) => self.data(data),
        }
    }

    fn data(&mut self, data: &Data) {
        match &data.kind {
            DataKind::Element(expr) => self.expr(expr),
            DataKind::Row(parts) => parts.iter().for_each(|part| self.data(part)),
            DataKind::All(_) => {}
        }
    }

    fn axes(&mut self, axes: &[Axis]) {
        for axis in axes {
            self.exprs(&axis.lo);
            self.expr(&axis.hi);
        }
    }

    fn boundary(&mut self, boundary: &Boundary) {
        match boundary {
            Boundary::Constant(value) => self.expr(value as &Expr),
            Boundary::Interior
            | Boundary::Fixed
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => {}
        }
    }
}
