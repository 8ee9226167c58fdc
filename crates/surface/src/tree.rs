//! The tree that a front end builds: declarations and expressions as in the source. Names are
//! unresolved, literals untyped.
//!
//! Mappings have no tree of their own: their names stay unresolved in [`systola_ir::mapping`] too,
//! so a front end builds those values directly. [`crate::elaborate::mapping`] converts expressions
//! of this tree to index expressions of mappings.
//!
//! Declarations have an [`Origin`] and expressions a [`Span`]. A front end without a source text
//! uses [`Span::NONE`]; an error is then reported at the enclosing declaration.

use std::panic::Location;

use systola_ir::mapping::{Mapping, Name};
use systola_ir::system::Law;
use systola_ir::{Diagnostic, Literal, Span, Type};

mod expr;

pub use expr::{
    Expr, ExprKind, MAX_HEIGHT, MAX_NESTING, ReduceOp, ReduceOpKind, Shape, ShapeKind, precedence,
    relation,
};

/// The source location of a declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Origin {
    Text(Span),
    /// A location in a Rust program.
    Rust(&'static Location<'static>),
    #[default]
    Unknown,
}

impl Origin {
    /// The location of the caller in the Rust program.
    #[track_caller]
    pub fn caller() -> Origin {
        Origin::Rust(Location::caller())
    }

    /// [`Span::NONE`] if there is no text.
    pub fn span(self) -> Span {
        match self {
            Origin::Text(span) => span,
            Origin::Rust(_) | Origin::Unknown => Span::NONE,
        }
    }
}

impl From<Span> for Origin {
    fn from(span: Span) -> Self {
        Origin::Text(span)
    }
}

/// A module, such as a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    pub systems: Vec<System>,
    pub stencils: Vec<Stencil>,
    pub convs: Vec<Conv>,
    pub mappings: Vec<MappingItem>,
    pub programs: Vec<Program>,
    /// Suggestions for a better notation.
    pub hints: Vec<Diagnostic>,
}

/// A mapping, and the locations of the names in its head.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingItem {
    pub mapping: Mapping,
    pub name_span: Span,
    pub system_span: Span,
}

/// `system conv1d(C, Q) where C >= 1 { … }`: a system of equations. All names in it are distinct.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub consts: Vec<Const>,
    pub inputs: Vec<Input>,
    pub functions: Vec<Function>,
    pub batch: Option<Batch>,
    pub index: Option<Index>,
    pub vars: Vec<Var>,
    pub outputs: Vec<Output>,
    pub origin: Origin,
}

impl System {
    /// A system without declarations.
    pub fn new(name: impl Into<Name>, origin: impl Into<Origin>) -> Self {
        System {
            name: name.into(),
            params: Vec::new(),
            context: Vec::new(),
            consts: Vec::new(),
            inputs: Vec::new(),
            functions: Vec::new(),
            batch: None,
            index: None,
            vars: Vec::new(),
            outputs: Vec::new(),
            origin: origin.into(),
        }
    }

    /// The variable whose iterators a write has: the first one with iterators of its own that its
    /// value names.
    pub fn written(&self, write: &Write) -> Option<usize> {
        let own = |name: &str| {
            let mut vars = self.vars.iter();
            vars.position(|v| v.name.text == name && v.own.is_some())
        };
        write.value.names().into_iter().find_map(own)
    }
}

/// `const g: i32 = 3;`; the value is a literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    pub name: Name,
    pub ty: DeclaredType,
    pub value: Expr,
    pub origin: Origin,
}

/// `input x[C + Q - 1]: f32 else 0;` or `table t[4]: i32 = [0, 1, 1, 0];`.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub name: Name,
    pub ty: DeclaredType,
    pub axes: Vec<Axis>,
    /// A literal: the value of reads outside of the axes.
    pub outside: Option<Expr>,
    /// A boundary condition other than a constant value.
    pub boundary: Option<(Boundary, Span)>,
    pub kind: InputKind,
    pub origin: Origin,
}

impl Input {
    /// An array that is read only inside of its axes.
    pub fn new(
        name: impl Into<Name>,
        ty: impl Into<DeclaredType>,
        axes: Vec<Axis>,
        origin: impl Into<Origin>,
    ) -> Self {
        Input {
            name: name.into(),
            ty: ty.into(),
            axes,
            outside: None,
            boundary: None,
            kind: InputKind::Array,
            origin: origin.into(),
        }
    }
}

/// The kinds of arrays. A table may also be indexed by values.
#[derive(Clone, Debug, PartialEq)]
pub enum InputKind {
    Array,
    Table(Option<Data>),
}

/// The contents of a table in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub kind: DataKind,
    pub span: Span,
}

/// One element, or a list of parts, one for each index of the first axis.
#[derive(Clone, Debug, PartialEq)]
pub enum DataKind {
    Element(Expr),
    Row(Vec<Data>),
    /// All elements, in row-major order.
    All(Vec<Literal>),
}

/// `hi`, meaning `0..hi`, or `lo..hi`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub lo: Option<Expr>,
    pub hi: Expr,
}

impl From<Expr> for Axis {
    fn from(hi: Expr) -> Self {
        Axis { lo: None, hi }
    }
}

/// A declared type; only variables and functions can have tuples.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredType {
    pub ty: Type,
    pub span: Span,
}

impl<T: Into<Type>> From<T> for DeclaredType {
    fn from(ty: T) -> Self {
        DeclaredType {
            ty: ty.into(),
            span: Span::NONE,
        }
    }
}

/// `fn f(a: f32, b: f32) -> f32 associative = body;`. Its body can use arguments, constants,
/// parameters and tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: Name,
    pub params: Vec<(Name, DeclaredType)>,
    pub result: DeclaredType,
    pub law: Law,
    pub body: Expr,
    pub origin: Origin,
}

/// `batch n in 0..B shared(w);`: the system runs once for each n. Inputs that are not shared have
/// an additional axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub name: Name,
    pub range: (Expr, Expr),
    pub shared: Vec<Name>,
    pub origin: Origin,
}

/// `index c in 0..C, q in 0..Q where c <= q;`: the points at which variables have values.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub dims: Vec<Dim>,
    pub domain: Vec<Expr>,
    pub origin: Origin,
}

/// `q in 0..Q`, half-open. Only iterators of `index` and of variables may omit the range. Bounds can
/// use earlier iterators.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    pub name: Name,
    pub range: Option<(Expr, Expr)>,
    pub span: Span,
}

/// `var Z: f32 reorderable on q >= 1 = body;`: one equation for all points at which the variable
/// has a value. `var F(i in 0..N, j): f32 on 0 <= j < i = body;` has iterators of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub name: Name,
    pub own: Option<Vec<Dim>>,
    pub ty: DeclaredType,
    pub law: Law,
    /// Conditions on iterators and parameters; the variable has a value where all of them hold.
    pub on: Vec<Expr>,
    pub body: Expr,
    pub origin: Origin,
}

impl Var {
    /// A variable with a value everywhere, and without a promise.
    pub fn new(
        name: impl Into<Name>,
        ty: impl Into<DeclaredType>,
        body: Expr,
        origin: impl Into<Origin>,
    ) -> Self {
        Var {
            name: name.into(),
            own: None,
            ty: ty.into(),
            law: Law::Fixed,
            on: Vec::new(),
            body,
            origin: origin.into(),
        }
    }
}

/// `output z[C]: f32 = Z at [c] when q == Q - 1 else 0;`.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub name: Name,
    pub ty: DeclaredType,
    pub axes: Vec<Axis>,
    pub writes: Vec<Write>,
    /// A literal: the value of elements that are not written.
    pub fill: Option<Expr>,
    pub origin: Origin,
}

/// `Z at [c] when q == Q - 1`: writes one element at every point where the condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub value: Expr,
    pub index: Vec<Expr>,
    pub index_span: Span,
    pub when: Option<Expr>,
    pub span: Span,
}

/// `program p(N) { … }`: a sequence of systems, connected by arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub inputs: Vec<Input>,
    pub stages: Vec<Stage>,
    pub outputs: Vec<(Name, Source)>,
    pub origin: Origin,
}

impl Program {
    /// A program without stages.
    pub fn new(name: impl Into<Name>, origin: impl Into<Origin>) -> Self {
        Program {
            name: name.into(),
            params: Vec::new(),
            context: Vec::new(),
            inputs: Vec::new(),
            stages: Vec::new(),
            outputs: Vec::new(),
            origin: origin.into(),
        }
    }
}

/// `first = conv1d(C = N - 2, Q = 3)(x = x, w = w);`. A stage can read inputs of the program and
/// outputs of earlier stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: Name,
    pub system: Name,
    pub args: Vec<(Name, Expr)>,
    pub inputs: Vec<(Name, Source)>,
    pub origin: Origin,
}

/// `x`, an input of the program, or `first.z`, an output of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub base: Name,
    pub output: Option<Name>,
    pub span: Span,
}

/// A stencil: the new value of a cell from its neighbourhood.
#[derive(Clone, Debug, PartialEq)]
pub struct Stencil {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub consts: Vec<Const>,
    pub fields: Vec<(Input, Boundary)>,
    pub inputs: Vec<Input>,
    pub functions: Vec<Function>,
    pub batch: Option<Batch>,
    /// The names of the axes, if they are declared.
    pub index: Option<(Vec<Name>, Span)>,
    pub steps: Option<(Expr, Span)>,
    pub equations: Vec<Equation>,
    /// The name of each output, and of the field or variable it is.
    pub outputs: Vec<(Name, Name)>,
    pub origin: Origin,
}

impl Stencil {
    /// A stencil without fields.
    pub fn new(name: impl Into<Name>, origin: impl Into<Origin>) -> Self {
        Stencil {
            name: name.into(),
            params: Vec::new(),
            context: Vec::new(),
            consts: Vec::new(),
            fields: Vec::new(),
            inputs: Vec::new(),
            functions: Vec::new(),
            batch: None,
            index: None,
            steps: None,
            equations: Vec::new(),
            outputs: Vec::new(),
            origin: origin.into(),
        }
    }
}

/// `u = body;`, the next value of a field, or `var g: f32 clamp = body;`, an intermediate value.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    pub name: Name,
    pub between: Option<(DeclaredType, Boundary)>,
    pub body: Expr,
    pub origin: Origin,
}

/// The boundary condition of a field or an input. The constant is a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Boundary {
    Interior,
    Fixed,
    Constant(Expr),
    Clamp,
    Mirror,
    Reflect,
    Wrap,
}

impl Boundary {
    /// All keywords of boundary conditions.
    pub const WORDS: &'static [&'static str] = systola_stencil::Boundary::WORDS;
}

/// A filter over an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub input: Option<(Input, Boundary)>,
    pub filter: Option<Input>,
    pub batch: Option<Batch>,
    pub stride: Option<(Vec<Expr>, Span)>,
    pub dilation: Option<(Vec<Expr>, Span)>,
    pub origin: Origin,
}

impl Conv {
    /// A convolution without an input and a filter.
    pub fn new(name: impl Into<Name>, origin: impl Into<Origin>) -> Self {
        Conv {
            name: name.into(),
            params: Vec::new(),
            context: Vec::new(),
            input: None,
            filter: None,
            batch: None,
            stride: None,
            dilation: None,
            origin: origin.into(),
        }
    }
}
