//! Why a lowering fails.

use systola_ir::codes::limits;
use systola_ir::{Diagnostic, Span};

use crate::decide::Undecided;

/// Why no array or kernel was produced.
#[derive(Debug)]
pub enum Failure {
    Undecided(Undecided),
    Refused(Vec<Diagnostic>),
}

impl<E: Into<Undecided>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Undecided(error.into())
    }
}

/// A limitation of the lowering, as a diagnostic.
pub fn limitation(span: Span, message: String) -> Failure {
    let diagnostic = Diagnostic::new(&limits::NOT_COMPILED, span, message)
        .help("the interpreters run it: --target array; `systola explain L0722` tells more");
    Failure::Refused(vec![diagnostic])
}
