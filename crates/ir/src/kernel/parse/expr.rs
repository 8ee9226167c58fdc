//! Expressions, before it is known whether they are positions, conditions or values.

use super::lexer::{At, TokenKind, literal_word};
use super::{DEEPEST, ParseError, Parser};
use crate::scalar::{BinOp, Literal, Scalar, UnOp};
use crate::system::print::expr::precedence;

#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub at: At,
    pub kind: ExprKind,
    /// The nesting depth, which bounds the recursion of walks over the expression.
    height: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Name(String),
    Lit(Literal, Option<Scalar>),
    /// `-` or `!`.
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Call(String, Vec<Expr>),
    Element {
        array: String,
        index: Vec<Expr>,
        /// `..+4`.
        width: Option<u32>,
    },
    /// In parentheses.
    Group(Box<Expr>),
}

const BINARY: [BinOp; 18] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
    BinOp::And,
    BinOp::Or,
    BinOp::BitAnd,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::Shl,
    BinOp::Shr,
];

impl Expr {
    fn new(at: At, kind: ExprKind) -> Result<Expr, ParseError> {
        let highest = |list: &[Expr]| list.iter().map(|e| e.height).max().unwrap_or(0);
        let below = match &kind {
            ExprKind::Name(_) | ExprKind::Lit(..) => 0,
            ExprKind::Unary(_, of) | ExprKind::Group(of) => of.height,
            ExprKind::Binary(_, left, right) => left.height.max(right.height),
            ExprKind::Call(_, list) | ExprKind::Element { index: list, .. } => highest(list),
        };
        if below >= DEEPEST {
            return Err(at.error("this expression is nested too deeply"));
        }
        Ok(Expr {
            at,
            kind,
            height: below + 1,
        })
    }
}

impl Parser {
    pub(super) fn expr(&mut self) -> Result<Expr, ParseError> {
        self.binary(0)
    }

    /// Reads operators that bind at least as tightly as `least`; they group to the left.
    fn binary(&mut self, least: u8) -> Result<Expr, ParseError> {
        let mut left = self.unary()?;
        loop {
            let TokenKind::Punct(punct) = self.peek().kind else {
                return Ok(left);
            };
            let op = BINARY.into_iter().find(|op| op.name() == punct);
            let Some(op) = op.filter(|op| precedence(*op) >= least) else {
                return Ok(left);
            };
            let at = self.bump().at;
            let right = self.nested(|p| p.binary(precedence(op) + 1))?;
            left = Expr::new(at, ExprKind::Binary(op, Box::new(left), Box::new(right)))?;
        }
    }

    pub(super) fn unary(&mut self) -> Result<Expr, ParseError> {
        let at = self.at();
        if self.eat("-") {
            // A minus before a number is part of it.
            if let Some(literal) = self.number("-")? {
                return Ok(literal);
            }
            return self.prefixed(at, UnOp::Neg);
        }
        if self.eat("!") {
            return self.prefixed(at, UnOp::Not);
        }
        self.primary()
    }

    fn prefixed(&mut self, at: At, op: UnOp) -> Result<Expr, ParseError> {
        let of = self.nested(Parser::unary)?;
        Expr::new(at, ExprKind::Unary(op, Box::new(of)))
    }

    /// Reads a literal, if there is one; `sign` is empty or a minus.
    fn number(&mut self, sign: &str) -> Result<Option<Expr>, ParseError> {
        let token = self.peek().clone();
        let at = token.at;
        let (value, ty) = match &token.kind {
            TokenKind::Number(digits, ty) => {
                let text = format!("{sign}{digits}");
                let value = match digits.contains(['.', 'e']) {
                    true => text.parse().ok().map(Literal::Float),
                    false => text.parse().ok().map(Literal::Int),
                };
                let value = value.ok_or_else(|| at.error(format!("{text} is too large")))?;
                (value, *ty)
            }
            TokenKind::Name(word) => match literal_word(word) {
                Some((Literal::Float(x), ty)) if sign == "-" => (Literal::Float(-x), ty),
                Some((value, ty)) if sign.is_empty() => (value, ty),
                _ => return Ok(None),
            },
            TokenKind::Text(_) | TokenKind::Punct(_) | TokenKind::Comment(_) | TokenKind::End => {
                return Ok(None);
            }
        };
        self.bump();
        Expr::new(at, ExprKind::Lit(value, ty)).map(Some)
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        if let Some(literal) = self.number("")? {
            return Ok(literal);
        }
        let at = self.at();
        if self.eat("(") {
            let of = self.nested(Parser::expr)?;
            self.expect(")")?;
            return Expr::new(at, ExprKind::Group(Box::new(of)));
        }
        let name = self.name("an expression")?;
        if self.eat("(") {
            let args = self.nested(|p| p.list(")", Parser::expr))?;
            return Expr::new(at, ExprKind::Call(name, args));
        }
        if self.is("[") {
            return self.nested(|p| p.element(at, name));
        }
        Expr::new(at, ExprKind::Name(name))
    }

    /// `[i, j]` or `[i, 4*j ..+4]` after the name of an array.
    fn element(&mut self, at: At, array: String) -> Result<Expr, ParseError> {
        self.expect("[")?;
        let mut index = Vec::new();
        let mut width = None;
        while !self.eat("]") {
            index.push(self.expr()?);
            if self.eat("..") {
                self.expect("+")?;
                width = Some(self.count()?);
                self.expect("]")?;
                break;
            }
            if !self.is("]") && !self.eat(",") {
                return self.expected("`,`, `..+` or `]`");
            }
        }
        Expr::new(
            at,
            ExprKind::Element {
                array,
                index,
                width,
            },
        )
    }
}
