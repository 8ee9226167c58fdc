//! Values that cross launches: their buffers in global memory, and the place of each value.
//!
//! A value is kept from the launch that makes it to the last that reads it, so the launch
//! coordinate is taken modulo distance + 1: two for ping-pong. The other axes are the iterators of
//! the system. An iterator whose range has constant length in a given launch (the last sweep of
//! four, say) counts from the start of that range; an iterator that is determined by the launch
//! needs no axis. Only owners store, and only what a later launch reads.

use std::collections::HashMap;

use systola_ir::array::{Array, Link, Port, Realisation};
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::kernel::{Buffer, BufferKind, Program};
use systola_ir::mapping::TimeLevel;
use systola_ir::system::Axis;
use systola_ir::{BufferId, DimId, Scalar, VarId};

use crate::clock::domain;
use crate::decide::{Decide, Undecided};
use crate::storage::place::Place;
use crate::storage::queues::scalars;
use crate::storage::slots::{Part, bounds};

/// With more readers than this, only the conditions that they have in common are used.
const MOST_READERS: usize = 8;

/// The buffers of all cells that are read in later launches.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    by_cell: HashMap<VarId, LaunchBuffer>,
}

#[derive(Clone, Debug)]
struct LaunchBuffer {
    buffers: Vec<(BufferId, Scalar)>,
    /// A launch coordinate of the slots, and the modulus with which it is stored.
    modulus: Option<(usize, i128)>,
    axes: Vec<LaunchAxis>,
    /// The points that are read later; over the point.
    when: Cond,
}

#[derive(Clone, Debug)]
struct LaunchAxis {
    dim: DimId,
    /// Over the launch coordinates of the slot.
    start: Form,
    extent: Poly,
}

impl Launches {
    pub fn declare(
        array: &Array,
        decide: &Decide,
        program: &mut Program,
    ) -> Result<Launches, Undecided> {
        let mut launches = Launches::default();
        let n_place = array.place.len();
        let coordinates: Vec<usize> = (0..array.time.len())
            .filter(|t| array.time[*t].level == TimeLevel::Launch)
            .map(|t| n_place + t)
            .collect();
        for n in 0..array.cells.len() {
            let cell = VarId::from(n);
            let links: Vec<(&Port, &Link)> = array
                .ports
                .iter()
                .filter(|p| p.source == cell)
                .flat_map(|p| p.links.iter().map(move |l| (p, l)))
                .filter(|(_, l)| l.realisation == Realisation::Launch)
                .collect();
            if links.is_empty() {
                continue;
            }
            let when = read_later(array, cell, &links)?;
            let modulus = match coordinates.as_slice() {
                [k] => links
                    .iter()
                    .map(|(_, l)| l.delay[k - n_place].as_constant())
                    .try_fold(0, |most: i128, d| Some(most.max(d?)))
                    .map(|longest| (*k, longest + 1)),
                _ => None,
            };
            let mut axes = Vec::new();
            for d in array.tiles.len()..array.dims.len() {
                let axis = launch_axis(array, decide, DimId::from(d), &when, modulus.map(|c| c.0))?;
                if axis.extent != Poly::constant(1) {
                    axes.push(axis);
                }
            }
            let buffers = buffers(array, cell, modulus, &axes, program);
            launches.by_cell.insert(
                cell,
                LaunchBuffer {
                    buffers,
                    modulus,
                    axes,
                    when,
                },
            );
        }
        Ok(launches)
    }

    /// Where the value of a cell at a slot is stored, over the point; only what a later launch
    /// reads is stored.
    pub fn place(
        &self,
        cell: VarId,
        slot: &[Form],
        point: &[Form],
    ) -> Result<Option<Place<'_>>, Overflow> {
        let Some(buffer) = self.by_cell.get(&cell) else {
            return Ok(None);
        };
        let index = buffer.index(slot, point)?;
        Ok(Some(Place::at(
            &buffer.buffers,
            index,
            &buffer.when,
            point,
        )?))
    }

    /// Where the value that a link brings is stored. `live`: where the slot has a point that takes
    /// it.
    pub fn source(
        &self,
        array: &Array,
        (port, link): (&Port, &Link),
        slot: &[Form],
        point: &[Form],
        live: Cond,
    ) -> Result<Option<Place<'_>>, Overflow> {
        let Some(buffer) = self.by_cell.get(&port.source) else {
            return Ok(None);
        };
        let n_place = array.place.len();
        let slot: Vec<Form> = slot
            .iter()
            .enumerate()
            .map(|(k, form)| match k.checked_sub(n_place) {
                None => form.clone(),
                Some(t) => form.sub(&Form::from(link.delay[t].clone())),
            })
            .collect();
        let point: Vec<Form> = point
            .iter()
            .zip(array.extend_distance(&port.distance))
            .map(|(z, e)| z.sub(&Form::from(e)))
            .collect();
        let index = buffer.index(&slot, &point)?;
        // Without a modulus this launch writes among the elements that it reads, and a slot without
        // a point must not access them.
        let live = match buffer.modulus {
            None => live,
            Some(_) => Cond::TRUE,
        };
        let axes = buffer.axes.iter();
        let within = axes.zip(&index[index.len() - buffer.axes.len()..]);
        let within = within.map(|(axis, at)| {
            let end = axis.extent.clone();
            Cond::cmp(Rel::Ge, at.clone(), 0).and(Cond::cmp(Rel::Lt, at.clone(), end))
        });
        Ok(Some(Place {
            when: within.fold(live, Cond::and),
            buffers: &buffer.buffers,
            index,
        }))
    }
}

impl LaunchBuffer {
    fn index(&self, slot: &[Form], point: &[Form]) -> Result<Vec<Form>, Overflow> {
        let mut index: Vec<Form> = self
            .modulus
            .iter()
            .map(|(k, length)| slot[*k].modulo(*length))
            .collect();
        for axis in &self.axes {
            let start = axis.start.substitute(&|d| slot.get(d.index()).cloned())?;
            index.push(point[axis.dim.index()].sub(&start));
        }
        Ok(index)
    }
}

/// Where a later launch reads the cell, over its own point. Conditions on the reader's tile are
/// omitted: then more is stored than is read.
fn read_later(array: &Array, cell: VarId, links: &[(&Port, &Link)]) -> Result<Cond, Overflow> {
    let mut any = Vec::new();
    for (port, link) in links {
        let e = array.extend_distance(&port.distance);
        let reader = |f: &Form| {
            f.substitute(&|d| {
                let e = e.get(d.index())?;
                Some(Form::from(d).add(&Form::from(e.clone())))
            })
        };
        let cond = array.cells[port.sink.index()]
            .domain
            .clone()
            .and(port.when.clone())
            .and(link.guard.clone());
        any.push(without_tiles(&cond.map(&reader)?, array.tiles.len()));
    }
    let domain = array.cells[cell.index()].domain.clone();
    let read = if any.len() > MOST_READERS {
        hull(&any, &domain)
    } else {
        Cond::any(any)
    };
    Ok(domain.and(read))
}

/// A condition that all of these imply: the comparisons that are in each of them, up to constants.
/// Known comparisons are omitted.
fn hull(parts: &[Cond], known: &Cond) -> Cond {
    let known = nonnegative(known);
    let is_known = |form: &Form| {
        let gaps = known.iter().map(|known| form.sub(known).as_constant());
        gaps.flatten().any(|gap| gap >= 0)
    };
    let parts = parts.iter().filter(|p| **p != Cond::Const(false));
    let parts: Vec<Vec<Form>> = parts.map(nonnegative).collect();
    let Some((first, others)) = parts.split_first() else {
        return Cond::Const(false);
    };
    let weakest = |form: &Form| {
        let mut most = 0;
        for part in others {
            let gaps = part.iter().filter_map(|f| f.sub(form).as_constant());
            most = most.max(gaps.min()?);
        }
        let weakest = form.plus(most);
        (!is_known(&weakest)).then(|| Cond::cmp(Rel::Ge, weakest, 0))
    };
    first.iter().filter_map(weakest).fold(Cond::TRUE, Cond::and)
}

/// Forms that are nonnegative where a condition holds.
fn nonnegative(cond: &Cond) -> Vec<Form> {
    match cond {
        Cond::And(parts) => parts.iter().flat_map(nonnegative).collect(),
        Cond::Cmp(rel, left, right) => {
            let gap = left.sub(right);
            match rel {
                Rel::Ge => vec![gap],
                Rel::Gt => vec![gap.plus(-1)],
                Rel::Le => vec![gap.neg()],
                Rel::Lt => vec![gap.neg().plus(-1)],
                Rel::Eq => vec![gap.neg(), gap],
                Rel::Ne => Vec::new(),
            }
        }
        Cond::Const(_) | Cond::Or(_) | Cond::Not(_) => Vec::new(),
    }
}

fn without_tiles(cond: &Cond, n_tiles: usize) -> Cond {
    let all = |parts: &[Cond]| parts.iter().map(|p| without_tiles(p, n_tiles)).collect();
    match cond {
        Cond::Const(_) => cond.clone(),
        Cond::And(parts) => Cond::And(all(parts)),
        Cond::Or(parts) => Cond::Or(all(parts)),
        Cond::Cmp(..) | Cond::Not(_) => {
            let tiled = cond
                .forms()
                .into_iter()
                .flat_map(Form::dims)
                .any(|d| d.index() < n_tiles);
            if tiled { Cond::TRUE } else { cond.clone() }
        }
    }
}

fn launch_axis(
    array: &Array,
    decide: &Decide,
    dim: DimId,
    when: &Cond,
    launch: Option<usize>,
) -> Result<LaunchAxis, Undecided> {
    let n_place = array.place.len();
    let part = |given: Option<usize>| -> Vec<Part> {
        array
            .pieces
            .iter()
            .map(|piece| Part {
                cond: domain(array)
                    .and(piece.cond.clone())
                    .and(array.owned())
                    .and(when.clone()),
                value: Form::from(dim),
                given: given
                    .iter()
                    .map(|k| piece.time[k - n_place].clone())
                    .collect(),
            })
            .collect()
    };
    if let Some(k) = launch {
        let range = bounds(decide, array.dims.len(), part(Some(k)), &[k])?;
        for lo in &range.lo {
            for hi in &range.hi {
                if let Some(extent) = hi.sub(lo).as_constant() {
                    return Ok(LaunchAxis {
                        dim,
                        start: lo.clone(),
                        extent: Poly::constant(extent.max(1)),
                    });
                }
            }
        }
    }
    let range = bounds(decide, array.dims.len(), part(None), &[])?;
    let plain = |forms: &[Form]| forms.iter().find(|f| f.as_poly().is_some()).cloned();
    let ends = plain(&range.lo).zip(plain(&range.hi));
    let extent = ends
        .as_ref()
        .and_then(|(lo, hi)| hi.sub(lo).as_poly().cloned());
    match (ends, extent) {
        (Some((start, _)), Some(extent)) => Ok(LaunchAxis { dim, start, extent }),
        _ => Err(Undecided::NeedsSizes(
            "the range of what a launch keeps depends on the sizes by a division".into(),
        )),
    }
}

fn buffers(
    array: &Array,
    cell: VarId,
    modulus: Option<(usize, i128)>,
    axes: &[LaunchAxis],
    program: &mut Program,
) -> Vec<(BufferId, Scalar)> {
    let cell = &array.cells[cell.index()];
    let parts = scalars(&cell.ty);
    let axis = |hi: Form| Axis {
        lo: Form::zero(),
        hi,
    };
    parts
        .iter()
        .enumerate()
        .map(|(n, ty)| {
            let name = if parts.len() > 1 {
                format!("{}_f{n}_kept", cell.name)
            } else {
                format!("{}_kept", cell.name)
            };
            let modulus = modulus.iter().map(|(_, length)| axis(Form::from(*length)));
            let rest = axes.iter().map(|a| axis(Form::from(a.extent.clone())));
            program.buffers.push(Buffer {
                name,
                ty: *ty,
                kind: BufferKind::Temporary,
                axes: modulus.chain(rest).collect(),
            });
            (BufferId::from(program.buffers.len() - 1), *ty)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_readers_have_in_common_is_a_box_around_them() {
        let (x, n) = (Form::from(DimId(0)), Form::from(systola_ir::ParamId(0)));
        let shifted = |by: i128| {
            let low = Cond::cmp(Rel::Ge, x.plus(by), 0);
            low.and(Cond::cmp(Rel::Lt, x.plus(by), n.clone()))
        };
        let hull = hull(&[shifted(-1), shifted(2), shifted(0)], &Cond::TRUE);
        let low = Cond::cmp(Rel::Ge, x.plus(2), 0);
        let high = Cond::cmp(Rel::Ge, n.sub(&x), 0);
        for at in -5..15 {
            let holds = |c: &Cond| c.eval(&[8], &[at]) == Ok(true);
            assert_eq!(holds(&hull), holds(&low) && holds(&high), "{at}");
        }
        // Known comparisons are not repeated; comparisons that one reader lacks are dropped.
        let domain = Cond::cmp(Rel::Ge, x.clone(), 0);
        let only_high = super::hull(&[shifted(0), shifted(1)], &domain);
        assert_eq!(only_high.forms().len(), 2, "{only_high:?}");
        let one_sided = super::hull(&[shifted(0), domain], &Cond::TRUE);
        assert!(one_sided.eval(&[8], &[100]) == Ok(true), "{one_sided:?}");
    }
}
