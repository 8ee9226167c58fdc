//! Running sums that may be regrouped, with many terms in each step.
//!
//! Where the terms of a scan are neighbouring elements, a warp has several vectors of them in
//! registers: each lane combines its own, the lanes are combined in log steps, and the vectors
//! follow one another. A warp goes along its row step by step, or the pieces of a row are blocks
//! that look back, with several warps that share the piece. Where the scans of neighbouring elements
//! are independent, each lane has scans of its own, of as many terms as it has registers, and blocks
//! look back along them; or a block goes down long parts of rows, one after the other, and keeps the
//! results of the row before in its cache. Scans along two iterators have tiles of both, and look back
//! both ways.

use systola_ir::mapping::{DirectiveKind, Mapping, NameExpr, NameExprKind, PlaceLevel, TimeLevel};
use systola_ir::target::Machine;

use super::axes::{Along, Axes, Role};
use super::text::Text;

/// Terms that a lane reads at once.
const ADJACENT: i128 = 4;
/// Vectors of terms of a warp, for threads and for vector registers.
const VECTORS: [i128; 6] = [16, 20, 12, 8, 24, 4];
const VECTORS_ON_CPU: [i128; 3] = [4, 8, 16];
/// Terms of a lane that has scans of its own.
const TERMS: [i128; 3] = [64, 32, 16];
/// Bytes of the part of a row that a block goes down, on a CPU. Each row begins a run of contiguous
/// reads; the results of the row before stay in L1 or L2
/// (`bench/results/2026-11-19-cpu-sums.md`).
const PARTS: [i128; 5] = [16384, 8192, 4096, 2048, 32768];
/// Vectors of such a part in one iteration.
const UNROLL: u64 = 4;
/// Warps of a block, each with rows of its own.
const WARPS: [i128; 3] = [4, 8, 1];
/// Warps of a block that share a piece of a row, or the tile of a table.
const SHARING: [i128; 4] = [4, 2, 8, 1];
/// Rows of a table in each lane.
const TABLE_ROWS: [i128; 4] = [16, 8, 24, 4];
/// As many rows as this occupy a GPU.
const MANY_ROWS: i128 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A warp goes along each row, this many vectors in a step; a block has this many warps.
    Rows { vectors: i128, warps: i128 },
    /// A row is in several blocks; each of their warps has this many vectors.
    Pieces { vectors: i128, warps: i128 },
    /// Each lane along this parallel iterator has this many terms of its own.
    Columns { lanes: usize, terms: i128 },
    /// A block goes down this many neighbours along this parallel iterator, row after row.
    Down { across: usize, width: i128 },
    /// Scans run along this iterator too; a lane has this many values of it.
    Table {
        down: usize,
        rows: i128,
        warps: i128,
    },
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
    let rows: Vec<usize> = axes.with_role(Role::Parallel).collect();
    let is_gpu = machine.threads.is_some();
    let across = rows.iter().rev().find(|a| is_contiguous(axes, **a));
    let across = across.copied().filter(|_| lanes > 1);
    let mut list = Vec::new();
    if let Some(across) = across.filter(|_| !is_gpu)
        && let [axis] = scanned(axes, false).as_slice()
        && !is_contiguous(axes, *axis)
    {
        for bytes in PARTS {
            let width = bytes * 8 / i128::from(axes.bits);
            if width < 2 * axes.extent(across) {
                list.push(Scan {
                    axis: *axis,
                    shape: Shape::Down { across, width },
                    adjacent: false,
                });
            }
        }
    }
    let scanned = scanned(axes, true);
    let (axis, down) = match scanned.as_slice() {
        [axis] => (*axis, None),
        [a, b] if is_contiguous(axes, *a) => (*a, Some(*b)),
        [a, b] if is_contiguous(axes, *b) => (*b, Some(*a)),
        _ => return list,
    };
    let n_rows: i128 = rows.iter().map(|a| axes.extent(*a)).product();
    let (adjacent, vectors) = match is_gpu {
        true => (ADJACENT, &VECTORS[..]),
        false => (1, &VECTORS_ON_CPU[..]),
    };
    let scan = |shape| Scan {
        axis,
        shape,
        adjacent: is_gpu,
    };
    if let Some(down) = down {
        for warps in SHARING.into_iter().filter(|_| is_gpu) {
            for rows in TABLE_ROWS {
                if rows * warps < 2 * axes.extent(down) {
                    list.push(scan(Shape::Table { down, rows, warps }));
                }
            }
        }
        return list;
    }
    if !is_contiguous(axes, axis) {
        let lane = across.or(rows.last().copied().filter(|_| lanes > 1));
        for terms in TERMS {
            list.extend(lane.map(|lanes| scan(Shape::Columns { lanes, terms })));
        }
        return list;
    }
    let fits = |n: &i128| n * adjacent * lanes < 2 * axes.extent(axis);
    let vectors: Vec<i128> = vectors.iter().copied().filter(fits).collect();
    let mut pieces = Vec::new();
    for warps in SHARING.into_iter().filter(|n| is_gpu || *n == 1) {
        for vectors in vectors.iter().copied().filter(|n| fits(&(n * warps))) {
            pieces.push(scan(Shape::Pieces { vectors, warps }));
        }
    }
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

/// The iterators along which values depend on others, if each of these depends on its neighbour only,
/// and, where that is asked for, may be regrouped; otherwise none.
fn scanned(axes: &Axes, regrouped: bool) -> Vec<usize> {
    let mut found = Vec::new();
    for distance in axes
        .distances
        .iter()
        .filter(|d| d.e.iter().any(|e| *e != 0))
    {
        let moved = (0..distance.e.len()).filter(|a| distance.e[*a] != 0);
        let moved: Vec<usize> = moved.collect();
        let regroups = !regrouped || axes.vars[distance.source].along == Along::Regroups;
        let own = distance.sink == distance.source;
        match moved.as_slice() {
            [axis] if distance.e[*axis].abs() == 1 && regroups && own => {
                if !found.contains(axis) {
                    found.push(*axis);
                }
            }
            _ => return Vec::new(),
        }
    }
    if axes.sums.is_empty() && axes.rings.is_empty() {
        found
    } else {
        Vec::new()
    }
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
        let mut unrolled = None;
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
            Shape::Down { across, width } => {
                let others = rows.filter(|a| *a != across);
                blocks.extend(others.map(|a| NameExpr::name(axes.name(a))));
                let (outer, inner) = text.tile(axes.name(across), width, true);
                blocks.push(NameExpr::name(outer));
                let own = axes.name(across);
                let size = text.size(lanes, true);
                let names = [format!("t{own}"), format!("l{own}")];
                let (t, l) = text.tile_named(&inner, size, names, None, false);
                lane = NameExpr::name(l);
                registers = Vec::new();
                let is_down = |e: &Vec<i128>| e.get(self.axis).is_some_and(|e| *e < 0);
                let row = match axes.distances.iter().any(|d| is_down(&d.e)) {
                    true => NameExprKind::Neg(Box::new(NameExpr::name(axis))).into(),
                    false => NameExpr::name(axis),
                };
                time = vec![row, NameExpr::name(&t)];
                unrolled = Some(t);
            }
            Shape::Table {
                down,
                rows: own,
                warps,
            } => {
                text.line(DirectiveKind::LookBack);
                let names = |of: &str, outer: &str, inner: &str| {
                    [format!("{outer}{of}"), format!("{inner}{of}")]
                };
                let below = axes.name(down);
                let size = text.size(own * warps, false);
                let (piece, mut inner) =
                    text.tile_named(below, size, names(below, "p", "x"), None, false);
                if warps > 1 {
                    let size = text.size(own, false);
                    let (w, r) = text.tile_named(&inner, size, names(below, "w", "r"), None, false);
                    warp.push(NameExpr::name(w));
                    inner = r;
                }
                let size = text.size(ADJACENT * lanes, true);
                let (across, term) =
                    text.tile_named(axis, size, names(axis, "p", "x"), None, false);
                let size = text.size(ADJACENT, false);
                let (l, k) = text.tile_named(&term, size, names(axis, "l", "r"), None, false);
                lane = NameExpr::name(l);
                registers = vec![NameExpr::name(inner), NameExpr::name(k)];
                blocks.extend(rows.map(|a| NameExpr::name(axes.name(a))));
                blocks.extend([NameExpr::name(piece), NameExpr::name(across)]);
            }
            Shape::Rows { vectors, .. } | Shape::Pieces { vectors, .. } => {
                let adjacent = if self.adjacent { ADJACENT } else { 1 };
                let names =
                    |outer: &str, inner: &str| [format!("{outer}{axis}"), format!("{inner}{axis}")];
                let of_warp = vectors * adjacent * lanes;
                let sharing = match self.shape {
                    Shape::Pieces { warps, .. } => warps,
                    _ => 1,
                };
                let size = text.size(of_warp * sharing, true);
                let (piece, mut whole) = text.tile_named(axis, size, names("p", "x"), None, false);
                if sharing > 1 {
                    let size = text.size(of_warp, true);
                    let (w, rest) = text.tile_named(&whole, size, names("w", "z"), None, false);
                    warp.push(NameExpr::name(w));
                    whole = rest;
                }
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
        if let Some(steps) = unrolled {
            text.unroll(&steps, Some(UNROLL));
        }
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
            Shape::Pieces { vectors, warps } => {
                list.push(("lanes", name.to_string()));
                list.push(("registers", format!("{} {name}", vectors * adjacent)));
                list.push(("warps", warps.to_string()));
                list.push(("blocks", format!("look back along {name}")));
            }
            Shape::Table { down, rows, warps } => {
                let down = axes.name(down);
                list.push(("lanes", name.to_string()));
                list.push(("registers", format!("{rows} {down} × {adjacent} {name}")));
                list.push(("warps", warps.to_string()));
                list.push(("blocks", format!("look back along {down} and {name}")));
            }
            Shape::Down { across, width } => {
                let across = axes.name(across);
                list.push(("lanes", across.to_string()));
                list.push(("blocks", format!("of {width} {across}, down {name}")));
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
