//! Which points of a cell others read.

use affine::{LinExpr, Set, Space};
use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::sets::set_of;
use systola_ir::{DimId, ParamId, VarId};

use crate::decide::{Decide, Undecided};
use crate::keep::reads::{StoredRead, n_columns};

/// With more parts than this, the description costs more than what it spares.
const MOST_PARTS: usize = 3;

/// A condition that holds at every point of a cell that is read through memory, over the point; it
/// may hold at others too.
pub fn read_points(
    array: &Array,
    reads: &[StoredRead],
    cell: VarId,
    decide: &Decide,
) -> Result<Cond, Undecided> {
    let n = array.dims.len();
    let space = Space::new(decide.n_params, n);
    let mut points = Set::empty(space);
    for read in reads.iter().filter(|read| read.source == cell) {
        let Ok(own) = image(array, read, decide) else {
            return Ok(Cond::TRUE);
        };
        points = points.union(&own)?;
    }
    let domain = decide
        .context
        .clone()
        .and(array.cells[cell.index()].domain.clone());
    let points = points
        .coalesce()?
        .gist(&set_of(&domain, space)?)?
        .coalesce()?;
    if points.pieces().len() > MOST_PARTS || points.pieces().iter().any(|p| p.n_exists() > 0) {
        return Ok(Cond::TRUE);
    }
    let parts = points.pieces().iter().map(|piece| {
        let constraints = piece.constraints();
        let conds = constraints.iter().map(|constraint| {
            let form = form_of(constraint.expr(), decide.n_params)?;
            let rel = match constraint {
                affine::Constraint::Eq(_) => Rel::Eq,
                affine::Constraint::Ge(_) => Rel::Ge,
            };
            Ok(Cond::cmp(rel, form, 0))
        });
        conds.collect::<Result<Vec<Cond>, Overflow>>()
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let parts = parts
        .into_iter()
        .map(|conds| conds.into_iter().fold(Cond::TRUE, Cond::and));
    Ok(Cond::any(parts.collect()))
}

/// The points that one reference reads.
fn image(array: &Array, read: &StoredRead, decide: &Decide) -> Result<Set, Undecided> {
    let (n, m) = (array.dims.len(), n_columns(array));
    let reader = |f: &Form| f.substitute(&|d| Some(Form::from(DimId::from(n + d.index()))));
    let mut cond = decide.context.clone().and(read.when.map(&reader)?);
    for (d, form) in read.index.iter().enumerate() {
        cond = cond.and(Cond::cmp(Rel::Eq, DimId::from(d), reader(form)?));
    }
    let set = set_of(&cond, Space::new(decide.n_params, n + m))?;
    Ok(set.project_onto(0..n)?)
}

fn form_of(expr: &LinExpr, n_params: usize) -> Result<Form, Overflow> {
    let mut form = Form::from(expr.constant_term());
    for (column, factor) in expr.coeffs().iter().enumerate() {
        let variable = match column.checked_sub(n_params) {
            None => Form::from(ParamId::from(column)),
            Some(d) => Form::from(DimId::from(d)),
        };
        form = form.add(&variable.scale(&Poly::constant(*factor))?);
    }
    Ok(form)
}
