//! Constant windows: a `reduce` that reads variables at its own iterators is written out.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::limits;
use systola_ir::form::Form;
use systola_ir::system::expansion::{Expansion, MOST_OPERATIONS};
use systola_ir::system::visit::{map_expr, walk};
use systola_ir::system::{Expr, System};
use systola_ir::{Diagnostic, DimId};

use super::{combine, overflow};

/// Replaces every `reduce` over a constant window that reads variables at its iterators by its terms.
pub(super) fn unroll_windows(system: &System) -> Result<System, Diagnostic> {
    /// More terms than this are not written out.
    const MOST: i128 = 1024;
    let expansion = Expansion::of(system);
    let mut result = system.clone();
    let mut unrolled: BTreeSet<DimId> = BTreeSet::new();
    let mut failed: Option<Diagnostic> = None;
    for var in &mut result.vars {
        let body = map_expr::<std::convert::Infallible>(&var.body, &mut |e| {
            let Expr::Reduce {
                op,
                dims,
                body,
                span,
            } = &e
            else {
                return Ok(e);
            };
            let mut windowed = false;
            walk(body, &mut |inner| {
                if let Expr::Var { index, .. } = inner {
                    windowed |= index
                        .iter()
                        .any(|f| f.dims().iter().any(|d| dims.contains(d)));
                }
            });
            if !windowed {
                return Ok(e);
            }
            let mut points: Vec<Vec<(DimId, i128)>> = vec![Vec::new()];
            for d in dims {
                let range = system.dim(*d).range.as_ref();
                let bounds =
                    range.and_then(|(lo, hi)| Some((lo.as_constant()?, hi.as_constant()?)));
                let size = bounds.map_or(0, |(lo, hi)| (hi - lo).max(0));
                match bounds {
                    Some((lo, hi)) if size > 0 && size * points.len() as i128 <= MOST => {
                        points = points
                            .into_iter()
                            .flat_map(|p| {
                                (lo..hi).map(move |v| {
                                    let mut p = p.clone();
                                    p.push((*d, v));
                                    p
                                })
                            })
                            .collect();
                    }
                    _ => {
                        failed.get_or_insert_with(|| {
                            Diagnostic::new(
                                &limits::WINDOW_NOT_CONSTANT,
                                *span,
                                format!(
                                    "variables are read at `{}`, whose range is not a constant window of at most {MOST} points",
                                    system.dim(*d).name
                                ),
                            )
                            .help("give the window constant bounds, or add the iterator to the index space")
                        });
                        return Ok(e);
                    }
                }
            }
            let n_operations = expansion.operations(body);
            if n_operations.saturating_mul(points.len() as u64) > MOST_OPERATIONS {
                failed.get_or_insert_with(|| {
                    Diagnostic::new(
                        &limits::WINDOW_NOT_CONSTANT,
                        *span,
                        format!("this window takes more than {MOST_OPERATIONS} operations, term by term"),
                    )
                    .help("give inner sums a variable of their own, or add the iterator to the index space")
                });
                return Ok(e);
            }
            unrolled.extend(dims.iter().copied());
            let mut sum: Option<Expr> = None;
            for point in points {
                let value = |d: DimId| {
                    point
                        .iter()
                        .find(|(at, _)| *at == d)
                        .map(|(_, v)| Form::from(*v))
                };
                let fixed = systola_ir::system::map_forms(body, &|f| f.substitute(&value));
                let fixed = match fixed {
                    Ok(fixed) => fixed,
                    Err(o) => {
                        failed.get_or_insert(overflow(o, *span));
                        return Ok(e);
                    }
                };
                let Ok(term) = map_expr::<std::convert::Infallible>(&fixed, &mut |e| {
                    Ok(match e {
                        Expr::Iter(d) => match point.iter().find(|(at, _)| *at == d) {
                            Some((_, v)) => Expr::int(systola_ir::Scalar::I64, *v),
                            None => Expr::Iter(d),
                        },
                        other => other,
                    })
                });
                sum = Some(match sum {
                    None => term,
                    Some(sum) => combine(*op, sum, term),
                });
            }
            Ok(sum.unwrap_or(e))
        });
        let Ok(body) = body;
        var.body = body;
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    if unrolled.is_empty() {
        return Ok(result);
    }
    // Close the gaps that the unrolled iterators leave.
    let n = system.dims.len();
    let mut renumber: BTreeMap<DimId, DimId> = BTreeMap::new();
    let mut bound = Vec::new();
    for (k, dim) in system.bound.iter().enumerate() {
        let old = DimId::from(n + k);
        if !unrolled.contains(&old) {
            renumber.insert(old, DimId::from(n + bound.len()));
            bound.push(dim.clone());
        }
    }
    let rename = |f: &Form| f.substitute(&|d| renumber.get(&d).map(|d| Form::from(*d)));
    for dim in &mut bound {
        if let Some((lo, hi)) = &dim.range {
            let (lo, hi) = (rename(lo), rename(hi));
            dim.range = Some((
                lo.map_err(|o| overflow(o, dim.span))?,
                hi.map_err(|o| overflow(o, dim.span))?,
            ));
        }
    }
    result.bound = bound;
    for var in &mut result.vars {
        let body =
            systola_ir::system::map_forms(&var.body, &rename).map_err(|o| overflow(o, var.span))?;
        let Ok(body) = map_expr::<std::convert::Infallible>(&body, &mut |e| {
            Ok(match e {
                Expr::Iter(d) => Expr::Iter(*renumber.get(&d).unwrap_or(&d)),
                Expr::Reduce {
                    op,
                    dims,
                    body,
                    span,
                } => Expr::Reduce {
                    op,
                    dims: dims.iter().map(|d| *renumber.get(d).unwrap_or(d)).collect(),
                    body,
                    span,
                },
                other => other,
            })
        });
        var.body = body;
    }
    Ok(result)
}
