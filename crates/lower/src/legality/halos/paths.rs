//! The values computed from a value inside its tile, if no value returns to the cell it was made
//! in.
//!
//! A chain of stencils is such a case: a cell has finitely many paths, and each is a displacement
//! with the guards along it. Paths with the same cell and displacement are kept together, and a
//! path whose guards include all guards of another is dropped. The cost of a chain is thus the sum
//! of its neighbourhoods, not their product.

use std::collections::BTreeMap;

use systola_ir::VarId;
use systola_ir::array::{Array, Port, Realisation};
use systola_ir::form::{Cond, Overflow, Poly};

use crate::decide::{Decide, Sample, Undecided};
use crate::localise::shift_form;

/// At most this many alternatives are kept.
const MOST: usize = 4_096;

/// Where the value of a cell at z goes within a launch.
pub(super) struct Paths {
    reached: Vec<Reached>,
}

/// The guards of a path, which must all hold.
type Way = Vec<Cond>;

/// A displacement from z, and the paths that lead there.
struct Reached {
    cell: VarId,
    by: Vec<Poly>,
    ways: Vec<Way>,
}

impl Paths {
    /// All paths from a cell; `None` if one of them returns to a cell on it, or if there are too
    /// many.
    pub(super) fn from_cell(array: &Array, cell: VarId) -> Result<Option<Paths>, Overflow> {
        let Some(order) = downstream(array, cell) else {
            return Ok(None);
        };
        let stay = vec![Poly::zero(); array.dims.len()];
        let mut open: Vec<BTreeMap<Vec<Poly>, Vec<Way>>> = vec![BTreeMap::new(); array.cells.len()];
        open[cell.index()].insert(stay, vec![Way::new()]);
        let mut reached = Vec::new();
        let mut kept = 0;
        for cell in order {
            for (by, ways) in std::mem::take(&mut open[cell.index()]) {
                for port in array.ports.iter().filter(|p| p.source == cell) {
                    if !stays_within(port) {
                        continue;
                    }
                    let e = array.extend_distance(&port.distance);
                    let next: Vec<Poly> = by.iter().zip(&e).map(|(b, e)| b.add(e)).collect();
                    let guards = guards_of(port, array, &next)?;
                    let there = open[port.sink.index()].entry(next).or_default();
                    for way in &ways {
                        let fresh = guards.iter().filter(|g| !way.contains(g));
                        let way = way.iter().chain(fresh).cloned().collect();
                        kept += usize::from(keep(there, way));
                    }
                    if kept > MOST {
                        return Ok(None);
                    }
                }
                reached.push(Reached { cell, by, ways });
            }
        }
        Ok(Some(Paths { reached }))
    }

    /// A point of `from` whose value is used in an owned point of its tile.
    pub(super) fn needed_by_owners(
        &self,
        from: &Cond,
        array: &Array,
        decide: &Decide,
    ) -> Result<Option<Sample>, Undecided> {
        let n = array.dims.len();
        for Reached { cell, by, ways } in &self.reached {
            let there = array.owned().and(array.cells[cell.index()].domain.clone());
            let arrives = from.clone().and(at(&there, by)?);
            // Most displacements reach no owned point, whatever the guards.
            if decide.is_empty(&arrives, n)? {
                continue;
            }
            for way in ways {
                let question = way.iter().cloned().fold(arrives.clone(), Cond::and);
                if let Some(sample) = decide.sample(&question, n)? {
                    return Ok(Some(sample));
                }
            }
        }
        Ok(None)
    }
}

/// Adds a path, and says whether it is new: weaker guards replace stronger ones.
fn keep(ways: &mut Vec<Way>, way: Way) -> bool {
    if ways.iter().any(|w| w.iter().all(|g| way.contains(g))) {
        return false;
    }
    ways.retain(|w| !way.iter().all(|g| w.contains(g)));
    ways.push(way);
    true
}

fn stays_within(port: &Port) -> bool {
    port.links.iter().any(|l| l.realisation.is_within_launch())
}

/// The conditions, over z, under which the sink at z + by takes the value within the launch.
fn guards_of(port: &Port, array: &Array, by: &[Poly]) -> Result<Vec<Cond>, Overflow> {
    let mut all = array.cells[port.sink.index()]
        .domain
        .clone()
        .and(port.when.clone());
    let leaves = |r: &Realisation| matches!(r, Realisation::Launch | Realisation::Reinject);
    if port.links.iter().any(|l| leaves(&l.realisation)) {
        let within = port
            .links
            .iter()
            .filter(|l| l.realisation.is_within_launch());
        all = all.and(Cond::Or(within.map(|l| l.guard.clone()).collect()));
    }
    Ok(match at(&all, by)? {
        Cond::And(parts) => parts,
        one => vec![one],
    })
}

/// A condition of z + by.
fn at(cond: &Cond, by: &[Poly]) -> Result<Cond, Overflow> {
    let back: Vec<Poly> = by.iter().map(Poly::neg).collect();
    cond.map(&|f| shift_form(f, &back))
}

/// The cells that a value can reach within a launch, sources first; `None` if there is a cycle.
fn downstream(array: &Array, from: VarId) -> Option<Vec<VarId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    fn visit(array: &Array, cell: VarId, marks: &mut [Mark], order: &mut Vec<VarId>) -> Option<()> {
        match marks[cell.index()] {
            Mark::Done => return Some(()),
            Mark::Open => return None,
            Mark::New => marks[cell.index()] = Mark::Open,
        }
        for port in array.ports.iter().filter(|p| p.source == cell) {
            if stays_within(port) {
                visit(array, port.sink, marks, order)?;
            }
        }
        marks[cell.index()] = Mark::Done;
        order.push(cell);
        Some(())
    }
    let mut order = Vec::new();
    visit(
        array,
        from,
        &mut vec![Mark::New; array.cells.len()],
        &mut order,
    )?;
    order.reverse();
    Some(order)
}
