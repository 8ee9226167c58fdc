//! Stencils: converts offsets to indices and neighbourhoods to sums, and elaborates the equations
//! of one sweep like those of a system. [`systola_stencil`] does the rest.

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

/// The system of a stencil; an empty system if there are errors.
pub fn elaborate(mut tree: tree::Stencil, errors: &mut Errors) -> System {
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
    for equation in &mut tree.equations {
        within_equation(equation, errors);
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
    let mut kernel = system::elaborate(&one_sweep(&tree, &scope), errors);
    kernel.outputs.clear();
    errors.within(&what, origin);
    let steps = tree.steps.as_ref().map(|(steps, span)| {
        let mut sizes = Elaborator::of_sizes(errors);
        sizes.sizes_of(&kernel);
        (sizes.form(steps).unwrap_or(Form::from(1)), *span)
    });
    check_weights(&kernel, &weights, errors);
    let fields = fields(&tree, errors);
    let boundaries = boundaries(&tree, &fields, errors);
    errors.within(&what, origin);
    for equation in &tree.equations {
        if let Some((_, tree::Boundary::Fixed)) = equation.between {
            errors.report(nothing_to_hold(&equation.name));
        }
    }
    if errors.n_found() > before {
        return empty;
    }
    let stencil = Stencil {
        kernel,
        fields,
        boundaries,
        steps,
        time: scope.time,
        outputs: outputs(&tree.equations, &tree.outputs),
    };
    let system = written(write_system(&stencil), empty, errors);
    errors.outside();
    system
}

fn within_equation(equation: &tree::Equation, errors: &mut Errors) {
    let what = format!("the equation of `{}`", equation.name.text);
    errors.within(&what, equation.origin);
}

/// The equations of one sweep at one cell. Its outputs exist only to check their names.
fn one_sweep(tree: &tree::Stencil, scope: &Scope) -> tree::System {
    let fields = tree.fields.iter().map(|(input, _)| input);
    let first = &tree.fields[0].0;
    let output = |name: &Name| tree::Output {
        name: name.clone(),
        ty: first.ty.clone(),
        axes: Vec::new(),
        writes: Vec::new(),
        fill: None,
        origin: tree.origin,
    };
    tree::System {
        name: tree.name.clone(),
        params: tree.params.clone(),
        context: tree.context.clone(),
        consts: tree.consts.clone(),
        inputs: fields.chain(&tree.inputs).cloned().collect(),
        functions: tree.functions.clone(),
        batch: tree.batch.clone(),
        index: Some(scope.index(first)),
        vars: (tree.equations.iter())
            .map(|e| scope.var(e, &tree.fields))
            .collect(),
        outputs: tree.outputs.iter().map(|(name, _)| output(name)).collect(),
        origin: tree.origin,
    }
}

fn fields(tree: &tree::Stencil, errors: &mut Errors) -> Vec<Field> {
    let update = |name: &str| {
        let is_update = |e: &tree::Equation| e.between.is_none() && e.name.text == name;
        tree.equations.iter().position(is_update)
    };
    let fields = tree.fields.iter().enumerate();
    let fields = fields.map(|(n, (input, outside))| {
        let what = format!("the field `{}`", input.name.text);
        errors.within(&what, input.origin);
        Field {
            input: InputId::from(n),
            boundary: elaborate_boundary(outside, &input.ty, errors),
            update: update(&input.name.text).map(VarId::from),
        }
    });
    fields.collect()
}

/// The boundary condition of each equation: its own, or that of the field it updates.
fn boundaries(tree: &tree::Stencil, fields: &[Field], errors: &mut Errors) -> Vec<Boundary> {
    let boundaries = tree.equations.iter().map(|e| match &e.between {
        Some((ty, outside)) => {
            within_equation(e, errors);
            elaborate_boundary(outside, ty, errors)
        }
        None => {
            let mut names = tree.fields.iter().map(|(f, _)| &f.name.text);
            let field = names.position(|name| *name == e.name.text);
            field.map_or(Boundary::Interior, |n| fields[n].boundary)
        }
    });
    boundaries.collect()
}

/// The generated system, if it does not exceed the limits of the text language.
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

/// The declared outputs; without a declaration, all fields that are updated.
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

/// The name of a field's next value.
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
