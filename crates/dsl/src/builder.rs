//! Systems, declared step by step.

use systola_ir::system::{Law, System};
use systola_ir::{Diagnostic, Literal, Scalar, Type};
use systola_stencil::Border;

use crate::expr::{Expr, List, Range, name};
use crate::lower::lower_system;

/// A system that is being written. Mistakes are collected and told by [`SystemBuilder::build`].
#[derive(Clone, Debug, Default)]
pub struct SystemBuilder {
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) context: Vec<Expr>,
    pub(crate) consts: Vec<ConstDecl>,
    pub(crate) inputs: Vec<InputDecl>,
    pub(crate) functions: Vec<FunctionDecl>,
    pub(crate) batch: Option<(Range, Vec<String>)>,
    pub(crate) index: Vec<Range>,
    pub(crate) domain: Vec<Expr>,
    pub(crate) vars: Vec<VarDecl>,
    pub(crate) outputs: Vec<OutputDecl>,
}

#[derive(Clone, Debug)]
pub(crate) struct ConstDecl {
    pub name: String,
    pub ty: Scalar,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub struct InputDecl {
    pub(crate) name: String,
    pub(crate) ty: Scalar,
    pub(crate) axes: Vec<Axis>,
    pub(crate) outside: Option<Expr>,
    pub(crate) border: Option<Border>,
    /// `None`: an array; `Some(None)`: a table given at run time.
    pub(crate) table: Option<Option<Vec<Literal>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FunctionDecl {
    pub name: String,
    pub params: Vec<(String, Type)>,
    pub result: Type,
    pub law: Law,
    pub body: Expr,
}

/// A variable, to which promises and conditions can be added.
#[derive(Clone, Debug)]
pub struct VarDecl {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) law: Law,
    pub(crate) on: Vec<Expr>,
    pub(crate) body: Expr,
}

/// An output, to which writes are added.
#[derive(Clone, Debug)]
pub struct OutputDecl {
    pub(crate) name: String,
    pub(crate) ty: Scalar,
    pub(crate) axes: Vec<Axis>,
    pub(crate) writes: Vec<(Expr, Vec<Expr>, Option<Expr>)>,
    pub(crate) fill: Option<Expr>,
}

/// One axis of an array: `hi`, meaning `0..hi`, or [`axis`]`(lo, hi)`.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(crate) lo: Expr,
    pub(crate) hi: Expr,
}

impl<E: Into<Expr>> From<E> for Axis {
    fn from(hi: E) -> Self {
        axis(0, hi)
    }
}

/// `lo..hi`.
pub fn axis(lo: impl Into<Expr>, hi: impl Into<Expr>) -> Axis {
    Axis {
        lo: lo.into(),
        hi: hi.into(),
    }
}

fn axes<A: Into<Axis>>(list: impl IntoIterator<Item = A>) -> Vec<Axis> {
    list.into_iter().map(Into::into).collect()
}

impl SystemBuilder {
    pub fn new(name: impl Into<String>) -> Self {
        SystemBuilder {
            name: name.into(),
            ..SystemBuilder::default()
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.params.push(text.to_string());
        name(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.context.push(cond.into());
        self
    }

    /// `const g: i32 = 3;`
    pub fn constant(&mut self, text: &str, ty: Scalar, value: impl Into<Expr>) -> Expr {
        self.consts.push(ConstDecl {
            name: text.to_string(),
            ty,
            value: value.into(),
        });
        name(text)
    }

    /// `input x[axes]: ty;`
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.add_input(text, ty, axes(list), None, None)
    }

    /// `input x[axes]: ty else outside;`
    pub fn input_else<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        outside: impl Into<Expr>,
    ) -> Expr {
        self.add_input(text, ty, axes(list), Some(outside.into()), None)
    }

    /// `input x[axes]: ty clamp;`, with any boundary condition but those of fields alone, `interior` and `held`.
    pub fn input_border<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        border: Border,
    ) -> Expr {
        let read = self.add_input(text, ty, axes(list), None, None);
        if let Some(declared) = self.inputs.last_mut() {
            declared.border = Some(border);
        }
        read
    }

    /// `table sub[axes]: ty;`, given at run time.
    pub fn table<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.add_input(text, ty, axes(list), None, Some(None))
    }

    /// `table sub[axes]: ty = data;`, in row-major order.
    pub fn table_of<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
        data: impl IntoIterator<Item = Literal>,
    ) -> Expr {
        let data = data.into_iter().collect();
        self.add_input(text, ty, axes(list), None, Some(Some(data)))
    }

    fn add_input(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: Vec<Axis>,
        outside: Option<Expr>,
        table: Option<Option<Vec<Literal>>>,
    ) -> Expr {
        self.inputs.push(InputDecl {
            name: text.to_string(),
            ty,
            axes,
            outside,
            border: None,
            table,
        });
        name(text)
    }

    /// `fn f(a: f32, b: f32) -> f32 law = body;`
    pub fn function<const N: usize>(
        &mut self,
        text: &str,
        params: [(&str, Type); N],
        result: impl Into<Type>,
        law: Law,
        body: impl FnOnce([Expr; N]) -> Expr,
    ) -> Expr {
        let arguments = params.each_ref().map(|(param, _)| name(*param));
        self.functions.push(FunctionDecl {
            name: text.to_string(),
            params: params
                .into_iter()
                .map(|(n, ty)| (n.to_string(), ty))
                .collect(),
            result: result.into(),
            law,
            body: body(arguments),
        });
        name(text)
    }

    /// `batch n in 0..B shared(w);`
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        let shared = shared
            .into_iter()
            .map(|input| input.as_name().unwrap_or_default().to_string())
            .collect();
        self.batch = Some((range, shared));
        self
    }

    /// `index c in 0..C, q in 0..Q;`
    pub fn index<R: Into<Range>>(&mut self, ranges: impl IntoIterator<Item = R>) -> &mut Self {
        self.index.extend(ranges.into_iter().map(Into::into));
        self
    }

    /// `index … where cond`.
    pub fn domain(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.domain.push(cond.into());
        self
    }

    /// `var X: ty = body;`
    pub fn var(
        &mut self,
        variable: impl Into<Expr>,
        ty: impl Into<Type>,
        body: impl Into<Expr>,
    ) -> &mut VarDecl {
        self.vars.push(VarDecl {
            name: variable.into().as_name().unwrap_or_default().to_string(),
            ty: ty.into(),
            law: Law::Fixed,
            on: Vec::new(),
            body: body.into(),
        });
        let last = self.vars.len() - 1;
        &mut self.vars[last]
    }

    /// `output z[axes]: ty = …;`
    pub fn output<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        list: impl IntoIterator<Item = A>,
    ) -> &mut OutputDecl {
        self.outputs.push(OutputDecl {
            name: text.to_string(),
            ty,
            axes: axes(list),
            writes: Vec::new(),
            fill: None,
        });
        let last = self.outputs.len() - 1;
        &mut self.outputs[last]
    }

    /// The system, or all that is wrong with names and types in it.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        lower_system(self)
    }
}

impl VarDecl {
    /// The accumulation may be regrouped.
    pub fn associative(&mut self) -> &mut Self {
        self.law = Law::Associative;
        self
    }

    /// The accumulation may be regrouped and reordered.
    pub fn reorderable(&mut self) -> &mut Self {
        self.law = Law::Reorderable;
        self
    }

    /// `on cond`: further restricts the domain.
    pub fn on(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.on.push(cond.into());
        self
    }
}

impl OutputDecl {
    /// `value at [index]`, at every point.
    pub fn write(&mut self, value: impl Into<Expr>, index: impl List) -> &mut Self {
        self.writes.push((value.into(), index.into_list(), None));
        self
    }

    /// `value at [index] when cond`.
    pub fn write_when(
        &mut self,
        value: impl Into<Expr>,
        index: impl List,
        cond: impl Into<Expr>,
    ) -> &mut Self {
        self.writes
            .push((value.into(), index.into_list(), Some(cond.into())));
        self
    }

    /// `else value`: what elements hold that no write reaches.
    pub fn fill(&mut self, value: impl Into<Expr>) -> &mut Self {
        self.fill = Some(value.into());
        self
    }
}
