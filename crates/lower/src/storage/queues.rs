//! Where the values of cells live between ticks.
//!
//! **Registers.** If the PEs of a block are a constant number and a delay is a small constant
//! number of ticks, a PE keeps its queue in registers; `age` 1 is the value of the last tick.
//! Between ticks the queue is renamed, not moved: registers are written only where a loop closes.
//!
//! **Memory.** Otherwise a cell has a shared array: one axis for each place coordinate, and one for
//! each time coordinate from the first that a delay crosses. The axis of that first one is
//! circular, with delay + 1 elements (one less with coalescing); the others are stored in full. A
//! value that is due later in the same step of the circular axis is at another index, so no tick
//! overwrites what it reads.

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

/// A PE of the block whose place is known at compile time: one number for each place coordinate
/// inside the block. The lane coordinate counts in vectors.
pub type PeKey = Vec<i128>;

/// The shared array of one cell.
#[derive(Clone, Debug)]
pub struct Circular {
    /// One for each scalar.
    pub arrays: Vec<(SharedId, Scalar)>,
    /// The first time coordinate that a delay crosses, with the length of its circular axis.
    circular: Option<(usize, i128)>,
    /// Time coordinates after it, with the start and the extent of their range.
    inner: Vec<(usize, Form, Poly)>,
    /// Place coordinates with the least index that is stored, below the range where links reach
    /// out.
    places: Vec<(usize, Form)>,
}

impl Circular {
    /// Declares the array for the values that `links` read. `places` and `times` are the
    /// coordinates of the slots inside the block, with their ranges. `known`: are the PEs known at
    /// compile time?
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
        let mut circular = None;
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
            // Coalesced, if only the PE itself reads the oldest value, at the element that the new
            // value takes: the read comes first.
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
            circular = Some((k, length));
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
                // The last vector may reach beyond the last PE. If PEs run in loops, these begin at
                // the first PE with work, so it may reach beyond by any number of lanes.
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
            circular,
            inner,
            places: kept,
        })
    }

    /// The index of the value of a slot.
    pub fn index(&self, slot: &[Form]) -> Vec<Form> {
        let circular = self
            .circular
            .iter()
            .map(|(k, length)| slot[*k].modulo(*length));
        let inner = self.inner.iter().map(|(k, lo, _)| (k, lo));
        let places = self.places.iter().map(|(k, lo)| (k, lo));
        circular
            .chain(inner.chain(places).map(|(k, lo)| slot[*k].sub(lo)))
            .collect()
    }

    /// Is the slot inside the stored range? A slot without a point may be beyond the last tick.
    pub fn has(&self, slot: &[Form]) -> Cond {
        let within = self.inner.iter().map(|(k, lo, extent)| {
            let at = slot[*k].sub(lo);
            Cond::cmp(Rel::Ge, at.clone(), 0).and(Cond::cmp(Rel::Lt, at, extent.clone()))
        });
        within.fold(Cond::TRUE, Cond::and)
    }
}

/// The start and the extent of a range, as one form each: any of its bounds will do.
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
