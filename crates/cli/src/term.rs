//! Output: colours only on a terminal, and a closed pipe is no error.

use crate::source::Status;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static COLOUR_OUT: AtomicBool = AtomicBool::new(false);
static COLOUR_ERR: AtomicBool = AtomicBool::new(false);

/// Decides once whether the two streams are coloured. `NO_COLOR` set to anything but the empty
/// string switches colours off, see <https://no-color.org>.
pub fn init() {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|v| v != "dumb");
    COLOUR_OUT.store(wanted && io::stdout().is_terminal(), Ordering::Relaxed);
    COLOUR_ERR.store(wanted && io::stderr().is_terminal(), Ordering::Relaxed);
}

pub fn colour_out() -> bool {
    COLOUR_OUT.load(Ordering::Relaxed)
}

pub fn colour_err() -> bool {
    COLOUR_ERR.load(Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Blue => "34",
            Paint::Magenta => "35",
            Paint::Cyan => "36",
        }
    }

    /// The text in this colour, for the standard output.
    pub fn out(self, text: impl std::fmt::Display) -> String {
        self.when(colour_out(), text)
    }

    /// The text in this colour, for the standard error.
    pub fn err(self, text: impl std::fmt::Display) -> String {
        self.when(colour_err(), text)
    }

    /// The text in this colour, or plain.
    pub fn when(self, on: bool, text: impl std::fmt::Display) -> String {
        if on {
            format!("\x1b[{}m{text}\x1b[0m", self.code())
        } else {
            text.to_string()
        }
    }
}

/// Prints to the standard output. A closed pipe (`systola … | head`) ends the program quietly.
pub fn print(text: impl AsRef<str>) {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_ref().as_bytes())
        .and_then(|()| out.flush());
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => cannot_print(&error),
    }
}

/// A command whose results cannot be printed has failed.
pub fn cannot_print(error: &io::Error) -> ! {
    eprint(format!(
        "{}: cannot write to the standard output: {error}\n",
        Paint::Red.err("error")
    ));
    std::process::exit(Status::Mistake.code().into())
}

pub fn eprint(text: impl AsRef<str>) {
    // There is nowhere left to report this failure.
    let _ = io::stderr().lock().write_all(text.as_ref().as_bytes());
}

/// The number of columns of a text on a terminal: colour sequences take none.
pub fn width(text: &str) -> usize {
    let mut count = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_no_width() {
        assert_eq!(width(&Paint::Red.when(true, "abc")), 3);
        assert_eq!(width("s·e"), 3);
        assert_eq!(Paint::Red.when(false, "abc"), "abc");
    }
}
