//! Finite domains and reductions.

use affine::{BasicSet, BasicSetBuilder, LinExpr, Space};
use systola_ir::VarId;
use systola_ir::codes::system as codes;
use systola_ir::diag::Diagnostic;
use systola_ir::sets::{SetError, context_set, system_domain};
use systola_ir::system::{Combine, System};

use super::view::{Frame, View};
use super::witness::{Witness, named_point};

pub(super) fn context(view: &View) -> Result<Option<Diagnostic>, SetError> {
    let system = &view.system;
    if !context_set(system)?.is_empty()? {
        return Ok(None);
    }
    let (params, dims) = (system.param_names(), system.dim_names());
    let conds: Vec<String> = system
        .context
        .iter()
        .map(|cond| cond.display(&params, &dims).to_string())
        .collect();
    Ok(Some(
        Diagnostic::new(
            &codes::CONTEXT_EMPTY,
            system.span,
            format!("no sizes satisfy `{}`", conds.join(", ")),
        )
        .help("drop or weaken one of the conditions after `where`"),
    ))
}

/// A nonempty polyhedron is unbounded exactly in the directions of its recession cone, which does
/// not depend on the parameters.
pub(super) fn bounded(view: &View) -> Result<Option<Diagnostic>, SetError> {
    if let Some(found) = bounded_space(&view.system)? {
        return Ok(Some(found));
    }
    for (n, var) in view.system.vars.iter().enumerate() {
        if var.own.is_some()
            && let Some(found) = bounded_space(&view.system.around(VarId::from(n)))?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn bounded_space(system: &System) -> Result<Option<Diagnostic>, SetError> {
    for piece in system_domain(system)?.pieces() {
        for (dim, declared) in system.dims.iter().enumerate() {
            for (sign, side, example) in [(1, "upper", "<"), (-1, "lower", ">=")] {
                if !recedes(piece, dim, sign)? || piece.is_empty()? {
                    continue;
                }
                let name = &declared.name;
                return Ok(Some(
                    Diagnostic::new(
                        &codes::DOMAIN_UNBOUNDED,
                        declared.span,
                        format!("the domain has no {side} bound for `{name}`"),
                    )
                    .help(format!(
                        "add a condition `{name} {example} …` or a range, `{name} in lo..hi`"
                    )),
                ));
            }
        }
    }
    Ok(None)
}

/// Does the recession cone of a piece have a direction in which `sign` times this dimension grows?
fn recedes(piece: &BasicSet, dim: usize, sign: i128) -> Result<bool, SetError> {
    let n_params = piece.space().n_params;
    let n_columns = piece.space().n_dims + piece.n_exists();
    let mut cone = BasicSetBuilder::new(Space::new(0, n_columns));
    let zero = LinExpr::zero();
    for constraint in piece.constraints() {
        let e = constraint.expr();
        let direction: Vec<i128> = (0..n_columns).map(|c| e.coeff(n_params + c)).collect();
        let direction = LinExpr::new(&direction, 0);
        match constraint {
            affine::Constraint::Eq(_) => cone.eq(&direction, &zero)?,
            affine::Constraint::Ge(_) => cone.ge(&direction, &zero)?,
        }
    }
    cone.ge(&LinExpr::var(dim).scale(sign)?, &LinExpr::constant(1))?;
    Ok(!cone.build().is_empty()?)
}

pub(super) fn reduction(view: &View, n: usize) -> Result<Option<Diagnostic>, SetError> {
    let reduction = &view.reductions[n];
    let system: &System = &view.around(reduction.sink);
    if let Some(d) = reduction
        .dims
        .iter()
        .find(|d| system.dim(**d).range.is_none())
    {
        let name = &system.dim(*d).name;
        return Ok(Some(
            Diagnostic::new(
                &codes::REDUCE_UNBOUNDED,
                reduction.span,
                format!("`{name}` has no bounds: the reduction has infinitely many terms"),
            )
            .help(format!("give it a range: `{name} in lo..hi`")),
        ));
    }
    let Combine::Fn(function) = reduction.op else {
        return Ok(None);
    };
    let outside = view.reached(reduction.sink, &reduction.site)?;
    let mut inner = reduction.site.inner.clone();
    inner.extend(&reduction.dims);
    let frame = Frame::new(system, &inner);
    let mut conds = reduction.site.conds.clone();
    for d in &reduction.dims {
        if let Some(range) = system.dim_range(*d) {
            conds.push(reduction.site.cond(&range)?);
        }
    }
    let with_terms = frame
        .set(&conds)?
        .project_onto(0..system.dims.len() + reduction.site.inner.len())?;
    let Some(witness) = Witness::first(&outside.subtract(&with_terms)?)? else {
        return Ok(None);
    };
    let all_names = reduction.site.names(system);
    let names: Vec<String> = Frame::new(system, &reduction.site.inner)
        .dims
        .iter()
        .map(|d| all_names[d.index()].clone())
        .collect();
    let name = &system.functions[function.index()].name;
    Ok(Some(
        Diagnostic::new(
            &codes::REDUCE_EMPTY,
            reduction.span,
            format!(
                "at {}{} the reduction has no term, and `{name}` has no neutral element",
                named_point(&names, &witness.point),
                witness.sizes(system)
            ),
        )
        .help("guard it with `select`, or make the range non-empty at every size")
        .counterexample(witness.counterexample(
            system,
            &names,
            vec![witness.point.clone()],
        )),
    ))
}
