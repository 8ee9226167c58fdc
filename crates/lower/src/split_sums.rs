//! Splits aggregation trees that cross blocks into launches that run in sequence.
//!
//! Before: a chain S(z) = S(z − e) ⊕ term(z) goes from block to block within one tick. After: three
//! arrays, none of which has such a link. The first computes every block's part of the chain as if
//! it began there, and writes what would leave the block. The second runs along the blocks and
//! combines the parts. The third is the array itself, with the combined parts as an input wherever
//! the chain enters a block. Of its blocks only those run that write something, so that a plain sum
//! is computed once and finished in one block.
//!
//! Legal if ⊕ may be regrouped, which makes the link a tree, and if the terms do not depend on the
//! chain itself: a part is then known before what is combined with it. Otherwise the chain goes
//! from block to block, by flags ([`crate::storage::waits`]).

use systola_ir::array::{Array, Cell, Link, Piece, Port, Realisation, Role};
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::system::Expr;
use systola_ir::system::visit::walk;
use systola_ir::target::Machine;
use systola_ir::{PortId, VarId};

use crate::decide::{Decide, Undecided};
use crate::facts::Range;
use crate::failure::Failure;
use crate::storage::chains::{Joins, mentions, own_ports, sides};
use crate::storage::links::{crosses, crosses_warps};
use crate::storage::slots::{Part, Slots, bounds};

mod arrays;
pub mod look_back;
pub mod warps;
mod whole;

/// The arrays that together replace one array.
pub struct Split {
    /// Writes the parts, its only outputs.
    pub parts: Array,
    /// Reads the parts, its only inputs, and writes as many outputs.
    pub joined: Array,
    /// Has the combined parts as its last inputs.
    pub rest: Array,
}

/// What becomes of the chains that cross blocks.
pub enum Crossing {
    /// There are none.
    None,
    /// One of them is split off.
    Parts(Box<Split>),
    /// They stay chains: no part can be computed in advance.
    Chains,
}

/// Splits off one chain that crosses blocks, if the array has one.
pub fn split(
    array: &Array,
    decide: &Decide,
    slots: &Slots,
    machine: &Machine,
) -> Result<Crossing, Failure> {
    let crossing: Vec<VarId> = array
        .body
        .iter()
        .copied()
        .filter(|cell| {
            let own = own_ports(array, *cell).into_iter();
            let mut links = own.flat_map(|p| &array.port(p).links);
            links.any(|l| crosses(array, l))
        })
        .collect();
    let mut found: Option<Chain> = None;
    let mut whole: Vec<Chain> = Vec::new();
    for cell in &crossing {
        let Ok(chain) = Chain::of(array, decide, slots, *cell, Between::Blocks)? else {
            continue;
        };
        if !chain.comes_first(array, &crossing) {
            continue;
        }
        if !chain.whole {
            found = found.or(Some(chain));
        } else if whole.iter().all(|other| other.runs_beside(&chain)) {
            whole.push(chain);
        }
    }
    Ok(match (found, crossing.as_slice()) {
        _ if !whole.is_empty() => Crossing::Parts(Box::new(whole::split(&whole, array, machine)?)),
        (Some(chain), _) => Crossing::Parts(Box::new(chain.split(array)?)),
        (None, []) => Crossing::None,
        (None, [_, ..]) => Crossing::Chains,
    })
}

/// What the links of a chain lead across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Blocks,
    /// The warps of a block.
    Warps,
}

/// A chain through the blocks along one block coordinate, or through the warps of each block along
/// one coordinate of them.
struct Chain {
    cell: VarId,
    joins: Joins,
    ports: Vec<PortId>,
    between: Between,
    /// Does it run up along its coordinate?
    up: bool,
    /// Is it a plain sum, of which only the end is read?
    whole: bool,
    /// The cells that the parts are computed from.
    cone: Vec<VarId>,
    /// Coordinates of the slots that distinguish the parts of a launch, with their least values and
    /// extents; that of the chain is the last.
    axes: Vec<PartAxis>,
    /// The other coordinates of a slot whose part is handed over.
    fixed: Vec<FixedAxis>,
    /// The points whose block or warp the chain enters from another one.
    later: Cond,
}

/// A coordinate of the slots, its least value and its extent.
type PartAxis = (usize, Form, Form);

/// A coordinate of the slots and its only value.
type FixedAxis = (usize, Form);

/// The coordinates that distinguish the parts, and the others.
struct Axes {
    distinct: Vec<PartAxis>,
    fixed: Vec<FixedAxis>,
}

impl Chain {
    /// Do the parts of two chains have the same places?
    fn runs_beside(&self, other: &Chain) -> bool {
        self.up == other.up && self.axes == other.axes
    }

    /// Can the parts be computed in a launch before all others?
    fn comes_first(&self, array: &Array, crossing: &[VarId]) -> bool {
        let mut others = self.cone.iter().filter(|c| **c != self.cell);
        let launched = |p: &&Port| {
            let by_launch = |l: &Link| l.realisation == Realisation::Launch;
            self.cone.contains(&p.sink) && p.links.iter().any(by_launch)
        };
        !others.any(|c| crossing.contains(c)) && !array.ports.iter().any(|p| launched(&p))
    }

    /// The chain of a cell; the inner error says why its parts cannot be combined on their own.
    fn of(
        array: &Array,
        decide: &Decide,
        slots: &Slots,
        cell: VarId,
        between: Between,
    ) -> Result<Result<Chain, &'static str>, Failure> {
        let declared = &array.cells[cell.index()];
        let Role::Accumulation { op, .. } = declared.role else {
            return Ok(Err("it is no sum"));
        };
        let joins = Joins::Term(op);
        let ports = own_ports(array, cell);
        let ([piece], []) = (array.pieces.as_slice(), array.tiles.as_slice()) else {
            return Ok(Err("the mapping has several pieces or tiles that overlap"));
        };
        let entering = |port: &PortId| {
            let links = array.port(*port).links.iter();
            links
                .filter(|l| between.is_crossed(array, l))
                .collect::<Vec<_>>()
        };
        let links: Vec<&Link> = ports.iter().flat_map(entering).collect();
        let mut direction = None;
        for link in &links {
            let moved: Vec<(usize, Option<i128>)> = (0..array.place.len())
                .filter(|k| between.has(array.place[*k].level))
                .filter(|k| !link.displacement[*k].is_zero())
                .map(|k| (k, link.displacement[k].as_constant()))
                .collect();
            let this = match moved.as_slice() {
                [(k, Some(by @ (1 | -1)))] => (*k, *by > 0),
                _ => {
                    return Ok(Err(
                        "it does not go from each block to the next one along one coordinate",
                    ));
                }
            };
            if *direction.get_or_insert(this) != this {
                return Ok(Err("it goes along two coordinates of blocks"));
            }
        }
        let Some((along, up)) = direction else {
            return Ok(Err("it stays in its block"));
        };
        let cone = cone(array, cell);
        if reads_cells(array, cell, &cone, &ports).contains(&cell) {
            return Ok(Err("its terms depend on the sum itself"));
        }
        let later = match between {
            Between::Warps => Cond::TRUE,
            Between::Blocks => {
                let first = first_block(array, decide, slots, declared, &ports, joins, along, up)?;
                let Some(first) = first else {
                    return Ok(Err("it begins in several blocks"));
                };
                let rel = if up { Rel::Gt } else { Rel::Lt };
                Cond::cmp(rel, piece.place[along].clone(), first)
            }
        };
        let mut chain = Chain {
            cell,
            joins,
            ports,
            between,
            up,
            whole: false,
            cone,
            axes: Vec::new(),
            fixed: Vec::new(),
            later,
        };
        if between == Between::Blocks {
            chain.whole = chain.is_whole(array, decide, slots, along)?;
        }
        Ok(match axes(array, decide, slots, piece, &chain, along)? {
            None => Err("a coordinate beside that of the blocks changes along it"),
            Some(Axes { distinct, fixed }) => Ok(Chain {
                axes: distinct,
                fixed,
                ..chain
            }),
        })
    }

    /// Does the link belong to the chain and lead to another block or warp?
    fn crosses(&self, array: &Array, link: &Link) -> bool {
        self.between.is_crossed(array, link)
    }
}

impl Between {
    fn is_crossed(self, array: &Array, link: &Link) -> bool {
        match self {
            Between::Blocks => crosses(array, link),
            Between::Warps => crosses_warps(array, link),
        }
    }

    fn has(self, level: PlaceLevel) -> bool {
        match self {
            Between::Blocks => matches!(level, PlaceLevel::Node | PlaceLevel::Block),
            Between::Warps => level == PlaceLevel::Warp,
        }
    }
}

/// The cells that a cell needs, including itself.
fn cone(array: &Array, cell: VarId) -> Vec<VarId> {
    let mut found = vec![cell];
    let mut at = 0;
    while at < found.len() {
        let sink = found[at];
        for port in array.ports.iter().filter(|p| p.sink == sink) {
            if !found.contains(&port.source) {
                found.push(port.source);
            }
        }
        at += 1;
    }
    found
}

/// The cells that a cone reads, except for a chain's reads of itself.
fn reads_cells(array: &Array, cell: VarId, cone: &[VarId], own: &[PortId]) -> Vec<VarId> {
    let ports = (0..array.ports.len()).map(PortId::from);
    ports
        .filter(|p| !own.contains(p))
        .map(|p| array.port(p))
        .filter(|p| cone.contains(&p.sink) && (p.sink != cell || p.source != cell))
        .map(|p| p.source)
        .collect()
}

/// The block coordinate at which all chains begin, the first at which they could begin; `None` if
/// some begin elsewhere.
fn first_block(
    array: &Array,
    decide: &Decide,
    slots: &Slots,
    cell: &Cell,
    ports: &[PortId],
    joins: Joins,
    along: usize,
    up: bool,
) -> Result<Option<Form>, Undecided> {
    let at = &array.pieces[0].place[along];
    let Range { lo, hi } = &slots.ranges[along];
    let begins = cell.domain.clone().and(starts(&cell.body, ports, joins));
    let candidates: Vec<Form> = match up {
        true => lo.clone(),
        false => hi.iter().map(|hi| hi.plus(-1)).collect(),
    };
    for first in candidates {
        let rel = if up { Rel::Gt } else { Rel::Lt };
        let later = Cond::cmp(rel, at.clone(), first.clone());
        if decide.is_empty(&begins.clone().and(later), array.dims.len())? {
            return Ok(Some(first));
        }
    }
    Ok(None)
}

/// The condition under which a body does not read the sum so far.
fn starts(body: &Expr, ports: &[PortId], joins: Joins) -> Cond {
    if !mentions(body, ports) {
        return Cond::TRUE;
    }
    match body {
        Expr::Guard {
            cond,
            then,
            otherwise,
        } => {
            let there = cond.clone().and(starts(then, ports, joins));
            match otherwise {
                None => there,
                Some(otherwise) => {
                    let elsewhere = cond.clone().negate().and(starts(otherwise, ports, joins));
                    Cond::Or(vec![there, elsewhere])
                }
            }
        }
        other => match sides(other, joins, ports) {
            Some((sum, _, _)) => starts(sum, ports, joins),
            None => Cond::Const(false),
        },
    }
}

/// The coordinates that distinguish the parts, and the others. A coordinate that has the same value
/// wherever a part is handed over, at the points that leave a block or at all of a plain sum, is not
/// needed. A coordinate that differs must be constant along a chain, since the parts of a chain are
/// combined at one place along all axes but that of the blocks.
fn axes(
    array: &Array,
    decide: &Decide,
    slots: &Slots,
    piece: &Piece,
    chain: &Chain,
    along: usize,
) -> Result<Option<Axes>, Failure> {
    let ports = &chain.ports;
    let domain = &array.cells[chain.cell.index()].domain;
    let n_place = array.place.len();
    let mut distinct = Vec::new();
    let mut fixed = Vec::new();
    let within = |k: usize| match k.checked_sub(n_place) {
        None => true,
        Some(t) => array.time[t].level != TimeLevel::Launch,
    };
    let others = (0..n_place + array.time.len()).filter(|k| *k != along && within(*k));
    for k in others.chain([along]) {
        let mut left = Vec::new();
        if chain.whole {
            left.push(Part {
                cond: domain.clone().and(piece.cond.clone()),
                value: match k.checked_sub(n_place) {
                    None => piece.place[k].clone(),
                    Some(t) => piece.time[t].clone(),
                },
                given: Vec::new(),
            });
        }
        for port in ports.iter().map(|p| array.port(*p)) {
            for link in port.links.iter().filter(|l| chain.crosses(array, l)) {
                let (form, gone) = match k.checked_sub(n_place) {
                    None => (&piece.place[k], &link.displacement[k]),
                    Some(t) => (&piece.time[t], &link.delay[t]),
                };
                left.push(Part {
                    cond: domain
                        .clone()
                        .and(piece.cond.clone())
                        .and(port.when.clone())
                        .and(link.guard.clone()),
                    value: form.sub(&Form::from(gone.clone())),
                    given: Vec::new(),
                });
            }
        }
        let range = bounds(decide, array.dims.len(), left, &[])?;
        let one = range.lo.iter().find(|lo| {
            let mut ends = range.hi.iter();
            ends.any(|hi| hi.sub(lo).as_constant().is_some_and(|n| n <= 1))
        });
        if let Some(only) = one
            && k != along
        {
            fixed.push((k, only.clone()));
            continue;
        }
        let moves = |link: &Link| match k.checked_sub(n_place) {
            None => !link.displacement[k].is_zero(),
            Some(t) => !link.delay[t].is_zero(),
        };
        let mut links = ports.iter().flat_map(|p| &array.port(*p).links);
        if k != along && links.any(moves) {
            return Ok(None);
        }
        let plain = |forms: &[Form]| {
            let poly = forms.iter().find(|f| f.as_poly().is_some());
            poly.or(forms.first()).cloned()
        };
        let Range { lo, hi } = &slots.ranges[k];
        let (Some(lo), Some(hi)) = (plain(lo), plain(hi)) else {
            return Err(Undecided::NeedsSizes("a coordinate has no bound".into()).into());
        };
        let extent = hi.sub(&lo);
        distinct.push((k, lo, extent));
    }
    Ok(Some(Axes { distinct, fixed }))
}

/// Removes blocks from the ranges that write no output and pass nothing to a later launch.
pub fn narrow(array: &Array, decide: &Decide, slots: &mut Slots) -> Result<(), Undecided> {
    let kept = |l: &Link| l.realisation == Realisation::Launch;
    if array.ports.iter().flat_map(|p| &p.links).any(kept) {
        return Ok(());
    }
    for k in 0..array.place.len() {
        if array.place[k].level == PlaceLevel::Block {
            slots.ranges[k] = writing_blocks(array, decide, k)?;
        }
    }
    Ok(())
}

fn writing_blocks(array: &Array, decide: &Decide, k: usize) -> Result<Range, Undecided> {
    let mut parts = Vec::new();
    for piece in &array.pieces {
        for write in array.outputs.iter().flat_map(|o| &o.writes) {
            let mut there = crate::clock::domain(array)
                .and(piece.cond.clone())
                .and(write.when.clone());
            walk(&write.value, &mut |e| {
                if let Expr::Var { var, .. } = e {
                    let domain = array.cells[var.index()].domain.clone();
                    there = std::mem::replace(&mut there, Cond::TRUE).and(domain);
                }
            });
            parts.push(Part {
                cond: there,
                value: piece.place[k].clone(),
                given: Vec::new(),
            });
        }
    }
    bounds(decide, array.dims.len(), parts, &[])
}
