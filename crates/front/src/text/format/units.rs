//! Cuts a file into what stands on lines of its own.

use std::ops::Range;

use super::WIDTH;
use super::pieces::Piece;
use super::spacing::joined_width;
use crate::text::lexer::Tok;

/// Tokens that begin a line, and after which another one begins.
pub struct Unit {
    pub tokens: Range<usize>,
    /// How many blocks are around it.
    pub level: usize,
    pub kind: UnitKind,
    /// Are its names followed by parentheses only where methods are called?
    pub in_mapping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// Up to its `;`.
    Statement,
    /// The head of a block up to its `{`.
    Head,
    /// A `}`.
    Close,
    /// A block on one line.
    Block,
}

/// The units of a text without mistakes of syntax, in order.
pub fn units(pieces: &[Piece<'_>]) -> Vec<Unit> {
    let mut units = Vec::new();
    let (mut at, mut level, mut in_mapping) = (0, 0usize, false);
    while let Some(first) = pieces.get(at).filter(|p| p.kind != Tok::Eof) {
        if level == 0 {
            in_mapping = first.text == "mapping";
        }
        let (mut end, mut kind) = match first.kind {
            Tok::RBrace => (behind_brace(pieces, at), UnitKind::Close),
            _ => statement(pieces, at),
        };
        if kind == UnitKind::Close {
            level = level.saturating_sub(1);
        }
        if kind == UnitKind::Head
            && let Some(close) = block_on_one_line(pieces, at)
            && 2 * level + joined_width(pieces, &(at..close), in_mapping) <= WIDTH
        {
            (end, kind) = (close, UnitKind::Block);
        }
        units.push(Unit {
            tokens: at..end,
            level,
            kind,
            in_mapping,
        });
        if kind == UnitKind::Head {
            level += 1;
        }
        at = end;
    }
    units
}

/// The end of the statement or head that begins at a token.
fn statement(pieces: &[Piece<'_>], start: usize) -> (usize, UnitKind) {
    let mut ends = Ends::default();
    for (n, piece) in pieces.iter().enumerate().skip(start) {
        match piece.kind {
            Tok::LBrace => return (n + 1, UnitKind::Head),
            Tok::Eof => return (n, UnitKind::Statement),
            _ if ends.at(piece) => return (n + 1, UnitKind::Statement),
            _ => {}
        }
    }
    (pieces.len(), UnitKind::Statement)
}

/// Tells the `;` that ends a statement from those of `let`.
#[derive(Default)]
pub struct Ends {
    depth: usize,
    lets: usize,
}

impl Ends {
    /// Takes the next token; does it end a statement?
    pub fn at(&mut self, piece: &Piece<'_>) -> bool {
        match piece.kind {
            Tok::LParen | Tok::LBracket => self.depth += 1,
            Tok::RParen | Tok::RBracket => self.depth = self.depth.saturating_sub(1),
            Tok::Word if piece.text == "let" && self.depth == 0 => self.lets += 1,
            Tok::Semi if self.depth == 0 && self.lets > 0 => self.lets -= 1,
            Tok::Semi if self.depth == 0 => return true,
            _ => {}
        }
        false
    }
}

/// Behind a `}`, and behind the `;` that may follow it.
fn behind_brace(pieces: &[Piece<'_>], brace: usize) -> usize {
    let next = pieces.get(brace + 1);
    let semi = next.is_some_and(|p| p.kind == Tok::Semi && p.comments.is_empty());
    brace + 1 + usize::from(semi)
}

/// Behind the block whose head begins at a token, if the author wrote all of it on one line.
fn block_on_one_line(pieces: &[Piece<'_>], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (n, piece) in pieces.iter().enumerate().skip(start) {
        if n > start && (piece.breaks > 0 || !piece.comments.is_empty()) {
            return None;
        }
        match piece.kind {
            Tok::LBrace => depth += 1,
            Tok::RBrace if depth == 1 => {
                let end = behind_brace(pieces, n);
                let same_line = pieces[n + 1..end].iter().all(|p| p.breaks == 0);
                return same_line.then_some(end);
            }
            Tok::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
