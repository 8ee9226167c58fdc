//! One sweep: fields are inputs, read directly.

use std::convert::Infallible;

use systola_ir::system::{Axis, Expr, Law, Output, System, Var, Write, visit};
use systola_ir::{Cond, DimId, Form, Literal, Rel, Scalar, Span, VarId};

use crate::boundary::{any, at_end, at_start, read, read_array};
use crate::reach::{Margin, Plan, distances, sides};
use crate::{Boundary, Field, Fresh, Stencil};

pub fn write(stencil: &Stencil, plan: &Plan) -> System {
    let kernel = &stencil.kernel;
    let mut system = kernel.clone();
    system.context.extend(plan.context.iter().cloned());
    for field in &stencil.fields {
        if let Boundary::Constant(value) = field.boundary {
            system.inputs[field.input.index()].outside = Some(value);
        }
    }
    let here: Vec<Form> = (0..kernel.dims.len())
        .map(|n| Form::from(DimId::from(n)))
        .collect();
    let sizes = sizes(kernel);
    let domain = smallest_margins(stencil, plan);
    for (dim, margin) in system.dims.iter_mut().zip(&domain) {
        if let Some((lo, hi)) = &mut dim.range {
            (*lo, *hi) = (lo.plus(margin.start), hi.plus(-margin.end));
        }
    }
    let mut names = names(stencil);
    system.vars.clear();
    let ids = ids(stencil, plan, &here, &sizes);
    for (v, var) in kernel.vars.iter().enumerate() {
        let body = rewrite(stencil, &ids, &var.body, &here, &sizes);
        let mut written = Var {
            name: var_name(stencil, VarId::from(v), &mut names),
            body,
            ..var.clone()
        };
        let is_sum = matches!(written.body, Expr::Reduce { .. });
        if is_sum && written.law == Law::Fixed {
            written.law = Law::Reorderable;
        }
        match stencil.boundaries[v] {
            Boundary::Interior => {
                for (n, (margin, whole)) in plan.margins[v].iter().zip(&domain).enumerate() {
                    written
                        .on
                        .extend(inside(&here[n], &sizes[n], *margin, *whole));
                }
            }
            Boundary::Fixed => {
                let (Some(fixed), Some(field)) = (
                    fixed_cells(&here, &sizes, &plan.margins[v]),
                    stencil.field_of(VarId::from(v)),
                ) else {
                    system.vars.push(written);
                    continue;
                };
                let old = Expr::Input {
                    input: field.input,
                    index: here.clone(),
                    span: Span::NONE,
                };
                if is_sum {
                    // The sum is a variable of its own, whose order a mapping can choose.
                    let sum = VarId::from(system.vars.len());
                    let name = names.name(&format!("{}_fixed", written.name));
                    let mut part = written.clone();
                    if !sum_everywhere(stencil, &mut system, &part.body) {
                        for (n, margin) in plan.margins[v].iter().enumerate() {
                            let none = Margin::default();
                            part.on.extend(inside(&here[n], &sizes[n], *margin, none));
                        }
                    }
                    system.vars.push(part);
                    written.name = name;
                    written.law = Law::Fixed;
                    written.body = here_of(sum, &here);
                }
                written.body = Expr::guard(fixed, old, written.body);
            }
            Boundary::Constant(_)
            | Boundary::Clamp
            | Boundary::Mirror
            | Boundary::Reflect
            | Boundary::Wrap => {}
        }
        system.vars.push(written);
    }
    system.outputs = stencil
        .outputs
        .iter()
        .map(|(name, var)| {
            let value = here_of(ids[var.index()], &here);
            output(stencil, plan, &domain, name, *var, value, &here, &sizes)
        })
        .collect();
    system
}

/// A sum that reads inputs only can also be computed at the boundary, with zeros for cells outside,
/// although its value there is not used: then cells at the boundary are like all others, except for
/// the choice of the result.
fn sum_everywhere(stencil: &Stencil, system: &mut System, body: &Expr) -> bool {
    let (mut inputs, mut of_inputs) = (Vec::new(), true);
    visit::walk(body, &mut |expr| match expr {
        Expr::Input { input, .. } => inputs.push(*input),
        Expr::Var { .. } => of_inputs = false,
        _ => {}
    });
    if of_inputs {
        let is_read = |field: &&Field| inputs.contains(&field.input);
        for field in stencil.fields.iter().filter(is_read) {
            let input = &mut system.inputs[field.input.index()];
            let zero = zero(input.ty);
            input.outside.get_or_insert(zero);
        }
    }
    of_inputs
}

fn zero(ty: Scalar) -> Literal {
    match ty {
        Scalar::Bool => Literal::Bool(false),
        _ if ty.is_float() => Literal::Float(0.0),
        _ => Literal::Int(0),
    }
}

fn here_of(var: VarId, here: &[Form]) -> Expr {
    Expr::Var {
        var,
        index: here.to_vec(),
        span: Span::NONE,
    }
}

/// The position of each variable of the kernel: before a sum with fixed cells there is an
/// additional variable.
fn ids(stencil: &Stencil, plan: &Plan, here: &[Form], sizes: &[Form]) -> Vec<VarId> {
    let mut next = 0;
    let vars = stencil.kernel.vars.iter().enumerate();
    vars.map(|(v, var)| {
        let is_split = stencil.boundaries[v] == Boundary::Fixed
            && matches!(var.body, Expr::Reduce { .. })
            && stencil.field_of(VarId::from(v)).is_some()
            && fixed_cells(here, sizes, &plan.margins[v]).is_some();
        next += 1 + usize::from(is_split);
        VarId::from(next - 1)
    })
    .collect()
}

pub fn sizes(kernel: &System) -> Vec<Form> {
    let size = |d: &systola_ir::system::Dim| d.range.as_ref().map(|(_, hi)| hi.clone());
    kernel
        .dims
        .iter()
        .map(|d| size(d).unwrap_or_default())
        .collect()
}

/// The names that are taken, with those of the outputs.
pub fn names(stencil: &Stencil) -> Fresh {
    let mut names = Fresh::of(&stencil.kernel);
    for (name, _) in &stencil.outputs {
        names.take(name);
    }
    for (v, var) in stencil.kernel.vars.iter().enumerate() {
        if stencil.field_of(VarId::from(v)).is_none() {
            names.take(&var.name);
        }
    }
    names
}

/// A variable keeps its name; the update of a field has the field's in capitals.
pub fn var_name(stencil: &Stencil, var: VarId, names: &mut Fresh) -> String {
    match stencil.field_of(var) {
        Some(field) => {
            let name = &stencil.kernel.inputs[field.input.index()].name;
            names.name(&name.to_uppercase())
        }
        None => stencil.kernel.vars[var.index()].name.clone(),
    }
}

/// The fixed cells next to the boundary, which keep their value.
pub fn fixed_cells(here: &[Form], sizes: &[Form], margins: &[Margin]) -> Option<Cond> {
    let mut conds = Vec::new();
    for ((at, n), margin) in here.iter().zip(sizes).zip(margins) {
        conds.extend(at_start(at, 0, margin.start));
        conds.extend(at_end(at, n, margin.end));
    }
    any(conds)
}

/// The conditions for a cell to have all its neighbours, where the range of the iterator does not
/// imply them.
fn inside(at: &Form, n: &Form, margin: Margin, whole: Margin) -> Vec<Cond> {
    let mut conds = Vec::new();
    if margin.start > whole.start {
        conds.push(Cond::cmp(Rel::Ge, at.clone(), Form::from(margin.start)));
    }
    if margin.end > whole.end {
        conds.push(Cond::cmp(Rel::Le, at.clone(), n.plus(-1 - margin.end)));
    }
    conds
}

/// The cells that all variables omit.
fn smallest_margins(stencil: &Stencil, plan: &Plan) -> Vec<Margin> {
    let margins = |v: usize| match stencil.boundaries[v] {
        Boundary::Interior => plan.margins[v].clone(),
        Boundary::Fixed
        | Boundary::Constant(_)
        | Boundary::Clamp
        | Boundary::Mirror
        | Boundary::Reflect
        | Boundary::Wrap => vec![Margin::default(); stencil.kernel.dims.len()],
    };
    (0..stencil.boundaries.len())
        .map(margins)
        .reduce(|a, b| {
            let pairs = a.iter().zip(&b);
            pairs
                .map(|(a, b)| Margin {
                    start: a.start.min(b.start),
                    end: a.end.min(b.end),
                })
                .collect()
        })
        .unwrap_or_default()
}

fn rewrite(stencil: &Stencil, ids: &[VarId], body: &Expr, here: &[Form], sizes: &[Form]) -> Expr {
    let kernel = &stencil.kernel;
    let rewritten: Result<Expr, Infallible> = visit::map_expr(body, &mut |expr| {
        Ok(match expr {
            Expr::Input { input, index, span } => {
                let leaf = |index: &[Form]| Expr::Input {
                    input,
                    index: index.to_vec(),
                    span,
                };
                match stencil.field(input) {
                    Some(field) => {
                        let axes = &kernel.inputs[input.index()].axes;
                        let lengths: Vec<Form> = axes.iter().map(|a| a.hi.clone()).collect();
                        read_array(
                            field.boundary,
                            &index,
                            &lengths,
                            &sides(&index, kernel),
                            &leaf,
                        )
                    }
                    None => leaf(&index),
                }
            }
            Expr::Var { var, index, span } => {
                let leaf = |index: &[Form]| Expr::Var {
                    var: ids[var.index()],
                    index: index.to_vec(),
                    span,
                };
                let offset: Option<Vec<i128>> =
                    distances(&index).iter().map(Form::as_constant).collect();
                let boundary = stencil.boundaries[var.index()];
                // Tuples cannot have a constant boundary, so their type is not needed.
                let ty = kernel.vars[var.index()].ty.scalar();
                match offset {
                    Some(offset) => {
                        let ty = ty.unwrap_or(Scalar::F32);
                        read(boundary, ty, here, sizes, &offset, &leaf)
                    }
                    None => leaf(&index),
                }
            }
            other => other,
        })
    });
    match rewritten {
        Ok(expr) => expr,
        Err(never) => match never {},
    }
}

fn output(
    stencil: &Stencil,
    plan: &Plan,
    domain: &[Margin],
    name: &str,
    var: VarId,
    value: Expr,
    here: &[Form],
    sizes: &[Form],
) -> Output {
    let kernel_var = &stencil.kernel.vars[var.index()];
    let is_interior = stencil.boundaries[var.index()] == Boundary::Interior;
    let margins = match is_interior {
        true => plan.margins[var.index()].clone(),
        false => vec![Margin::default(); here.len()],
    };
    let mut when = Cond::TRUE;
    let mut index = Vec::new();
    let mut axes = Vec::new();
    for (n, margin) in margins.iter().enumerate() {
        index.push(here[n].plus(-margin.start));
        axes.push(Axis {
            lo: Form::zero(),
            hi: sizes[n].plus(-margin.start - margin.end),
        });
        for cond in inside(&here[n], &sizes[n], *margin, domain[n]) {
            when = when.and(cond);
        }
    }
    Output {
        name: name.to_string(),
        ty: kernel_var.ty.scalar().unwrap_or(Scalar::F32),
        axes,
        writes: vec![Write {
            of: None,
            value,
            index,
            when,
            span: Span::NONE,
        }],
        fill: None,
        span: Span::NONE,
    }
}
