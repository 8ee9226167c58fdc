//! Convolutions: the declarations are elaborated like those of a system; [`systola_stencil`] writes
//! the equations.

use systola_ir::codes::{stencil as codes, types};
use systola_ir::system::System;
use systola_ir::{Diagnostic, Span};
use systola_stencil::{Conv, write_conv};

use super::Errors;
use super::stencil::{elaborate_boundary, written};
use super::system;
use crate::tree::{self, Expr, ExprKind};

pub fn elaborate(tree: tree::Conv, errors: &mut Errors) -> System {
    let empty = System {
        name: tree.name.text.clone(),
        span: tree.origin.span(),
        ..System::default()
    };
    let before = errors.n_found();
    let (what, origin) = (format!("the convolution `{}`", tree.name.text), tree.origin);
    errors.within(&what, origin);
    let (Some((input, boundary)), Some(filter)) = (tree.input, tree.filter) else {
        errors.report(
            Diagnostic::new(
                &codes::NO_UPDATE,
                tree.name.span,
                format!(
                    "the convolution `{}` has an `input` and a `filter`",
                    tree.name.text
                ),
            )
            .help("write `input x[R, C]: f32 constant 0; filter w[H, Q]: f32;`"),
        );
        return empty;
    };
    let n_axes = input.axes.len();
    let strides = factors(tree.stride.as_ref(), n_axes, "stride", errors);
    let dilations = factors(tree.dilation.as_ref(), n_axes, "dilation", errors);
    let boundary = elaborate_boundary(&boundary, &input.ty, errors);
    let head = tree::System {
        params: tree.params,
        context: tree.context,
        inputs: vec![input, filter],
        batch: tree.batch,
        ..tree::System::new(tree.name, origin)
    };
    let head = system::elaborate(&head, errors);
    if errors.n_found() > before {
        return empty;
    }
    let conv = Conv {
        head,
        boundary,
        strides,
        dilations,
    };
    errors.within(&what, origin);
    let system = written(write_conv(&conv), empty, errors);
    errors.outside();
    system
}

/// One factor for each axis, or one for all axes.
fn factors(
    given: Option<&(Vec<Expr>, Span)>,
    n_axes: usize,
    what: &str,
    errors: &mut Errors,
) -> Vec<i128> {
    let Some((list, span)) = given else {
        return vec![1; n_axes];
    };
    let numbers: Option<Vec<i128>> = (list.iter())
        .map(|e| match e.kind {
            ExprKind::Int(n, None) if (1..1 << 32).contains(&n) => Some(n),
            _ => None,
        })
        .collect();
    match numbers.as_deref() {
        Some([n]) => return vec![*n; n_axes],
        Some(list) if list.len() == n_axes => return list.to_vec(),
        _ => {}
    }
    errors.report(
        Diagnostic::new(
            &types::WRONG_COUNT,
            *span,
            format!("a {what} is a positive number for each of the {n_axes} axes, or one for all"),
        )
        .help(format!("write `{what} 2;`")),
    );
    vec![1; n_axes]
}
