//! Collects the errors of elaboration.

use systola_ir::Diagnostic;

use crate::tree::Origin;

/// The maximum number of reported errors.
const MAX_ERRORS: usize = 64;

/// An error that is already recorded.
#[derive(Debug)]
pub struct Failed;

pub type Elaborated<T> = Result<T, Failed>;

#[derive(Default)]
pub struct Errors {
    list: Vec<Diagnostic>,
    /// The number of errors, including those that are not reported.
    n_found: usize,
    /// The current declaration, for errors without a source location.
    within: Option<String>,
}

impl Errors {
    pub fn report(&mut self, mut error: Diagnostic) {
        self.n_found += 1;
        if self.list.len() >= MAX_ERRORS {
            return;
        }
        if error.span().is_none() {
            // The other labels point into a text.
            error.labels.truncate(1);
            error.notes.extend(self.within.clone());
        }
        self.list.push(error);
    }

    pub fn fail<T>(&mut self, error: Diagnostic) -> Elaborated<T> {
        self.report(error);
        Err(Failed)
    }

    /// Errors from here on are in this declaration.
    pub fn within(&mut self, what: &str, origin: Origin) {
        self.within = match origin {
            // The span of the error shows the declaration.
            Origin::Text(_) => None,
            Origin::Rust(place) => Some(format!("in {what}, at {place}")),
            Origin::Unknown => Some(format!("in {what}")),
        };
    }

    /// Errors from here on are outside of any declaration.
    pub fn outside(&mut self) {
        self.within = None;
    }

    pub fn n_found(&self) -> usize {
        self.n_found
    }

    /// The value, or all errors in source order.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Diagnostic>> {
        match value {
            Some(value) if self.list.is_empty() => Ok(value),
            _ => {
                self.list.sort_by_key(|e| e.span().start);
                Err(self.list)
            }
        }
    }
}
