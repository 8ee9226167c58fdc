//! Expressions. Right-hand sides, index expressions and conditions share one type; the position of
//! an expression decides which it is.

use systola_ir::codes::syntax;
use systola_ir::mapping::Name;
use systola_ir::system::expansion::MOST_OPERATIONS;
use systola_ir::{BinOp, Diagnostic, Rel, Scalar, Span, UnOp};

use super::Dim;

/// The maximum number of nodes on a path of an expression; elaboration accepts fewer, see its
/// `size`.
pub const MAX_HEIGHT: u32 = 800;
/// The maximum nesting of an expression; elaboration accepts less, see its `size`.
pub const MAX_NESTING: u32 = 160;

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    size: Size,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Includes the minus sign of a negative number.
    Int(i128, Option<Scalar>),
    Float(f64, Option<Scalar>),
    Bool(bool),
    Name(String),
    /// `f(a, b)`: a variable at a point, a function, a cast, `select`, `min`, …
    Apply(Name, Vec<Expr>),
    /// `a[i, j]`.
    Element(Name, Vec<Expr>),
    /// A variable at a point, an element of an array, or a call of a function, depending on the
    /// declaration of the name: for notations that use one syntax for all of these.
    At(Name, Vec<Expr>),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `a <= b < c`, two or more comparisons.
    Chain(Box<Expr>, Vec<(BinOp, Expr)>),
    Field(Box<Expr>, usize),
    Tuple(Vec<Expr>),
    /// Represented explicitly, because `(a && b) && c` and `a && b && c` are different conditions
    /// in the IR.
    Paren(Box<Expr>),
    Let(Vec<(Name, Expr)>, Box<Expr>),
    Reduce(ReduceOp, Vec<Dim>, Box<Expr>),
    Scan(ReduceOp, Name, Box<Expr>),
    /// `sum(w * u over box 2)`: all cells of a neighbourhood combined, optionally with weights.
    Around(BinOp, Option<Name>, Name, Shape),
    /// An error that was found while the expression was built. The elaborator reports it: for front
    /// ends that cannot report errors themselves.
    Mistake(Box<Diagnostic>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReduceOp {
    pub kind: ReduceOpKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReduceOpKind {
    Op(BinOp),
    Fn(String),
}

/// `box 2`, `star (1, 2) except box 0`, `star 2 and box 1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub kind: ShapeKind,
    pub span: Span,
}

/// One radius for all axes, or one for each.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeKind {
    Box(Vec<i128>),
    Star(Vec<i128>),
    /// The difference of two shapes.
    Except(Box<Shape>, Box<Shape>),
    /// The union of two shapes.
    And(Box<Shape>, Box<Shape>),
}

/// The size of a tree. It is limited, so that no recursion over the tree exhausts the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    /// Nodes on the longest path, counted as in the IR.
    height: u32,
    /// The same, but a chain of operators of one precedence counts once, since it needs no
    /// parentheses.
    nesting: u32,
    n_nodes: u64,
}

impl Expr {
    /// Builds a node from its operands. If an operand is an error, the result is that error; if the
    /// tree becomes too large, it is a new error.
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        if let Some(mistake) = operands(&kind).into_iter().find(|e| e.is_mistake()) {
            return mistake.clone();
        }
        let size = Size::of(&kind);
        let (message, help) = if size.height > MAX_HEIGHT {
            (
                format!("more than {MAX_HEIGHT} operations hang on one another in this expression"),
                "split it with `reduce`, a variable, or a `fn`",
            )
        } else if size.nesting > MAX_NESTING {
            (
                format!("this expression is nested more than {MAX_NESTING} deep"),
                "name inner parts with `let`, or give them a variable",
            )
        } else if size.n_nodes > MOST_OPERATIONS {
            (
                format!("this expression has more than {MOST_OPERATIONS} operations"),
                "name parts that it has more than once with `let`, or give them a variable",
            )
        } else {
            return Expr { kind, span, size };
        };
        Expr::mistake(Diagnostic::new(&syntax::TOO_LARGE, span, message).help(help))
    }

    pub fn int(value: i128, span: Span) -> Expr {
        Expr::new(ExprKind::Int(value, None), span)
    }

    pub fn name(text: impl Into<String>, span: Span) -> Expr {
        Expr::new(ExprKind::Name(text.into()), span)
    }

    pub fn binary(op: BinOp, left: Expr, right: Expr) -> Expr {
        let span = left.span.to(right.span);
        Expr::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)
    }

    /// An error in place of an expression.
    pub fn mistake(error: Diagnostic) -> Expr {
        Expr {
            span: error.span(),
            kind: ExprKind::Mistake(Box::new(error)),
            size: Size::LEAF,
        }
    }

    /// A node that elaboration builds; elaboration measures its results instead.
    pub(crate) fn unmeasured(kind: ExprKind, span: Span) -> Expr {
        Expr {
            kind,
            span,
            size: Size::LEAF,
        }
    }

    fn is_mistake(&self) -> bool {
        matches!(self.kind, ExprKind::Mistake(_))
    }

    /// The names of values and of variables at points, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            match &expr.kind {
                ExprKind::Name(name) => names.push(name.as_str()),
                ExprKind::Apply(name, _) => names.push(name.text.as_str()),
                _ => {}
            }
            open.extend(operands(&expr.kind).into_iter().rev());
        }
        names
    }

    /// The operands of a chain of one operator, as in `a && b && c`; parentheses are not entered.
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

impl Size {
    const LEAF: Size = Size {
        height: 1,
        nesting: 1,
        n_nodes: 1,
    };

    fn of(kind: &ExprKind) -> Size {
        let operands = operands(kind);
        let all = operands.iter().fold(
            Size {
                n_nodes: 0,
                ..Size::LEAF
            },
            |all, e| all.and(e.size),
        );
        let mut size = match kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(_)
            | ExprKind::Name(_)
            | ExprKind::Mistake(_) => Size::LEAF,
            ExprKind::Paren(_) => all,
            ExprKind::Let(bindings, _) => all.above(bindings.len()),
            // Expanded to binary operations.
            ExprKind::Apply(name, args) if matches!(name.text.as_str(), "min" | "max") => {
                all.above(args.len())
            }
            ExprKind::Chain(first, rest) => Size::of_chain(first, rest),
            ExprKind::Apply(..)
            | ExprKind::Element(..)
            | ExprKind::At(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Field(..)
            | ExprKind::Tuple(_)
            | ExprKind::Reduce(..)
            | ExprKind::Scan(..)
            | ExprKind::Around(..) => all.above(1),
        };
        match kind {
            ExprKind::Binary(op, left, right) if matches!(&left.kind, ExprKind::Binary(inner, ..) if precedence(*inner) == precedence(*op)) =>
            {
                size.nesting = left.size.nesting.max(right.size.nesting + 1);
            }
            ExprKind::Field(tuple, _) => size.nesting = tuple.size.nesting,
            _ => {}
        }
        size.n_nodes = all.n_nodes.saturating_add(1);
        size
    }

    /// Each further comparison of a chain adds a `&&`, and possibly parentheses.
    fn of_chain(first: &Expr, rest: &[(BinOp, Expr)]) -> Size {
        let Some(((_, second), more)) = rest.split_first() else {
            return first.size.above(1);
        };
        let mut size = first.size.and(second.size).above(1);
        for (n, (_, link)) in more.iter().enumerate() {
            size = size.and(link.size.above(3));
            size.height = size.height.saturating_add(1);
            if n == 0 {
                size.nesting = size.nesting.saturating_add(3);
            }
        }
        size
    }

    fn and(self, other: Size) -> Size {
        Size {
            height: self.height.max(other.height),
            nesting: self.nesting.max(other.nesting),
            n_nodes: self.n_nodes.saturating_add(other.n_nodes),
        }
    }

    /// Adds a node above, or several nodes on one level of nesting.
    fn above(self, nodes: usize) -> Size {
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        Size {
            height: self.height.saturating_add(nodes),
            nesting: self.nesting.saturating_add(1),
            ..self
        }
    }
}

/// The direct operands of a node.
fn operands(kind: &ExprKind) -> Vec<&Expr> {
    match kind {
        ExprKind::Int(..)
        | ExprKind::Float(..)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Around(..)
        | ExprKind::Mistake(_) => Vec::new(),
        ExprKind::Apply(_, list)
        | ExprKind::Element(_, list)
        | ExprKind::At(_, list)
        | ExprKind::Tuple(list) => list.iter().collect(),
        ExprKind::Unary(_, inner)
        | ExprKind::Field(inner, _)
        | ExprKind::Paren(inner)
        | ExprKind::Scan(_, _, inner) => vec![inner],
        ExprKind::Binary(_, left, right) => vec![left, right],
        ExprKind::Chain(first, rest) => {
            let rest = rest.iter().map(|(_, e)| e);
            [&**first].into_iter().chain(rest).collect()
        }
        ExprKind::Let(bindings, body) => {
            let values = bindings.iter().map(|(_, value)| value);
            values.chain([&**body]).collect()
        }
        ExprKind::Reduce(_, dims, body) => {
            let ranges = dims.iter().filter_map(|dim| dim.range.as_ref());
            let bounds = ranges.flat_map(|(lo, hi)| [lo, hi]);
            bounds.chain([&**body]).collect()
        }
    }
}

/// The precedence of an operator.
pub fn precedence(op: BinOp) -> u8 {
    match op {
        BinOp::Or => 1,
        BinOp::And => 2,
        BinOp::BitOr => 3,
        BinOp::BitXor => 4,
        BinOp::BitAnd => 5,
        BinOp::Eq | BinOp::Ne => 6,
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 7,
        BinOp::Shl | BinOp::Shr => 8,
        BinOp::Add | BinOp::Sub => 9,
        BinOp::Mul | BinOp::Div | BinOp::Rem => 10,
        BinOp::Min | BinOp::Max | BinOp::Pow => 13,
    }
}

/// The relation of a comparison operator.
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

#[cfg(test)]
mod tests {
    use systola_ir::codes::types;
    use systola_ir::{BinOp, Diagnostic, Span, UnOp};

    use super::{Expr, ExprKind, MAX_HEIGHT};

    fn one() -> Expr {
        Expr::int(1, Span::NONE)
    }

    fn code(expr: &Expr) -> Option<&'static str> {
        match &expr.kind {
            ExprKind::Mistake(error) => Some(error.code.id),
            _ => None,
        }
    }

    #[test]
    fn trees_that_walks_can_not_return_from_are_mistakes() {
        let sum = |n: u32| (1..n).fold(one(), |sum, _| Expr::binary(BinOp::Add, sum, one()));
        assert_eq!(code(&sum(MAX_HEIGHT)), None);
        assert_eq!(code(&sum(MAX_HEIGHT + 1)), Some("E0106"));
        let minus = |e: Expr| Expr::new(ExprKind::Unary(UnOp::Neg, Box::new(e)), Span::NONE);
        assert_eq!(
            code(&(0..10_000).fold(one(), |e, _| minus(e))),
            Some("E0106")
        );
        let doubled = |n| (0..n).fold(one(), |e, _| Expr::binary(BinOp::Mul, e.clone(), e));
        assert_eq!(code(&doubled(10)), None);
        assert_eq!(code(&doubled(60)), Some("E0106"));
    }

    #[test]
    fn a_mistake_stays_the_only_one() {
        let error = Diagnostic::new(&types::VALUE_IN_INDEX, Span::NONE, "no index");
        let mistake = Expr::mistake(error);
        let around = Expr::binary(BinOp::Add, mistake.clone(), mistake.clone());
        assert_eq!(around, mistake);
    }
}
