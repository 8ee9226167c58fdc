//! The lexer: names, numbers, punctuation and comments.

use std::fmt;

use super::ParseError;
use crate::scalar::{Literal, Scalar};

/// A position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub line: usize,
    pub column: usize,
}

impl At {
    pub(super) fn error(self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub at: At,
    pub kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// Also words such as `for`: the context decides what they are.
    Name(String),
    /// Its digits, and its type if that is written after them.
    Number(String, Option<Scalar>),
    /// In quotes.
    Text(String),
    Punct(&'static str),
    /// The text after `// `.
    Comment(String),
    End,
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Name(name) => write!(f, "`{name}`"),
            TokenKind::Number(digits, None) => write!(f, "`{digits}`"),
            TokenKind::Number(digits, Some(ty)) => write!(f, "`{digits}{ty}`"),
            TokenKind::Text(text) => write!(f, "{text:?}"),
            TokenKind::Punct(punct) => write!(f, "`{punct}`"),
            TokenKind::Comment(_) => f.write_str("a comment"),
            TokenKind::End => f.write_str("the end of the text"),
        }
    }
}

/// Longer ones first.
const PUNCTS: [&str; 31] = [
    "..", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "(", ")", "[", "]", "{", "}", ",", ";",
    ":", "=", "<", ">", "+", "-", "*", "/", "%", "!", "&", "|", "^", ".",
];

/// Can the character be part of a name, after the first one?
pub(in crate::kernel) fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(in crate::kernel) fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// A literal that is written like a name: `true`, `inf`, `nan_f32`.
pub(in crate::kernel) fn literal_word(word: &str) -> Option<(Literal, Option<Scalar>)> {
    let value = |word: &str| match word {
        "true" => Some(Literal::Bool(true)),
        "false" => Some(Literal::Bool(false)),
        "inf" => Some(Literal::Float(f64::INFINITY)),
        "nan" => Some(Literal::Float(f64::NAN)),
        _ => None,
    };
    match word.split_once('_') {
        None => Some((value(word)?, None)),
        Some((word, ty)) => Some((value(word)?, Some(Scalar::from_name(ty)?))),
    }
}

/// All tokens, followed by an end token.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let mut rest = Rest {
            line,
            number: n + 1,
            column: 1,
        };
        while let Some(token) = rest.token()? {
            tokens.push(token);
        }
    }
    let at = At {
        line: text.lines().count() + 1,
        column: 1,
    };
    let kind = TokenKind::End;
    tokens.push(Token { at, kind });
    Ok(tokens)
}

/// The unread rest of a line.
struct Rest<'t> {
    line: &'t str,
    number: usize,
    column: usize,
}

impl<'t> Rest<'t> {
    fn at(&self) -> At {
        At {
            line: self.number,
            column: self.column,
        }
    }

    /// Takes the first `bytes` bytes, which end between two characters.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.line.split_at(bytes);
        self.column += taken.chars().count();
        self.line = rest;
        taken
    }

    fn take_while(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let end = self.line.find(|c| !is(c)).unwrap_or(self.line.len());
        self.take(end)
    }

    fn token(&mut self) -> Result<Option<Token>, ParseError> {
        self.take_while(char::is_whitespace);
        let at = self.at();
        let Some(first) = self.line.chars().next() else {
            return Ok(None);
        };
        let kind = if let Some(comment) = self.line.strip_prefix("//") {
            let comment = comment.strip_prefix(' ').unwrap_or(comment);
            let kind = TokenKind::Comment(comment.to_string());
            self.take(self.line.len());
            kind
        } else if begins_name(first) {
            TokenKind::Name(self.word())
        } else if first.is_ascii_digit() {
            self.digits(at)?
        } else if first == '"' {
            self.text(at)?
        } else {
            let punct = PUNCTS.into_iter().find(|p| self.line.starts_with(p));
            let punct = punct.ok_or_else(|| at.error(format!("`{first}` is not known here")))?;
            self.take(punct.len());
            TokenKind::Punct(punct)
        };
        Ok(Some(Token { at, kind }))
    }

    /// A name may continue after a single dot: `x.1`.
    fn word(&mut self) -> String {
        let mut word = self.take_while(continues_name).to_string();
        loop {
            let mut following = self.line.chars();
            if following.next() != Some('.') || !following.next().is_some_and(continues_name) {
                return word;
            }
            word.push_str(self.take(1));
            word.push_str(self.take_while(continues_name));
        }
    }

    fn digits(&mut self, at: At) -> Result<TokenKind, ParseError> {
        let is_digit = |c: char| c.is_ascii_digit();
        let mut digits = self.take_while(is_digit).to_string();
        let mut following = self.line.chars();
        if following.next() == Some('.') && following.next().is_some_and(is_digit) {
            digits.push_str(self.take(1));
            digits.push_str(self.take_while(is_digit));
        }
        if let Some(power) = self.line.strip_prefix('e') {
            let unsigned = power.strip_prefix(['-', '+']).unwrap_or(power);
            if unsigned.starts_with(is_digit) {
                digits.push_str(self.take(self.line.len() - unsigned.len()));
                digits.push_str(self.take_while(is_digit));
            }
        }
        let suffix = self.take_while(continues_name);
        let ty = match suffix {
            "" => None,
            _ => match Scalar::from_name(suffix) {
                Some(ty) => Some(ty),
                None => return Err(at.error(format!("`{suffix}` after a number is not a type"))),
            },
        };
        Ok(TokenKind::Number(digits, ty))
    }

    fn text(&mut self, at: At) -> Result<TokenKind, ParseError> {
        let mut text = String::new();
        let mut chars = self.line.char_indices().skip(1);
        while let Some((n, c)) = chars.next() {
            match c {
                '"' => {
                    self.take(n + 1);
                    return Ok(TokenKind::Text(text));
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some(_) | None => {
                        return Err(
                            at.error("a backslash is only allowed before `\"`, `\\` or `n`")
                        );
                    }
                },
                _ => text.push(c),
            }
        }
        Err(at.error("the text has no closing quote"))
    }
}

/// Quotes a text so that [`tokens`] reads it back.
pub(in crate::kernel) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push(' '),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
