//! Lines of the result, before comments are aligned.

/// A line: code, a comment, or both.
#[derive(Debug, Default)]
pub struct Line {
    pub blank_before: bool,
    pub indent: usize,
    pub code: String,
    pub comment: Option<String>,
    /// A comment that belongs to the one behind the line above.
    pub below: bool,
}

impl Line {
    pub fn opens_block(&self) -> bool {
        self.code.ends_with('{')
    }

    pub fn width(&self) -> usize {
        self.indent + self.code.len()
    }
}
