//! Parses number tokens: digits, fraction, exponent, suffix.

use systola_ir::codes::syntax;
use systola_ir::{Diagnostic, Scalar, Span};
use systola_surface::tree::ExprKind;

use super::{Abort, Parsed, Parser};

impl Parser<'_> {
    /// The value of the number token under `span`.
    pub(super) fn number(&mut self, span: Span, negative: bool) -> Parsed<ExprKind> {
        let text = self.text(span);
        read_number(text, negative).map_err(|(message, help)| {
            let error = Diagnostic::new(&syntax::MALFORMED_NUMBER, span, message);
            self.report(error.help(help));
            Abort
        })
    }
}

fn read_number(text: &str, negative: bool) -> Result<ExprKind, (String, String)> {
    let (digits, suffix) = split_suffix(text);
    let suffix = match suffix {
        "" => None,
        word => Some(Scalar::from_name(word).ok_or_else(|| {
            (
                format!("the number `{digits}` ends in `{word}`, which is no type"),
                "numbers are decimal; a suffix is the name of a type, as in `0i32` or `1.5f32`"
                    .to_string(),
            )
        })?),
    };
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    let is_float = plain.contains(['.', 'e', 'E']);
    match suffix {
        Some(Scalar::Bool) => Err((
            format!("`{text}` is no `bool`"),
            "write `true` or `false`".to_string(),
        )),
        Some(ty) if ty.is_int() && is_float => Err((
            format!("`{digits}` is not an integer, but its suffix says {ty}"),
            format!("write `{ty}({digits})` to round it towards zero"),
        )),
        Some(ty) if ty.is_float() => Ok(ExprKind::Float(float(&plain, negative)?, Some(ty))),
        ty if is_float => Ok(ExprKind::Float(float(&plain, negative)?, ty)),
        ty => {
            let value: i128 = plain.parse().map_err(|_| {
                (
                    format!("the integer has {} digits; no type holds it", plain.len()),
                    "write it as a float, such as `1e30`".to_string(),
                )
            })?;
            Ok(ExprKind::Int(if negative { -value } else { value }, ty))
        }
    }
}

fn float(plain: &str, negative: bool) -> Result<f64, (String, String)> {
    let value: f64 = plain.parse().map_err(|_| {
        (
            format!("`{plain}` is no number"),
            "write it as `1.5` or `1e-3`".to_string(),
        )
    })?;
    if value.is_infinite() {
        return Err((
            format!("`{plain}` is larger than any f64"),
            "write `inf` for infinity".to_string(),
        ));
    }
    Ok(if negative { -value } else { value })
}

/// Splits off the suffix, which follows digits, `_`, fraction and exponent.
fn split_suffix(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digit = |n: usize| bytes.get(n).is_some_and(u8::is_ascii_digit);
    let mut n = 0;
    while n < bytes.len() {
        match bytes[n] {
            b'0'..=b'9' | b'_' | b'.' => n += 1,
            b'e' | b'E' if digit(n + 1) => n += 2,
            b'e' | b'E' if matches!(bytes.get(n + 1), Some(b'+' | b'-')) && digit(n + 2) => n += 3,
            _ => break,
        }
    }
    text.split_at(n)
}
