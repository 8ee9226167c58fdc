//! What the names of a text stand for.

use std::collections::HashMap;

use super::ParseError;
use super::lexer::At;
use crate::id::{BufferId, DimId, ParamId, RegId, SharedId, ValueId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Param(ParamId),
    Buffer(BufferId),
    Var(DimId),
    Shared(SharedId),
    Reg(RegId),
    Value(ValueId),
}

impl Named {
    /// The kind of thing, as error messages call it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Named::Param(_) => "a size",
            Named::Buffer(_) => "a buffer",
            Named::Var(_) => "an index variable",
            Named::Shared(_) => "a shared array",
            Named::Reg(_) => "a register",
            Named::Value(_) => "a value",
        }
    }
}

/// All names known so far; each names one thing.
#[derive(Clone, Default)]
pub(super) struct Names {
    known: HashMap<String, Named>,
}

impl Names {
    pub(super) fn find(&self, name: &str) -> Option<Named> {
        self.known.get(name).copied()
    }

    pub(super) fn unknown(&self, at: At, name: &str) -> ParseError {
        at.error(format!("`{name}` is not known here"))
    }

    pub(super) fn declare(&mut self, at: At, name: &str, what: Named) -> Result<(), ParseError> {
        if let Some(other) = self.known.insert(name.to_string(), what) {
            let kind = other.kind();
            return Err(at.error(format!("`{name}` is {kind} already")));
        }
        Ok(())
    }

    /// Declares a name for the next thing of its kind; `what` gets the number of those declared so
    /// far.
    pub(super) fn declare_next(
        &mut self,
        at: At,
        name: &str,
        what: impl Fn(usize) -> Named,
    ) -> Result<(), ParseError> {
        let kind = what(0).kind();
        let so_far = self.known.values().filter(|n| n.kind() == kind).count();
        self.declare(at, name, what(so_far))
    }
}
