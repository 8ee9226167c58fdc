//! Which tokens stand apart, and which operators have two operands.

use std::ops::Range;

use systola_ir::Scalar;

use super::pieces::Piece;
use super::units::Ends;
use crate::text::lexer::Tok;

/// What is known of a token from those before it.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Does a space precede it where it does not begin a line?
    pub space: bool,
    /// Is it an operator between two operands?
    pub binary: bool,
}

/// Reserved words that stand before expressions or brackets rather than in them.
const KEYWORDS: &[&str] = &[
    "where", "in", "on", "at", "when", "else", "let", "index", "var", "input", "output", "const",
    "table", "fn", "batch",
];

/// Words of stencils and convolutions that begin a statement and take expressions.
const FIRST_WORDS: &[&str] = &["steps", "stride", "dilation"];

/// The spacing of the tokens of a unit, one for each.
pub fn spacing(pieces: &[Piece<'_>], tokens: &Range<usize>, in_mapping: bool) -> Vec<Spacing> {
    let mut list: Vec<Spacing> = Vec::with_capacity(tokens.len());
    let mut statement = tokens.start;
    let mut ends = Ends::default();
    for at in tokens.clone() {
        let around = Around {
            pieces,
            statement,
            in_mapping,
            at,
        };
        let before = list.last().copied();
        let binary = around.is_binary();
        list.push(Spacing {
            space: at > tokens.start && around.space(binary, before.is_some_and(|b| b.binary)),
            binary,
        });
        let piece = &pieces[at];
        if ends.at(piece) || matches!(piece.kind, Tok::LBrace | Tok::RBrace) {
            statement = at + 1;
        }
    }
    list
}

/// How wide the tokens are on one line.
pub fn joined_width(pieces: &[Piece<'_>], tokens: &Range<usize>, in_mapping: bool) -> usize {
    let spacing = spacing(pieces, tokens, in_mapping);
    let texts = pieces[tokens.clone()].iter().zip(spacing);
    texts
        .map(|(p, s)| p.text.len() + usize::from(s.space))
        .sum()
}

/// A token and what is before it.
struct Around<'a, 's> {
    pieces: &'a [Piece<'s>],
    /// The first token of the statement.
    statement: usize,
    in_mapping: bool,
    at: usize,
}

impl<'a, 's> Around<'a, 's> {
    /// The token `n` places before this one, in the same statement.
    fn back(&self, n: usize) -> Option<&'a Piece<'s>> {
        let at = self.at.checked_sub(n).filter(|at| *at >= self.statement)?;
        self.pieces.get(at)
    }

    /// The position in its statement of the token `n` places before this one.
    fn position(&self, n: usize) -> Option<usize> {
        self.at.checked_sub(n)?.checked_sub(self.statement)
    }

    fn is_binary(&self) -> bool {
        let operator = self
            .pieces
            .get(self.at)
            .is_some_and(|p| is_operator(p.kind));
        operator
            && match self.back(1).map(|p| p.kind) {
                Some(Tok::Number | Tok::RParen | Tok::RBracket) => true,
                Some(Tok::Word) => !self.after_keyword(),
                _ => false,
            }
    }

    /// Is the token before a word that stands before an expression?
    fn after_keyword(&self) -> bool {
        let Some(word) = self.back(1).filter(|p| p.kind == Tok::Word) else {
            return false;
        };
        let first = self.pieces.get(self.statement).map_or("", |p| p.text);
        match word.text {
            "along" => {
                let next_stage = first == "sum" && self.back(2).is_some_and(|p| p.text == "then");
                self.in_mapping
                    && matches!(first, "forward" | "sum")
                    && (next_stage || self.position(1) == Some(2))
            }
            "by" => self.in_mapping && first == "tile" && self.position(1) == Some(2),
            "constant" => self
                .back(2)
                .is_some_and(|p| p.kind == Tok::RParen || Scalar::from_name(p.text).is_some()),
            text if FIRST_WORDS.contains(&text) => self.position(1) == Some(0),
            text => KEYWORDS.contains(&text),
        }
    }

    /// Does a space stand between the token before and this one?
    fn space(&self, binary: bool, after_binary: bool) -> bool {
        let (Some(before), Some(here)) = (self.pieces.get(self.at - 1), self.pieces.get(self.at))
        else {
            return false;
        };
        // The space before a tight operator says that of both sides.
        let tight = |at: usize| {
            let product = |p: &Piece<'_>| matches!(p.kind, Tok::Star | Tok::Slash | Tok::Percent);
            let touches = |at: usize| self.pieces.get(at).is_some_and(|p| p.touches);
            self.pieces.get(at).is_some_and(product) && touches(at) && touches(at + 1)
        };
        match (before.kind, here.kind) {
            // `t.0 .1` would become `0.1`, another token.
            (Tok::Number, Tok::Dot) => true,
            (_, Tok::Comma | Tok::Semi | Tok::RParen | Tok::RBracket | Tok::Colon) => false,
            (_, Tok::Dot | Tok::DotDot) | (Tok::Dot | Tok::DotDot, _) => false,
            (Tok::LParen | Tok::LBracket, _) => false,
            (Tok::LBrace, _) | (_, Tok::LBrace | Tok::RBrace) => true,
            _ if binary => !tight(self.at),
            _ if after_binary => !tight(self.at - 1),
            (Tok::Comma | Tok::Semi | Tok::Colon | Tok::Assign | Tok::Arrow, _) => true,
            (_, Tok::Assign | Tok::Arrow) => true,
            (Tok::Word, Tok::LParen) => self.word_then_parenthesis(),
            (Tok::Word, Tok::LBracket) => before.text == "at",
            (Tok::RParen | Tok::RBracket, Tok::LParen | Tok::LBracket) => false,
            (kind, _) if is_operator(kind) || kind == Tok::Bang => false,
            _ => true,
        }
    }

    /// Arguments follow their name at once, anything else in parentheses follows a space.
    fn word_then_parenthesis(&self) -> bool {
        let before = self.back(2);
        let first = self.pieces.get(self.statement).map_or("", |p| p.text);
        if self.in_mapping {
            let called = before.is_some_and(|p| p.kind == Tok::Dot);
            let declared = first == "func" && self.position(1) == Some(1);
            return !called && !declared;
        }
        let shape = self
            .back(1)
            .is_some_and(|p| matches!(p.text, "box" | "star"))
            && before.is_some_and(|p| p.kind == Tok::Word);
        shape || self.after_keyword()
    }
}

fn is_operator(kind: Tok) -> bool {
    matches!(
        kind,
        Tok::Eq
            | Tok::Ne
            | Tok::Lt
            | Tok::Le
            | Tok::Gt
            | Tok::Ge
            | Tok::Shl
            | Tok::Shr
            | Tok::Plus
            | Tok::Minus
            | Tok::Star
            | Tok::Slash
            | Tok::Percent
            | Tok::AndAnd
            | Tok::OrOr
            | Tok::And
            | Tok::Or
            | Tok::Caret
    )
}
