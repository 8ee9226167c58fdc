//! Aggregation trees along the lanes.
//!
//! A cell that combines its own value with that of the neighbouring lane in the same tick is a
//! chain through the lanes: S(l) = S(l − d) ⊕ term(l), except at its heads, where S is complete
//! without its neighbour. Since ⊕ may be regrouped, a vector of it takes log₂ steps instead of one
//! for each lane: after the step of width s every lane holds its last s terms, and combines them
//! with those of the lane s below unless a head lies between (an inclusive segmented scan). From
//! vector to vector the chain is serial: the values of the last lanes of one vector are carried to
//! the next, in a register if a loop runs over the vectors. A value that is only carried along the
//! lanes is the same with ⊕ = the earlier one.
//!
//! If a chain goes through registers of a lane and then to the next lane, `lane = l / 4; reg = l %
//! 4;`, every lane first combines its own registers as if the chain began there. The lanes then
//! scan what leaves them, and what enters a lane is combined with its registers last. Such a chain
//! may go on from the last lane to the first in other registers, `reg = (l / 128, l % 4);`: these
//! vectors follow one another.
//!
//! A lane inside the domain combines only with lanes of its own chain, which are inside too: no
//! neutral element is needed for the others.

use std::collections::HashMap;

use systola_ir::array::{Array, Link, Port, Realisation, Role};
use systola_ir::system::visit::walk;
use systola_ir::system::{Combine, Expr};
use systola_ir::{PortId, VarId};

use crate::storage::links::is_at_once;
use crate::storage::slots::Slots;

/// A chain of a cell through the lanes of its vectors.
#[derive(Clone, Debug)]
pub struct Scan {
    pub joins: Joins,
    /// The number of lanes by which a value moves; negative if it moves towards the first lane.
    pub by: i128,
    /// For a chain through registers and lanes: how far the value moves along each coordinate of
    /// the PEs when it goes to another lane, from the last register of the chain to the first.
    wraps: Option<Vec<i128>>,
    /// The same from the last lane to the first, if the chain goes on in other registers.
    returns: Option<Vec<i128>>,
}

impl Scan {
    /// How a chain through registers goes to another lane.
    pub fn wraps(&self) -> Option<&[i128]> {
        self.wraps.as_deref()
    }

    /// How a chain through registers goes from the last lane to the first.
    pub fn returns(&self) -> Option<&[i128]> {
        self.returns.as_deref()
    }
}

/// How the arriving value is combined.
#[derive(Clone, Copy, Debug)]
pub enum Joins {
    Term(Combine),
    Nothing,
}

/// The scans that realise all values that arrive at once, in vectors along the place coordinate
/// `vector`; `None` if one of them is no chain of its own cell.
pub fn scans<'a>(
    array: &Array,
    at_once: impl Iterator<Item = (&'a Port, &'a Link)>,
    pes: &[usize],
    vector: usize,
    lanes: u32,
) -> Option<HashMap<VarId, Scan>> {
    let mut found: HashMap<VarId, Scan> = HashMap::new();
    for (port, link) in at_once {
        let Some(by) = along_lanes(link, pes, vector, lanes)? else {
            continue;
        };
        let cell = port.source;
        if port.sink != cell || array.pieces.len() > 1 {
            return None;
        }
        let joins = joins(array, cell)?;
        let scan = found.entry(cell).or_insert(Scan {
            joins,
            by,
            wraps: None,
            returns: None,
        });
        let ports = own_ports(array, cell);
        if scan.by != by || !is_chain(&array.cells[cell.index()].body, joins, &ports) {
            return None;
        }
    }
    Some(found)
}

/// The chains that go through registers and then through lanes: within a lane in one order, and
/// from the last register of one lane to the first of another. `lane` is the place coordinate of
/// the lanes, `pes` are those inside a warp.
pub fn register_chains(
    array: &Array,
    slots: &Slots,
    pes: &[usize],
    lane: usize,
    lanes: u32,
) -> HashMap<VarId, Scan> {
    let cells = (0..array.cells.len()).map(VarId::from);
    cells
        .filter_map(|cell| Some((cell, register_chain(array, slots, pes, lane, lanes, cell)?)))
        .collect()
}

fn register_chain(
    array: &Array,
    slots: &Slots,
    pes: &[usize],
    lane: usize,
    lanes: u32,
    cell: VarId,
) -> Option<Scan> {
    if array.pieces.len() > 1 {
        return None;
    }
    let ports = own_ports(array, cell);
    let mut within: Vec<Vec<i128>> = Vec::new();
    let mut across: Vec<Vec<i128>> = Vec::new();
    for port in ports.iter().map(|p| array.port(*p)) {
        for link in port.links.iter().filter(|l| is_at_once(array, port, l)) {
            let mut elsewhere = (0..array.place.len()).filter(|p| !pes.contains(p));
            if elsewhere.any(|p| !link.displacement[p].is_zero()) {
                return None;
            }
            let moved = pes.iter().map(|p| link.displacement[*p].as_constant());
            let moved: Vec<i128> = moved.collect::<Option<_>>()?;
            let to_lanes = link.displacement[lane].as_constant()?;
            let registers = moved.iter().filter(|d| **d != 0).count() - usize::from(to_lanes != 0);
            match (to_lanes, registers) {
                (0, 0) => {}
                (0, _) => within.push(moved),
                (by, r) if r > 0 && by.abs() < i128::from(lanes) => across.push(moved),
                _ => return None,
            }
        }
    }
    let joins = joins(array, cell)?;
    if !is_chain(&array.cells[cell.index()].body, joins, &ports) {
        return None;
    }
    let at_lane = pes.iter().position(|p| *p == lane)?;
    // All steps within a lane go one way, so that sources come first.
    let up = |w: &Vec<i128>| w.iter().find(|d| **d != 0).is_some_and(|d| *d > 0);
    if within.is_empty() || within.iter().any(up) && !within.iter().all(up) {
        return None;
    }
    // Does a chain enter a lane at one end of its registers, and leave it at the other?
    let follows_registers = |within: &[Vec<i128>], wraps: &[i128], returns: Option<&Vec<i128>>| {
        let by = wraps[at_lane];
        let full = |at: usize, by: i128| {
            let range = slots.ranges[pes[at]].constant();
            range.is_some_and(|(lo, hi)| by.abs() == hi - lo - 1)
        };
        for at in (0..pes.len()).filter(|at| *at != at_lane) {
            let moves = within.iter().any(|w| w[at] != 0) || wraps[at] != 0;
            if moves && !full(at, wraps[at]) {
                return false;
            }
            if let Some(returns) = returns {
                let further = returns[at] != wraps[at];
                if moves && further || !moves && returns[at].abs() > 1 {
                    return false;
                }
            }
        }
        if let Some(returns) = returns {
            let one_vector = slots.ranges[lane].constant();
            let one_vector = one_vector.is_some_and(|(lo, hi)| hi - lo == i128::from(lanes));
            let back = returns[at_lane] == -by.signum() * (i128::from(lanes) - 1);
            let mut registers = (0..pes.len()).filter(|at| *at != at_lane && wraps[*at] == 0);
            let one = registers.by_ref().filter(|at| returns[*at] != 0).count() == 1;
            if by.abs() != 1 || !back || !one || !one_vector {
                return false;
            }
        }
        true
    };
    // A chain goes to the next lane from all lanes but the last, and from there to the first. Of two
    // lanes each is the next one of the other.
    across.iter().find_map(|wraps| {
        let returns = across.iter().find(|moved| *moved != wraps);
        let known = |moved: &Vec<i128>| moved == wraps || Some(moved) == returns;
        let by = wraps[at_lane];
        let in_order = across.iter().all(known) && follows_registers(&within, wraps, returns);
        in_order.then(|| Scan {
            joins,
            by,
            wraps: Some(wraps.clone()),
            returns: returns.cloned(),
        })
    })
}

/// The number of lanes by which a link moves a value within one vector; `Some(None)` if it comes
/// from a vector that runs earlier.
pub fn along_lanes(link: &Link, pes: &[usize], vector: usize, lanes: u32) -> Option<Option<i128>> {
    for p in pes.iter().filter(|p| **p != vector) {
        if link.displacement[*p].as_constant()? != 0 {
            return Some(None);
        }
    }
    let by = link.displacement[vector].as_constant()?;
    // A link from a slot to itself serves no point.
    Some((by != 0 && by.abs() < i128::from(lanes)).then_some(by))
}

fn joins(array: &Array, cell: VarId) -> Option<Joins> {
    match &array.cells[cell.index()].role {
        Role::Accumulation { op, .. } => {
            let regrouped = array
                .ports
                .iter()
                .filter(|p| p.sink == cell && p.source == cell)
                .flat_map(|p| &p.links)
                .all(|l| l.realisation != Realisation::Broadcast);
            let closed = match op {
                Combine::Op(_) => true,
                Combine::Fn(f) => {
                    let f = &array.functions[f.index()];
                    f.params.iter().all(|(_, ty)| *ty == f.result)
                }
            };
            (regrouped && closed).then_some(Joins::Term(*op))
        }
        Role::Carry { .. } => Some(Joins::Nothing),
        Role::Plain | Role::Propagation { .. } => None,
    }
}

/// The ports through which a cell reads itself.
pub fn own_ports(array: &Array, cell: VarId) -> Vec<PortId> {
    (0..array.ports.len())
        .filter(|p| array.ports[*p].sink == cell && array.ports[*p].source == cell)
        .map(PortId::from)
        .collect()
}

pub fn mentions(expr: &Expr, ports: &[PortId]) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        if let Expr::Port(port) = e {
            found |= ports.contains(port);
        }
    });
    found
}

/// Does the body have the form that a scan can split?
fn is_chain(expr: &Expr, joins: Joins, ports: &[PortId]) -> bool {
    if !mentions(expr, ports) {
        return true;
    }
    if let Expr::Guard {
        then, otherwise, ..
    } = expr
    {
        let mut branches = std::iter::once(then).chain(otherwise);
        return branches.all(|branch| is_chain(branch, joins, ports));
    }
    match (joins, expr) {
        (Joins::Nothing, expr) => matches!(expr, Expr::Port(_)),
        (Joins::Term(_), expr) => sides(expr, joins, ports)
            .is_some_and(|(sum, _, _)| is_sum_so_far(sum, ports) || is_chain(sum, joins, ports)),
    }
}

/// Is the expression the sum so far, or a choice between such sums and what begins one?
pub fn is_sum_so_far(expr: &Expr, ports: &[PortId]) -> bool {
    match expr {
        Expr::Port(_) => true,
        Expr::Guard {
            then, otherwise, ..
        } => {
            let mut branches = std::iter::once(then).chain(otherwise);
            branches.all(|branch| !mentions(branch, ports) || is_sum_so_far(branch, ports))
        }
        _ => false,
    }
}

/// The operand that holds the sum so far, the other one, and whether the sum stands first.
pub fn sides<'e>(
    expr: &'e Expr,
    joins: Joins,
    ports: &[PortId],
) -> Option<(&'e Expr, &'e Expr, bool)> {
    let (left, right) = match (joins, expr) {
        (Joins::Term(Combine::Op(op)), Expr::Binary(o, left, right)) if *o == op => {
            (&**left, &**right)
        }
        (Joins::Term(Combine::Fn(f)), Expr::Call(g, args)) if *g == f => match args.as_slice() {
            [left, right] => (left, right),
            _ => return None,
        },
        _ => return None,
    };
    match (mentions(left, ports), mentions(right, ports)) {
        (true, false) => Some((left, right, true)),
        (false, true) if matches!(joins, Joins::Term(Combine::Op(_))) => Some((right, left, false)),
        _ => None,
    }
}
