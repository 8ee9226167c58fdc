//! The contents of a table, flattened in row-major order.

use systola_ir::codes::types;
use systola_ir::system::Axis;
use systola_ir::{Diagnostic, Literal, Scalar, Span};

use super::infer::fit;
use super::system::literal;
use super::{Elaborated, Errors, Failed};
use crate::tree::{Data, DataKind};

pub fn contents(
    name: &str,
    data: &Data,
    axes: &[Axis],
    ty: Scalar,
    errors: &mut Errors,
) -> Elaborated<Vec<Literal>> {
    let mut extents = Vec::new();
    for axis in axes {
        match axis.hi.sub(&axis.lo).as_constant() {
            Some(extent) => extents.push(extent.max(0)),
            None => {
                return errors.fail(
                    Diagnostic::new(
                        &types::TABLE_SHAPE,
                        data.span,
                        format!("`{name}` has contents, so its sizes must be numbers"),
                    )
                    .help("write numbers for its axes, or give the contents at run time"),
                );
            }
        }
    }
    if let DataKind::All(values) = &data.kind {
        return all(name, values, &extents, ty, data.span, errors);
    }
    let mut literals = Vec::new();
    flatten(name, data, &extents, ty, &mut literals, errors)?;
    Ok(literals)
}

/// Contents in a flat list.
fn all(
    name: &str,
    values: &[Literal],
    extents: &[i128],
    ty: Scalar,
    span: Span,
    errors: &mut Errors,
) -> Elaborated<Vec<Literal>> {
    let product = |n: i128, extent: &i128| n.checked_mul(*extent);
    if extents.iter().try_fold(1, product) != Some(values.len() as i128) {
        let shown: Vec<String> = extents.iter().map(ToString::to_string).collect();
        return errors.fail(
            Diagnostic::new(
                &types::TABLE_SHAPE,
                span,
                format!(
                    "`{name}` has {} values, and its shape is [{}]",
                    values.len(),
                    shown.join(", ")
                ),
            )
            .help("give all values in row-major order"),
        );
    }
    let fitted = values.iter().map(|value| fit(*value, ty, span));
    let fitted: Result<_, _> = fitted.collect();
    fitted.or_else(|error: Box<Diagnostic>| errors.fail(*error))
}

fn flatten(
    name: &str,
    data: &Data,
    extents: &[i128],
    ty: Scalar,
    literals: &mut Vec<Literal>,
    errors: &mut Errors,
) -> Elaborated<()> {
    match (&data.kind, extents) {
        (DataKind::Element(element), []) => {
            literals.push(literal(element, ty, errors)?);
            Ok(())
        }
        (DataKind::Row(row), [extent, inner @ ..]) => {
            if row.len() as i128 != *extent {
                return errors.fail(
                    Diagnostic::new(
                        &types::TABLE_SHAPE,
                        data.span,
                        format!(
                            "this row of `{name}` has {} entries, its axis {extent}",
                            row.len()
                        ),
                    )
                    .help("make them equal"),
                );
            }
            let mut result = Ok(());
            for part in row {
                if flatten(name, part, inner, ty, literals, errors).is_err() {
                    result = Err(Failed);
                }
            }
            result
        }
        (DataKind::Element(_), [_, ..]) => errors.fail(
            Diagnostic::new(
                &types::TABLE_SHAPE,
                data.span,
                format!("expected a row of `{name}` in brackets, found a number"),
            )
            .help("write one pair of brackets for each axis: `[[1, 0], [0, 1]]`"),
        ),
        (DataKind::Row(_) | DataKind::All(_), _) => errors.fail(
            Diagnostic::new(
                &types::TABLE_SHAPE,
                data.span,
                format!("there are more brackets here than `{name}` has axes"),
            )
            .help("write one pair of brackets for each axis"),
        ),
    }
}
