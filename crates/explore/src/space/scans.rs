//! Running sums that may be regrouped, with many terms in each step.
//!
//! Where the terms of a scan are neighbouring elements, a warp has several vectors of them in
//! registers: each lane combines its own, the lanes are combined in log steps, and the vectors
//! follow one another. A warp goes along its row step by step, or the pieces of a row are blocks
//! that look back. Where the scans of neighbouring elements are independent, each lane has scans of
//! its own, of as many terms as it has registers, and blocks look back along them.

use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, PlaceLevel, TimeLevel};
use systola_ir::target::Machine;

use super::axes::{Along, Axes, Role};
use super::text::Text;

/// Terms that a lane reads at once.
const ADJACENT: i128 = 4;
/// Vectors of terms of a warp, for threads and for vector registers.
const VECTORS: [i128; 5] = [16, 12, 8, 4, 24];
const VECTORS_ON_CPU: [i128; 3] = [4, 8, 16];
/// Terms of a lane that has scans of its own.
const TERMS: [i128; 3] = [64, 32, 16];
/// Warps of a block, each with rows of its own.
const WARPS: [i128; 3] = [4, 8, 1];
/// As many rows as this occupy a GPU.
const MANY_ROWS: i128 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A warp goes along each row, this many vectors in a step; a block has this many warps.
    Rows { vectors: i128, warps: i128 },
    /// A row is in several blocks, of this many vectors each.
    Pieces { vectors: i128 },
    /// Each lane along this parallel iterator has this many terms of its own.
    Columns { lanes: usize, terms: i128 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The iterator of the scans.
    axis: usize,
    shape: Shape,
    /// Neighbouring terms are in one lane: it reads and writes them at once.
    adjacent: bool,
}

pub fn scans(axes: &Axes, machine: &Machine, lanes: i128) -> Vec<Scan> {
    let Some(axis) = scanned(axes) else {
        return Vec::new();
    };
    let rows: Vec<usize> = axes.with_role(Role::Parallel).collect();
    let n_rows: i128 = rows.iter().map(|a| axes.extent(*a)).product();
    let is_gpu = machine.threads.is_some();
    let (adjacent, vectors) = match is_gpu {
        true => (ADJACENT, &VECTORS[..]),
        false => (1, &VECTORS_ON_CPU[..]),
    };
    let scan = |shape| Scan {
        axis,
        shape,
        adjacent: is_gpu,
    };
    let mut list = Vec::new();
    if !is_contiguous(axes, axis) {
        let lane = rows.iter().rev().find(|a| is_contiguous(axes, **a));
        let lane = lane.or(rows.last()).copied().filter(|_| lanes > 1);
        for terms in TERMS {
            list.extend(lane.map(|lanes| scan(Shape::Columns { lanes, terms })));
        }
        return list;
    }
    let fits = |n: &i128| n * adjacent * lanes < 2 * axes.extent(axis);
    let vectors: Vec<i128> = vectors.iter().copied().filter(fits).collect();
    let pieces = vectors.iter().map(|n| scan(Shape::Pieces { vectors: *n }));
    let mut in_rows = Vec::new();
    for vectors in &vectors {
        for warps in WARPS {
            if warps == 1 || is_gpu && rows.last().is_some_and(|a| warps <= axes.extent(*a)) {
                let vectors = *vectors;
                in_rows.push(scan(Shape::Rows { vectors, warps }));
            }
        }
    }
    // On a CPU a thread sums up a row as fast as it reads memory.
    if !is_gpu || n_rows >= MANY_ROWS {
        list.extend(in_rows);
        list.extend(pieces);
    } else {
        list.extend(pieces);
        list.extend(in_rows);
    }
    list
}

/// The only iterator along which values depend on others, if all of these are running sums that may
/// be regrouped.
fn scanned(axes: &Axes) -> Option<usize> {
    let mut along = None;
    for distance in axes
        .distances
        .iter()
        .filter(|d| d.e.iter().any(|e| *e != 0))
    {
        let mut moved = (0..distance.e.len()).filter(|a| distance.e[*a] != 0);
        let axis = moved.next()?;
        let one = moved.next().is_none() && distance.e[axis].abs() == 1;
        let regroups = axes.vars[distance.source].along == Along::Regroups;
        let own = distance.sink == distance.source;
        if !one || !regroups || !own || *along.get_or_insert(axis) != axis {
            return None;
        }
    }
    along.filter(|_| axes.sums.is_empty() && axes.rings.is_empty())
}

/// Are neighbours along this iterator neighbouring elements of an input?
fn is_contiguous(axes: &Axes, axis: usize) -> bool {
    axes.reads.iter().any(|read| {
        let last = read.matrix.last();
        last.is_some_and(|row| row[axis].abs() == 1)
    })
}

impl Scan {
    pub fn write(&self, axes: &Axes, name: &str, system: &str, mut text: Text) -> Mapping {
        let lanes = text.lanes;
        let axis = axes.name(self.axis);
        let rows = axes.with_role(Role::Parallel);
        let mut blocks: Vec<NameExpr> = Vec::new();
        let mut warp = Vec::new();
        let mut time = vec![NameExpr::int(0)];
        let (lane, registers);
        match self.shape {
            Shape::Columns { lanes: own, terms } => {
                text.line(DirectiveKind::LookBack);
                let (outer, inner) = text.tile(axis, terms, false);
                blocks.push(NameExpr::name(outer));
                registers = vec![NameExpr::name(inner)];
                let (outer, inner) = text.tile(axes.name(own), lanes, true);
                let others = rows.filter(|a| *a != own);
                blocks.extend(others.map(|a| NameExpr::name(axes.name(a))));
                blocks.push(NameExpr::name(outer));
                lane = NameExpr::name(inner);
            }
            Shape::Rows { vectors, .. } | Shape::Pieces { vectors } => {
                let adjacent = if self.adjacent { ADJACENT } else { 1 };
                let size = text.size(vectors * adjacent * lanes, true);
                let names =
                    |outer: &str, inner: &str| [format!("{outer}{axis}"), format!("{inner}{axis}")];
                let (piece, whole) = text.tile_named(axis, size, names("p", "x"), None, false);
                let size = text.size(adjacent * lanes, true);
                let (vector, term) = text.tile_named(&whole, size, names("v", "y"), None, false);
                let mut in_registers = vec![NameExpr::name(vector)];
                lane = match self.adjacent {
                    false => NameExpr::name(term),
                    true => {
                        let size = text.size(adjacent, false);
                        let (l, r) = text.tile_named(&term, size, names("l", "r"), None, false);
                        in_registers.push(NameExpr::name(r));
                        NameExpr::name(l)
                    }
                };
                registers = in_registers;
                let rows: Vec<usize> = rows.collect();
                let mut own: Vec<NameExpr> =
                    rows.iter().map(|a| NameExpr::name(axes.name(*a))).collect();
                match self.shape {
                    Shape::Rows { warps, .. } => {
                        if let Some(last) = rows.last().filter(|_| warps > 1) {
                            let (outer, inner) = text.tile(axes.name(*last), warps, false);
                            own.pop();
                            own.push(NameExpr::name(outer));
                            warp.push(NameExpr::name(inner));
                        }
                        time = vec![NameExpr::name(piece)];
                    }
                    _ => {
                        text.line(DirectiveKind::LookBack);
                        own.push(NameExpr::name(piece));
                    }
                }
                blocks.extend(own);
            }
        }
        text.place(PlaceLevel::Block, blocks);
        text.place(PlaceLevel::Warp, warp);
        text.place(PlaceLevel::Lane, vec![lane]);
        text.place(PlaceLevel::Reg, registers);
        text.time(TimeLevel::Step, time);
        text.finish(name, system)
    }

    /// The choices, in words.
    pub fn choices(&self, axes: &Axes) -> Vec<(&'static str, String)> {
        let name = axes.name(self.axis);
        let adjacent = if self.adjacent { ADJACENT } else { 1 };
        let mut list = vec![("family", "scans".to_string())];
        match self.shape {
            Shape::Rows { vectors, warps } => {
                list.push(("lanes", name.to_string()));
                list.push(("registers", format!("{} {name}", vectors * adjacent)));
                list.push(("warps", warps.to_string()));
            }
            Shape::Pieces { vectors } => {
                list.push(("lanes", name.to_string()));
                list.push(("registers", format!("{} {name}", vectors * adjacent)));
                list.push(("blocks", format!("look back along {name}")));
            }
            Shape::Columns { lanes, terms } => {
                list.push(("lanes", axes.name(lanes).to_string()));
                list.push(("registers", format!("{terms} {name}")));
                list.push(("blocks", format!("look back along {name}")));
            }
        }
        list
    }
}
