//! Stencils, declared step by step.

use systola_ir::codes::stencil as codes;
use systola_ir::system::{Law, System};
use systola_ir::{BinOp, Diagnostic, Form, InputId, Literal, Scalar, Span, Type, VarId};
use systola_stencil::{Border, Field, Fresh, Shape, Stencil, write_system};

use crate::builder::{Axis, SystemBuilder};
use crate::expr::{Expr, Node, Range, max, min, name, reduce};
use crate::lower::{fitted, lower_size, lower_system};

/// A stencil that is being written: what a cell becomes from the cells around it. Fields are read at offsets, `u.at((-1, 0))`; a bare name is
/// the cell itself.
///
/// ```
/// use systola_dsl::prelude::*;
///
/// let mut s = StencilBuilder::new("heat");
/// let [n, m, t] = ["N", "M", "T"].map(|p| s.param(p));
/// let u = s.field("u", Scalar::F32, [&n, &m], Border::Held);
/// s.steps(&t);
/// s.update(&u, &u + 0.1 * (s.sum(&u, &Shape::star(2, 1)) - 5 * &u));
/// let system = s.build().unwrap();
///
/// // One sum for each row of the neighbourhood, and the result.
/// assert_eq!(system.vars.len(), 3);
/// assert_eq!(system.dims[0].name, "t");
/// ```
#[derive(Clone, Debug, Default)]
pub struct StencilBuilder {
    kernel: SystemBuilder,
    fields: Vec<(String, Border)>,
    equations: Vec<Equation>,
    axes: Option<Vec<String>>,
    steps: Option<Expr>,
    outputs: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct Equation {
    name: String,
    between: Option<(Type, Border)>,
    body: Expr,
}

impl StencilBuilder {
    pub fn new(text: impl Into<String>) -> Self {
        StencilBuilder {
            kernel: SystemBuilder::new(text),
            ..StencilBuilder::default()
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.kernel.param(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.kernel.context(cond);
        self
    }

    /// `field u[axes]: ty border;`
    pub fn field<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        border: Border,
    ) -> Expr {
        let border = of_type(border, ty);
        let field = self.kernel.input(text, ty, axes);
        // Fields come before other arrays, as they do in text.
        if let Some(declared) = self.kernel.inputs.pop() {
            self.kernel.inputs.insert(self.fields.len(), declared);
        }
        self.fields.push((text.to_string(), border));
        field
    }

    /// `input w[axes]: ty;`, an array that is read at its own indices.
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.kernel.input(text, ty, axes)
    }

    /// `table w[axes]: ty = data;`, in row-major order.
    pub fn table_of<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        data: impl IntoIterator<Item = Literal>,
    ) -> Expr {
        self.kernel.table_of(text, ty, axes, data)
    }

    /// `const g: f32 = 0.5;`
    pub fn constant(&mut self, text: &str, ty: Scalar, value: impl Into<Expr>) -> Expr {
        self.kernel.constant(text, ty, value)
    }

    /// `fn f(a: f32, b: f32) -> f32 = body;`
    pub fn function<const N: usize>(
        &mut self,
        text: &str,
        params: [(&str, Type); N],
        result: impl Into<Type>,
        body: impl FnOnce([Expr; N]) -> Expr,
    ) -> Expr {
        self.kernel.function(text, params, result, Law::Fixed, body)
    }

    /// `batch n in 0..B shared(w);`
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        self.kernel.batch(range, shared);
        self
    }

    /// `index i, j;`: names for the axes.
    pub fn index<const N: usize>(&mut self, axes: [&str; N]) -> [Expr; N] {
        self.axes = Some(axes.iter().map(ToString::to_string).collect());
        axes.map(name)
    }

    /// `steps T;`
    pub fn steps(&mut self, steps: impl Into<Expr>) -> &mut Self {
        self.steps = Some(steps.into());
        self
    }

    /// `u = body;`, the next value of a field.
    pub fn update(&mut self, field: &Expr, body: impl Into<Expr>) -> &mut Self {
        self.equations.push(Equation {
            name: field.as_name().unwrap_or_default().to_string(),
            between: None,
            body: body.into(),
        });
        self
    }

    /// `var g: ty border = body;`, a value between.
    pub fn var(&mut self, text: &str, ty: Scalar, border: Border, body: impl Into<Expr>) -> Expr {
        let border = of_type(border, ty);
        self.equations.push(Equation {
            name: text.to_string(),
            between: Some((Type::Scalar(ty), border)),
            body: body.into(),
        });
        name(text)
    }

    /// `u'`: the value of a field after this sweep.
    pub fn next(&self, field: &Expr) -> Expr {
        name(primed(field.as_name().unwrap_or_default()))
    }

    /// `output h = u;`
    pub fn output(&mut self, text: &str, what: &Expr) -> &mut Self {
        let what = what.as_name().unwrap_or_default().to_string();
        self.outputs.push((text.to_string(), what));
        self
    }

    /// `sum(u over shape)`
    pub fn sum(&self, field: &Expr, shape: &Shape) -> Expr {
        self.around(BinOp::Add, None, field, shape)
    }

    /// `sum(w * u over shape)`
    pub fn weighted(&self, weights: &Expr, field: &Expr, shape: &Shape) -> Expr {
        self.around(BinOp::Add, Some(weights), field, shape)
    }

    /// `min(u over shape)`
    pub fn least(&self, field: &Expr, shape: &Shape) -> Expr {
        self.around(BinOp::Min, None, field, shape)
    }

    /// `max(u over shape)`
    pub fn most(&self, field: &Expr, shape: &Shape) -> Expr {
        self.around(BinOp::Max, None, field, shape)
    }

    fn around(&self, op: BinOp, weights: Option<&Expr>, field: &Expr, shape: &Shape) -> Expr {
        let weighted = |cell: Expr, at: Vec<Expr>| match weights {
            Some(weights) => cell * weights.at(at),
            None => cell,
        };
        let is_field = |text: &str| self.fields.iter().any(|(f, _)| f == text);
        let radii = shape.radii();
        if matches!(shape, Shape::Box(_))
            && field.as_name().is_some_and(is_field)
            && radii.iter().any(|r| *r > 0)
        {
            let window = self.taken().window(radii.len());
            let taps = window.iter().zip(&radii).map(|(q, r)| match r {
                0 => (Expr::from(0), Expr::from(0), None),
                r => {
                    let q = name(q.as_str());
                    let range = q.range(0, Expr::from(2 * r + 1));
                    (&q - Expr::from(*r), q, Some(range))
                }
            });
            let taps: Vec<(Expr, Expr, Option<Range>)> = taps.collect();
            let at = taps.iter().map(|(at, ..)| at.clone()).collect::<Vec<_>>();
            let weight = taps.iter().map(|(_, q, _)| q.clone()).collect();
            let ranges: Vec<Range> = taps.into_iter().filter_map(|(.., range)| range).collect();
            return reduce(op, ranges, weighted(field.at(at), weight));
        }
        let terms = shape.offsets().into_iter().enumerate().map(|(n, offset)| {
            let weight: Vec<Expr> = match shape {
                Shape::Box(radii) => (offset.iter().zip(radii))
                    .map(|(o, r)| Expr::from(o + r))
                    .collect(),
                Shape::Star(_) | Shape::Except(..) | Shape::And(..) => vec![Expr::from(n as i128)],
            };
            let at: Vec<Expr> = offset.into_iter().map(Expr::from).collect();
            weighted(field.at(at), weight)
        });
        let all = terms.reduce(|a, b| match op {
            BinOp::Min => min(a, b),
            BinOp::Max => max(a, b),
            _ => a + b,
        });
        all.unwrap_or_else(|| crate::expr::mistake("nothing is left of a neighbourhood"))
    }

    /// The names that a user gave so far.
    fn taken(&self) -> Fresh {
        let mut taken = Fresh::default();
        let kernel = &self.kernel;
        kernel.params.iter().for_each(|p| taken.take(p));
        kernel.inputs.iter().for_each(|i| taken.take(&i.name));
        kernel.consts.iter().for_each(|c| taken.take(&c.name));
        for function in &kernel.functions {
            taken.take(&function.name);
            function.params.iter().for_each(|(p, _)| taken.take(p));
        }
        self.axes.iter().flatten().for_each(|axis| taken.take(axis));
        if let Some((range, _)) = &kernel.batch {
            taken.take(&range.name);
        }
        self.equations.iter().for_each(|e| taken.take(&e.name));
        self.outputs.iter().for_each(|(name, _)| taken.take(name));
        taken
    }

    /// The system, or all that is wrong with the stencil.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        let updates = |field: &str| {
            let updates = |e: &Equation| e.between.is_none() && e.name == field;
            self.equations.iter().position(updates).map(VarId::from)
        };
        self.check()?;
        let mut taken = self.taken();
        let n_axes = self.kernel.inputs[0].axes.len();
        let axes = match &self.axes {
            Some(axes) => axes.clone(),
            None => taken.axes(n_axes),
        };
        let grid: Vec<Expr> = axes.iter().map(|axis| name(axis.as_str())).collect();
        let mut kernel = self.kernel.clone();
        let ends = self.kernel.inputs[0].axes.iter().map(|axis| &axis.hi);
        kernel.index(grid.iter().zip(ends).map(|(axis, end)| axis.range(0, end)));
        let field_of = |text: &str| self.fields.iter().position(|(f, _)| f == text);
        let mut borders = Vec::new();
        for equation in &self.equations {
            let body = self.relative(&equation.body, &grid);
            match (&equation.between, field_of(&equation.name)) {
                (Some((ty, border)), _) => {
                    kernel.var(name(&equation.name), ty.clone(), body);
                    borders.push(*border);
                }
                (None, Some(n)) => {
                    let ty = self.kernel.inputs[n].ty;
                    kernel.var(name(primed(&equation.name)), ty, body);
                    borders.push(self.fields[n].1);
                }
                (None, None) => {}
            }
        }
        let steps = self
            .steps
            .as_ref()
            .map(|steps| lower_size(&self.kernel, steps));
        let steps: Option<Form> = steps.transpose().map_err(|e| vec![*e])?;
        let outputs = if self.outputs.is_empty() {
            let updates = self.equations.iter().enumerate();
            let updates = updates.filter(|(_, e)| e.between.is_none());
            updates
                .map(|(n, e)| (primed(&e.name), VarId::from(n)))
                .collect()
        } else {
            let position = |what: &str| self.equations.iter().position(|e| e.name == what);
            let named = self.outputs.iter();
            named
                .filter_map(|(text, what)| Some((text.clone(), VarId::from(position(what)?))))
                .collect()
        };
        write_system(&Stencil {
            kernel: lower_system(&kernel)?,
            fields: (self.fields.iter().enumerate())
                .map(|(n, (text, border))| Field {
                    input: InputId::from(n),
                    border: *border,
                    update: updates(text),
                })
                .collect(),
            borders,
            steps: steps.map(|steps| (steps, Span::NONE)),
            time: taken.name("t"),
            outputs,
        })
    }

    fn check(&self) -> Result<(), Vec<Diagnostic>> {
        let is_field = |text: &str| self.fields.iter().any(|(f, _)| f == text);
        let mut errors = Vec::new();
        if self.fields.is_empty() || !self.equations.iter().any(|e| e.between.is_none()) {
            let message = format!(
                "the stencil `{}` has no field with an equation",
                self.kernel.name
            );
            let error = Diagnostic::new(&codes::NO_UPDATE, Span::NONE, message);
            errors.push(error.help("declare one with `field`, and give it one with `update`"));
        }
        for equation in &self.equations {
            let message = match &equation.between {
                None if !is_field(&equation.name) => "is no field of this stencil",
                Some((_, Border::Held)) => "is no field, so it has no value that it could keep",
                _ => continue,
            };
            let message = format!("`{}` {message}", equation.name);
            let error = Diagnostic::new(&codes::NOT_A_FIELD, Span::NONE, message);
            errors.push(error.help("declare it with `field`"));
        }
        let fields = self.kernel.inputs.iter().zip(&self.fields);
        let fields = fields.map(|(input, (_, border))| (*border, input.ty));
        let between = self.equations.iter().filter_map(|e| e.between.as_ref());
        let between = between.filter_map(|(ty, border)| Some((*border, ty.scalar()?)));
        for (border, ty) in fields.chain(between) {
            errors.extend(wrong_type(border, ty));
        }
        let computed = |text: &str| self.equations.iter().any(|e| e.name == text);
        for (_, what) in self.outputs.iter().filter(|(_, what)| !computed(what)) {
            let message = format!("`{what}` has no equation");
            let error = Diagnostic::new(&codes::NOT_A_FIELD, Span::NONE, message);
            errors.push(error.help("give it one with `update` or `var`"));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Offsets become indices.
    fn relative(&self, expr: &Expr, grid: &[Expr]) -> Expr {
        let on_grid = |text: &str| {
            let field = text.strip_suffix('\'').unwrap_or(text);
            self.fields.iter().any(|(f, _)| f == field)
                || self
                    .equations
                    .iter()
                    .any(|e| e.between.is_some() && e.name == text)
        };
        let again = |e: &Expr| self.relative(e, grid);
        let node = match &*expr.node {
            Node::Name(text) if self.fields.iter().any(|(f, _)| f == text) => {
                return expr.at(grid.to_vec());
            }
            Node::Int(..)
            | Node::Float(..)
            | Node::Bool(_)
            | Node::Name(_)
            | Node::Mistake(_)
            | Node::TooLarge(_) => {
                return expr.clone();
            }
            Node::At(text, index) if on_grid(text) && index.len() == grid.len() => {
                let at = grid.iter().zip(index).map(|(axis, offset)| axis + offset);
                Node::At(text.clone(), at.collect())
            }
            Node::At(text, index) => Node::At(text.clone(), index.iter().map(again).collect()),
            Node::Unary(op, a) => Node::Unary(*op, again(a)),
            Node::Binary(op, a, b) => Node::Binary(*op, again(a), again(b)),
            Node::Cast(ty, a) => Node::Cast(*ty, again(a)),
            Node::Select(cond, then, otherwise) => {
                Node::Select(again(cond), again(then), otherwise.as_ref().map(again))
            }
            Node::Tuple(parts) => Node::Tuple(parts.iter().map(again).collect()),
            Node::Field(a, n) => Node::Field(again(a), *n),
            Node::Let(text, value, body) => Node::Let(text.clone(), again(value), again(body)),
            Node::Reduce(op, ranges, body) => Node::Reduce(op.clone(), ranges.clone(), again(body)),
            Node::Scan(op, along, body) => Node::Scan(op.clone(), along.clone(), again(body)),
        };
        node.into()
    }
}

fn primed(field: &str) -> String {
    format!("{field}'")
}

/// The border of a field of this type: a whole number may be a float.
pub(crate) fn of_type(border: Border, ty: Scalar) -> Border {
    match border {
        Border::Constant(value) => Border::Constant(fitted(value, ty).unwrap_or(value)),
        other => other,
    }
}

/// A border of a number that is none of this type.
pub(crate) fn wrong_type(border: Border, ty: Scalar) -> Option<Diagnostic> {
    match border {
        Border::Constant(value) => fitted(value, ty).err().map(|error| *error),
        _ => None,
    }
}
