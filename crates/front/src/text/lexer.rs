//! Tokens with spans.

use systola_ir::{Diagnostic, Span, codes::syntax};

/// The kind of a token. Its text is the part of the source that its span covers.
///
/// All words have the same kind. The parser recognises keywords, since most words are keywords in
/// some positions only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    Word,
    Number,
    LBrace,
    RBrace,
    LParen,
    RParen,
    LBracket,
    RBracket,
    Comma,
    Semi,
    Colon,
    Dot,
    DotDot,
    Arrow,
    Assign,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Bang,
    AndAnd,
    OrOr,
    And,
    Or,
    Caret,
    /// The end of the source; always the last token.
    Eof,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Tok,
    pub span: Span,
}

/// All signs, longer ones first.
const SIGNS: &[(&str, Tok)] = &[
    ("..", Tok::DotDot),
    ("->", Tok::Arrow),
    ("==", Tok::Eq),
    ("!=", Tok::Ne),
    ("<=", Tok::Le),
    (">=", Tok::Ge),
    ("<<", Tok::Shl),
    (">>", Tok::Shr),
    ("&&", Tok::AndAnd),
    ("||", Tok::OrOr),
    ("{", Tok::LBrace),
    ("}", Tok::RBrace),
    ("(", Tok::LParen),
    (")", Tok::RParen),
    ("[", Tok::LBracket),
    ("]", Tok::RBracket),
    (",", Tok::Comma),
    (";", Tok::Semi),
    (":", Tok::Colon),
    (".", Tok::Dot),
    ("=", Tok::Assign),
    ("<", Tok::Lt),
    (">", Tok::Gt),
    ("+", Tok::Plus),
    ("-", Tok::Minus),
    ("*", Tok::Star),
    ("/", Tok::Slash),
    ("%", Tok::Percent),
    ("!", Tok::Bang),
    ("&", Tok::And),
    ("|", Tok::Or),
    ("^", Tok::Caret),
];

/// The token at the beginning of a text and its length, or `None` where none begins.
fn token(text: &str) -> Option<(Tok, usize)> {
    match text.as_bytes().first()? {
        b'A'..=b'Z' | b'a'..=b'z' | b'_' => Some((Tok::Word, skip(text, 1, is_word))),
        b'0'..=b'9' => Some((Tok::Number, number(text))),
        _ => SIGNS
            .iter()
            .find(|(sign, _)| text.starts_with(sign))
            .map(|(sign, kind)| (*kind, sign.len())),
    }
}

/// The position of the first byte from `at` on that is not accepted.
fn skip(text: &str, at: usize, accept: fn(&u8) -> bool) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| accept(b)).count()
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\'')
}

/// The length of a number: digits, optionally with a fraction, an exponent and a suffix. A `.`
/// belongs to the number only before a digit, so that `0..N` is a range.
fn number(text: &str) -> usize {
    let byte = |n: usize| text.as_bytes().get(n);
    let is_digit = |n: usize| byte(n).is_some_and(u8::is_ascii_digit);
    let digits = |b: &u8| b.is_ascii_digit() || *b == b'_';
    let mut end = skip(text, 1, digits);
    if byte(end) == Some(&b'.') && is_digit(end + 1) {
        end = skip(text, end + 1, digits);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        if is_digit(end + 1 + sign) {
            end = skip(text, end + 1 + sign, u8::is_ascii_digit);
        }
    }
    skip(text, end, is_word)
}

/// The length of the spaces and comments that a text begins with.
fn blank(text: &str) -> usize {
    let is_space = |c| matches!(c, ' ' | '\t' | '\r' | '\n' | '\x0c' | '\u{feff}');
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix("//") {
            Some(comment) => rest = comment.trim_start_matches(|c| c != '\n'),
            None => return text.len() - rest.len(),
        }
    }
}

/// Splits a source into tokens, the last of which is [`Tok::Eof`]. Reports one error for each
/// sequence of invalid characters.
pub fn tokenize(source: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut tokens = Vec::new();
    let mut unknown: Vec<std::ops::Range<usize>> = Vec::new();
    let mut rest = source;
    loop {
        rest = &rest[blank(rest)..];
        let Some(first) = rest.chars().next() else {
            break;
        };
        let start = source.len() - rest.len();
        let known = token(rest);
        let range = start..start + known.map_or(first.len_utf8(), |(_, length)| length);
        rest = &source[range.end..];
        // A character that looks like a sign is replaced by it, so that it causes no more errors.
        let kind = known
            .map(|(kind, _)| kind)
            .or(lookalike(first).map(|(kind, _)| kind));
        tokens.extend(kind.map(|kind| Token {
            kind,
            span: Span::new(range.start, range.end),
        }));
        if known.is_none() {
            match unknown.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => unknown.push(range),
            }
        }
    }
    tokens.push(Token {
        kind: Tok::Eof,
        span: Span::new(source.len(), source.len()),
    });
    let errors = unknown
        .into_iter()
        .map(|range| unexpected_character(source, range))
        .collect();
    (tokens, errors)
}

fn unexpected_character(source: &str, range: std::ops::Range<usize>) -> Diagnostic {
    let text = source.get(range.clone()).unwrap_or_default();
    let shown: String = text.chars().take(20).flat_map(char::escape_debug).collect();
    let error = Diagnostic::new(
        &syntax::UNEXPECTED_CHARACTER,
        Span::new(range.start, range.end),
        format!("`{shown}` has no meaning in this language"),
    );
    let mut chars = text.chars();
    let only = chars.next().filter(|_| chars.next().is_none());
    match (text.chars().next(), only.and_then(lookalike)) {
        (_, Some((_, plain))) => error.help(format!("write `{plain}`")),
        (Some('"'), _) => error.help("there are no strings; names are written bare"),
        (Some('?'), _) => error.help("write a choice as `select(condition, a, b)`"),
        (Some('#'), _) => error.help("a comment starts with `//`"),
        _ => error.help("remove it"),
    }
}

/// The token that a typographic or mathematical character stands for, with its usual spelling.
fn lookalike(character: char) -> Option<(Tok, &'static str)> {
    Some(match character {
        '≤' => (Tok::Le, "<="),
        '≥' => (Tok::Ge, ">="),
        '≠' => (Tok::Ne, "!="),
        '∧' => (Tok::AndAnd, "&&"),
        '∨' => (Tok::OrOr, "||"),
        '¬' => (Tok::Bang, "!"),
        '−' | '–' => (Tok::Minus, "-"),
        '·' | '×' => (Tok::Star, "*"),
        '→' => (Tok::Arrow, "->"),
        '…' => (Tok::DotDot, ".."),
        _ => return None,
    })
}
