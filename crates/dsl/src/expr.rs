//! Expressions over names: what stands on the right-hand side of an equation, in an index, in a condition.
//!
//! One type serves for all, as in the text language. A name is whatever it was declared as; what an
//! expression means is decided when the system is built.

use std::rc::Rc;

use systola_ir::system::expansion::MOST_OPERATIONS;
use systola_ir::{BinOp, Scalar, UnOp};

/// An expression. Cheap to clone; operators take it by value or by reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub(crate) node: Rc<Node>,
    /// Nodes on the longest path.
    height: usize,
    /// Nodes of the tree: one that is shared counts as often as it is reached, since that is how often it is read.
    n_nodes: u64,
}

/// The text language has the same bound: walks over a tree recurse.
const MAX_HEIGHT: usize = 512;

#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    Int(i128, Option<Scalar>),
    Float(f64, Option<Scalar>),
    Bool(bool),
    Name(String),
    /// A variable at a point, an element of an array, or a call.
    At(String, Vec<Expr>),
    Unary(UnOp, Expr),
    Binary(BinOp, Expr, Expr),
    Cast(Scalar, Expr),
    Select(Expr, Expr, Option<Expr>),
    Tuple(Vec<Expr>),
    Field(Expr, usize),
    Let(String, Expr, Expr),
    Reduce(Combine, Vec<Range>, Expr),
    Scan(Combine, String, Expr),
    /// A mistake in how the tree was put together, reported when it is used.
    Mistake(String),
    /// A tree that is too large or too deep, reported when it is used.
    TooLarge(String),
}

impl From<Node> for Expr {
    fn from(node: Node) -> Self {
        let height = 1 + node.operands().map(|e| e.height).max().unwrap_or(0);
        if height > MAX_HEIGHT {
            return too_large(format!(
                "an expression is more than {MAX_HEIGHT} operators deep"
            ));
        }
        let parts = node.operands().map(|e| e.n_nodes);
        let n_nodes = parts.fold(1, u64::saturating_add);
        if n_nodes > MOST_OPERATIONS {
            return too_large(format!(
                "an expression has {n_nodes} operations, of at most {MOST_OPERATIONS}"
            ));
        }
        Expr {
            node: Rc::new(node),
            height,
            n_nodes,
        }
    }
}

impl Node {
    fn operands(&self) -> impl Iterator<Item = &Expr> {
        let list: Vec<&Expr> = match self {
            Node::Int(..)
            | Node::Float(..)
            | Node::Bool(_)
            | Node::Name(_)
            | Node::Mistake(_)
            | Node::TooLarge(_) => Vec::new(),
            Node::At(_, list) | Node::Tuple(list) => list.iter().collect(),
            Node::Unary(_, a) | Node::Cast(_, a) | Node::Field(a, _) | Node::Scan(_, _, a) => {
                vec![a]
            }
            Node::Binary(_, a, b) | Node::Let(_, a, b) => vec![a, b],
            Node::Select(cond, then, otherwise) => {
                [cond, then].into_iter().chain(otherwise).collect()
            }
            Node::Reduce(_, ranges, body) => ranges
                .iter()
                .filter_map(|range| range.bounds.as_ref())
                .flat_map(|(lo, hi)| [lo, hi])
                .chain([body])
                .collect(),
        };
        list.into_iter()
    }
}

/// What `reduce` and `scan` combine with.
#[derive(Clone, Debug, PartialEq)]
pub enum Combine {
    Op(BinOp),
    /// A declared function.
    Fn(String),
}

impl From<BinOp> for Combine {
    fn from(op: BinOp) -> Self {
        Combine::Op(op)
    }
}

impl From<&Expr> for Combine {
    fn from(function: &Expr) -> Self {
        Combine::Fn(function.as_name().unwrap_or_default().to_string())
    }
}

impl From<&str> for Combine {
    fn from(function: &str) -> Self {
        Combine::Fn(function.to_string())
    }
}

/// An iterator with its half-open range, or without one: `q in 0..Q`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub(crate) name: String,
    pub(crate) bounds: Option<(Expr, Expr)>,
}

impl From<Expr> for Range {
    fn from(name: Expr) -> Self {
        Range::from(&name)
    }
}

impl From<&Expr> for Range {
    fn from(name: &Expr) -> Self {
        Range {
            name: name.as_name().unwrap_or_default().to_string(),
            bounds: None,
        }
    }
}

/// A name; it means what the system declares it as.
pub fn name(text: impl Into<String>) -> Expr {
    Node::Name(text.into()).into()
}

/// Several names at once.
pub fn names<const N: usize>(texts: [&str; N]) -> [Expr; N] {
    texts.map(name)
}

/// `select(cond, then, otherwise)`: by the position of the point where the condition asks for nothing
/// else, by value otherwise.
pub fn select(cond: impl Into<Expr>, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
    Node::Select(cond.into(), then.into(), Some(otherwise.into())).into()
}

/// `select(cond, then)`: undefined where the condition does not hold.
pub fn only(cond: impl Into<Expr>, then: impl Into<Expr>) -> Expr {
    Node::Select(cond.into(), then.into(), None).into()
}

pub fn min(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(BinOp::Min, a, b)
}

pub fn max(a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    binary(BinOp::Max, a, b)
}

/// `(a, b)`.
pub fn tuple(parts: impl List) -> Expr {
    Node::Tuple(parts.into_list()).into()
}

/// `let name = value; body`, where the body is made from the name.
pub fn bind(text: &str, value: impl Into<Expr>, body: impl FnOnce(Expr) -> Expr) -> Expr {
    Node::Let(text.to_string(), value.into(), body(name(text))).into()
}

/// `reduce(op, q in 0..Q, p in 0..H, body)`.
pub fn reduce(
    op: impl Into<Combine>,
    ranges: impl IntoIterator<Item = Range>,
    body: impl Into<Expr>,
) -> Expr {
    Node::Reduce(op.into(), ranges.into_iter().collect(), body.into()).into()
}

/// `scan(op, i, body)`.
pub fn scan(op: impl Into<Combine>, iterator: &Expr, body: impl Into<Expr>) -> Expr {
    match iterator.as_name() {
        Some(text) => Node::Scan(op.into(), text.to_string(), body.into()).into(),
        None => mistake("`scan` runs along an iterator, given by its name"),
    }
}

pub(crate) fn binary(op: BinOp, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
    Node::Binary(op, a.into(), b.into()).into()
}

pub(crate) fn mistake(message: impl Into<String>) -> Expr {
    Node::Mistake(message.into()).into()
}

fn too_large(message: String) -> Expr {
    Node::TooLarge(message).into()
}

impl Expr {
    pub(crate) fn as_name(&self) -> Option<&str> {
        match &*self.node {
            Node::Name(text) => Some(text),
            _ => None,
        }
    }

    /// `X(i - 1, j)`, `x[c + q]`, `f(a, b)`: the name at a point, at an index, with arguments.
    pub fn at(&self, index: impl List) -> Expr {
        match self.as_name() {
            Some(text) => Node::At(text.to_string(), index.into_list()).into(),
            None => mistake("only a name can be taken at an index"),
        }
    }

    /// The call of a function; the same as [`Expr::at`].
    pub fn call(&self, arguments: impl List) -> Expr {
        self.at(arguments)
    }

    /// `q in lo..hi`.
    pub fn range(&self, lo: impl Into<Expr>, hi: impl Into<Expr>) -> Range {
        Range {
            name: self.as_name().unwrap_or_default().to_string(),
            bounds: Some((lo.into(), hi.into())),
        }
    }

    /// Field n of a tuple.
    pub fn field(&self, n: usize) -> Expr {
        Node::Field(self.clone(), n).into()
    }

    /// `f32(e)`.
    pub fn cast(&self, ty: Scalar) -> Expr {
        Node::Cast(ty, self.clone()).into()
    }

    fn unary(&self, op: UnOp) -> Expr {
        Node::Unary(op, self.clone()).into()
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

    /// The operands of a run of one operator, `a && b && c`; a right operand keeps its parentheses.
    pub(crate) fn operands(&self, op: BinOp) -> Vec<&Expr> {
        let mut operands = Vec::new();
        let mut left = self;
        while let Node::Binary(inner, a, b) = &*left.node {
            if *inner != op {
                break;
            }
            operands.push(b);
            left = a;
        }
        operands.push(left);
        operands.reverse();
        operands
    }
}

/// A list of expressions: an array, a vector, or a tuple of whatever becomes an expression.
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
