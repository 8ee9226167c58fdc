//! Limits the nesting of elaborated expressions, measured on their printed form.
//!
//! Elaboration normalises index expressions and expands chains of comparisons, so the printed form
//! may be nested deeper than the source text. This limit is lower than the parser's, so that every
//! accepted program can be printed and parsed again.

use systola_ir::codes::syntax;
use systola_ir::system::{Expr, visit};
use systola_ir::{Atom, BinOp, Cond, Diagnostic, Form, Span};

/// The maximum nesting of a printed expression; the parser accepts more.
pub const MAX_NESTING: usize = 96;
/// The maximum height of a printed expression, in operations; the parser accepts more.
pub const MAX_HEIGHT: usize = 520;

pub fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(
        &syntax::TOO_LARGE,
        span,
        format!("this is nested more than {MAX_NESTING} deep"),
    )
    .help("name inner parts with `let`, or give them a variable")
}

pub fn too_high(span: Span) -> Diagnostic {
    Diagnostic::new(
        &syntax::TOO_LARGE,
        span,
        format!("more than {MAX_HEIGHT} operations hang on one another in this expression"),
    )
    .help("split it with `reduce`, a variable, or a `fn`")
}

/// A sum of products of floors takes three levels, in addition to those inside of the floors.
pub fn of_form(form: &Form) -> usize {
    let inner = form.terms().map(|(atom, _)| match atom {
        Atom::Dim(_) => 0,
        Atom::Floor(inner, _) | Atom::Mod(inner, _) => of_form(inner),
    });
    3 + inner.max().unwrap_or(0)
}

pub fn of_cond(cond: &Cond) -> usize {
    1 + match cond {
        Cond::Const(_) => 0,
        Cond::Cmp(_, left, right) => of_form(left).max(of_form(right)),
        Cond::And(parts) | Cond::Or(parts) => parts.iter().map(of_cond).max().unwrap_or(0),
        Cond::Not(inner) => of_cond(inner),
    }
}

pub fn of_expr(expr: &Expr) -> usize {
    let children = visit::children(expr);
    let (forms, cond) = positions(expr);
    let below = forms.iter().map(of_form).chain(cond.map(of_cond));
    let below = below.max().unwrap_or(0);
    // A chain of one operator, or of `let`s, is printed on one level.
    let side_by_side = match (expr, children.as_slice()) {
        (Expr::Binary(op, ..), [left, _]) => {
            matches!(left, Expr::Binary(inner, ..) if alike(*op, *inner))
        }
        (Expr::Let { .. }, [_, body]) => matches!(body, Expr::Let { .. }),
        _ => false,
    };
    let mut levels = children.iter().map(|child| of_expr(child));
    match (expr, side_by_side) {
        (Expr::Binary(..), true) => {
            let left = levels.next().unwrap_or(0);
            left.max(1 + levels.max().unwrap_or(0))
        }
        (Expr::Let { .. }, true) => {
            let value = levels.next().unwrap_or(0);
            (1 + value).max(levels.max().unwrap_or(0))
        }
        _ => 1 + levels.max().unwrap_or(0).max(below),
    }
}

/// The index expressions and the condition that an expression has besides its operands.
fn positions(expr: &Expr) -> (&[Form], Option<&Cond>) {
    match expr {
        Expr::Var { index, .. } | Expr::Input { index, .. } => (index, None),
        Expr::Guard { cond, .. } => (&[], Some(cond)),
        Expr::Lit(..)
        | Expr::Const(_)
        | Expr::Iter(_)
        | Expr::Param(_)
        | Expr::Local(_)
        | Expr::Lookup { .. }
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Cast(..)
        | Expr::Select { .. }
        | Expr::Tuple(_)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Let { .. }
        | Expr::Reduce { .. }
        | Expr::Scan { .. }
        | Expr::Port(_) => (&[], None),
    }
}

/// Whether two operators have the same precedence, so that a left operand needs no parentheses.
fn alike(a: BinOp, b: BinOp) -> bool {
    let is_sum = |op| matches!(op, BinOp::Add | BinOp::Sub);
    let is_product = |op| matches!(op, BinOp::Mul | BinOp::Div | BinOp::Rem);
    let is_comparison = |op: BinOp| op.is_comparison() || op == BinOp::Pow;
    (a == b && !is_comparison(a)) || (is_sum(a) && is_sum(b)) || (is_product(a) && is_product(b))
}

/// The number of nodes on the longest path of the expression, including its index expressions.
pub fn height(expr: &Expr) -> usize {
    let (forms, cond) = positions(expr);
    let below = forms.iter().map(form_height).chain(cond.map(cond_height));
    let children = visit::children(expr).into_iter().map(height);
    1 + children.chain(below).max().unwrap_or(0)
}

fn cond_height(cond: &Cond) -> usize {
    1 + match cond {
        Cond::Const(_) => 0,
        Cond::Cmp(_, left, right) => form_height(left).max(form_height(right)),
        Cond::And(parts) | Cond::Or(parts) => {
            parts.len() + parts.iter().map(cond_height).max().unwrap_or(0)
        }
        Cond::Not(inner) => cond_height(inner),
    }
}

fn form_height(form: &Form) -> usize {
    let terms = form.terms().map(|(atom, c)| {
        let inner = match atom {
            Atom::Dim(_) => 0,
            Atom::Floor(inner, _) | Atom::Mod(inner, _) => 1 + form_height(inner),
        };
        (c, inner)
    });
    terms
        .chain([(form.constant_part(), 0)])
        .map(|(c, inner)| {
            c.terms()
                .map(|(factors, _)| 2 + factors.len() + inner)
                .sum::<usize>()
        })
        .sum::<usize>()
}
