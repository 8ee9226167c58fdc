//! The surface syntax, as written: names are not resolved, literals have no type yet.
//!
//! Mappings have no tree of their own here: their names stay unresolved in
//! [`systola_ir::mapping`] too, so the parser builds those values directly.

use systola_ir::mapping::{Mapping, Name};
use systola_ir::system::Law;
use systola_ir::{BinOp, Rel, Scalar, Span, Type, UnOp};

#[derive(Debug, Default)]
pub struct Module {
    pub systems: Vec<System>,
    pub stencils: Vec<Stencil>,
    pub convs: Vec<Conv>,
    pub mappings: Vec<MappingItem>,
    pub programs: Vec<Program>,
}

/// A mapping, and where the names in its head stand.
#[derive(Clone, Debug)]
pub struct MappingItem {
    pub mapping: Mapping,
    pub name_span: Span,
    pub system_span: Span,
}

#[derive(Clone, Debug)]
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
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Const {
    pub name: Name,
    pub ty: DeclaredType,
    pub value: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub name: Name,
    pub ty: DeclaredType,
    pub axes: Vec<Axis>,
    pub outside: Option<Expr>,
    /// What lies beyond the axes.
    pub border: Option<(Border, Span)>,
    pub kind: InputKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum InputKind {
    Array,
    Table(Option<Data>),
}

/// The written contents of a table.
#[derive(Clone, Debug)]
pub struct Data {
    pub kind: DataKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DataKind {
    Element(Expr),
    Row(Vec<Data>),
}

/// `hi`, meaning `0..hi`, or `lo..hi`.
#[derive(Clone, Debug)]
pub struct Axis {
    pub lo: Option<Expr>,
    pub hi: Expr,
}

#[derive(Clone, Debug)]
pub struct DeclaredType {
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: Name,
    pub params: Vec<(Name, DeclaredType)>,
    pub result: DeclaredType,
    pub law: Law,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Batch {
    pub name: Name,
    pub range: (Expr, Expr),
    pub shared: Vec<Name>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub dims: Vec<Dim>,
    pub domain: Vec<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Dim {
    pub name: Name,
    pub range: Option<(Expr, Expr)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: Name,
    pub ty: DeclaredType,
    pub law: Law,
    pub on: Vec<Expr>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Output {
    pub name: Name,
    pub ty: DeclaredType,
    pub axes: Vec<Axis>,
    pub writes: Vec<Write>,
    pub fill: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Write {
    pub value: Expr,
    pub index: Vec<Expr>,
    pub index_span: Span,
    pub when: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub inputs: Vec<Input>,
    pub stages: Vec<Stage>,
    pub outputs: Vec<(Name, Source)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Stage {
    pub name: Name,
    pub system: Name,
    pub args: Vec<(Name, Expr)>,
    pub inputs: Vec<(Name, Source)>,
    pub span: Span,
}

/// `x`, an input of the program, or `first.z`, an output of a stage.
#[derive(Clone, Debug)]
pub struct Source {
    pub base: Name,
    pub output: Option<Name>,
    pub span: Span,
}

/// What a cell becomes from its neighbourhood.
#[derive(Clone, Debug)]
pub struct Stencil {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub consts: Vec<Const>,
    pub fields: Vec<(Input, Border)>,
    pub inputs: Vec<Input>,
    pub functions: Vec<Function>,
    pub batch: Option<Batch>,
    /// The names of the axes, where they are given.
    pub index: Option<(Vec<Name>, Span)>,
    pub steps: Option<(Expr, Span)>,
    pub equations: Vec<Equation>,
    /// The name of an output, and what it is.
    pub outputs: Vec<(Name, Name)>,
    pub span: Span,
}

/// `u = body;`, the next value of a field, or `var g: f32 clamp = body;`, a value between.
#[derive(Clone, Debug)]
pub struct Equation {
    pub name: Name,
    pub between: Option<(DeclaredType, Border)>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Border {
    Interior,
    Held,
    Constant(Expr),
    Clamp,
    Mirror,
    Reflect,
    Wrap,
}

impl Border {
    /// All words, as users write them.
    pub const WORDS: &'static [&'static str] = systola_stencil::Border::WORDS;
}

/// A filter over an array.
#[derive(Clone, Debug)]
pub struct Conv {
    pub name: Name,
    pub params: Vec<Name>,
    pub context: Vec<Expr>,
    pub input: Option<(Input, Border)>,
    pub filter: Option<Input>,
    pub batch: Option<Batch>,
    pub stride: Option<(Vec<Expr>, Span)>,
    pub dilation: Option<(Vec<Expr>, Span)>,
    pub span: Span,
}

/// `box 2`, `star (1, 2) except box 0`, `star 2 and box 1`.
#[derive(Clone, Debug)]
pub struct Shape {
    pub is_star: bool,
    /// One for all axes, or one for each.
    pub radii: Vec<i128>,
    /// What follows, as a whole.
    pub rest: Option<(Join, Box<Shape>)>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Except,
    And,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    pub size: Size,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A minus before a number belongs to it.
    Int(i128, Option<Scalar>),
    Float(f64, Option<Scalar>),
    Bool(bool),
    Name(String),
    /// `f(a, b)`: a variable at a point, a function, a cast, `select`, `min`, …
    Apply(Name, Vec<Expr>),
    /// `a[i, j]`.
    Element(Name, Vec<Expr>),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `a <= b < c`, at least two comparisons.
    Chain(Box<Expr>, Vec<(BinOp, Expr)>),
    Field(Box<Expr>, usize),
    Tuple(Vec<Expr>),
    /// Kept, because `(a && b) && c` and `a && b && c` are different conditions to the IR.
    Paren(Box<Expr>),
    Let(Vec<(Name, Expr)>, Box<Expr>),
    Reduce(ReduceOp, Vec<Dim>, Box<Expr>),
    Scan(ReduceOp, Name, Box<Expr>),
    /// `sum(w * u over box 2)`: all cells of a neighbourhood combined, with weights where they are given.
    Around(BinOp, Option<Name>, Name, Shape),
}

#[derive(Clone, Debug)]
pub struct ReduceOp {
    pub kind: ReduceOpKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ReduceOpKind {
    Op(BinOp),
    Fn(String),
}

/// How large a tree is, so that no later walk over it can exhaust the stack.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes on the longest path, counted as the IR will have them.
    pub height: u32,
    /// The same, but a run of operators of one precedence counts once: what has to be written
    /// inside of one another.
    pub nesting: u32,
}

impl Size {
    pub const LEAF: Size = Size {
        height: 1,
        nesting: 1,
    };

    pub fn max(self, other: Size) -> Size {
        Size {
            height: self.height.max(other.height),
            nesting: self.nesting.max(other.nesting),
        }
    }

    pub fn of(list: &[Expr]) -> Size {
        list.iter().fold(Size::LEAF, |size, e| size.max(e.size))
    }

    /// One node above, or several in a row that are written side by side.
    pub fn above(self, nodes: usize) -> Size {
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        Size {
            height: self.height.saturating_add(nodes),
            nesting: self.nesting.saturating_add(1),
        }
    }
}

impl Expr {
    /// The operands of a run of one operator: `a && b && c`, but not into parentheses.
    pub fn operands(&self, op: BinOp) -> Vec<&Expr> {
        let mut operands = Vec::new();
        let mut left = self;
        while let ExprKind::Binary(inner, a, b) = &left.kind {
            if *inner != op {
                break;
            }
            operands.push(&**b);
            left = a;
        }
        operands.push(left);
        operands.reverse();
        operands
    }
}

/// The relation that a comparison is.
pub fn relation(op: BinOp) -> Option<Rel> {
    match op {
        BinOp::Eq => Some(Rel::Eq),
        BinOp::Ne => Some(Rel::Ne),
        BinOp::Lt => Some(Rel::Lt),
        BinOp::Le => Some(Rel::Le),
        BinOp::Gt => Some(Rel::Gt),
        BinOp::Ge => Some(Rel::Ge),
        BinOp::Add
        | BinOp::Sub
        | BinOp::Mul
        | BinOp::Div
        | BinOp::Rem
        | BinOp::Min
        | BinOp::Max
        | BinOp::Pow
        | BinOp::And
        | BinOp::Or
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor
        | BinOp::Shl
        | BinOp::Shr => None,
    }
}
