//! Checks the lengths of the weights of neighbourhoods.

use systola_ir::codes::stencil as codes;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Form, Span};

use super::Errors;

/// The weights that are given for a neighbourhood, and their required lengths.
pub struct Weights {
    pub name: String,
    pub lengths: Vec<i128>,
    pub span: Span,
}

pub fn check_weights(kernel: &System, weights: &[Weights], errors: &mut Errors) {
    for given in weights {
        let Some(array) = kernel.inputs.iter().find(|i| i.name == given.name) else {
            continue;
        };
        let length = |axis: &systola_ir::system::Axis| axis.hi.sub(&axis.lo).as_constant();
        let starts_at_zero = array.axes.iter().all(|axis| axis.lo == Form::zero());
        let lengths: Vec<Option<i128>> = array.axes.iter().map(length).collect();
        let wanted: Vec<Option<i128>> = given.lengths.iter().copied().map(Some).collect();
        if lengths != wanted || !starts_at_zero {
            errors.report(wrong_weights(
                &given.name,
                &given.lengths,
                given.span,
                array.span,
            ));
        }
    }
}

pub fn wrong_weights(name: &str, lengths: &[i128], span: Span, declared: Span) -> Diagnostic {
    let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let cells = if lengths.len() == 1 {
        "a list, in the order of its cells,"
    } else {
        "weights"
    };
    Diagnostic::new(
        &codes::WEIGHTS_SHAPE,
        span,
        format!(
            "this neighbourhood takes {cells} of the shape [{}], and `{name}` has another",
            lengths.join(", ")
        ),
    )
    .also(declared, "declared here")
    .help(format!("declare it as `{name}[{}]`", lengths.join(", ")))
}
