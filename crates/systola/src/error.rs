//! The error of the library: readable, with the code, the place and a way out.

use std::fmt;

use systola_ir::codes::Code;
use systola_ir::diag::{Counterexample, Diagnostic, coordinates};
use systola_ir::{Span, codes::run as codes};

/// Why something is refused or failed.
///
/// It prints over several lines, with the code that `systola explain` tells more about, the place
/// in the text, and what to do. `Debug` prints the same, so that `fn main() -> Result<(),
/// systola::Error>` ends with a readable message.
///
/// ```
/// let text = "system s(N) {\n  input x[N]: f32;\n  index i in 0..N;\n  var A: f32 = y[i];\n  output z[N]: f32 = A at [i];\n}";
/// let error = systola::load(text).unwrap_err();
/// assert!(error.to_string().contains(" --> 4:16"), "{error}");
/// assert_eq!(error.diagnostics().len(), 1);
/// ```
pub struct Error(Box<Contents>);

struct Contents {
    cause: Cause,
    text: Option<Text>,
    /// Facts about the call that failed.
    notes: Vec<String>,
}

enum Cause {
    Refused(Vec<Diagnostic>),
    Runtime(systola_rt::Error),
}

/// The text that places are in.
struct Text {
    /// The name of its file; empty for a text without one.
    name: String,
    text: String,
}

/// A line of the text is shown up to this many characters.
const WIDTH: usize = 100;

impl Error {
    /// Everything that is said about the program, its mapping or its sizes; empty where the
    /// compiler, the device or the arrays of a call are the cause.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match &self.0.cause {
            Cause::Refused(found) => found,
            Cause::Runtime(_) => &[],
        }
    }

    /// The error of the runtime, if it is one: the compiler, the device, the arrays of a call.
    pub fn runtime(&self) -> Option<&systola_rt::Error> {
        match &self.0.cause {
            Cause::Refused(_) => None,
            Cause::Runtime(error) => Some(error),
        }
    }

    /// The code of the first finding: `E0606`.
    pub fn code(&self) -> Option<&'static str> {
        self.diagnostics().first().map(|d| d.code.id)
    }

    pub(crate) fn new(code: &'static Code, message: impl Into<String>, help: &str) -> Error {
        Diagnostic::new(code, Span::NONE, message).help(help).into()
    }

    /// The same with the text that its places are in.
    #[must_use]
    pub(crate) fn in_text(mut self, name: &str, text: &str) -> Error {
        if text.is_empty() {
            return self;
        }
        self.0.text = Some(Text {
            name: name.to_string(),
            text: text.to_string(),
        });
        self
    }

    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Error {
        self.0.notes.push(note.into());
        self
    }

    pub(crate) fn unreadable(path: &std::path::Path, why: impl fmt::Display) -> Error {
        Error::new(
            &codes::CANNOT_TOUCH_FILE,
            format!("cannot read {}: {why}", path.display()),
            "paths are relative to the working directory of the process",
        )
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        Error(Box::new(Contents {
            cause,
            text: None,
            notes: Vec::new(),
        }))
    }
}

impl From<Vec<Diagnostic>> for Error {
    fn from(found: Vec<Diagnostic>) -> Error {
        Cause::Refused(found).into()
    }
}

impl From<Diagnostic> for Error {
    fn from(found: Diagnostic) -> Error {
        vec![found].into()
    }
}

impl From<systola_rt::Error> for Error {
    fn from(error: systola_rt::Error) -> Error {
        match error {
            systola_rt::Error::Raised(raised) => raised.diagnostic().into(),
            error => Cause::Runtime(error).into(),
        }
    }
}

impl From<systola_jit::cpu::Error> for Error {
    fn from(error: systola_jit::cpu::Error) -> Error {
        match error {
            systola_jit::cpu::Error::Refused(found) => found.into(),
            systola_jit::cpu::Error::Runtime(error) => error.into(),
        }
    }
}

impl From<systola_interp::tensor::TensorError> for Error {
    fn from(error: systola_interp::tensor::TensorError) -> Error {
        Diagnostic::new(&codes::WRONG_SHAPE, Span::NONE, error.to_string()).into()
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Refused(found) => {
                for (n, diagnostic) in found.iter().enumerate() {
                    if n > 0 {
                        f.write_str("\n\n")?;
                    }
                    show(f, diagnostic, self.0.text.as_ref())?;
                }
            }
            Cause::Runtime(error) => write!(f, "{error}")?,
        }
        for note in &self.0.notes {
            remark(f, "note", note)?;
        }
        Ok(())
    }
}

/// One finding: its message, its place with the line, and what to do.
fn show(f: &mut fmt::Formatter<'_>, found: &Diagnostic, text: Option<&Text>) -> fmt::Result {
    write!(f, "{found}")?;
    if let Some(text) = text {
        let written = |(span, _): &&(Span, String)| {
            !span.is_none() && (span.start as usize) <= text.text.len()
        };
        for (span, label) in found.labels.iter().filter(written) {
            place(f, text, *span, label)?;
        }
    }
    if let Some(example) = &found.counterexample {
        counterexample(f, example)?;
    }
    for note in &found.notes {
        remark(f, "note", note)?;
    }
    if let Some(help) = &found.help {
        remark(f, "help", help)?;
    }
    Ok(())
}

fn place(f: &mut fmt::Formatter<'_>, text: &Text, span: Span, label: &str) -> fmt::Result {
    let start = boundary(&text.text, span.start as usize);
    let end = boundary(&text.text, span.end as usize).max(start);
    let begin = text.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text.text[begin..].lines().next().unwrap_or("");
    let number = text.text[..start].matches('\n').count() + 1;
    let column = text.text[begin..start].chars().count();
    let marked = text.text[start..end.min(begin + line.len()).max(start)]
        .chars()
        .count()
        .max(1);
    let name = match text.name.as_str() {
        "" => String::new(),
        name => format!("{name}:"),
    };
    let margin = " ".repeat(number.to_string().len());
    write!(f, "\n{margin}--> {name}{number}:{}", column + 1)?;
    if line.chars().count() > WIDTH {
        return match label {
            "" => Ok(()),
            label => write!(f, " {label}"),
        };
    }
    // Tabs keep their width.
    let indent: String = line
        .chars()
        .take(column)
        .map(|c| if c == '\t' { c } else { ' ' })
        .collect();
    let marks = "^".repeat(marked);
    let under = format!("{indent}{marks} {label}");
    write!(
        f,
        "\n{margin} |\n{number} | {line}\n{margin} | {}",
        under.trim_end()
    )
}

/// The nearest position before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn counterexample(f: &mut fmt::Formatter<'_>, example: &Counterexample) -> fmt::Result {
    let sizes: Vec<String> = example
        .params
        .iter()
        .map(|(p, v)| format!("{p} = {v}"))
        .collect();
    let at = match sizes.as_slice() {
        [] => String::new(),
        _ => format!(" at {}", sizes.join(", ")),
    };
    let points = example.points.iter().enumerate().map(|(n, mapped)| {
        let mut line = format!("\npoint {}: ", n + 1);
        let dims = example.dims.iter().zip(&mapped.point);
        let dims: Vec<String> = dims.map(|(d, v)| format!("{d} = {v}")).collect();
        line.push_str(&dims.join(", "));
        for (what, list) in [("place", &mapped.place), ("time", &mapped.time)] {
            if !list.is_empty() {
                line.push_str(&format!(", {what} {}", coordinates(list)));
            }
        }
        line
    });
    let points: String = points.collect();
    remark(f, "counterexample", &format!("{}{points}", at.trim_start()))
}

/// `  note: first line`, with the other lines below it.
fn remark(f: &mut fmt::Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    let indent = " ".repeat(4 + head.len());
    for (n, line) in text.lines().enumerate() {
        match n {
            0 => write!(f, "\n  {head}: {line}")?,
            _ => write!(f, "\n{indent}{line}")?,
        }
    }
    Ok(())
}
