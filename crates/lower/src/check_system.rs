//! Is the system well formed? Each check holds for all sizes at once; a refusal shows the first
//! offending point.
//!
//! The checks: the context admits some sizes; domain and reductions are finite; every value is
//! defined where it is read; inputs are read and outputs written inside their axes, and each element
//! of an output exactly once; no value depends on itself (Karp, Miller and Winograd for uniform
//! references, a schedule for affine ones). A condition with products of
//! parameters is outside Presburger arithmetic. It is decided at the given sizes; without sizes a
//! diagnostic says that it is undecided.

use systola_ir::codes::limits;
use systola_ir::diag::{Diagnostic, Kind};
use systola_ir::form::Overflow;
use systola_ir::sets::SetError;
use systola_ir::span::Span;
use systola_ir::system::System;

pub(crate) mod affine_order;
mod defined;
mod domain;
mod expansion;
mod order;
mod outputs;
mod view;
mod witness;

pub use order::body_order;

use crate::dependences::{dependences, overflow};
use crate::schedulable::schedulable;
use crate::specialise::fix;
use view::View;

/// Every mistake in the system; `sizes` has one value for each parameter.
pub fn check_system(system: &System, sizes: Option<&[i128]>) -> Vec<Diagnostic> {
    // Later passes inline functions: the result must be small enough for them and for the
    // interpreters.
    if let Some(diagnostic) = expansion::too_large(system) {
        return vec![diagnostic];
    }
    let mut checker = match Checker::new(system, sizes) {
        Ok(checker) => checker,
        Err(Overflow) => return vec![overflow(system.span)],
    };
    if system.outputs.is_empty() {
        checker.found.push(outputs::none(system));
    }
    checker.ask(system.span, domain::context);
    checker.ask(system.span, domain::bounded);
    for n in 0..checker.view.reductions.len() {
        let span = checker.view.reductions[n].span;
        checker.ask(span, |view| domain::reduction(view, n));
    }
    // The checks below look for a first point, which exists only in a finite domain.
    if !checker.found.is_empty() {
        return checker.found;
    }
    for n in 0..checker.view.reads.len() {
        let span = checker.view.reads[n].span;
        checker.ask(span, |view| defined::read(view, n));
    }
    for output in 0..system.outputs.len() {
        checker.output(system, output);
    }
    if dependences(system).is_some() {
        checker.computable(sizes);
    } else if checker.found.is_empty() {
        let order = |view: &View| affine_order::affine_order(view, sizes);
        checker.ask(system.span, order);
    }
    checker.found
}

struct Checker<'a> {
    system: &'a System,
    view: View,
    /// The same system at the given sizes.
    fixed: Option<View>,
    found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn new(system: &'a System, sizes: Option<&[i128]>) -> Result<Self, Overflow> {
        let view = View::new(system.clone())?;
        let fixed = match sizes {
            None => None,
            Some(sizes) => {
                let sizes: Vec<Option<i128>> = sizes.iter().copied().map(Some).collect();
                let mut fixed = View::new(fix(system, &sizes)?)?;
                // Messages show what the user wrote: `x[N*i + j]`, not `x[7*i + j]`.
                for (read, original) in fixed.reads.iter_mut().zip(&view.reads) {
                    read.written.clone_from(&original.written);
                }
                Some(fixed)
            }
        };
        Ok(Checker {
            system,
            view,
            fixed,
            found: Vec::new(),
        })
    }

    /// Asks for all sizes; if that is undecided, at the given ones.
    fn ask(
        &mut self,
        span: Span,
        question: impl Fn(&View) -> Result<Option<Diagnostic>, SetError>,
    ) {
        let mut answer = question(&self.view);
        if let (Err(_), Some(fixed)) = (&answer, &self.fixed) {
            answer = question(fixed);
        }
        match answer {
            Ok(diagnostic) => self.found.extend(diagnostic),
            Err(error) => self.undecided(span, &error),
        }
    }

    /// The equations of a point, and the points themselves, have an order.
    fn computable(&mut self, sizes: Option<&[i128]>) {
        let fixed = self.fixed.as_ref().map(|view| &view.system);
        let mut order = body_order(self.system);
        if let (Err(diagnostic), Some(fixed)) = (&order, fixed)
            && diagnostic.kind() == Kind::Limitation
        {
            order = body_order(fixed);
        }
        if let Err(diagnostic) = order {
            self.found.push(*diagnostic);
            return;
        }
        let mut answer = schedulable(self.system, sizes);
        if let (Err(_), Some(fixed)) = (&answer, fixed) {
            answer = schedulable(fixed, sizes);
        }
        match answer {
            Ok(found) => self.found.extend(found),
            Err(error) => self.undecided(self.system.span, &error),
        }
    }

    fn undecided(&mut self, span: Span, error: &SetError) {
        let diagnostic = limitation(self.system, span, error);
        if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    fn output(&mut self, system: &System, output: usize) {
        let n_found = self.found.len();
        let span = system.outputs[output].span;
        let n_writes = system.outputs[output].writes.len();
        for write in 0..n_writes {
            let span = system.outputs[output].writes[write].span;
            self.ask(span, |view| outputs::value(view, output, write));
            self.ask(span, |view| outputs::inside(view, output, write));
        }
        for first in 0..n_writes {
            for second in first..n_writes {
                let span = system.outputs[output].writes[second].span;
                self.ask(span, |view| outputs::once(view, output, first, second));
            }
        }
        // A wrong index also leaves elements unwritten; one message is enough.
        if self.found.len() == n_found && system.outputs[output].fill.is_none() {
            self.ask(span, |view| outputs::covered(view, output));
        }
    }
}

/// The diagnostic for a question that has no answer.
pub(crate) fn limitation(system: &System, span: Span, error: &SetError) -> Diagnostic {
    match error {
        SetError::NotAffine(form) => {
            let (params, dims) = (system.param_names(), system.dim_names());
            let text = form.display(&params, &dims).to_string();
            let sizes: Vec<String> = params.iter().map(|p| format!("--set {p}=…")).collect();
            Diagnostic::new(
                &limits::NEEDS_SIZES,
                span,
                format!("`{text}` multiplies parameters: not decided for all sizes"),
            )
            .help(format!("give the sizes: {}", sizes.join(" ")))
        }
        SetError::Affine(error) => Diagnostic::new(&limits::TOO_COMPLEX, span, error.to_string())
            .help("give the sizes with `--set`, or simplify the conditions"),
    }
}
