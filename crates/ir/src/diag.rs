//! Diagnostics as plain data; only the command line knows how to draw them.

use crate::codes::Code;
use crate::span::Span;

/// The kind of a diagnostic. Our own bugs are panics, never diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The user's mistake: exit status 1.
    Mistake,
    /// Legal in principle, not supported by this version: exit status 2.
    Limitation,
    /// Nothing is wrong, but there is a better way to write it: exit status 0.
    Hint,
}

/// One message to the user: a code, the place, the cause with concrete numbers, a way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub code: &'static Code,
    pub message: String,
    /// Source ranges with the text to show under them; the first is the primary one.
    pub labels: Vec<(Span, String)>,
    /// Further facts, one per line.
    pub notes: Vec<String>,
    /// What would fix it.
    pub help: Option<String>,
    /// Concrete evidence that a mapping is illegal.
    pub counterexample: Option<Counterexample>,
}

/// One or two concrete points that show why a mapping is illegal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Parameter values, by name.
    pub params: Vec<(String, i128)>,
    /// Names of the coordinates of the points.
    pub dims: Vec<String>,
    /// The points, each with its place and its time where they are known.
    pub points: Vec<MappedPoint>,
}

/// A point of the expanded domain and where the mapping sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedPoint {
    pub point: Vec<i128>,
    pub place: Vec<i128>,
    pub time: Vec<i128>,
}

/// `3`, or `(3, 1)` for more than one coordinate.
pub fn coordinates(v: &[i128]) -> String {
    let parts: Vec<String> = v.iter().map(i128::to_string).collect();
    match parts.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}

impl Diagnostic {
    pub fn new(code: &'static Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            labels: vec![(span, String::new())],
            notes: Vec::new(),
            help: None,
            counterexample: None,
        }
    }

    /// Sets the text under the primary span.
    #[must_use]
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(first) = self.labels.first_mut() {
            first.1 = text.into();
        }
        self
    }

    /// Adds a further source range.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub fn counterexample(mut self, example: Counterexample) -> Self {
        self.counterexample = Some(example);
        self
    }

    pub fn kind(&self) -> Kind {
        self.code.kind
    }

    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |label| label.0)
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.id, self.message)
    }
}

impl std::error::Error for Diagnostic {}
