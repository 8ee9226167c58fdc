//! Boundary conditions of the inputs of a system.
//!
//! Before: an input is read at any quasi-affine index, with a boundary condition beyond its axes.
//! After: every read that may lie beyond them is a choice by position among reads inside, or the
//! input has an `else` value. No later stage knows of the condition. The chosen element is proved
//! to be inside like all other reads.

use std::convert::Infallible;

use systola_ir::form::Atom;
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Expr, System};
use systola_ir::{Form, InputId};

use crate::Boundary;
use crate::boundary::{Sides, read_array};

/// Rewrites every read of these inputs by their boundary conditions.
pub fn write_boundaries(system: &mut System, boundaries: &[(InputId, Boundary)]) {
    for (input, boundary) in boundaries {
        if let Boundary::Constant(value) = boundary {
            system.inputs[input.index()].outside = Some(*value);
        }
    }
    let declared = system.clone();
    let written = |expr: &Expr| {
        let Ok(expr) = map_expr::<Infallible>(expr, &mut |e| {
            let Expr::Input { input, index, span } = &e else {
                return Ok(e);
            };
            let Some((_, boundary)) = boundaries.iter().find(|(at, _)| at == input) else {
                return Ok(e);
            };
            let axes = &declared.inputs[input.index()].axes;
            if axes.len() != index.len() {
                return Ok(e);
            }
            // The axes from zero, as boundary conditions assume.
            let from_zero = |(at, axis): (&Form, &systola_ir::system::Axis)| at.sub(&axis.lo);
            let at: Vec<Form> = index.iter().zip(axes).map(from_zero).collect();
            let sizes: Vec<Form> = axes.iter().map(|axis| axis.hi.sub(&axis.lo)).collect();
            let sides: Vec<Sides> = (at.iter().zip(&sizes))
                .map(|(at, size)| sides(&declared, at, size))
                .collect();
            Ok(read_array(*boundary, &at, &sizes, &sides, &|at| {
                Expr::Input {
                    input: *input,
                    index: at
                        .iter()
                        .zip(axes)
                        .map(|(at, axis)| at.add(&axis.lo))
                        .collect(),
                    span: *span,
                }
            }))
        });
        expr
    };
    for var in &mut system.vars {
        var.body = written(&var.body);
    }
    for output in &mut system.outputs {
        for write in &mut output.writes {
            write.value = written(&write.value);
        }
    }
}

/// On which sides of an axis an index can be outside, as far as the ranges of the iterators show.
fn sides(system: &System, at: &Form, size: &Form) -> Sides {
    let below = |form: &Form, bound: i128| form.as_constant().is_some_and(|most| most < bound);
    let least = extreme(system, at.clone(), false);
    let most = extreme(system, at.sub(size), true);
    Sides {
        before: !least.is_some_and(|least| below(&least.neg(), 1)),
        behind: !most.is_some_and(|most| below(&most, 0)),
    }
}

/// The least or the greatest value of a form over the ranges of the iterators in it, in the
/// parameters.
fn extreme(system: &System, mut form: Form, greatest: bool) -> Option<Form> {
    // Ranges use earlier iterators: the last one is eliminated first.
    let n = system.dims.len() + system.bound.len();
    for d in (0..n).rev().map(systola_ir::DimId::from) {
        let linear = |(atom, _): &(&Atom, &systola_ir::form::Poly)| matches!(atom, Atom::Dim(_));
        if !form.terms().all(|t| linear(&t)) {
            return None;
        }
        let factor = form.terms().find_map(|(atom, factor)| match atom {
            Atom::Dim(at) if *at == d => Some(factor.as_constant()),
            Atom::Dim(_) | Atom::Floor(..) | Atom::Mod(..) => None,
        });
        let Some(factor) = factor else { continue };
        let (lo, hi) = system.dim(d).range.as_ref()?;
        let end = if (factor? > 0) == greatest {
            hi.plus(-1)
        } else {
            lo.clone()
        };
        form = form.substitute(&|at| (at == d).then(|| end.clone())).ok()?;
    }
    Some(form)
}
