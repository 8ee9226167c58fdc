//! Small tables whose columns line up.

use std::fmt::Write;

use crate::term::{Paint, width};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of text; columns are separated by two blanks.
#[derive(Clone, Debug)]
pub struct Table {
    indent: usize,
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(indent: usize, align: impl Into<Vec<Align>>) -> Self {
        Table {
            indent,
            align: align.into(),
            rows: Vec::new(),
        }
    }

    /// All columns to the left.
    pub fn left(indent: usize) -> Self {
        Self::new(indent, [])
    }

    pub fn header<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.row(cells.into_iter().map(|c| Paint::Dim.out(c.to_string())));
    }

    pub fn row<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(cells.into_iter().map(|c| c.to_string()).collect());
    }

    pub fn render(&self) -> String {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; n_columns];
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(width(cell));
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (n, cell) in row.iter().enumerate() {
                let gap = if n == 0 { "" } else { "  " };
                let pad = " ".repeat(widths[n] - width(cell));
                let _ = match self.align.get(n) {
                    Some(Align::Right) => write!(line, "{gap}{pad}{cell}"),
                    Some(Align::Left) | None => write!(line, "{gap}{cell}{pad}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(2, [Align::Left, Align::Right, Align::Left]);
        table.row(["X", "1", "a"]);
        table.row(["long", "100", ""]);
        assert_eq!(table.render(), "  X       1  a\n  long  100\n");
    }
}
