//! Where the values of cells live between ticks.
//!
//! **Registers.** Where the PEs of a block are a constant number and a delay is a small constant number
//! of ticks, a PE keeps its queue in registers, `age` 1 the value of the last tick. Between ticks the
//! queue is renamed, not moved: only where a loop closes are the registers set.
//!
//! **Memory.** Otherwise a cell has an array of the block: one axis for each place coordinate, and for
//! the time coordinates from the first that a delay crosses. That first one runs in a circle of
//! delay + 1 places (one less with coalescing), the others in full. A value that is due later in the
//! same step of the circle is at another index, so no tick overwrites what it reads.

use systola_ir::array::{Array, Link};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::Shared;
use systola_ir::{Scalar, SharedId, Type, VarId};

use crate::decide::Undecided;
use crate::facts::Range;

/// The scalars of a type, in order.
pub fn scalars(ty: &Type) -> Vec<Scalar> {
    match ty {
        Type::Scalar(s) => vec![*s],
        Type::Tuple(parts) => parts.iter().flat_map(scalars).collect(),
    }
}

/// A PE of the block whose place is known when the kernel is made: one number for each place
/// coordinate that is not a block's, in vectors where the lane is the coordinate.
pub type PeKey = Vec<i128>;

/// The array of one cell in the memory of a block.
#[derive(Clone, Debug)]
pub struct Circular {
    /// One for each scalar.
    pub arrays: Vec<(SharedId, Scalar)>,
    /// The first time coordinate that a delay crosses, with the length of its circle.
    circle: Option<(usize, i128)>,
    /// Time coordinates behind it, with the start and the extent of their range.
    inner: Vec<(usize, Form, Poly)>,
    /// Place coordinates with the least index that is kept, below the range where links reach out.
    places: Vec<(usize, Form)>,
}

impl Circular {
    /// For the values that `links` read. `places` and `times` are coordinates of the slots with their
    /// ranges, those of the block only. Are the PEs known when the kernel is made?
    pub fn declare(
        shared: &mut Vec<Shared>,
        array: &Array,
        cell: VarId,
        links: &[&Link],
        places: &[(usize, Range)],
        times: &[(usize, Range)],
        lanes: u32,
        known: bool,
    ) -> Result<Circular, Undecided> {
        let n_place = array.place.len();
        let first = times
            .iter()
            .position(|(k, _)| links.iter().any(|l| !l.delay[k - n_place].is_zero()));
        let mut extents = Vec::new();
        let mut circle = None;
        let mut inner = Vec::new();
        if let Some(first) = first {
            let k = times[first].0;
            let mut longest = 0;
            for link in links {
                let delay = link.delay[k - n_place]
                    .as_constant()
                    .ok_or_else(|| Undecided::NeedsSizes("a delay depends on the sizes".into()))?;
                longest = longest.max(delay);
            }
            // Coalesced, where the oldest value is read only by the PE and at the place that the new
            // one takes: it is read first.
            let alone = |link: &&&Link| {
                let elsewhere = |(at, d): (usize, &Poly)| at != k - n_place && !d.is_zero();
                link.displacement.iter().all(Poly::is_zero)
                    && !link.delay.iter().enumerate().any(elsewhere)
            };
            let oldest = |link: &&&Link| link.delay[k - n_place].as_constant() == Some(longest);
            let length = if links.iter().filter(oldest).all(|l| alone(&l)) {
                longest
            } else {
                longest + 1
            };
            let length = length.max(1);
            circle = Some((k, length));
            extents.push(Poly::constant(length));
            for (k, range) in &times[first + 1..] {
                let (lo, extent) = span_of(range)?;
                extents.push(extent.clone());
                inner.push((*k, lo, extent));
            }
        }
        let mut kept = Vec::new();
        for (at, (k, range)) in places.iter().enumerate() {
            let (mut below, mut above) = (0, 0);
            for link in links {
                let d = link.displacement[*k].as_constant().ok_or_else(|| {
                    Undecided::NeedsSizes("a displacement depends on the sizes".into())
                })?;
                below = below.max(d);
                above = above.max(-d);
            }
            let (lo, extent) = span_of(range)?;
            if at + 1 == places.len() {
                // The last vector may reach beyond the last PE, and where PEs are walked in loops, which begin at the
                // first that has something to do, by any number of lanes.
                let lanes = i128::from(lanes);
                above += match extent.as_constant() {
                    Some(pes) if known => (-pes).rem_euclid(lanes),
                    Some(_) | None => lanes,
                };
            }
            kept.push((*k, lo.plus(-below)));
            extents.push(extent.add(&Poly::constant(below + above)));
        }
        let name = &array.cells[cell.index()].name;
        let parts = scalars(&array.cells[cell.index()].ty);
        let arrays = parts
            .iter()
            .enumerate()
            .map(|(n, ty)| {
                let name = if parts.len() > 1 {
                    format!("{name}_f{n}")
                } else {
                    name.clone()
                };
                shared.push(Shared {
                    name: format!("{name}s"),
                    ty: *ty,
                    extents: extents.clone(),
                });
                (SharedId::from(shared.len() - 1), *ty)
            })
            .collect();
        Ok(Circular {
            arrays,
            circle,
            inner,
            places: kept,
        })
    }

    /// Where the value of a slot is.
    pub fn index(&self, slot: &[Form]) -> Vec<Form> {
        let circle = self
            .circle
            .iter()
            .map(|(k, length)| slot[*k].modulo(*length));
        let inner = self.inner.iter().map(|(k, lo, _)| (k, lo));
        let places = self.places.iter().map(|(k, lo)| (k, lo));
        circle
            .chain(inner.chain(places).map(|(k, lo)| slot[*k].sub(lo)))
            .collect()
    }

    /// Does the circle have a place for this slot? One without a point may ask beyond the last tick.
    pub fn has(&self, slot: &[Form]) -> Cond {
        let within = self.inner.iter().map(|(k, lo, extent)| {
            let at = slot[*k].sub(lo);
            Cond::cmp(Rel::Ge, at.clone(), 0).and(Cond::cmp(Rel::Lt, at, extent.clone()))
        });
        within.fold(Cond::TRUE, Cond::and)
    }
}

/// The start and the extent of a range, as one form each: any of its bounds is good enough.
fn span_of(range: &Range) -> Result<(Form, Poly), Undecided> {
    let plain = |forms: &[Form]| -> Option<Form> {
        let number = forms.iter().find(|f| f.as_constant().is_some());
        let poly = || forms.iter().find(|f| f.as_poly().is_some());
        number.or_else(poly).cloned()
    };
    let missing = || Undecided::NeedsSizes("an extent depends on the sizes by a division".into());
    let lo = plain(&range.lo).ok_or_else(missing)?;
    let hi = plain(&range.hi).ok_or_else(missing)?;
    let extent = hi.sub(&lo).as_poly().cloned().ok_or_else(missing)?;
    Ok((lo, extent))
}
