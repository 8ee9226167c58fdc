//! Builders of systems.

use systola_ir::codes::syntax;
use systola_ir::mapping::Name;
use systola_ir::system::{Law, System};
use systola_ir::{Diagnostic, Literal, Scalar, Span, Type};
use systola_stencil::Boundary;
use systola_surface::elaborate_system;
use systola_surface::tree::{self, Data, DataKind, ExprKind, Index, InputKind, Origin};

use crate::expr::{Expr, List, Range, name, trees};

/// A system under construction. [`SystemBuilder::build`] reports all errors.
#[derive(Clone, Debug)]
pub struct SystemBuilder {
    /// The system without equations and outputs.
    head: tree::System,
    vars: Vec<VarDecl>,
    outputs: Vec<OutputDecl>,
}

/// A variable under construction; promises and conditions can be added.
#[derive(Clone, Debug)]
pub struct VarDecl(tree::Var);

/// An output under construction; writes can be added.
#[derive(Clone, Debug)]
pub struct OutputDecl(tree::Output);

/// One axis of an array: `hi`, meaning `0..hi`, or [`axis`]`(lo, hi)`.
#[derive(Clone, Debug)]
pub struct Axis(tree::Axis);

impl<E: Into<Expr>> From<E> for Axis {
    fn from(hi: E) -> Self {
        Axis(hi.into().0.into())
    }
}

/// `lo..hi`.
pub fn axis(lo: impl Into<Expr>, hi: impl Into<Expr>) -> Axis {
    Axis(tree::Axis {
        lo: Some(lo.into().0),
        hi: hi.into().0,
    })
}

impl SystemBuilder {
    #[track_caller]
    pub fn new(name: impl Into<String>) -> Self {
        SystemBuilder {
            head: tree::System::new(name.into(), Origin::caller()),
            vars: Vec::new(),
            outputs: Vec::new(),
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.head.params.push(Name::from(text));
        name(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.head.context.push(cond.into().0);
        self
    }

    /// `const g: i32 = 3;`
    #[track_caller]
    pub fn constant(&mut self, text: &str, ty: Scalar, value: impl Into<Expr>) -> Expr {
        self.head.consts.push(tree::Const {
            name: Name::from(text),
            ty: ty.into(),
            value: value.into().0,
            origin: Origin::caller(),
        });
        name(text)
    }

    /// `input x[axes]: ty;`
    #[track_caller]
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.add(array(text, ty, list, Origin::caller()))
    }

    /// `input x[axes]: ty else outside;`
    #[track_caller]
    pub fn input_else<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        outside: impl Into<Expr>,
    ) -> Expr {
        let mut input = array(text, ty, list, Origin::caller());
        input.outside = Some(outside.into().0);
        self.add(input)
    }

    /// `input x[axes]: ty clamp;`, with any boundary condition except `interior` and `fixed`, which
    /// only fields can have.
    #[track_caller]
    pub fn input_boundary<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        boundary: Boundary,
    ) -> Expr {
        let mut input = array(text, ty, list, Origin::caller());
        input.boundary = Some((boundary_tree(boundary), Span::NONE));
        self.add(input)
    }

    /// `table sub[axes]: ty;`, whose contents are given at run time.
    #[track_caller]
    pub fn table<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> Expr {
        let mut table = array(text, ty, list, Origin::caller());
        table.kind = InputKind::Table(None);
        self.add(table)
    }

    /// `table sub[axes]: ty = data;`, with the contents in row-major order.
    #[track_caller]
    pub fn table_of<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        data: impl IntoIterator<Item = Literal>,
    ) -> Expr {
        let mut table = array(text, ty, list, Origin::caller());
        table.kind = InputKind::Table(Some(Data {
            kind: DataKind::All(data.into_iter().collect()),
            span: Span::NONE,
        }));
        self.add(table)
    }

    fn add(&mut self, input: tree::Input) -> Expr {
        let read = name(input.name.text.as_str());
        self.head.inputs.push(input);
        read
    }

    /// `fn f(a: f32, b: f32) -> f32 law = body;`
    #[track_caller]
    pub fn function<const N: usize>(
        &mut self,
        text: &str,
        params: [(&str, Type); N],
        result: impl Into<Type>,
        law: Law,
        body: impl FnOnce([Expr; N]) -> Expr,
    ) -> Expr {
        let arguments = params.each_ref().map(|(param, _)| name(*param));
        self.head.functions.push(tree::Function {
            name: Name::from(text),
            params: (params.into_iter())
                .map(|(param, ty)| (Name::from(param), ty.into()))
                .collect(),
            result: result.into().into(),
            law,
            body: body(arguments).0,
            origin: Origin::caller(),
        });
        name(text)
    }

    /// `batch n in 0..B shared(w);`
    #[track_caller]
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        self.head.batch = Some(batch(range, shared, Origin::caller()));
        self
    }

    /// `index c in 0..C, q in 0..Q;`
    #[track_caller]
    pub fn index<R: Into<Range>>(&mut self, ranges: impl IntoIterator<Item = R>) -> &mut Self {
        let dims = ranges.into_iter().map(|range| range.into().0);
        self.space(Origin::caller()).dims.extend(dims);
        self
    }

    /// `index … where cond`.
    #[track_caller]
    pub fn domain(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.space(Origin::caller()).domain.push(cond.into().0);
        self
    }

    fn space(&mut self, origin: Origin) -> &mut Index {
        self.head.index.get_or_insert_with(|| Index {
            dims: Vec::new(),
            domain: Vec::new(),
            origin,
        })
    }

    /// `var X: ty = body;`
    #[track_caller]
    pub fn var(
        &mut self,
        variable: impl Into<Expr>,
        ty: impl Into<Type>,
        body: impl Into<Expr>,
    ) -> &mut VarDecl {
        let name = variable.into().to_name();
        let body = body.into().0;
        self.vars
            .push(VarDecl(tree::Var::new(name, ty, body, Origin::caller())));
        let last = self.vars.len() - 1;
        &mut self.vars[last]
    }

    /// `output z[axes]: ty = …;`
    #[track_caller]
    pub fn output<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> &mut OutputDecl {
        let array = array(text, ty, list, Origin::caller());
        self.outputs.push(OutputDecl(tree::Output {
            name: array.name,
            ty: array.ty,
            axes: array.axes,
            writes: Vec::new(),
            fill: None,
            origin: array.origin,
        }));
        let last = self.outputs.len() - 1;
        &mut self.outputs[last]
    }

    /// The system, or all errors in its names and types.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        elaborate_system(&self.tree())
    }

    pub(crate) fn tree(&self) -> tree::System {
        let mut system = self.head.clone();
        system.vars = self.vars.iter().map(|var| var.0.clone()).collect();
        system.outputs = self.outputs.iter().map(|o| o.0.clone()).collect();
        system
    }
}

impl VarDecl {
    /// Promises that the terms of the sum may be regrouped.
    pub fn associative(&mut self) -> &mut Self {
        self.0.law = Law::Associative;
        self
    }

    /// Promises that the terms of the sum may be regrouped and reordered.
    pub fn reorderable(&mut self) -> &mut Self {
        self.0.law = Law::Reorderable;
        self
    }

    /// `var X(i in 0..N): …`: gives it iterators of its own.
    pub fn over<R: Into<Range>>(&mut self, ranges: impl IntoIterator<Item = R>) -> &mut Self {
        self.0.own = Some(ranges.into_iter().map(|range| range.into().0).collect());
        self
    }

    /// `on cond`: restricts the points at which the variable has a value.
    pub fn on(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.0.on.push(cond.into().0);
        self
    }
}

impl OutputDecl {
    /// `value at [index]`, at every point.
    pub fn write(&mut self, value: impl Into<Expr>, index: impl List) -> &mut Self {
        self.add(value.into(), trees(index), None)
    }

    /// `value at [index] when cond`.
    pub fn write_when(
        &mut self,
        value: impl Into<Expr>,
        index: impl List,
        cond: impl Into<Expr>,
    ) -> &mut Self {
        self.add(value.into(), trees(index), Some(cond.into().0))
    }

    fn add(&mut self, value: Expr, index: Vec<tree::Expr>, when: Option<tree::Expr>) -> &mut Self {
        self.0.writes.push(tree::Write {
            value: value.0,
            index,
            index_span: Span::NONE,
            when,
            span: Span::NONE,
        });
        self
    }

    /// `else value`: the value of elements that are not written.
    pub fn fill(&mut self, value: impl Into<Expr>) -> &mut Self {
        self.0.fill = Some(value.into().0);
        self
    }
}

/// An array without a boundary condition.
pub(crate) fn array<A: Into<Axis>>(
    text: &str,
    ty: Scalar,
    axes: impl IntoIterator<Item = A>,
    origin: Origin,
) -> tree::Input {
    let axes = axes.into_iter().map(|axis| axis.into().0).collect();
    tree::Input::new(text, ty, axes, origin)
}

/// Converts a boundary condition to the tree.
pub(crate) fn boundary_tree(boundary: Boundary) -> tree::Boundary {
    match boundary {
        Boundary::Interior => tree::Boundary::Interior,
        Boundary::Fixed => tree::Boundary::Fixed,
        Boundary::Constant(value) => tree::Boundary::Constant(literal(value).0),
        Boundary::Clamp => tree::Boundary::Clamp,
        Boundary::Mirror => tree::Boundary::Mirror,
        Boundary::Reflect => tree::Boundary::Reflect,
        Boundary::Wrap => tree::Boundary::Wrap,
    }
}

fn literal(value: Literal) -> Expr {
    match value {
        Literal::Int(value) => ExprKind::Int(value, None).into(),
        Literal::Float(value) => ExprKind::Float(value, None).into(),
        Literal::Bool(value) => ExprKind::Bool(value).into(),
    }
}

/// `batch n in 0..B shared(w);`
pub(crate) fn batch<'a>(
    range: Range,
    shared: impl IntoIterator<Item = &'a Expr>,
    origin: Origin,
) -> tree::Batch {
    let no_range = || {
        let message = format!("the batch `{}` has no range", range.0.name.text);
        let error = Diagnostic::new(&syntax::NO_RANGE, Span::NONE, message);
        let missing = tree::Expr::mistake(error.help("write it as `n.range(0, &b)`"));
        (Expr::from(0).0, missing)
    };
    tree::Batch {
        range: range.0.range.clone().unwrap_or_else(no_range),
        name: range.0.name,
        shared: shared.into_iter().map(Expr::to_name).collect(),
        origin,
    }
}
