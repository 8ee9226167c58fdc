//! Fault tests that another point performs as well.
//!
//! A letter that travels through an array is the same at every point it passes, and so is the table
//! entry for it. If the equation also looks it up at the previous point, that point performs the
//! test; only the points where letters enter remain. Chains of previous points are finite, so each
//! chain begins with a test. The previous point must come earlier in the same warp, so that a fault
//! that follows from a wrong value is never recorded in place of the first one.

use systola_ir::array::{Array, Piece, Role};
use systola_ir::mapping::PlaceLevel;
use systola_ir::system::Expr;
use systola_ir::{Cond, DimId, Form, Poly};

use crate::emit::Emitter;
use crate::emit::cells::Here;
use crate::failure::Failure;

/// Forms over the point that decide the value of an expression; `None` if it depends on more than
/// the position.
pub fn decided_by(array: &Array, expr: &Expr) -> Option<Vec<Form>> {
    let all = |parts: &[&Expr]| -> Option<Vec<Form>> {
        let forms = parts.iter().map(|part| decided_by(array, part));
        Some(forms.collect::<Option<Vec<_>>>()?.concat())
    };
    match expr {
        Expr::Lit(..) | Expr::Const(_) | Expr::Param(_) => Some(Vec::new()),
        Expr::Iter(d) => Some(vec![Form::from(*d)]),
        Expr::Input { index, .. } => Some(index.clone()),
        Expr::Port(port) => {
            let port = &array.ports[port.index()];
            let same_point = port.distance.iter().all(Poly::is_zero);
            match &array.cells[port.source.index()].role {
                Role::Propagation { index, .. } if same_point => Some(index.clone()),
                Role::Propagation { .. }
                | Role::Plain
                | Role::Carry { .. }
                | Role::Accumulation { .. } => None,
            }
        }
        Expr::Unary(_, a) | Expr::Cast(_, a) => decided_by(array, a),
        Expr::Binary(_, a, b) => all(&[a, b]),
        Expr::Select {
            cond,
            then,
            otherwise,
        } => all(&[cond, then, otherwise]),
        Expr::Lookup { index, .. } => all(&index.iter().collect::<Vec<_>>()),
        Expr::Local(_)
        | Expr::Var { .. }
        | Expr::Guard { .. }
        | Expr::Tuple(_)
        | Expr::Field(..)
        | Expr::Call(..)
        | Expr::Let { .. }
        | Expr::Reduce { .. }
        | Expr::Scan { .. } => None,
    }
}

impl Emitter<'_> {
    /// Does an earlier point test the same value, for every live point here? `points` are the
    /// points that test such values, `live` is what holds here. If only some points have such an
    /// earlier point, a condition would cost as much as the test.
    pub(super) fn is_tested_before(
        &self,
        decided_by: &[Form],
        points: &Cond,
        live: &Cond,
        here: &Here<'_>,
    ) -> Result<bool, Failure> {
        let facts = self.facts.with(live.clone());
        for k in self.array.tiles.len()..self.array.dims.len() {
            let k = DimId::from(k);
            let decides = decided_by.iter().any(|form| form.dims().contains(&k));
            if decides || !self.array.pieces.iter().all(|p| self.goes_along(p, k)) {
                continue;
            }
            let before = |d: DimId| {
                let at = here.point.get(d.index())?;
                Some(if d == k { at.plus(-1) } else { at.clone() })
            };
            if facts.simplify(&points.map(&|f| f.substitute(&before))?) == Cond::TRUE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does a warp visit the points along an iterator one after another, upwards?
    fn goes_along(&self, piece: &Piece, k: DimId) -> bool {
        let mut place = self.array.place.iter().zip(&piece.place);
        let stays = place.all(|(coord, form)| match coord.level {
            PlaceLevel::Node | PlaceLevel::Block | PlaceLevel::Warp => !form.dims().contains(&k),
            PlaceLevel::Lane | PlaceLevel::Reg => true,
        });
        let first = piece.time.iter().find(|form| form.dims().contains(&k));
        let rises = first.is_some_and(|form| {
            !form.has_digit_of(k) && form.coefficient(k).as_constant().is_some_and(|c| c > 0)
        });
        stays && rises
    }
}
