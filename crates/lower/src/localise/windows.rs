//! Constant windows: a `reduce` that reads variables at its own iterators is unrolled.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use systola_ir::codes::limits;
use systola_ir::form::{Form, Overflow};
use systola_ir::system::expansion::{Expansion, MOST_OPERATIONS};
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Expr, System, map_forms};
use systola_ir::{Diagnostic, DimId, Scalar, Span};

use super::named::contains;
use super::renumber::renumber_bound;
use super::{combine, overflow};

/// Windows of more points than this are not unrolled.
const MOST_POINTS: i128 = 1024;

/// A value for each iterator of a window.
type Point = Vec<(DimId, i128)>;

/// Replaces every `reduce` over a constant window that reads variables at its iterators by its
/// terms.
pub(super) fn unroll_windows(system: &System) -> Result<System, Diagnostic> {
    let expansion = Expansion::of(system);
    let mut result = system.clone();
    let mut unrolled: BTreeSet<DimId> = BTreeSet::new();
    for var in &mut result.vars {
        var.body = map_expr(&var.body, &mut |e| {
            let Expr::Reduce {
                op,
                dims,
                body,
                span,
            } = &e
            else {
                return Ok(e);
            };
            if !reads_at(body, dims) {
                return Ok(e);
            }
            let points = points(system, dims, *span)?;
            let n_operations = expansion.operations(body);
            if n_operations.saturating_mul(points.len() as u64) > MOST_OPERATIONS {
                return Err(too_many_operations(*span));
            }
            unrolled.extend(dims);
            let terms: Result<Vec<Expr>, Overflow> =
                points.iter().map(|point| term_at(body, point)).collect();
            let terms = terms.map_err(|o| overflow(o, *span))?;
            let sum = terms
                .into_iter()
                .reduce(|sum, term| combine(*op, sum, term));
            Ok(sum.unwrap_or(e))
        })?;
    }
    if !unrolled.is_empty() {
        close_gaps(&mut result, &unrolled)?;
    }
    Ok(result)
}

/// Does the expression read a variable at one of these iterators?
fn reads_at(expr: &Expr, dims: &[DimId]) -> bool {
    let at = |f: &Form| f.dims().iter().any(|d| dims.contains(d));
    contains(
        expr,
        &|e| matches!(e, Expr::Var { index, .. } if index.iter().any(at)),
    )
}

/// All points of a window, the last iterator fastest.
fn points(system: &System, dims: &[DimId], span: Span) -> Result<Vec<Point>, Diagnostic> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for d in dims {
        let dim = system.dim(*d);
        let bounds = dim.range.as_ref();
        let bounds = bounds.and_then(|(lo, hi)| Some((lo.as_constant()?, hi.as_constant()?)));
        let fits = |(lo, hi): &(i128, i128)| {
            let size = (hi - lo).max(0);
            size > 0 && size * points.len() as i128 <= MOST_POINTS
        };
        let Some((lo, hi)) = bounds.filter(fits) else {
            return Err(not_constant(&dim.name, span));
        };
        let longer = |p: Point| (lo..hi).map(move |v| [p.as_slice(), &[(*d, v)]].concat());
        points = points.into_iter().flat_map(longer).collect();
    }
    Ok(points)
}

/// The term of a sum at one point of its window.
fn term_at(body: &Expr, point: &Point) -> Result<Expr, Overflow> {
    let value = |d: DimId| point.iter().find(|(at, _)| *at == d).map(|(_, v)| *v);
    let fixed = map_forms(body, &|f| f.substitute(&|d| value(d).map(Form::from)))?;
    let Ok(term) = map_expr(&fixed, &mut |e| {
        Ok::<_, Infallible>(match e {
            Expr::Iter(d) => value(d).map_or(e, |v| Expr::int(Scalar::I64, v)),
            other => other,
        })
    });
    Ok(term)
}

/// Renumbers the iterators after the unrolled ones.
fn close_gaps(system: &mut System, unrolled: &BTreeSet<DimId>) -> Result<(), Diagnostic> {
    let n = system.dims.len();
    let bound = (n..n + system.bound.len()).map(DimId::from);
    let kept: Vec<DimId> = bound.filter(|d| !unrolled.contains(d)).collect();
    let new: BTreeMap<DimId, DimId> = kept.iter().copied().zip((n..).map(DimId::from)).collect();
    renumber_bound(system, &kept, &new).map_err(|(o, span)| overflow(o, span))
}

fn not_constant(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        &limits::WINDOW_NOT_CONSTANT,
        span,
        format!(
            "variables are read at `{name}`, whose range is not a constant window of at most {MOST_POINTS} points"
        ),
    )
    .help("give the window constant bounds, or add the iterator to the index space")
}

fn too_many_operations(span: Span) -> Diagnostic {
    Diagnostic::new(
        &limits::WINDOW_NOT_CONSTANT,
        span,
        format!("this window takes more than {MOST_OPERATIONS} operations, term by term"),
    )
    .help("give inner sums a variable of their own, or add the iterator to the index space")
}
