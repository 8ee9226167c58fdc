//! Values that cross blocks within a launch: their inter-block buffers in global memory, and the
//! place of each value.
//!
//! A value is stored at the coordinates of the slot that made it, blocks first, lanes last. Only
//! what another block reads is stored, so most coordinates of a block take few values: a strip of
//! rows passes on its last row, which is one PE. An axis counts from the least value that a block
//! has there. This value may depend on the block and on the axes before it if that makes the axis
//! shorter: a step that is determined by block and lane takes no space. Every element is written
//! once in a launch, unless it is enough to keep two blocks ([`circular`]), and a launch ends
//! before the next one writes again.
//!
//! [`circular`]: crate::storage::circular

use std::collections::HashMap;

use systola_ir::array::{Array, Link, Port};
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::kernel::{Buffer, BufferKind, Program};
use systola_ir::system::Axis;
use systola_ir::{BufferId, Scalar, VarId};

use crate::apply_mapping::reads_at;
use crate::clock::domain;
use crate::decide::{Decide, Undecided};
use crate::facts::Range;
use crate::storage::links::flagged;
use crate::storage::partition::Partition;
use crate::storage::place::Place;
use crate::storage::queues::scalars;
use crate::storage::slots::{Floors, Part, bounds_by};

/// The number of blocks that a folded buffer keeps.
pub const BLOCKS_KEPT: i128 = 2;

/// The inter-block buffers of all cells that other blocks read.
#[derive(Clone, Debug, Default)]
pub struct InterBlock {
    by_cell: HashMap<VarId, InterBlockBuffer>,
}

#[derive(Clone, Debug)]
pub struct InterBlockBuffer {
    buffers: Vec<(BufferId, Scalar)>,
    axes: Vec<InterBlockAxis>,
    /// The points that another block reads; over the point.
    when: Cond,
}

#[derive(Clone, Debug)]
struct InterBlockAxis {
    /// A coordinate of the slots.
    k: usize,
    /// Over the block coordinates of the slot, and the coordinates of earlier axes.
    start: Form,
    extent: Form,
    /// Blocks at this distance share elements.
    period: Option<i128>,
}

impl InterBlock {
    pub fn declare(
        array: &Array,
        decide: &Decide,
        partition: &Partition,
        program: &mut Program,
    ) -> Result<InterBlock, Undecided> {
        let mut inter_block = InterBlock::default();
        for n in 0..array.cells.len() {
            let cell = VarId::from(n);
            let links = flagged(array).filter(|(port, _)| port.source == cell);
            let mut readers = Vec::new();
            for (port, link) in links {
                let cond = read_over(array, port, link)?;
                if !readers.contains(&cond) {
                    readers.push(cond);
                }
            }
            let when = match readers.len() {
                0 => continue,
                1 => readers.remove(0),
                _ => Cond::Or(readers),
            };
            let when = array.cells[n].domain.clone().and(when);
            let places = partition.places();
            let coordinates = partition.blocks.iter().chain(&partition.steps);
            let mut axes = Vec::new();
            let mut before = partition.blocks.clone();
            for k in coordinates.chain(&places) {
                axes.push(axis(array, decide, partition, *k, &when, &before)?);
                if !before.contains(k) {
                    before.push(*k);
                }
            }
            let buffers = buffers(array, cell, &axes, program);
            let buffer = InterBlockBuffer {
                buffers,
                axes,
                when,
            };
            inter_block.by_cell.insert(cell, buffer);
        }
        Ok(inter_block)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (VarId, &mut InterBlockBuffer)> {
        self.by_cell
            .iter_mut()
            .map(|(cell, buffer)| (*cell, buffer))
    }

    /// Where the value of a cell at a slot is stored, over the point; only what another block reads
    /// is stored.
    pub fn place(
        &self,
        cell: VarId,
        slot: &[Form],
        point: &[Form],
    ) -> Result<Option<Place<'_>>, Overflow> {
        let Some(buffer) = self.by_cell.get(&cell) else {
            return Ok(None);
        };
        let index = buffer.index(slot)?;
        Ok(Some(Place::at(
            &buffer.buffers,
            index,
            &buffer.when,
            point,
        )?))
    }

    /// Where the value that a link brings is stored. A slot without a point must not access it,
    /// since another block may be writing there.
    pub fn source(
        &self,
        array: &Array,
        (port, link): (&Port, &Link),
        slot: &[Form],
        point: &[Form],
    ) -> Result<Option<Place<'_>>, Overflow> {
        let Some(buffer) = self.by_cell.get(&port.source) else {
            return Ok(None);
        };
        let gone = link.displacement.iter().chain(&link.delay);
        let slot: Vec<Form> = (slot.iter().zip(gone))
            .map(|(form, gone)| form.sub(&Form::from(gone.clone())))
            .collect();
        let live = live(array, port, link)?;
        let index = buffer.index(&slot)?;
        Ok(Some(Place::at(&buffer.buffers, index, &live, point)?))
    }
}

impl InterBlockBuffer {
    /// The start of the axis of a coordinate, over the block.
    pub fn start(&self, k: usize) -> &Form {
        let axis = self.axes.iter().find(|axis| axis.k == k);
        &axis.expect("every step has an axis").start
    }

    /// Makes blocks along this coordinate share elements.
    pub fn fold(&mut self, k: usize, program: &mut Program) {
        for (n, axis) in self.axes.iter_mut().enumerate() {
            let few = axis.extent.as_constant().is_some_and(|e| e <= BLOCKS_KEPT);
            if axis.k != k || few {
                continue;
            }
            axis.period = Some(BLOCKS_KEPT);
            axis.extent = Form::from(BLOCKS_KEPT);
            for (buffer, _) in &self.buffers {
                program.buffers[buffer.index()].axes[n].hi = Form::from(BLOCKS_KEPT);
            }
        }
    }

    fn index(&self, slot: &[Form]) -> Result<Vec<Form>, Overflow> {
        let axes = self.axes.iter();
        axes.map(|axis| {
            let start = axis.start.substitute(&|d| slot.get(d.index()).cloned())?;
            let place = slot[axis.k].sub(&start);
            Ok(axis.period.map_or(place.clone(), |m| place.modulo(m)))
        })
        .collect()
    }
}

/// A condition without duplicate parts.
pub fn each_once(cond: Cond) -> Cond {
    let Cond::And(parts) = cond else {
        return cond;
    };
    let mut kept: Vec<Cond> = Vec::new();
    for part in parts {
        if !kept.contains(&part) {
            kept.push(part);
        }
    }
    Cond::And(kept)
}

/// The points at which the sink takes a value from this link.
pub fn live(array: &Array, port: &Port, link: &Link) -> Result<Cond, Overflow> {
    let e = array.extend_distance(&port.distance);
    Ok(reads_at(port, &array.cells, &e, &array.tiles)?.and(link.guard.clone()))
}

/// The same over the point of the source.
fn read_over(array: &Array, port: &Port, link: &Link) -> Result<Cond, Overflow> {
    let e = array.extend_distance(&port.distance);
    live(array, port, link)?.map(&|f| {
        f.substitute(&|d| {
            let e = e.get(d.index())?;
            Some(Form::from(d).add(&Form::from(e.clone())))
        })
    })
}

/// The range of a coordinate over the stored values: in all blocks, in one block, or at given
/// earlier coordinates, whichever is shortest.
fn axis(
    array: &Array,
    decide: &Decide,
    partition: &Partition,
    k: usize,
    when: &Cond,
    before: &[usize],
) -> Result<InterBlockAxis, Undecided> {
    let ask = |given: &[usize]| {
        let parts = array.pieces.iter().map(|piece| {
            let coordinate = |k: usize| piece.coordinate(k).clone();
            Part {
                cond: domain(array).and(piece.cond.clone()).and(when.clone()),
                value: coordinate(k),
                given: given.iter().map(|g| coordinate(*g)).collect(),
            }
        });
        bounds_by(
            decide,
            array.dims.len(),
            parts.collect(),
            given,
            Floors::Shared,
        )
    };
    let all = ask(&[])?;
    let axis = |(start, extent)| InterBlockAxis {
        k,
        start,
        extent,
        period: None,
    };
    let mut found = span(&all, true);
    let one = |found: &Option<(Form, Form)>| {
        let extent = found.as_ref().and_then(|(_, extent)| extent.as_constant());
        extent.is_some_and(|extent| extent <= 1)
    };
    if !partition.blocks.contains(&k) && !one(&found) {
        let of_block = ask(&partition.blocks).ok();
        found = shorter(found, of_block.as_ref().and_then(|r| span(r, true)));
        if !one(&found)
            && before.len() > partition.blocks.len()
            && let Ok(given) = ask(before)
        {
            found = shorter(found, span(&given, true));
        }
        found = found.or_else(|| span(&of_block?, false));
    }
    found
        .or_else(|| span(&all, false))
        .map(axis)
        .ok_or_else(|| {
            Undecided::NeedsSizes("the extent of the values that blocks exchange".into())
        })
}

/// The range with the smaller extent, if that is a number.
fn shorter(known: Option<(Form, Form)>, other: Option<(Form, Form)>) -> Option<(Form, Form)> {
    let extent = |found: &Option<(Form, Form)>| found.as_ref().and_then(|f| f.1.as_constant());
    match (extent(&known), extent(&other)) {
        (Some(a), Some(b)) if b < a => other,
        (None, Some(_)) => other,
        _ => known,
    }
}

/// The start and the extent of a range, if the extent is the same in all blocks; with `number`,
/// only if it is a number.
fn span(range: &Range, number: bool) -> Option<(Form, Form)> {
    let starts = range.lo.iter();
    let pairs = starts.flat_map(|lo| range.hi.iter().map(move |hi| (lo.clone(), hi.sub(lo))));
    let fitting = pairs.filter(|(_, extent)| match extent.as_constant() {
        Some(_) => true,
        None => !number && extent.dims().is_empty(),
    });
    fitting.min_by_key(|(_, extent)| extent.as_constant().unwrap_or(i128::MAX))
}

fn buffers(
    array: &Array,
    cell: VarId,
    axes: &[InterBlockAxis],
    program: &mut Program,
) -> Vec<(BufferId, Scalar)> {
    let cell = &array.cells[cell.index()];
    let parts = scalars(&cell.ty);
    let axes: Vec<Axis> = axes
        .iter()
        .map(|axis| Axis {
            lo: Form::zero(),
            hi: axis.extent.clone(),
        })
        .collect();
    let mut declared = Vec::new();
    for (n, ty) in parts.iter().enumerate() {
        let name = if parts.len() > 1 {
            format!("{}_f{n}_inter_block", cell.name)
        } else {
            format!("{}_inter_block", cell.name)
        };
        program.buffers.push(Buffer {
            name,
            ty: *ty,
            kind: BufferKind::Temporary,
            axes: axes.clone(),
        });
        declared.push((BufferId::from(program.buffers.len() - 1), *ty));
    }
    declared
}
