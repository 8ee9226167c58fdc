//! How the tokens of a unit are nested: brackets, and in them elements between separators.

use super::pieces::Piece;
use super::spacing::Spacing;
use super::units::{Unit, UnitKind};
use crate::text::lexer::Tok;

/// All positions count from the first token of the unit.
pub struct Structure {
    pub tokens: Vec<Inside>,
    pub groups: Vec<Group>,
    /// The text of the tokens on one line: where each begins, and where it ends.
    extents: Vec<(usize, usize)>,
}

/// Where a token stands. A closing bracket stands inside of its group, an opening one outside.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    pub group: usize,
    pub depth: usize,
    /// The first token of its element.
    pub element: usize,
    /// How many elements of the group precede its own.
    pub number: usize,
    pub closes: bool,
    pub class: Option<Class>,
}

/// A pair of brackets with what is between them; the first one is the unit without its brackets.
pub struct Group {
    pub open: Option<usize>,
    pub close: usize,
    /// The arguments of a `select`.
    pub select: bool,
    /// Rows of a table.
    pub rows: bool,
    /// Where the last of its elements begins.
    pub last_element: usize,
}

/// What a line can be broken at, from the outermost to what is better left together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Behind the `;` of a `let`.
    Let,
    /// Behind the `=` of a statement.
    Assign,
    Where,
    Else,
    When,
    At,
    /// Before another word between the parts of a statement.
    Word,
    /// Before a call of a method, or between two pairs of parentheses.
    Call,
    Comma,
    Or,
    And,
    Bits,
    Sum,
    Comparison,
    Product,
    /// Behind an opening bracket.
    Open,
    /// Before a closing bracket, where the author wants it.
    Close,
}

impl Class {
    /// Lines are broken there only where no other place is.
    pub fn is_last_resort(self) -> bool {
        self >= Class::Comparison
    }
}

impl Structure {
    pub fn new(pieces: &[Piece<'_>], spacing: &[Spacing], unit: &Unit) -> Structure {
        let pieces = &pieces[unit.tokens.clone()];
        let mut builder = Builder {
            pieces,
            spacing,
            groups: vec![Group {
                open: None,
                close: pieces.len(),
                select: false,
                rows: false,
                last_element: 0,
            }],
            open: vec![Open {
                group: 0,
                element: 0,
                number: 0,
                lets: 0,
            }],
            assigned: unit.kind != UnitKind::Statement,
        };
        let tokens = (0..pieces.len()).map(|n| builder.token(n)).collect();
        let mut end = 0;
        let extents = pieces.iter().zip(spacing).map(|(piece, spacing)| {
            let start = end + usize::from(spacing.space);
            end = start + piece.text.len();
            (start, end)
        });
        Structure {
            tokens,
            extents: extents.collect(),
            groups: builder.groups,
        }
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// How wide the tokens from `start` up to `end` are on one line.
    pub fn width(&self, start: usize, end: usize) -> usize {
        match (self.extents.get(start), end.checked_sub(1)) {
            (Some((from, _)), Some(last)) => self.extents[last].1.saturating_sub(*from),
            _ => 0,
        }
    }
}

struct Builder<'a, 's> {
    pieces: &'a [Piece<'s>],
    spacing: &'a [Spacing],
    groups: Vec<Group>,
    open: Vec<Open>,
    /// Has the `=` of the statement been seen?
    assigned: bool,
}

/// A group that is not closed yet.
struct Open {
    group: usize,
    element: usize,
    number: usize,
    /// `let`s whose `;` is still to come.
    lets: usize,
}

impl Builder<'_, '_> {
    fn token(&mut self, at: usize) -> Inside {
        let depth = self.open.len() - 1;
        let class = self.class(at, depth);
        let begins = matches!(
            class,
            Some(Class::Let | Class::Comma | Class::Assign | Class::Where | Class::Else)
        );
        let kind = self.pieces[at].kind;
        let closes = matches!(kind, Tok::RParen | Tok::RBracket);
        let Some(top) = self.open.last_mut() else {
            return Inside {
                group: 0,
                depth: 0,
                element: 0,
                number: 0,
                closes,
                class: None,
            };
        };
        if begins && !closes {
            (top.element, top.number) = (at, top.number + 1);
            self.groups[top.group].last_element = at;
        }
        let inside = Inside {
            group: top.group,
            depth,
            element: top.element,
            number: top.number,
            closes,
            class,
        };
        match kind {
            Tok::Word if self.pieces[at].text == "let" => top.lets += 1,
            Tok::LParen | Tok::LBracket => self.opens(at),
            _ if closes && depth > 0 => {
                self.groups[inside.group].close = at;
                self.open.pop();
            }
            _ => {}
        }
        inside
    }

    fn opens(&mut self, at: usize) {
        let text = |n: Option<usize>| n.and_then(|n| self.pieces.get(n)).map(|p| p.text);
        let group = self.groups.len();
        self.groups.push(Group {
            open: Some(at),
            close: self.pieces.len(),
            select: text(at.checked_sub(1)) == Some("select"),
            rows: text(Some(at)) == Some("[") && text(Some(at + 1)) == Some("["),
            last_element: at + 1,
        });
        self.open.push(Open {
            group,
            element: at + 1,
            number: 0,
            lets: 0,
        });
    }

    /// What the place before a token is to a line that is too long; nothing where it is not broken.
    fn class(&mut self, at: usize, depth: usize) -> Option<Class> {
        let before = self.pieces.get(at.checked_sub(1)?)?;
        let here = &self.pieces[at];
        let top = self.open.last_mut()?;
        match (before.kind, here.kind) {
            // A closing bracket behind a comma ends the list.
            (_, Tok::RParen | Tok::RBracket) => Some(Class::Close),
            (_, Tok::Semi | Tok::Comma | Tok::LBrace | Tok::RBrace) => None,
            (Tok::Semi, _) if top.lets > 0 => {
                top.lets -= 1;
                Some(Class::Let)
            }
            (Tok::Comma, _) => Some(Class::Comma),
            (Tok::Assign, _) if depth == 0 && !self.assigned => {
                self.assigned = true;
                Some(Class::Assign)
            }
            (Tok::LParen | Tok::LBracket, _) => Some(Class::Open),
            (Tok::RParen, Tok::Dot | Tok::LParen) => Some(Class::Call),
            (_, kind) if self.spacing[at].binary => operator(kind),
            (Tok::Word | Tok::Number | Tok::RParen | Tok::RBracket, Tok::Word) if depth == 0 => {
                word(here.text, at)
            }
            _ => None,
        }
    }
}

fn word(text: &str, at: usize) -> Option<Class> {
    Some(match text {
        "where" => Class::Where,
        "else" => Class::Else,
        "when" => Class::When,
        "at" => Class::At,
        "on" => Class::Word,
        // The third word of a directive is never its first name.
        "overlap" | "layout" | "stages" | "by" if at > 2 => Class::Word,
        _ => return None,
    })
}

fn operator(kind: Tok) -> Option<Class> {
    Some(match kind {
        Tok::OrOr => Class::Or,
        Tok::AndAnd => Class::And,
        Tok::And | Tok::Or | Tok::Caret => Class::Bits,
        Tok::Plus | Tok::Minus => Class::Sum,
        Tok::Eq | Tok::Ne | Tok::Lt | Tok::Le | Tok::Gt | Tok::Ge => Class::Comparison,
        Tok::Star | Tok::Slash | Tok::Percent | Tok::Shl | Tok::Shr => Class::Product,
        _ => return None,
    })
}
