//! Finds of the oracle.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKind {
    /// A program that is valid by construction is refused.
    Refused,
    /// Other outputs than those of the equations.
    Wrong,
    /// An error instead of outputs, or outputs instead of the fault of the equations.
    Error,
    Panic,
    /// The process ended by a signal.
    Crash,
    /// No answer in time.
    Hang,
}

impl FindKind {
    pub const ALL: [FindKind; 6] = [
        FindKind::Refused,
        FindKind::Wrong,
        FindKind::Error,
        FindKind::Panic,
        FindKind::Crash,
        FindKind::Hang,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FindKind::Refused => "refused",
            FindKind::Wrong => "wrong",
            FindKind::Error => "error",
            FindKind::Panic => "panic",
            FindKind::Crash => "crash",
            FindKind::Hang => "hang",
        }
    }

    pub fn named(name: &str) -> Option<FindKind> {
        FindKind::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// A case that failed.
#[derive(Clone, Debug)]
pub struct Find {
    /// The subject, by its position in the batch.
    pub subject: usize,
    pub kind: FindKind,
    /// The name of the target; none where the program itself was refused.
    pub target: Option<String>,
    /// The name of the mapping.
    pub mapping: Option<String>,
    pub message: String,
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if let Some(target) = &self.target {
            write!(f, " on {target}")?;
        }
        if let Some(mapping) = &self.mapping {
            write!(f, ", mapping {mapping}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The result, or the message of a panic.
pub(super) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| panic_message(payload.as_ref()))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_string()
}
