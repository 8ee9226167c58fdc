//! Expressions over names: right-hand sides of equations, indices and conditions.
//!
//! As in the text language, all of them have one type. Names are resolved when the system is built.

use systola_ir::codes::types;
use systola_ir::mapping::Name;
use systola_ir::{BinOp, Diagnostic, Scalar, Span, UnOp};
use systola_surface::tree::{self, Dim, ExprKind, ReduceOp, ReduceOpKind};

/// An expression. Operators take it by value or by reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(pub(crate) tree::Expr);

impl From<ExprKind> for Expr {
    fn from(kind: ExprKind) -> Self {
        Expr(tree::Expr::new(kind, Span::NONE))
    }
}

/// The operator of `reduce` and `scan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Combine(ReduceOpKind);

impl From<BinOp> for Combine {
    fn from(op: BinOp) -> Self {
        Combine(ReduceOpKind::Op(op))
    }
}

impl From<&Expr> for Combine {
    fn from(function: &Expr) -> Self {
        Combine::from(function.as_name().unwrap_or_default())
    }
}

impl From<&str> for Combine {
    /// A declared function.
    fn from(function: &str) -> Self {
        Combine(ReduceOpKind::Fn(function.to_string()))
    }
}

impl Combine {
    fn tree(self) -> ReduceOp {
        ReduceOp {
            kind: self.0,
            span: Span::NONE,
        }
    }
}

/// An iterator, with or without its half-open range: `q in 0..Q`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range(pub(crate) Dim);

impl Range {
    fn new(iterator: &Expr, range: Option<(Expr, Expr)>) -> Self {
        Range(Dim {
            name: iterator.to_name(),
            range: range.map(|(lo, hi)| (lo.0, hi.0)),
            span: Span::NONE,
        })
    }
}

impl From<Expr> for Range {
    fn from(name: Expr) -> Self {
        Range::from(&name)
    }
}

impl From<&Expr> for Range {
    fn from(name: &Expr) -> Self {
        Range::new(name, None)
    }
}

/// A name, whose meaning depends on its declaration in the system.
pub fn name(text: impl Into<String>) -> Expr {
    ExprKind::Name(text.into()).into()
}

/// Several names.
pub fn names<const N: usize>(texts: [&str; N]) -> [Expr; N] {
    texts.map(name)
}

/// `select(cond, then, otherwise)`: a guard by position if the condition depends on the position
/// only, else a choice by value.
pub fn select(cond: impl Into<Expr>, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
    apply("select", vec![cond.into(), then.into(), otherwise.into()])
}

/// `select(cond, then)`: undefined where the condition does not hold.
pub fn only(cond: impl Into<Expr>, then: impl Into<Expr>) -> Expr {
    apply("select", vec![cond.into(), then.into()])
}

pub fn min(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(BinOp::Min, a, b)
}

pub fn max(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(BinOp::Max, a, b)
}

/// `(a, b)`.
pub fn tuple(parts: impl List) -> Expr {
    ExprKind::Tuple(trees(parts)).into()
}

/// `let name = value; body`; `body` is a function of the name.
pub fn bind(text: &str, value: impl Into<Expr>, body: impl FnOnce(Expr) -> Expr) -> Expr {
    let value = value.into().0;
    let body = Box::new(body(name(text)).0);
    ExprKind::Let(vec![(Name::from(text), value)], body).into()
}

/// `reduce(op, q in 0..Q, p in 0..H, body)`.
pub fn reduce(
    op: impl Into<Combine>,
    ranges: impl IntoIterator<Item = Range>,
    body: impl Into<Expr>,
) -> Expr {
    let dims = ranges.into_iter().map(|range| range.0).collect();
    ExprKind::Reduce(op.into().tree(), dims, Box::new(body.into().0)).into()
}

/// `scan(op, i, body)`.
pub fn scan(op: impl Into<Combine>, iterator: &Expr, body: impl Into<Expr>) -> Expr {
    if iterator.as_name().is_none() {
        return mistake("`scan` runs along an iterator, given by its name");
    }
    ExprKind::Scan(
        op.into().tree(),
        iterator.to_name(),
        Box::new(body.into().0),
    )
    .into()
}

pub(crate) fn binary(op: BinOp, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Expr(tree::Expr::binary(op, a.into().0, b.into().0))
}

/// A built-in function of the text language.
fn apply(function: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter().map(|e| e.0).collect();
    ExprKind::Apply(Name::from(function), arguments).into()
}

fn mistake(message: &str) -> Expr {
    let error = Diagnostic::new(&types::VALUE_IN_INDEX, Span::NONE, message);
    Expr(tree::Expr::mistake(
        error.help("start from a name: `name(\"X\")`"),
    ))
}

impl Expr {
    pub(crate) fn as_name(&self) -> Option<&str> {
        match &self.0.kind {
            ExprKind::Name(text) => Some(text),
            _ => None,
        }
    }

    /// Empty if the expression is not a name. An empty name is rejected later.
    pub(crate) fn to_name(&self) -> Name {
        Name::from(self.as_name().unwrap_or_default())
    }

    /// `X(i - 1, j)`, `x[c + q]`, `f(a, b)`: a variable at a point, an element of an array, or a
    /// call.
    pub fn at(&self, index: impl List) -> Expr {
        match self.as_name() {
            Some(text) => ExprKind::At(Name::from(text), trees(index)).into(),
            None => mistake("only a name can be taken at an index"),
        }
    }

    /// A call of a function; the same as [`Expr::at`].
    pub fn call(&self, arguments: impl List) -> Expr {
        self.at(arguments)
    }

    /// `q in lo..hi`.
    pub fn range(&self, lo: impl Into<Expr>, hi: impl Into<Expr>) -> Range {
        Range::new(self, Some((lo.into(), hi.into())))
    }

    /// Field n of a tuple.
    pub fn field(&self, n: usize) -> Expr {
        ExprKind::Field(Box::new(self.0.clone()), n).into()
    }

    /// `f32(e)`.
    pub fn cast(&self, ty: Scalar) -> Expr {
        apply(ty.name(), vec![self.clone()])
    }

    fn unary(&self, op: UnOp) -> Expr {
        ExprKind::Unary(op, Box::new(self.0.clone())).into()
    }

    pub fn abs(&self) -> Expr {
        self.unary(UnOp::Abs)
    }

    pub fn sqrt(&self) -> Expr {
        self.unary(UnOp::Sqrt)
    }

    pub fn exp(&self) -> Expr {
        self.unary(UnOp::Exp)
    }

    pub fn log(&self) -> Expr {
        self.unary(UnOp::Log)
    }

    /// 1 / √self
    pub fn rsqrt(&self) -> Expr {
        self.unary(UnOp::Rsqrt)
    }

    pub fn floor(&self) -> Expr {
        self.unary(UnOp::Floor)
    }

    pub fn ceil(&self) -> Expr {
        self.unary(UnOp::Ceil)
    }

    pub fn sin(&self) -> Expr {
        self.unary(UnOp::Sin)
    }

    pub fn cos(&self) -> Expr {
        self.unary(UnOp::Cos)
    }

    pub fn tanh(&self) -> Expr {
        self.unary(UnOp::Tanh)
    }

    pub fn pow(&self, exponent: impl Into<Expr>) -> Expr {
        binary(BinOp::Pow, self, exponent)
    }

    /// `==`
    pub fn equals(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Eq, self, other)
    }

    /// `!=`
    pub fn differs(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Ne, self, other)
    }

    /// `<`
    pub fn lt(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Lt, self, other)
    }

    /// `<=`
    pub fn le(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Le, self, other)
    }

    /// `>`
    pub fn gt(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Gt, self, other)
    }

    /// `>=`
    pub fn ge(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Ge, self, other)
    }

    /// `&&`; `a.and(b).and(c)` is `a && b && c`.
    pub fn and(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::And, self, other)
    }

    /// `||`
    pub fn or(&self, other: impl Into<Expr>) -> Expr {
        binary(BinOp::Or, self, other)
    }
}

pub(crate) fn trees(list: impl List) -> Vec<tree::Expr> {
    list.into_list().into_iter().map(|e| e.0).collect()
}

/// A list of expressions: an array, a vector, or a tuple of values that convert to expressions.
pub trait List {
    fn into_list(self) -> Vec<Expr>;
}

impl<E: Into<Expr>, const N: usize> List for [E; N] {
    fn into_list(self) -> Vec<Expr> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<E: Into<Expr>> List for Vec<E> {
    fn into_list(self) -> Vec<Expr> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuple_lists {
    ($(($($part:ident),*))*) => {$(
        impl<$($part: Into<Expr>),*> List for ($($part,)*) {
            #[expect(non_snake_case, reason = "the type parameters name the fields")]
            fn into_list(self) -> Vec<Expr> {
                let ($($part,)*) = self;
                vec![$($part.into()),*]
            }
        }
    )*};
}

impl List for () {
    fn into_list(self) -> Vec<Expr> {
        Vec::new()
    }
}

tuple_lists! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
