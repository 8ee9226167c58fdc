//! Lines and columns of a text, in the units that client and server agreed on.

use lsp_types::{Position, PositionEncodingKind, Range};
use systola_ir::Span;

/// What a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// Bytes where the client knows them, since no line has to be read again for them.
    pub fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Encoding {
        let utf8 = offered.is_some_and(|list| list.contains(&PositionEncodingKind::UTF8));
        if utf8 {
            Encoding::Utf8
        } else {
            Encoding::Utf16
        }
    }

    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
        }
    }
}

/// Where the lines of a text begin. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Lines {
    pub fn new(text: &str, encoding: Encoding) -> Lines {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len()).filter(|n| match bytes[*n] {
            b'\n' => true,
            b'\r' => bytes.get(n + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = [0].into_iter().chain(ends.map(|n| n + 1)).collect();
        Lines { starts, encoding }
    }

    /// The byte at a position; one behind the end of a line is its end.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else {
            return text.len();
        };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text[start..end].trim_end_matches(['\n', '\r']);
        let mut column = position.character as usize;
        for (n, c) in content.char_indices() {
            let width = self.encoding.width(c);
            if column < width {
                return start + n;
            }
            column -= width;
        }
        start + content.len()
    }

    pub fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &text[self.starts[line]..offset];
        let column: usize = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.chars().map(char::len_utf16).sum(),
        };
        Position::new(number(line), number(column))
    }

    pub fn range(&self, text: &str, span: Span) -> Range {
        let start = self.position(text, span.start as usize);
        let end = self.position(text, span.end.max(span.start) as usize);
        Range::new(start, end)
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoding: Encoding, text: &str, offset: usize, line: u32, column: u32) {
        let lines = Lines::new(text, encoding);
        let position = Position::new(line, column);
        assert_eq!(lines.position(text, offset), position);
        assert_eq!(lines.offset(text, position), offset);
    }

    #[test]
    fn columns_count_what_was_agreed() {
        let text = "// é 𝄞 x\nb\r\nc\rd";
        let x = text.find('x').unwrap();
        check(Encoding::Utf8, text, x, 0, 11);
        check(Encoding::Utf16, text, x, 0, 8);
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            check(encoding, text, 0, 0, 0);
            check(encoding, text, text.find('b').unwrap(), 1, 0);
            check(encoding, text, text.find('c').unwrap(), 2, 0);
            check(encoding, text, text.find('d').unwrap(), 3, 0);
            check(encoding, text, text.len(), 3, 1);
        }
    }

    #[test]
    fn positions_outside_are_clamped() {
        let text = "ab\r\n𝄞";
        let lines = Lines::new(text, Encoding::Utf16);
        assert_eq!(lines.offset(text, Position::new(0, 99)), 2);
        assert_eq!(lines.offset(text, Position::new(9, 0)), text.len());
        // The middle of a surrogate pair is its beginning.
        assert_eq!(lines.offset(text, Position::new(1, 1)), 4);
        assert_eq!(lines.position(text, 99), Position::new(1, 2));
        assert_eq!(lines.position(text, 6), Position::new(1, 0));
        assert_eq!(
            Lines::new("", Encoding::Utf8).position("", 0),
            Position::new(0, 0)
        );
    }
}
