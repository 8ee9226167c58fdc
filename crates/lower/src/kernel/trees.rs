//! Aggregation trees along the lanes.
//!
//! A cell that combines its own value of the neighbouring lane in the same tick is a chain through the
//! lanes: S(l) = S(l − d) ⊕ term(l), except at its heads, where S is complete without its neighbour. Since ⊕ may be
//! regrouped, a vector of it takes log₂ steps instead of one for each lane: after the step of width s every lane
//! holds its last s terms, and takes in those of the lane s below unless a head lies between (an inclusive scan in
//! segments). From vector to vector the chain is serial: the last lanes of one are handed to the next, in a register
//! where vectors are walked in a loop. A value that is only carried along the lanes is the same with ⊕ = the earlier one.
//!
//! A lane inside of the domain takes in lanes of its own chain only, which are inside too: no neutral element
//! is needed for the others.

use std::collections::HashMap;

use systola_ir::array::{Array, Link, Port, Realisation, Role};
use systola_ir::system::visit::walk;
use systola_ir::system::{Combine, Expr};
use systola_ir::{PortId, VarId};

use crate::kernel::partition::Partition;
use crate::kernel::stages::Stages;

mod scan;

/// A chain of a cell through the lanes of its vectors.
#[derive(Clone, Debug)]
pub struct Scan {
    joins: Joins,
    /// How many lanes further a value is used; negative where it moves towards the first lane.
    by: i128,
}

/// What becomes of the value that arrives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joins {
    Term(Combine),
    Nothing,
}

/// The scans that let all values which arrive at once do so in vectors along the place coordinate `vector`, or
/// `None` where one of them is no chain of its own cell.
pub fn scans(
    array: &Array,
    stages: &Stages,
    pes: &[usize],
    vector: usize,
    lanes: u32,
) -> Option<HashMap<VarId, Scan>> {
    let mut found: HashMap<VarId, Scan> = HashMap::new();
    for (port, link) in stages.at_once(array) {
        let Some(by) = along_lanes(link, pes, vector, lanes)? else {
            continue;
        };
        let cell = port.source;
        if port.sink != cell || array.pieces.len() > 1 {
            return None;
        }
        let joins = joins(array, cell)?;
        let scan = found.entry(cell).or_insert(Scan { joins, by });
        let ports = own_ports(array, cell);
        if scan.by != by || !is_chain(&array.cells[cell.index()].body, joins, &ports) {
            return None;
        }
    }
    Some(found)
}

/// Does the value arrive in the tick in which it leaves? A propagated input is loaded where it is wanted.
pub fn is_at_once(array: &Array, port: &Port, link: &Link) -> bool {
    let loaded = matches!(
        array.cells[port.source.index()].role,
        Role::Propagation { .. }
    );
    !loaded && matches!(link.realisation, Realisation::Broadcast | Realisation::Tree)
}

/// The lanes that a link moves a value by within one vector; nothing where it comes from a vector that is
/// walked earlier.
fn along_lanes(link: &Link, pes: &[usize], vector: usize, lanes: u32) -> Option<Option<i128>> {
    for p in pes.iter().filter(|p| **p != vector) {
        if link.displacement[*p].as_constant()? != 0 {
            return Some(None);
        }
    }
    let by = link.displacement[vector].as_constant()?;
    // A link between slots that are one is there for no point.
    Some((by != 0 && by.abs() < i128::from(lanes)).then_some(by))
}

/// Is the link one of a scan, so that nothing but the register between vectors has to keep its values?
pub fn is_scanned(partition: &Partition, cell: VarId, link: &Link) -> bool {
    let at_once = matches!(link.realisation, Realisation::Broadcast | Realisation::Tree);
    let within = |vector| {
        let by = along_lanes(link, &partition.pes, vector, partition.lanes);
        by.flatten().is_some()
    };
    at_once && partition.scans.contains_key(&cell) && partition.vector.is_some_and(within)
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
pub(super) fn own_ports(array: &Array, cell: VarId) -> Vec<PortId> {
    (0..array.ports.len())
        .filter(|p| array.ports[*p].sink == cell && array.ports[*p].source == cell)
        .map(PortId::from)
        .collect()
}

pub(super) fn mentions(expr: &Expr, ports: &[PortId]) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        if let Expr::Port(port) = e {
            found |= ports.contains(port);
        }
    });
    found
}

/// Has the body the form that a scan takes apart?
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

fn is_sum_so_far(expr: &Expr, ports: &[PortId]) -> bool {
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
pub(super) fn sides<'e>(
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
