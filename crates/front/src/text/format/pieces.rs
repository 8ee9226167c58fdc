//! The tokens of a source, each with the comments and line breaks before it.

use crate::text::lexer::{Tok, tokenize};

pub struct Piece<'s> {
    pub kind: Tok,
    pub text: &'s str,
    /// Those between the token before and this one.
    pub comments: Vec<Comment<'s>>,
    /// How many lines end between the last of the comments, or the token before, and this token.
    pub breaks: usize,
    /// Does it follow the token before without anything between them?
    pub touches: bool,
}

pub struct Comment<'s> {
    pub text: &'s str,
    pub place: Place,
    pub blank_before: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the line of the token before.
    Behind,
    /// On the next line, right below a comment behind a line.
    Below,
    /// On a line of its own.
    Alone,
}

/// All tokens; the last one is the end of the text.
pub fn pieces(source: &str) -> Vec<Piece<'_>> {
    let (tokens, _) = tokenize(source);
    let mut end = 0;
    let mut pieces = Vec::with_capacity(tokens.len());
    for token in tokens {
        let range = token.span.range();
        let gap = source.get(end..range.start).unwrap_or_default();
        let (comments, rest) = comments(source, end, gap);
        pieces.push(Piece {
            kind: token.kind,
            text: source.get(range.clone()).unwrap_or_default(),
            comments,
            breaks: rest.matches('\n').count(),
            touches: gap.is_empty(),
        });
        end = range.end;
    }
    pieces
}

/// The comments of the gap that begins at byte `start`, and what follows the last of them.
fn comments<'s>(source: &'s str, start: usize, gap: &'s str) -> (Vec<Comment<'s>>, &'s str) {
    let mut comments: Vec<Comment<'s>> = Vec::new();
    let mut column_before = None;
    let mut rest = gap;
    while let Some((space, after)) = rest.split_once("//") {
        let at = start + gap.len() - after.len() - 2;
        let breaks = space.matches('\n').count();
        let column = column(source, at);
        let place = match comments.last().map(|c| c.place) {
            None if breaks == 0 && start > 0 => Place::Behind,
            Some(Place::Behind | Place::Below) if breaks == 1 && column_before == Some(column) => {
                Place::Below
            }
            _ => Place::Alone,
        };
        let end = after.find('\n').unwrap_or(after.len());
        comments.push(Comment {
            text: source.get(at..at + 2 + end).unwrap_or_default().trim_end(),
            place,
            blank_before: breaks > 1,
        });
        column_before = Some(column);
        rest = after.get(end..).unwrap_or_default();
    }
    (comments, rest)
}

/// How many characters precede byte `at` on its line.
fn column(source: &str, at: usize) -> usize {
    let before = source.get(..at).unwrap_or_default();
    before.chars().rev().take_while(|c| *c != '\n').count()
}
