//! Builders of stencils.

use systola_ir::mapping::Name;
use systola_ir::system::{Law, System};
use systola_ir::{BinOp, Diagnostic, Literal, Scalar, Span, Type};
use systola_stencil::{Boundary, Shape};
use systola_surface::elaborate_stencil;
use systola_surface::tree::{self, Equation, ExprKind, Origin, ShapeKind};

use crate::builder::{Axis, SystemBuilder, array, boundary_tree};
use crate::expr::{Expr, Range, name};

/// A stencil under construction: the new value of a cell from the cells around it. Fields are read
/// at offsets, `u.at((-1, 0))`; a bare name is the cell itself.
///
/// ```
/// use systola_dsl::prelude::*;
///
/// let mut s = StencilBuilder::new("heat");
/// let [n, m, t] = ["N", "M", "T"].map(|p| s.param(p));
/// let u = s.field("u", Scalar::F32, [&n, &m], Boundary::Fixed);
/// s.steps(&t);
/// s.update(&u, &u + 0.1 * (s.sum(&u, &Shape::star(2, 1)) - 5 * &u));
/// let system = s.build().unwrap();
///
/// // One sum for each row of the neighbourhood, and the result.
/// assert_eq!(system.vars.len(), 3);
/// assert_eq!(system.dims[0].name, "t");
/// ```
#[derive(Clone, Debug)]
pub struct StencilBuilder {
    /// The parts that stencils have in common with systems: parameters, context, constants, arrays,
    /// functions and the batch.
    head: SystemBuilder,
    /// The rest.
    tree: tree::Stencil,
}

impl StencilBuilder {
    #[track_caller]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        StencilBuilder {
            head: SystemBuilder::new(text.clone()),
            tree: tree::Stencil::new(text, Origin::caller()),
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.head.param(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.head.context(cond);
        self
    }

    /// `field u[axes]: ty boundary;`
    #[track_caller]
    pub fn field<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        boundary: Boundary,
    ) -> Expr {
        let field = array(text, ty, axes, Origin::caller());
        self.tree.fields.push((field, boundary_tree(boundary)));
        name(text)
    }

    /// `input w[axes]: ty;`, an array with its own indices.
    #[track_caller]
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.head.input(text, ty, axes)
    }

    /// `input w[axes]: ty clamp;`, with any boundary condition except `interior` and `fixed`, which
    /// only fields can have.
    #[track_caller]
    pub fn input_boundary<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        boundary: Boundary,
    ) -> Expr {
        self.head.input_boundary(text, ty, axes, boundary)
    }

    /// `table w[axes]: ty = data;`, with the contents in row-major order.
    #[track_caller]
    pub fn table_of<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        data: impl IntoIterator<Item = Literal>,
    ) -> Expr {
        self.head.table_of(text, ty, axes, data)
    }

    /// `const g: f32 = 0.5;`
    #[track_caller]
    pub fn constant(&mut self, text: &str, ty: Scalar, value: impl Into<Expr>) -> Expr {
        self.head.constant(text, ty, value)
    }

    /// `fn f(a: f32, b: f32) -> f32 = body;`
    #[track_caller]
    pub fn function<const N: usize>(
        &mut self,
        text: &str,
        params: [(&str, Type); N],
        result: impl Into<Type>,
        body: impl FnOnce([Expr; N]) -> Expr,
    ) -> Expr {
        self.head.function(text, params, result, Law::Fixed, body)
    }

    /// `batch n in 0..B shared(w);`
    #[track_caller]
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        self.head.batch(range, shared);
        self
    }

    /// `index i, j;`: names for the axes.
    pub fn index<const N: usize>(&mut self, axes: [&str; N]) -> [Expr; N] {
        self.tree.index = Some((axes.map(Name::from).to_vec(), Span::NONE));
        axes.map(name)
    }

    /// `steps T;`
    pub fn steps(&mut self, steps: impl Into<Expr>) -> &mut Self {
        self.tree.steps = Some((steps.into().0, Span::NONE));
        self
    }

    /// `u = body;`, the next value of a field.
    #[track_caller]
    pub fn update(&mut self, field: &Expr, body: impl Into<Expr>) -> &mut Self {
        self.tree.equations.push(Equation {
            name: field.to_name(),
            between: None,
            body: body.into().0,
            origin: Origin::caller(),
        });
        self
    }

    /// `var g: ty boundary = body;`, an intermediate value.
    #[track_caller]
    pub fn var(
        &mut self,
        text: &str,
        ty: Scalar,
        boundary: Boundary,
        body: impl Into<Expr>,
    ) -> Expr {
        self.tree.equations.push(Equation {
            name: Name::from(text),
            between: Some((ty.into(), boundary_tree(boundary))),
            body: body.into().0,
            origin: Origin::caller(),
        });
        name(text)
    }

    /// `u'`: the value of a field after this sweep.
    pub fn next(&self, field: &Expr) -> Expr {
        name(format!("{}'", field.to_name().text))
    }

    /// `output h = u;`
    pub fn output(&mut self, text: &str, what: &Expr) -> &mut Self {
        self.tree.outputs.push((Name::from(text), what.to_name()));
        self
    }

    /// `sum(u over shape)`
    pub fn sum(&self, field: &Expr, shape: &Shape) -> Expr {
        around(BinOp::Add, None, field, shape)
    }

    /// `sum(w * u over shape)`
    pub fn weighted(&self, weights: &Expr, field: &Expr, shape: &Shape) -> Expr {
        around(BinOp::Add, Some(weights), field, shape)
    }

    /// `min(u over shape)`
    pub fn least(&self, field: &Expr, shape: &Shape) -> Expr {
        around(BinOp::Min, None, field, shape)
    }

    /// `max(u over shape)`
    pub fn most(&self, field: &Expr, shape: &Shape) -> Expr {
        around(BinOp::Max, None, field, shape)
    }

    /// The system, or all errors of the stencil.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        elaborate_stencil(self.tree())
    }

    pub(crate) fn tree(&self) -> tree::Stencil {
        let head = self.head.tree();
        tree::Stencil {
            params: head.params,
            context: head.context,
            consts: head.consts,
            inputs: head.inputs,
            functions: head.functions,
            batch: head.batch,
            ..self.tree.clone()
        }
    }
}

fn around(op: BinOp, weights: Option<&Expr>, field: &Expr, shape: &Shape) -> Expr {
    let weights = weights.map(Expr::to_name);
    ExprKind::Around(op, weights, field.to_name(), neighbourhood(shape)).into()
}

fn neighbourhood(shape: &Shape) -> tree::Shape {
    let pair = |a: &Shape, b: &Shape| (Box::new(neighbourhood(a)), Box::new(neighbourhood(b)));
    let kind = match shape {
        Shape::Box(radii) => ShapeKind::Box(radii.clone()),
        Shape::Star(radii) => ShapeKind::Star(radii.clone()),
        Shape::Except(all, without) => {
            let (all, without) = pair(all, without);
            ShapeKind::Except(all, without)
        }
        Shape::And(one, other) => {
            let (one, other) = pair(one, other);
            ShapeKind::And(one, other)
        }
    };
    tree::Shape {
        kind,
        span: Span::NONE,
    }
}
