//! Parses expressions by precedence climbing.

use systola_ir::codes::syntax;
use systola_ir::mapping::Name;
use systola_ir::{BinOp, Diagnostic, Scalar, Span, UnOp};
use systola_surface::tree::{Dim, Expr, ExprKind, ReduceOp, ReduceOpKind, precedence};
use systola_surface::words::is_reserved;

use super::{Parsed, Parser};
use crate::text::lexer::Tok;

/// The binary operator of a token, and its precedence.
fn infix(tok: Tok) -> Option<(BinOp, u8)> {
    let op = match tok {
        Tok::OrOr => BinOp::Or,
        Tok::AndAnd => BinOp::And,
        Tok::Or => BinOp::BitOr,
        Tok::Caret => BinOp::BitXor,
        Tok::And => BinOp::BitAnd,
        Tok::Eq => BinOp::Eq,
        Tok::Ne => BinOp::Ne,
        Tok::Lt => BinOp::Lt,
        Tok::Le => BinOp::Le,
        Tok::Gt => BinOp::Gt,
        Tok::Ge => BinOp::Ge,
        Tok::Shl => BinOp::Shl,
        Tok::Shr => BinOp::Shr,
        Tok::Plus => BinOp::Add,
        Tok::Minus => BinOp::Sub,
        Tok::Star => BinOp::Mul,
        Tok::Slash => BinOp::Div,
        Tok::Percent => BinOp::Rem,
        _ => return None,
    };
    Some((op, precedence(op)))
}

fn is_relational(op: BinOp) -> bool {
    matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

impl Parser<'_> {
    /// An expression, optionally with leading `let`s.
    pub(super) fn body(&mut self) -> Parsed<Expr> {
        if !self.at_word("let") {
            return self.expr();
        }
        let start = self.span();
        let mut bindings = Vec::new();
        while self.eat_word("let") {
            let name = self.name("a name to bind")?;
            self.expect(Tok::Assign, "`=`")?;
            let value = self.expr()?;
            self.end_statement()?;
            bindings.push((name, value));
        }
        let body = self.expr()?;
        self.node(start, ExprKind::Let(bindings, Box::new(body)))
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.infix_expr(1)
    }

    /// An expression whose operators have at least the precedence `least`.
    fn infix_expr(&mut self, least: u8) -> Parsed<Expr> {
        self.nested(|p| {
            let mut left = p.prefix_expr()?;
            while let Some((op, binds)) = infix(p.peek()).filter(|(_, binds)| *binds >= least) {
                p.advance();
                let right = p.infix_expr(binds + 1)?;
                left = if is_relational(op) {
                    p.chain(left, op, right)?
                } else {
                    p.binary(left, op, right)?
                };
            }
            Ok(left)
        })
    }

    fn binary(&mut self, left: Expr, op: BinOp, right: Expr) -> Parsed<Expr> {
        let start = left.span;
        let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
        self.node(start, kind)
    }

    /// A comparison. Further comparisons after it form a chain.
    fn chain(&mut self, left: Expr, op: BinOp, right: Expr) -> Parsed<Expr> {
        let start = left.span;
        let kind = match left.kind {
            ExprKind::Chain(first, mut rest) => {
                rest.push((op, right));
                ExprKind::Chain(first, rest)
            }
            ExprKind::Binary(inner, a, b) if is_relational(inner) => {
                ExprKind::Chain(a, vec![(inner, *b), (op, right)])
            }
            _ => return self.binary(left, op, right),
        };
        self.node(start, kind)
    }

    fn prefix_expr(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.peek() {
            Tok::Minus => UnOp::Neg,
            Tok::Bang => UnOp::Not,
            _ => return self.postfix_expr(),
        };
        self.advance();
        if op == UnOp::Neg {
            if self.peek() == Tok::Number {
                let span = self.span();
                self.advance();
                let kind = self.number(span, true)?;
                return self.node(start, kind);
            }
            if let Some((value, ty)) = self.word().and_then(special_float) {
                self.advance();
                return self.node(start, ExprKind::Float(-value, ty));
            }
        }
        let operand = self.nested(Self::prefix_expr)?;
        self.node(start, ExprKind::Unary(op, Box::new(operand)))
    }

    fn postfix_expr(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary_expr()?;
        while self.peek() == Tok::Dot && self.peek_at(1) == Tok::Number {
            self.advance();
            let span = self.span();
            self.advance();
            // The tokens of `t.0.1` are `t`, `.`, `0.1`.
            for part in self.text(span).split('.') {
                let Some(field) = part.parse::<usize>().ok().filter(|n| *n < 1 << 16) else {
                    let error = Diagnostic::new(
                        &syntax::MALFORMED_NUMBER,
                        span,
                        format!("`.{part}` is no field of a tuple"),
                    );
                    return self.fail(error.help("fields are counted from zero: `pair.0`"));
                };
                expr = self.node(expr.span, ExprKind::Field(Box::new(expr), field))?;
            }
        }
        Ok(expr)
    }

    fn primary_expr(&mut self) -> Parsed<Expr> {
        let start = self.span();
        match self.peek() {
            Tok::Number => {
                self.advance();
                let kind = self.number(start, false)?;
                self.node(start, kind)
            }
            Tok::LParen => self.parenthesis(),
            Tok::Word
                if self.at_word("if") && matches!(self.peek_at(1), Tok::Word | Tok::Number) =>
            {
                let error = Diagnostic::new(
                    &syntax::UNEXPECTED_TOKEN,
                    start,
                    "expected an expression, found `if`",
                );
                self.fail(error.help("write a choice as `select(condition, a, b)`"))
            }
            Tok::Word => self.named_expr(),
            Tok::LBracket => {
                let error = Diagnostic::new(
                    &syntax::UNEXPECTED_TOKEN,
                    start,
                    "expected an expression, found `[`",
                );
                self.fail(error.help("a list of values is only the contents of a `table`"))
            }
            _ => self.expected("an expression"),
        }
    }

    fn parenthesis(&mut self) -> Parsed<Expr> {
        let open = self.span();
        self.advance();
        let mut parts = self.list(open, Tok::RParen, "`)`", Self::body)?;
        let tuple = parts.len() != 1;
        if parts.is_empty() {
            let span = self.since(open);
            let error = Diagnostic::new(
                &syntax::UNEXPECTED_TOKEN,
                span,
                "expected an expression between the parentheses",
            );
            return self.fail(error.help("write one, or remove the parentheses"));
        }
        match parts.pop() {
            Some(inner) if !tuple => self.node(open, ExprKind::Paren(Box::new(inner))),
            last => {
                parts.extend(last);
                self.node(open, ExprKind::Tuple(parts))
            }
        }
    }

    fn named_expr(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if let Some(around) = self.around() {
            let kind = around?;
            return self.node(start, kind);
        }
        let Some(word) = self.word() else {
            return self.expected("an expression");
        };
        let literal = match word {
            "true" => Some(ExprKind::Bool(true)),
            "false" => Some(ExprKind::Bool(false)),
            "reduce" => return self.reduce(),
            "scan" => return self.scan(),
            _ => special_float(word).map(|(value, ty)| ExprKind::Float(value, ty)),
        };
        if let Some(kind) = literal {
            self.advance();
            return self.node(start, kind);
        }
        let name = Name {
            text: word.to_string(),
            span: start,
        };
        match self.peek_at(1) {
            Tok::LParen if !is_reserved(word) || is_builtin(word) => {
                self.advance();
                let open = self.span();
                self.advance();
                let args = self.list(open, Tok::RParen, "`)`", Self::body)?;
                self.node(start, ExprKind::Apply(name, args))
            }
            _ if is_reserved(word) => {
                let error = Diagnostic::new(
                    &syntax::UNEXPECTED_TOKEN,
                    start,
                    format!("expected an expression, found the word `{word}`"),
                );
                self.fail(if is_builtin(word) {
                    error.help(format!("`{word}` takes arguments: `{word}(…)`"))
                } else {
                    error.help("write an expression here")
                })
            }
            Tok::LBracket => {
                self.advance();
                let open = self.span();
                self.advance();
                let index = self.list(open, Tok::RBracket, "`]`", Self::expr)?;
                self.node(start, ExprKind::Element(name, index))
            }
            _ => {
                self.advance();
                self.node(start, ExprKind::Name(name.text))
            }
        }
    }

    /// `reduce(+, q in 0..Q, p in 0..H, body)`.
    fn reduce(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.advance();
        let open = self.expect(Tok::LParen, "`(`")?;
        let op = self.reduce_op()?;
        self.expect(Tok::Comma, "`,` and the iterators")?;
        let mut dims = Vec::new();
        while self.word().is_some()
            && (self.word_at(1) == Some("in") || is_range_without_in(self.peek_at(1)))
        {
            let name = self.name("an iterator")?;
            let range = self.range_after(&name)?;
            let span = self.since(name.span);
            dims.push(Dim { name, range, span });
            self.expect(Tok::Comma, "`,` and what is combined")?;
        }
        if dims.is_empty() {
            return self.expected("an iterator with its range, such as `q in 0..Q`");
        }
        let body = self.nested(Self::body)?;
        self.close(Tok::RParen, "`)`", open)?;
        self.node(start, ExprKind::Reduce(op, dims, Box::new(body)))
    }

    /// `scan(+, i, body)`.
    fn scan(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.advance();
        let open = self.expect(Tok::LParen, "`(`")?;
        let op = self.reduce_op()?;
        self.expect(Tok::Comma, "`,` and an iterator")?;
        let dim = self.name("an iterator of the index space")?;
        self.expect(Tok::Comma, "`,` and what is summed")?;
        let body = self.nested(Self::body)?;
        self.close(Tok::RParen, "`)`", open)?;
        self.node(start, ExprKind::Scan(op, dim, Box::new(body)))
    }

    fn reduce_op(&mut self) -> Parsed<ReduceOp> {
        let span = self.span();
        let op = match (self.peek(), self.word()) {
            (_, Some("min")) => Some(BinOp::Min),
            (_, Some("max")) => Some(BinOp::Max),
            (_, Some("pow")) => Some(BinOp::Pow),
            (tok, _) => infix(tok).map(|(op, _)| op),
        };
        let kind = match op {
            Some(op) if op.is_reduction() => {
                self.advance();
                ReduceOpKind::Op(op)
            }
            Some(op) => {
                let error = Diagnostic::new(
                    &syntax::NO_REDUCTION,
                    span,
                    format!(
                        "`{}` does not combine a set of values: their order would matter",
                        op.name()
                    ),
                );
                return self.fail(error.help(
                    "use one of + * min max && || & | ^, or a `fn` declared associative or reorderable",
                ));
            }
            None => ReduceOpKind::Fn(self.name("an operator or the name of a function")?.text),
        };
        Ok(ReduceOp { kind, span })
    }

    /// The range after an iterator, `in lo..hi`, if there is one. A forgotten `in`, or another sign
    /// in its place, is reported with the text to write.
    pub(super) fn range_after(&mut self, name: &Name) -> Parsed<Option<(Expr, Expr)>> {
        if self.eat_word("in") {
            return Ok(Some(self.range()?));
        }
        if !is_range_without_in(self.peek()) {
            return Ok(None);
        }
        let (found, at) = (self.found(), self.span());
        if self.peek() != Tok::Number {
            self.advance();
        }
        let (lo, hi) = self.range()?;
        let range = self.text(lo.span.to(hi.span));
        let error = Diagnostic::new(
            &syntax::UNEXPECTED_TOKEN,
            at,
            format!(
                "expected `in` after the iterator `{}`, found {found}",
                name.text
            ),
        );
        self.report(error.help(format!("write `{} in {range}`", name.text)));
        Ok(Some((lo, hi)))
    }

    /// `lo..hi`.
    pub(super) fn range(&mut self) -> Parsed<(Expr, Expr)> {
        let lo = self.expr()?;
        if self.peek() != Tok::DotDot {
            let text = self.text(lo.span);
            let shown = if text.len() <= 40 { text } else { "N" };
            let error = Diagnostic::new(
                &syntax::NO_RANGE,
                lo.span,
                "an iterator runs over a range `lo..hi`, half-open",
            );
            let is_to = self.word().is_some_and(|word| RANGE_WORDS.contains(&word));
            if is_to || self.peek() == Tok::Colon {
                self.advance();
                let hi = self.expr()?;
                let hi = self.text(hi.span);
                return self
                    .fail(error.help(format!("write `{shown}..{hi}`, which ends before `{hi}`")));
            }
            return self.fail(error.help(format!("write `0..{shown}`")));
        }
        self.advance();
        let hi = self.expr()?;
        Ok((lo, hi))
    }

    /// Builds a node. Reports an error if the tree becomes too large.
    fn node(&mut self, start: Span, kind: ExprKind) -> Parsed<Expr> {
        let expr = Expr::new(kind, self.since(start));
        match expr.kind {
            ExprKind::Mistake(error) => self.fail(*error),
            _ => Ok(expr),
        }
    }
}

/// Words of other languages between the ends of a range.
const RANGE_WORDS: [&str; 3] = ["to", "until", "upto"];

/// Whether a range may begin here, behind an iterator whose `in` is missing: `c 0..C`, `c = 0..C`.
fn is_range_without_in(tok: Tok) -> bool {
    matches!(tok, Tok::Number | Tok::Assign | Tok::Colon)
}

/// Words that are built-in functions before `(`.
fn is_builtin(word: &str) -> bool {
    matches!(word, "select" | "min" | "max" | "pow")
        || UnOp::function(word).is_some()
        || Scalar::from_name(word).is_some()
}

/// `inf` and `nan`, optionally with a type: `inf_f32`.
pub(super) fn special_float(word: &str) -> Option<(f64, Option<Scalar>)> {
    let (head, ty) = match word.split_once('_') {
        Some((head, ty)) => (head, Some(Scalar::from_name(ty).filter(|s| s.is_float())?)),
        None => (word, None),
    };
    match head {
        "inf" => Some((f64::INFINITY, ty)),
        "nan" => Some((f64::NAN, ty)),
        _ => None,
    }
}
