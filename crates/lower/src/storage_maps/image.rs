//! Which points of a cell others read.

use affine::{LinExpr, Set, Space};
use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::sets::set_of;
use systola_ir::{DimId, ParamId, VarId};

use crate::decide::{Decide, Undecided};
use crate::storage_maps::reads::{StoredRead, n_columns};

/// A condition that holds at every point of a cell that is read through memory, over the point; it
/// may hold at others too: only one part without gaps is worth a test.
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
    let domain = set_of(&domain, space)?;
    let points = points.coalesce()?;
    if domain.subtract(&points)?.is_empty()? {
        return Ok(Cond::TRUE);
    }
    let points = points.gist(&domain)?.coalesce()?;
    let [piece] = points.pieces() else {
        return Ok(Cond::TRUE);
    };
    if piece.n_exists() > 0 {
        return Ok(Cond::TRUE);
    }
    let mut when = Cond::TRUE;
    for constraint in piece.constraints() {
        let form = form_of(constraint.expr(), decide.n_params)?;
        let rel = match constraint {
            affine::Constraint::Eq(_) => Rel::Eq,
            affine::Constraint::Ge(_) => Rel::Ge,
        };
        when = when.and(Cond::cmp(rel, form, 0));
    }
    Ok(when)
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
