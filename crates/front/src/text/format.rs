//! Formats source text: spacing and indentation are ours, line breaks are the author's.
//!
//! The principle is that of gofmt. Every statement stands on lines of its own, indented by two
//! spaces for each block. Inside of a statement a line break stays where the author put one, and
//! the line after it is indented by four spaces more than the line that it continues. A line of
//! more than 100 columns is broken at its outermost separator or operator. A block that
//! was written on one line stays there if it fits. Operators begin lines, separators end them.
//!
//! One space stands round binary operators, except that `*`, `/` and `%` may stand without any, as
//! in `2*i + j`: there the spacing shows what binds tighter, and that is the author's to say. What
//! the compiler prints, by `dump` or `explore --save`, is formatted already.
//!
//! Comments keep their text and their place: behind a line, where those of neighbouring lines are
//! aligned, or on lines of their own. At most one blank line separates what it separated before.
//!
//! The tokens of the result are those of the source, so that the meaning stays. Formatting twice is
//! formatting once: the result depends on the tokens, on the comments and on where lines are
//! broken, and all three are the same in the result.

use systola_ir::Diagnostic;

use super::lexer::tokenize;
use super::{parser, stack};

mod comments;
mod layout;
mod lines;
mod pieces;
mod spacing;
mod structure;
mod units;
mod wrap;

/// Lines longer than this are broken where there is a place.
const WIDTH: usize = 100;

/// The formatted text of a file, or all mistakes of its syntax.
///
/// ```
/// let text = "mapping m of s{lane=c+ q; // moves\n time  =q; }";
/// let formatted = "mapping m of s {\n  lane = c + q;  // moves\n  time = q;\n}\n";
/// assert_eq!(systola_front::format(text), Ok(formatted.to_string()));
/// ```
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    stack::with_room(|| parser::parse_file(source).map(drop))?;
    let pieces = pieces::pieces(source);
    let formatted = comments::join(&layout::lines(&pieces), line_end(source));
    // A file is replaced by what is returned here: better none than another program.
    assert!(
        same_tokens(source, &formatted),
        "formatting changes the tokens of\n{source}\nto\n{formatted}"
    );
    Ok(formatted)
}

/// Lines end as the first one of the source does.
fn line_end(source: &str) -> &'static str {
    match source.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

fn same_tokens(left: &str, right: &str) -> bool {
    let texts = |source: &str| -> Vec<String> {
        let (tokens, _) = tokenize(source);
        let text =
            |range: std::ops::Range<usize>| source.get(range).unwrap_or_default().to_string();
        tokens.iter().map(|t| text(t.span.range())).collect()
    };
    texts(left) == texts(right)
}
