//! Words that can be names.

use systola_ir::Scalar;

/// Words that cannot be names.
const RESERVED: &[&str] = &[
    "system", "mapping", "program", "where", "const", "input", "table", "fn", "batch", "index",
    "in", "var", "on", "output", "at", "when", "else", "let", "true", "false", "inf", "nan",
    "select", "reduce", "scan", "min", "max", "abs", "sqrt", "rsqrt", "exp", "log", "pow", "floor",
    "ceil", "sin", "cos", "tanh",
];

/// Whether a word cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
        || Scalar::from_name(word).is_some()
        || word
            .strip_prefix("inf_")
            .or(word.strip_prefix("nan_"))
            .is_some_and(|ty| Scalar::from_name(ty).is_some())
}

/// Whether a text is an identifier of the text language.
pub fn is_identifier(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start)
        && text
            .chars()
            .all(|c| is_start(c) || c.is_ascii_digit() || c == '\'')
}
