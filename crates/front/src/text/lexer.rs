//! Tokens with spans.

use logos::{Lexer, Logos};
use systola_ir::{Diagnostic, Span, codes::syntax};

/// The kind of a token. Its text is the part of the source that its span covers.
///
/// All words have the same kind. The parser recognises keywords, since most words are keywords in
/// some positions only.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\f\u{feff}]+")]
#[logos(skip r"//[^\n]*")]
pub enum Tok {
    #[regex("[A-Za-z_][A-Za-z0-9_']*")]
    Word,
    #[regex("[0-9]", number)]
    Number,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("->")]
    Arrow,
    #[token("=")]
    Assign,
    #[token("==")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("!")]
    Bang,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("&")]
    And,
    #[token("|")]
    Or,
    #[token("^")]
    Caret,
    /// The end of the source; always the last token.
    Eof,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Tok,
    pub span: Span,
}

/// Digits, optionally with a fraction, an exponent and a suffix. A `.` belongs to the number only
/// before a digit, so that `0..N` is a range.
fn number(lexer: &mut Lexer<'_, Tok>) {
    let rest = lexer.remainder().as_bytes();
    let digit = |n: usize| rest.get(n).is_some_and(u8::is_ascii_digit);
    let skip = |mut n: usize, accept: fn(&u8) -> bool| {
        while rest.get(n).is_some_and(accept) {
            n += 1;
        }
        n
    };
    let mut n = skip(0, |b| b.is_ascii_digit() || *b == b'_');
    if rest.get(n) == Some(&b'.') && digit(n + 1) {
        n = skip(n + 1, |b| b.is_ascii_digit() || *b == b'_');
    }
    if matches!(rest.get(n), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(n + 1), Some(b'+' | b'-')));
        if digit(n + 1 + sign) {
            n = skip(n + 1 + sign, u8::is_ascii_digit);
        }
    }
    n = skip(n, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\'')
    });
    lexer.bump(n);
}

/// Splits a source into tokens, the last of which is [`Tok::Eof`]. Reports one error for each
/// sequence of invalid characters.
pub fn tokenize(source: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut tokens = Vec::new();
    let mut unknown: Vec<std::ops::Range<usize>> = Vec::new();
    for (result, range) in Tok::lexer(source).spanned() {
        match result {
            Ok(kind) => tokens.push(Token {
                kind,
                span: Span::new(range.start, range.end),
            }),
            Err(()) => {
                // Replaced by the character that was meant, so that it causes no further errors.
                if let Some((kind, _)) = lookalike(source.get(range.clone()).unwrap_or_default()) {
                    tokens.push(Token {
                        kind,
                        span: Span::new(range.start, range.end),
                    });
                }
                match unknown.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => unknown.push(range),
                }
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
    match (text.chars().next(), lookalike(text)) {
        (_, Some((_, plain))) => error.help(format!("write `{plain}`")),
        (Some('"'), _) => error.help("there are no strings; names are written bare"),
        (Some('?'), _) => error.help("write a choice as `select(condition, a, b)`"),
        (Some('#'), _) => error.help("a comment starts with `//`"),
        _ => error.help("remove it"),
    }
}

/// The token that a typographic or mathematical character stands for, with its usual spelling.
fn lookalike(text: &str) -> Option<(Tok, &'static str)> {
    let mut chars = text.chars();
    let only = chars.next().filter(|_| chars.next().is_none())?;
    Some(match only {
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
