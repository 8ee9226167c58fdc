//! Why a program cannot be printed for a target.

use systola_ir::form::Overflow;

/// A known limitation of a target; a verified program has no other errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The target lacks a feature, or this printer does not support it yet.
    #[error("kernel `{kernel}`: {what}")]
    Unsupported { kernel: String, what: String },
    /// A number in an index expression does not fit into 64 bits.
    #[error("kernel `{kernel}`: an index expression has a number that does not fit into 64 bits")]
    Overflow { kernel: String },
}

/// An error before it is known which kernel it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Unsupported(String),
    Overflow,
}

impl Fault {
    pub fn unsupported(what: impl Into<String>) -> Fault {
        Fault::Unsupported(what.into())
    }

    pub(crate) fn of_kernel(self, kernel: &str) -> Error {
        let kernel = kernel.to_string();
        match self {
            Fault::Unsupported(what) => Error::Unsupported { kernel, what },
            Fault::Overflow => Error::Overflow { kernel },
        }
    }
}

impl From<Overflow> for Fault {
    fn from(_: Overflow) -> Self {
        Fault::Overflow
    }
}
