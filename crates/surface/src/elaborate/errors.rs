//! The mistakes that elaboration finds.

use systola_ir::Diagnostic;

use crate::tree::Origin;

/// How many mistakes are reported.
const MAX_ERRORS: usize = 64;

/// The mistake is recorded.
#[derive(Debug)]
pub struct Failed;

pub type Elaborated<T> = Result<T, Failed>;

#[derive(Default)]
pub struct Errors {
    list: Vec<Diagnostic>,
    /// How many there are, also of those that are not reported.
    n_found: usize,
    /// The declaration that is elaborated, for mistakes without a place in a text.
    within: Option<String>,
}

impl Errors {
    pub fn report(&mut self, mut error: Diagnostic) {
        self.n_found += 1;
        if self.list.len() >= MAX_ERRORS {
            return;
        }
        if error.span().is_none() {
            // Labels point at text.
            error.labels.truncate(1);
            error.notes.extend(self.within.clone());
        }
        self.list.push(error);
    }

    pub fn fail<T>(&mut self, error: Diagnostic) -> Elaborated<T> {
        self.report(error);
        Err(Failed)
    }

    /// What is found from here on is in this declaration.
    pub fn within(&mut self, what: &str, origin: Origin) {
        self.within = match origin {
            // The text shows it.
            Origin::Text(_) => None,
            Origin::Rust(place) => Some(format!("in {what}, at {place}")),
            Origin::Unknown => Some(format!("in {what}")),
        };
    }

    /// What is found from here on is in no declaration.
    pub fn outside(&mut self) {
        self.within = None;
    }

    pub fn n_found(&self) -> usize {
        self.n_found
    }

    /// The value, or all mistakes in the order of the text.
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
