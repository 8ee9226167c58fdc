//! Stencils: offsets become indices, neighbourhoods become sums, and what one sweep computes is
//! elaborated like any system. The rest is [`systola_stencil`]'s.

use systola_ir::codes::{stencil as codes, types};
use systola_ir::mapping::Name;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Form, InputId, VarId};
use systola_stencil::{Boundary, Field, Stencil, write_system};

use super::system::{self, Elaborator, literal};
use super::{Errors, size};
use crate::tree;

mod reader;
mod scope;
mod weights;

use reader::Reader;
use scope::Scope;
use weights::check_weights;

/// The system of a stencil; an empty one where a mistake was reported.
pub fn elaborate(tree: tree::Stencil, errors: &mut Errors) -> System {
    let empty = System {
        name: tree.name.text.clone(),
        span: tree.origin.span(),
        ..System::default()
    };
    let before = errors.n_found();
    let (what, origin) = (format!("the stencil `{}`", tree.name.text), tree.origin);
    errors.within(&what, origin);
    let Some(scope) = Scope::of(&tree, errors) else {
        return empty;
    };
    let mut weights = Vec::new();
    let mut equations = tree.equations;
    for equation in &mut equations {
        errors.within(
            &format!("the equation of `{}`", equation.name.text),
            equation.origin,
        );
        let mut reader = Reader {
            scope: &scope,
            inputs: &tree.inputs,
            weights: &mut weights,
            errors,
        };
        reader.relative(&mut equation.body);
    }
    if errors.n_found() > before {
        return empty;
    }
    let kernel = tree::System {
        name: tree.name,
        params: tree.params,
        context: tree.context,
        consts: tree.consts,
        inputs: (tree.fields.iter().map(|(input, _)| input.clone()))
            .chain(tree.inputs)
            .collect(),
        functions: tree.functions,
        batch: tree.batch,
        index: Some(scope.index(&tree.fields[0].0)),
        vars: (equations.iter())
            .map(|e| scope.var(e, &tree.fields))
            .collect(),
        outputs: (tree.outputs.iter())
            .map(|(name, _)| tree::Output {
                name: name.clone(),
                ty: tree.fields[0].0.ty.clone(),
                axes: Vec::new(),
                writes: Vec::new(),
                fill: None,
                origin,
            })
            .collect(),
        origin,
    };
    let mut kernel = system::elaborate(&kernel, errors);
    kernel.outputs.clear();
    errors.within(&what, origin);
    let steps = tree.steps.as_ref().map(|(steps, span)| {
        let mut sizes = Elaborator::of_sizes(errors);
        sizes.sizes_of(&kernel);
        (sizes.form(steps).unwrap_or(Form::from(1)), *span)
    });
    check_weights(&kernel, &weights, errors);
    let updates = |name: &str| {
        equations
            .iter()
            .position(|e| e.between.is_none() && e.name.text == name)
    };
    let mut boundary = |boundary: &tree::Boundary, ty, what: &str, origin| {
        errors.within(what, origin);
        elaborate_boundary(boundary, ty, errors)
    };
    let fields: Vec<Field> = (tree.fields.iter().enumerate())
        .map(|(n, (input, outside))| Field {
            input: InputId::from(n),
            boundary: boundary(
                outside,
                &input.ty,
                &format!("the field `{}`", input.name.text),
                input.origin,
            ),
            update: updates(&input.name.text).map(VarId::from),
        })
        .collect();
    let boundaries = (equations.iter())
        .map(|e| match &e.between {
            Some((ty, outside)) => {
                let what = format!("the equation of `{}`", e.name.text);
                boundary(outside, ty, &what, e.origin)
            }
            None => {
                let field = tree
                    .fields
                    .iter()
                    .position(|(f, _)| f.name.text == e.name.text);
                field.map_or(Boundary::Interior, |n| fields[n].boundary)
            }
        })
        .collect();
    errors.within(&what, origin);
    for equation in &equations {
        if let Some((_, tree::Boundary::Fixed)) = equation.between {
            errors.report(nothing_to_hold(&equation.name));
        }
    }
    if errors.n_found() > before {
        return empty;
    }
    let outputs = outputs(&equations, &tree.outputs);
    let stencil = Stencil {
        kernel,
        fields,
        boundaries,
        steps,
        time: scope.time.clone(),
        outputs,
    };
    let system = written(write_system(&stencil), empty, errors);
    errors.outside();
    system
}

/// A system that was written, if it can be written down as text too.
pub fn written(
    result: Result<System, Vec<Diagnostic>>,
    empty: System,
    errors: &mut Errors,
) -> System {
    let system = match result {
        Ok(system) => system,
        Err(list) => {
            for error in list {
                errors.report(error);
            }
            return empty;
        }
    };
    for var in &system.vars {
        if size::of_expr(&var.body) > size::MAX_NESTING {
            errors.report(size::too_deep(empty.span));
        } else if size::height(&var.body) > size::MAX_HEIGHT {
            errors.report(size::too_high(empty.span));
        } else {
            continue;
        }
        return empty;
    }
    system
}

/// Fields with a next value, unless outputs are named.
fn outputs(equations: &[tree::Equation], named: &[(Name, Name)]) -> Vec<(String, VarId)> {
    let position = |name: &str| equations.iter().position(|e| e.name.text == name);
    if named.is_empty() {
        let updates = equations
            .iter()
            .enumerate()
            .filter(|(_, e)| e.between.is_none());
        return updates
            .map(|(n, e)| (primed(&e.name.text), VarId::from(n)))
            .collect();
    }
    let pairs = named.iter();
    pairs
        .filter_map(|(name, what)| Some((name.text.clone(), VarId::from(position(&what.text)?))))
        .collect()
}

/// The next value of a field.
fn primed(name: &str) -> String {
    format!("{name}'")
}

pub fn elaborate_boundary(
    boundary: &tree::Boundary,
    ty: &tree::DeclaredType,
    errors: &mut Errors,
) -> Boundary {
    match boundary {
        tree::Boundary::Interior => Boundary::Interior,
        tree::Boundary::Fixed => Boundary::Fixed,
        tree::Boundary::Clamp => Boundary::Clamp,
        tree::Boundary::Mirror => Boundary::Mirror,
        tree::Boundary::Reflect => Boundary::Reflect,
        tree::Boundary::Wrap => Boundary::Wrap,
        tree::Boundary::Constant(value) => match ty.ty.scalar() {
            Some(ty) => literal(value, ty, errors).map_or(Boundary::Interior, Boundary::Constant),
            None => {
                errors.report(
                    Diagnostic::new(
                        &types::NOT_SCALAR,
                        ty.span,
                        format!("beyond the boundary is a number, and this is {}", ty.ty),
                    )
                    .help("take `clamp`, `mirror`, `reflect` or `wrap`"),
                );
                Boundary::Interior
            }
        },
    }
}

fn nothing_to_hold(name: &Name) -> Diagnostic {
    Diagnostic::new(
        &codes::NOT_A_FIELD,
        name.span,
        format!(
            "`{}` is no field, so it has no value that it could keep",
            name.text
        ),
    )
    .help("take another boundary condition, or declare a field")
}
