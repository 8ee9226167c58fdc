//! Stencils: offsets become indices, neighbourhoods become sums, and what one sweep computes is lowered like any system. The rest is
//! [`systola_stencil`]'s.

use systola_ir::codes::{stencil as codes, syntax, types};
use systola_ir::mapping::Name;
use systola_ir::system::{Law, System};
use systola_ir::{BinOp, Diagnostic, Form, InputId, Span, VarId};
use systola_stencil::{Border, Field, Fresh, Shape, Stencil, write_system};

use super::system::{literal, lower_system};
use super::{Errors, shorten, size};
use crate::text::ast::{self, Dim, Expr, ExprKind, Index, ReduceOp, ReduceOpKind, Size};
use crate::text::suggest::suggest;

/// Cells of the box around a neighbourhood.
const MAX_CELLS: i128 = 4096;

/// The system of a stencil; an empty one where a mistake was reported.
pub fn lower_stencil(ast: ast::Stencil, errors: &mut Errors) -> System {
    let empty = System {
        name: ast.name.text.clone(),
        span: ast.span,
        ..System::default()
    };
    let before = errors.0.len();
    let Some(scope) = Scope::of(&ast, errors) else {
        return empty;
    };
    let mut weights = Vec::new();
    let mut equations = ast.equations;
    for equation in &mut equations {
        let mut reader = Reader {
            scope: &scope,
            inputs: &ast.inputs,
            weights: &mut weights,
            errors,
        };
        reader.relative(&mut equation.body);
    }
    if errors.0.len() > before {
        return empty;
    }
    let kernel = ast::System {
        name: ast.name,
        params: ast.params,
        context: ast.context,
        consts: ast.consts,
        inputs: (ast.fields.iter().map(|(input, _)| input.clone()))
            .chain(ast.inputs)
            .collect(),
        functions: ast.functions,
        batch: ast.batch,
        index: Some(scope.index(&ast.fields[0].0)),
        vars: (equations.iter())
            .map(|e| scope.var(e, &ast.fields))
            .collect(),
        outputs: (ast.outputs.iter())
            .map(|(name, _)| ast::Output {
                name: name.clone(),
                ty: ast.fields[0].0.ty.clone(),
                axes: Vec::new(),
                writes: Vec::new(),
                fill: None,
                span: name.span,
            })
            .collect(),
        span: ast.span,
    };
    let mut kernel = lower_system(&kernel, errors);
    kernel.outputs.clear();
    let steps = ast.steps.as_ref().map(|(steps, span)| {
        let mut sizes = super::system::Builder::of_sizes(errors);
        sizes.sizes_of(&kernel);
        (sizes.form(steps).unwrap_or(Form::from(1)), *span)
    });
    check_weights(&kernel, &weights, errors);
    let updates = |name: &str| {
        equations
            .iter()
            .position(|e| e.between.is_none() && e.name.text == name)
    };
    let mut border = |border: &ast::Border, ty| lower_border(border, ty, errors);
    let fields: Vec<Field> = (ast.fields.iter().enumerate())
        .map(|(n, (input, outside))| Field {
            input: InputId::from(n),
            border: border(outside, &input.ty),
            update: updates(&input.name.text).map(VarId::from),
        })
        .collect();
    let borders = (equations.iter())
        .map(|e| match &e.between {
            Some((ty, outside)) => border(outside, ty),
            None => {
                let field = ast
                    .fields
                    .iter()
                    .position(|(f, _)| f.name.text == e.name.text);
                field.map_or(Border::Interior, |n| fields[n].border)
            }
        })
        .collect();
    for equation in &equations {
        if let Some((_, ast::Border::Held)) = equation.between {
            errors.report(nothing_to_hold(&equation.name));
        }
    }
    if errors.0.len() > before {
        return empty;
    }
    let outputs = outputs(&equations, &ast.outputs);
    let stencil = Stencil {
        kernel,
        fields,
        borders,
        steps,
        time: scope.time.clone(),
        outputs,
    };
    written(write_system(&stencil), empty, ast.span, errors)
}

/// A system that was written, if it can be written down as text too.
pub fn written(
    result: Result<System, Vec<Diagnostic>>,
    empty: System,
    span: Span,
    errors: &mut Errors,
) -> System {
    let system = match result {
        Ok(system) => system,
        Err(list) => {
            for error in list {
                errors.report(error);
            }
            return empty;
        }
    };
    for var in &system.vars {
        if size::of_expr(&var.body) > size::MAX_NESTING {
            errors.report(size::too_deep(span));
        } else if size::height(&var.body) > size::MAX_HEIGHT {
            errors.report(size::too_high(span));
        } else {
            continue;
        }
        return empty;
    }
    system
}

/// Fields with a next value, unless outputs are named.
fn outputs(equations: &[ast::Equation], named: &[(Name, Name)]) -> Vec<(String, VarId)> {
    let position = |name: &str| equations.iter().position(|e| e.name.text == name);
    if named.is_empty() {
        let updates = equations
            .iter()
            .enumerate()
            .filter(|(_, e)| e.between.is_none());
        return updates
            .map(|(n, e)| (primed(&e.name.text), VarId::from(n)))
            .collect();
    }
    let pairs = named.iter();
    pairs
        .filter_map(|(name, what)| Some((name.text.clone(), VarId::from(position(&what.text)?))))
        .collect()
}

/// The next value of a field.
fn primed(name: &str) -> String {
    format!("{name}'")
}

pub fn lower_border(border: &ast::Border, ty: &ast::DeclaredType, errors: &mut Errors) -> Border {
    match border {
        ast::Border::Interior => Border::Interior,
        ast::Border::Held => Border::Held,
        ast::Border::Clamp => Border::Clamp,
        ast::Border::Mirror => Border::Mirror,
        ast::Border::Reflect => Border::Reflect,
        ast::Border::Wrap => Border::Wrap,
        ast::Border::Constant(value) => match ty.ty.scalar() {
            Some(ty) => literal(value, ty, errors).map_or(Border::Interior, Border::Constant),
            None => {
                errors.report(
                    Diagnostic::new(
                        &types::NOT_SCALAR,
                        ty.span,
                        format!("beyond the border is a number, and this is {}", ty.ty),
                    )
                    .help("take `clamp`, `mirror`, `reflect` or `wrap`"),
                );
                Border::Interior
            }
        },
    }
}

fn nothing_to_hold(name: &Name) -> Diagnostic {
    Diagnostic::new(
        &codes::NOT_A_FIELD,
        name.span,
        format!(
            "`{}` is no field, so it has no value that it could keep",
            name.text
        ),
    )
    .help("take another border, or declare a field")
}

/// Weights that a neighbourhood was given, and the lengths that they must have.
struct Weights {
    name: String,
    lengths: Vec<i128>,
    span: Span,
}

fn check_weights(kernel: &System, weights: &[Weights], errors: &mut Errors) {
    for given in weights {
        let Some(array) = kernel.inputs.iter().find(|i| i.name == given.name) else {
            continue;
        };
        let length = |axis: &systola_ir::system::Axis| axis.hi.sub(&axis.lo).as_constant();
        let starts_at_zero = array.axes.iter().all(|axis| axis.lo == Form::zero());
        let lengths: Vec<Option<i128>> = array.axes.iter().map(length).collect();
        let wanted: Vec<Option<i128>> = given.lengths.iter().copied().map(Some).collect();
        if lengths != wanted || !starts_at_zero {
            errors.report(wrong_weights(
                &given.name,
                &given.lengths,
                given.span,
                array.span,
            ));
        }
    }
}

fn wrong_weights(name: &str, lengths: &[i128], span: Span, declared: Span) -> Diagnostic {
    let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let cells = if lengths.len() == 1 {
        "a list, in the order of its cells,"
    } else {
        "weights"
    };
    Diagnostic::new(
        &codes::WEIGHTS_SHAPE,
        span,
        format!(
            "this neighbourhood takes {cells} of the shape [{}], and `{name}` has another",
            lengths.join(", ")
        ),
    )
    .also(declared, "declared here")
    .help(format!("declare it as `{name}[{}]`", lengths.join(", ")))
}

/// What the names in the equations of a stencil stand for.
struct Scope {
    fields: Vec<String>,
    /// Variables: those between, and the next values of fields.
    vars: Vec<String>,
    axes: Vec<Name>,
    /// Names for the iterators of a sum over a box, one for each axis.
    window: Vec<String>,
    time: String,
}

impl Scope {
    fn of(ast: &ast::Stencil, errors: &mut Errors) -> Option<Scope> {
        let fields: Vec<String> = ast
            .fields
            .iter()
            .map(|(f, _)| f.name.text.clone())
            .collect();
        let updates = || ast.equations.iter().filter(|e| e.between.is_none());
        if fields.is_empty() || updates().next().is_none() {
            errors.report(
                Diagnostic::new(
                    &codes::NO_UPDATE,
                    ast.name.span,
                    format!(
                        "the stencil `{}` has no {}",
                        ast.name.text,
                        if fields.is_empty() {
                            "field"
                        } else {
                            "equation for a field"
                        }
                    ),
                )
                .help("add `field u[N]: f32 clamp;` and `u = 0.5 * u[-1] + 0.5 * u[1];`"),
            );
            return None;
        }
        let mut known = true;
        let mut not_a_field = |name: &Name, known_names: &[String], help: &str| {
            known = false;
            let error = Diagnostic::new(
                &codes::NOT_A_FIELD,
                name.span,
                format!("`{}` is no field of this stencil", name.text),
            );
            let near = suggest(&name.text, known_names.iter().map(String::as_str));
            errors.report(match near {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(help.to_string()),
            });
        };
        for equation in updates().filter(|e| !fields.contains(&e.name.text)) {
            let help = format!("declare it: `var {}: f32 = …;`", equation.name.text);
            not_a_field(&equation.name, &fields, &help);
        }
        let computed: Vec<String> = ast.equations.iter().map(|e| e.name.text.clone()).collect();
        for (_, what) in ast
            .outputs
            .iter()
            .filter(|(_, what)| !computed.contains(&what.text))
        {
            let list: Vec<&str> = computed.iter().map(String::as_str).collect();
            let help = format!("there are equations for {}", shorten(&list));
            not_a_field(what, &computed, &help);
        }
        let n_axes = ast.fields[0].0.axes.len();
        if let Some((names, span)) = ast
            .index
            .as_ref()
            .filter(|(names, _)| names.len() != n_axes)
        {
            known = false;
            errors.report(
                Diagnostic::new(
                    &types::WRONG_COUNT,
                    *span,
                    format!(
                        "the fields have {n_axes} axes, but {} names are given",
                        names.len()
                    ),
                )
                .help("give one name for each axis, without ranges"),
            );
        }
        if !known {
            return None;
        }
        let mut taken = Fresh::default();
        taken_names(ast)
            .into_iter()
            .for_each(|name| taken.take(name));
        let axes = match &ast.index {
            Some((names, _)) => names.clone(),
            None => (taken.axes(n_axes))
                .into_iter()
                .map(|text| Name {
                    text,
                    span: ast.name.span,
                })
                .collect(),
        };
        let window = taken.window(n_axes);
        let vars = (ast.equations.iter())
            .map(|e| match e.between {
                Some(_) => e.name.text.clone(),
                None => primed(&e.name.text),
            })
            .collect();
        Some(Scope {
            fields,
            vars,
            axes,
            window,
            time: taken.name("t"),
        })
    }

    /// The axes of the grid as iterators.
    fn index(&self, field: &ast::Input) -> Index {
        let dims = self.axes.iter().zip(&field.axes);
        let dims = dims.map(|(name, axis)| Dim {
            name: name.clone(),
            range: Some((int(0, name.span), axis.hi.clone())),
            span: name.span,
        });
        Index {
            dims: dims.collect(),
            domain: Vec::new(),
            span: field.span,
        }
    }

    fn var(&self, equation: &ast::Equation, fields: &[(ast::Input, ast::Border)]) -> ast::Var {
        let field = fields
            .iter()
            .find(|(f, _)| f.name.text == equation.name.text);
        let (name, ty) = match (&equation.between, field) {
            (Some((ty, _)), _) => (equation.name.clone(), ty.clone()),
            (None, Some((field, _))) => {
                let name = Name {
                    text: primed(&equation.name.text),
                    span: equation.name.span,
                };
                (name, field.ty.clone())
            }
            (None, None) => (equation.name.clone(), fields[0].0.ty.clone()),
        };
        ast::Var {
            name,
            ty,
            law: Law::Fixed,
            on: Vec::new(),
            body: equation.body.clone(),
            span: equation.span,
        }
    }
}

/// All names that a user gave.
fn taken_names(ast: &ast::Stencil) -> Vec<String> {
    let mut names: Vec<&Name> = ast.params.iter().collect();
    names.extend(ast.consts.iter().map(|c| &c.name));
    names.extend(ast.fields.iter().map(|(f, _)| &f.name));
    names.extend(ast.inputs.iter().map(|i| &i.name));
    for function in &ast.functions {
        names.push(&function.name);
        names.extend(function.params.iter().map(|(name, _)| name));
    }
    names.extend(ast.batch.iter().map(|b| &b.name));
    names.extend(ast.index.iter().flat_map(|(names, _)| names));
    names.extend(ast.equations.iter().map(|e| &e.name));
    names.extend(ast.outputs.iter().map(|(name, _)| name));
    names.iter().map(|name| name.text.clone()).collect()
}

pub fn node(kind: ExprKind, span: Span) -> Expr {
    Expr {
        kind,
        span,
        size: Size::LEAF,
    }
}

pub fn int(value: i128, span: Span) -> Expr {
    node(ExprKind::Int(value, None), span)
}

pub fn named(name: &str, span: Span) -> Expr {
    node(ExprKind::Name(name.to_string()), span)
}

pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    node(ExprKind::Binary(op, Box::new(a), Box::new(b)), span)
}

/// Turns the offsets of an equation into indices.
struct Reader<'a> {
    scope: &'a Scope,
    inputs: &'a [ast::Input],
    weights: &'a mut Vec<Weights>,
    errors: &'a mut Errors,
}

impl Reader<'_> {
    fn relative(&mut self, expr: &mut Expr) {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) => {}
            ExprKind::Name(name) => {
                if self.scope.fields.contains(name) {
                    let name = Name {
                        text: name.clone(),
                        span,
                    };
                    let here = self.scope.axes.iter().map(|axis| named(&axis.text, span));
                    expr.kind = ExprKind::Element(name, here.collect());
                }
            }
            ExprKind::Element(name, index) => {
                index.iter_mut().for_each(|e| self.relative(e));
                let is_field = self.scope.fields.contains(&name.text);
                let is_var = self.scope.vars.contains(&name.text);
                if !is_field && !is_var {
                    return;
                }
                let n_axes = self.scope.axes.len();
                if index.len() != n_axes {
                    let error = Diagnostic::new(
                        &types::WRONG_COUNT,
                        span,
                        format!(
                            "`{}` has {n_axes} ax{}, but {} offset{} given",
                            name.text,
                            if n_axes == 1 { "is" } else { "es" },
                            index.len(),
                            if index.len() == 1 { " is" } else { "s are" },
                        ),
                    );
                    let zero = vec!["0"; n_axes].join(", ");
                    let help = format!(
                        "give one for each axis; `{}[{zero}]` is the cell itself",
                        name.text
                    );
                    self.errors.report(error.help(help));
                    return;
                }
                let axes = self.scope.axes.iter();
                let index: Vec<Expr> = axes
                    .zip(std::mem::take(index))
                    .map(|(axis, offset)| {
                        binary(BinOp::Add, named(&axis.text, offset.span), offset)
                    })
                    .collect();
                let name = name.clone();
                expr.kind = match is_field {
                    true => ExprKind::Element(name, index),
                    false => ExprKind::Apply(name, index),
                };
            }
            ExprKind::Apply(_, list) | ExprKind::Tuple(list) => {
                list.iter_mut().for_each(|e| self.relative(e));
            }
            ExprKind::Unary(_, inner) | ExprKind::Field(inner, _) | ExprKind::Paren(inner) => {
                self.relative(inner);
            }
            ExprKind::Binary(_, a, b) => {
                self.relative(a);
                self.relative(b);
            }
            ExprKind::Chain(first, rest) => {
                self.relative(first);
                rest.iter_mut().for_each(|(_, e)| self.relative(e));
            }
            ExprKind::Let(bindings, body) => {
                bindings.iter_mut().for_each(|(_, e)| self.relative(e));
                self.relative(body);
            }
            ExprKind::Reduce(_, _, body) | ExprKind::Scan(_, _, body) => self.relative(body),
            ExprKind::Around(op, weights, of, shape) => {
                let (op, weights, of, shape) = (*op, weights.take(), of.clone(), shape.clone());
                if let Some(around) = self.around(op, weights.as_ref(), &of, &shape, span) {
                    *expr = around;
                }
            }
        }
    }

    fn around(
        &mut self,
        op: BinOp,
        weights: Option<&Name>,
        of: &Name,
        shape: &ast::Shape,
        span: Span,
    ) -> Option<Expr> {
        let is_field = self.scope.fields.contains(&of.text);
        if !is_field && !self.scope.vars.contains(&of.text) {
            let known: Vec<&str> = self.scope.fields.iter().map(String::as_str).collect();
            let error = Diagnostic::new(
                &codes::NOT_A_FIELD,
                of.span,
                format!("`{}` is no field, so it has no neighbourhood", of.text),
            );
            self.errors
                .report(match suggest(&of.text, known.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(format!("there are the fields {}", shorten(&known))),
                });
            return None;
        }
        let is_box = !shape.is_star && shape.except.is_none();
        let set = self.shape(shape)?;
        let offsets = set.offsets();
        let lengths: Vec<i128> = match is_box {
            true => set.radii().iter().map(|r| 2 * r + 1).collect(),
            false => vec![offsets.len() as i128],
        };
        if let Some(name) = weights {
            let declared = self.inputs.iter().find(|i| i.name.text == name.text);
            if let Some(array) = declared.filter(|array| array.axes.len() != lengths.len()) {
                let error = wrong_weights(&name.text, &lengths, span, array.span);
                self.errors.report(error);
                return None;
            }
            self.weights.push(Weights {
                name: name.text.clone(),
                lengths,
                span,
            });
        }
        let cell = |index: Vec<Expr>| match is_field {
            true => node(ExprKind::Element(of.clone(), index), span),
            false => node(ExprKind::Apply(of.clone(), index), span),
        };
        let weighted = |cell: Expr, at: Vec<Expr>| match weights {
            Some(name) => {
                let weight = node(ExprKind::Element(name.clone(), at), span);
                binary(BinOp::Mul, cell, weight)
            }
            None => cell,
        };
        // A box of a field stays a sum over its own iterators, whose order a mapping chooses.
        if is_box && is_field && offsets.len() > 1 {
            return Some(self.window(op, set.radii(), &cell, &weighted, span));
        }
        let axes = || self.scope.axes.iter();
        let terms: Vec<Expr> = (offsets.iter().enumerate())
            .map(|(n, offset)| {
                let at = axes().zip(offset);
                let at =
                    at.map(|(axis, o)| binary(BinOp::Add, named(&axis.text, span), int(*o, span)));
                let weight = match is_box {
                    true => (offset.iter().zip(set.radii()))
                        .map(|(o, r)| int(o + r, span))
                        .collect(),
                    false => vec![int(n as i128, span)],
                };
                weighted(cell(at.collect()), weight)
            })
            .collect();
        let name = |op: BinOp| Name {
            text: op.name().to_string(),
            span,
        };
        let combined = terms.into_iter().reduce(|a, b| match op {
            BinOp::Add => binary(BinOp::Add, a, b),
            _ => node(ExprKind::Apply(name(op), vec![a, b]), span),
        });
        if combined.is_none() {
            self.errors.report(
                Diagnostic::new(
                    &codes::WEIGHTS_SHAPE,
                    shape.span,
                    "nothing is left of this neighbourhood",
                )
                .help("take away less"),
            );
        }
        combined
    }

    fn window(
        &self,
        op: BinOp,
        radii: &[i128],
        cell: &dyn Fn(Vec<Expr>) -> Expr,
        weighted: &dyn Fn(Expr, Vec<Expr>) -> Expr,
        span: Span,
    ) -> Expr {
        let mut dims = Vec::new();
        let (mut index, mut weight) = (Vec::new(), Vec::new());
        for ((axis, q), r) in self.scope.axes.iter().zip(&self.scope.window).zip(radii) {
            let here = named(&axis.text, span);
            if *r == 0 {
                index.push(here);
                weight.push(int(0, span));
                continue;
            }
            dims.push(Dim {
                name: Name {
                    text: q.clone(),
                    span,
                },
                range: Some((int(0, span), int(2 * r + 1, span))),
                span,
            });
            let ahead = binary(BinOp::Add, here, named(q, span));
            index.push(binary(BinOp::Sub, ahead, int(*r, span)));
            weight.push(named(q, span));
        }
        let op = ReduceOp {
            kind: ReduceOpKind::Op(op),
            span,
        };
        let body = weighted(cell(index), weight);
        node(ExprKind::Reduce(op, dims, Box::new(body)), span)
    }

    fn shape(&mut self, shape: &ast::Shape) -> Option<Shape> {
        let n_axes = self.scope.axes.len();
        let radii = match shape.radii.as_slice() {
            [radius] => vec![*radius; n_axes],
            list if list.len() == n_axes => list.to_vec(),
            list => {
                self.errors.report(
                    Diagnostic::new(
                        &codes::WEIGHTS_SHAPE,
                        shape.span,
                        format!("{} radii are given for {n_axes} axes", list.len()),
                    )
                    .help("give one for all axes, or one for each"),
                );
                return None;
            }
        };
        let own = match shape.is_star {
            true => Shape::Star(radii),
            false => Shape::Box(radii),
        };
        if own.volume() > MAX_CELLS {
            self.errors.report(
                Diagnostic::new(
                    &syntax::TOO_LARGE,
                    shape.span,
                    format!("the box around this neighbourhood has more than {MAX_CELLS} cells"),
                )
                .help("write a `conv`, or a `system` with a `reduce`"),
            );
            return None;
        }
        Some(match &shape.except {
            Some(without) => Shape::Except(Box::new(own), Box::new(self.shape(without)?)),
            None => own,
        })
    }
}
