//! Panel 2 for two place coordinates: a grid of PEs, with the streams that enter and leave it.
//!
//! A stream that moves along an axis and comes from memory at the first PE of each row stands
//! before that PE, one value behind the other, as far away as it is late; in the same way what
//! leaves stands behind the last PE. Everything else is named in the PEs.

use std::collections::BTreeSet;

use systola_ir::diag::coordinates;

use super::{Layout, Position, Scene, Slot, heading, label, link_list, tinted, unit, varying};
use crate::svg::{Anchor, Svg, text_width};

/// The number of PEs along an axis that are drawn.
const MAX_ALONG: i128 = 6;

/// The gap between PEs, the length of an arrow into the grid, and the height of a line of text.
const GAP: f64 = 40.0;
const LEAD: f64 = 26.0;
const LINE: f64 = 14.0;

/// The steps for which values stand beside the grid.
const MAX_QUEUE: usize = 12;

/// Draws the array.
pub(super) fn panel(scene: &Scene, layout: &Layout) -> Svg {
    let mut svg = Svg::new();
    let title = "The array: PEs, links, and what enters and leaves";
    let Some(plane) = Plane::new(layout) else {
        return svg;
    };
    let grid = PeGrid::new(scene, layout, &plane);
    let inside = "values in a PE stay there; `in` is read from memory, `out` leaves";
    let reading = if grid.queues.is_empty() {
        inside.to_string()
    } else {
        format!("values beside the grid enter or leave one after the other; {inside}")
    };
    let top = heading(&mut svg, title, &reading);
    let mut array = Svg::new();
    for pe in &plane.drawn {
        grid.links(&mut array, pe);
    }
    for pe in &plane.drawn {
        grid.pe(&mut array, pe);
    }
    for queue in &grid.queues {
        grid.queue(&mut array, queue);
    }
    let area = svg.place(array, (0.0, top + 4.0));
    let mut y = area.bottom + 24.0;
    if plane.drawn.len() < layout.pes.len() {
        let more = format!("… {} of {} PEs", plane.drawn.len(), layout.pes.len());
        svg.text("faint", Anchor::Start, (0.0, y), &more);
        y += 18.0;
    }
    link_list(&mut svg, scene, (0.0, y));
    svg
}

/// The two coordinates of the places that are drawn, and the PEs.
pub(super) struct Plane<'a> {
    /// The place coordinates that run down and across.
    row: usize,
    column: usize,
    /// The least value of each place coordinate.
    min: Vec<i128>,
    /// Of PEs that differ in further coordinates, one layer.
    pub drawn: Vec<&'a Vec<i128>>,
}

impl<'a> Plane<'a> {
    pub fn new(layout: &'a Layout) -> Option<Self> {
        let axes = varying(&layout.pes);
        let [further @ .., row, column] = axes.as_slice() else {
            return None;
        };
        let min = |k: usize| layout.pes.iter().map(|p| p[k]).min().unwrap_or(0);
        let min: Vec<i128> = (0..layout.pes[0].len()).map(min).collect();
        // The first layer that has a PE: the least coordinates need not occur together.
        let first = layout.pes.first()?;
        let is_drawn = |p: &&Vec<i128>| {
            [row, column].iter().all(|k| p[**k] - min[**k] < MAX_ALONG)
                && further.iter().all(|k| p[*k] == first[*k])
        };
        Some(Plane {
            row: *row,
            column: *column,
            drawn: layout.pes.iter().filter(is_drawn).collect(),
            min,
        })
    }

    /// The row and the column of a PE, from 0.
    pub fn cell(&self, pe: &[i128]) -> (f64, f64) {
        let at = |k: usize| (pe[k] - self.min[k]) as f64;
        (at(self.row), at(self.column))
    }

    /// The numbers of rows and columns.
    pub fn size(&self) -> (f64, f64) {
        let cells = self.drawn.iter().map(|pe| self.cell(pe));
        cells.fold((0.0, 0.0), |(rows, columns), (row, column)| {
            (f64::max(rows, row + 1.0), f64::max(columns, column + 1.0))
        })
    }

    pub fn is_drawn(&self, pe: &Vec<i128>) -> bool {
        self.drawn.contains(&pe)
    }

    pub fn name(&self, pe: &[i128]) -> String {
        coordinates(&[pe[self.row], pe[self.column]])
    }

    /// The rows and columns over which a displacement goes, if it stays in the layer.
    fn moves(&self, displacement: &[i128]) -> Option<(i128, i128)> {
        let stays = (0..displacement.len())
            .all(|k| k == self.row || k == self.column || displacement[k] == 0);
        stays.then(|| (displacement[self.row], displacement[self.column]))
    }
}

/// The values of a stream at one end of the PEs along its way.
struct Queue {
    stream: usize,
    enters: bool,
    /// Where it goes, in rows and columns: one of the two is 0.
    towards: (i128, i128),
    /// The PE, the step, and the value.
    values: Vec<(Vec<i128>, usize, String)>,
    /// The queues at the same side before this one, and all of them.
    beside: (usize, usize),
}

impl Queue {
    fn is_along_rows(&self) -> bool {
        self.towards.0 == 0
    }

    /// From the grid to the queue: -1 up or left, 1 down or right.
    fn side(&self) -> f64 {
        let forwards = self.towards.0 + self.towards.1 > 0;
        if forwards == self.enters { -1.0 } else { 1.0 }
    }
}

struct PeGrid<'a> {
    scene: &'a Scene,
    plane: &'a Plane<'a>,
    queues: Vec<Queue>,
    /// The lines of text in each PE of the plane, with their streams.
    held: Vec<Vec<(usize, String)>>,
    /// The size of a PE, and the width of the widest value.
    width: f64,
    height: f64,
    value: f64,
}

fn small(text: &str) -> f64 {
    text_width(text, 10.5, false)
}

impl<'a> PeGrid<'a> {
    fn new(scene: &'a Scene, layout: &Layout, plane: &'a Plane<'a>) -> Self {
        let mut queues = Vec::new();
        for stream in 0..scene.streams.len() {
            for enters in [true, false] {
                queues.extend(queue(scene, layout, plane, stream, enters));
            }
        }
        let sides: Vec<(bool, bool)> = queues
            .iter()
            .map(|q| (q.is_along_rows(), q.side() < 0.0))
            .collect();
        for (k, queue) in queues.iter_mut().enumerate() {
            let before = sides[..k].iter().filter(|side| **side == sides[k]).count();
            let all = sides.iter().filter(|side| **side == sides[k]).count();
            queue.beside = (before, all);
        }
        let outside: BTreeSet<(usize, bool)> =
            queues.iter().map(|q| (q.stream, q.enters)).collect();
        let held: Vec<Vec<(usize, String)>> = plane
            .drawn
            .iter()
            .map(|pe| held(scene, pe, &outside))
            .collect();
        let values = queues.iter().flat_map(|q| &q.values);
        let value = values.map(|(_, _, text)| small(text)).fold(0.0, f64::max);
        let names = plane.drawn.iter().map(|pe| small(&plane.name(pe)));
        let inside = held.iter().flatten().map(|(_, text)| small(text));
        let text = names.chain(inside).fold(32.0, f64::max);
        let most = |along_rows: bool| {
            let beside = queues.iter().filter(|q| q.is_along_rows() == along_rows);
            beside.map(|q| q.beside.1).max().unwrap_or(0) as f64
        };
        let lines = held.iter().map(Vec::len).max().unwrap_or(0) as f64;
        let width = (text + 14.0).max(most(false) * (value + 8.0));
        let height = (24.0 + LINE * lines).max(most(true) * LINE + 4.0);
        PeGrid {
            scene,
            plane,
            held,
            width,
            height: height.max(38.0),
            value,
            queues,
        }
    }

    /// The upper left corner of a PE.
    fn at(&self, pe: &[i128]) -> Position {
        let (row, column) = self.plane.cell(pe);
        ((self.width + GAP) * column, (self.height + GAP) * row)
    }

    fn pe(&self, svg: &mut Svg, pe: &Vec<i128>) {
        let (x, y) = self.at(pe);
        svg.rect("pe", x, y, self.width, self.height);
        let position = self.plane.drawn.iter().position(|drawn| *drawn == pe);
        let held = position.map_or(&[][..], |k| &self.held[k]);
        let first = y + (self.height - LINE * held.len() as f64) / 2.0 + 4.0;
        let middle = x + self.width / 2.0;
        svg.text(
            "small faint",
            Anchor::Middle,
            (middle, first),
            &self.plane.name(pe),
        );
        for (line, (stream, text)) in held.iter().enumerate() {
            let at = (middle, first + LINE * (line as f64 + 1.0));
            label(svg, *stream, Anchor::Middle, at, text);
        }
    }

    fn links(&self, svg: &mut Svg, pe: &[i128]) {
        let (x, y) = self.at(pe);
        let moving: Vec<_> = self
            .scene
            .links
            .iter()
            .filter(|link| link.displacement.iter().any(|d| *d != 0))
            .collect();
        for link in &moving {
            let target: Vec<i128> = pe
                .iter()
                .zip(&link.displacement)
                .map(|(p, d)| p + d)
                .collect();
            if !self.plane.is_drawn(&target) {
                continue;
            }
            // Links of one direction, or its opposite, lie side by side.
            let back: Vec<i128> = link.displacement.iter().map(|d| -d).collect();
            let same: Vec<_> = moving
                .iter()
                .filter(|l| l.displacement == link.displacement || l.displacement == back)
                .collect();
            let at = same.iter().position(|l| l == &link).unwrap_or(0);
            let side = 9.0 * at as f64 - 4.5 * (same.len() - 1) as f64;
            let sign = if link.displacement < back { -1.0 } else { 1.0 };
            let (tx, ty) = self.at(&target);
            let (dx, dy) = (tx - x, ty - y);
            let (ux, uy) = unit(dx, dy);
            let reach =
                (self.width / 2.0 / ux.abs().max(1e-6)).min(self.height / 2.0 / uy.abs().max(1e-6));
            let c = (
                x + self.width / 2.0 - sign * uy * side,
                y + self.height / 2.0 + sign * ux * side,
            );
            svg.arrow(
                link.stream,
                "dep",
                (c.0 + ux * reach, c.1 + uy * reach),
                (c.0 + dx - ux * (reach + 1.0), c.1 + dy - uy * (reach + 1.0)),
            );
        }
    }

    /// An arrow at each PE where the stream enters or leaves, and its values.
    fn queue(&self, svg: &mut Svg, queue: &Queue) {
        let side = queue.side();
        let (before, all) = queue.beside;
        let lane = before as f64 - (all as f64 - 1.0) / 2.0;
        // A position beside a PE, at a distance from its edge.
        let beside = |pe: &[i128], distance: f64| {
            let (x, y) = self.at(pe);
            let (x, y) = (x + self.width / 2.0, y + self.height / 2.0);
            if queue.is_along_rows() {
                (x + side * (self.width / 2.0 + distance), y + lane * LINE)
            } else {
                (
                    x + lane * (self.value + 8.0),
                    y + side * (self.height / 2.0 + distance),
                )
            }
        };
        let pes: BTreeSet<&Vec<i128>> = queue.values.iter().map(|(pe, ..)| pe).collect();
        for pe in pes {
            let (near, far) = (beside(pe, 1.0), beside(pe, LEAD - 6.0));
            let (from, to) = if queue.enters {
                (far, near)
            } else {
                (near, far)
            };
            svg.arrow(queue.stream, "dep", from, to);
        }
        let steps = queue.values.iter().map(|(_, step, _)| *step);
        let (first, last) = (steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));
        let pitch = if queue.is_along_rows() {
            self.value + 8.0
        } else {
            LINE
        };
        for (pe, step, value) in &queue.values {
            // The next to enter is the nearest, and so is the last that left.
            let behind = if queue.enters {
                step - first
            } else {
                last - step
            };
            if behind > MAX_QUEUE {
                continue;
            }
            let text = if behind == MAX_QUEUE { "…" } else { value };
            let half = if queue.is_along_rows() {
                self.value / 2.0
            } else {
                LINE / 2.0
            };
            let (x, y) = beside(pe, LEAD + half + pitch * behind as f64);
            let class = tinted(queue.stream);
            svg.text_where_free(&class, Anchor::Middle, [(x, y + 4.0)], text);
        }
    }
}

/// The values of a stream that enter or leave the drawn PEs at the ends of rows or columns. None
/// where it does not move along one axis, or enters or leaves in the middle.
fn queue(
    scene: &Scene,
    layout: &Layout,
    plane: &Plane<'_>,
    stream: usize,
    enters: bool,
) -> Option<Queue> {
    let links = scene.links.iter().filter(|link| link.stream == stream);
    let moves: BTreeSet<(i128, i128)> = links
        .map(|link| plane.moves(&link.displacement))
        .collect::<Option<_>>()?;
    let mut moves = moves.into_iter().filter(|way| *way != (0, 0));
    let (Some(towards), None) = (moves.next(), moves.next()) else {
        return None;
    };
    if towards.0 != 0 && towards.1 != 0 {
        return None;
    }
    let mut values = Vec::new();
    for slot in scene
        .slots
        .iter()
        .filter(|slot| plane.is_drawn(&slot.place))
    {
        let ports = if enters { &slot.injects } else { &slot.drains };
        if !ports.iter().any(|(n, _)| *n == stream) {
            continue;
        }
        let sign = if enters { -1 } else { 1 };
        let mut beyond = slot.place.clone();
        beyond[plane.row] += sign * towards.0;
        beyond[plane.column] += sign * towards.1;
        if layout.pes.binary_search(&beyond).is_ok() {
            return None;
        }
        let value = held_value(slot, stream)?;
        let step = layout.steps.binary_search(&slot.time).ok()?;
        values.push((slot.place.clone(), step, value.to_string()));
    }
    (!values.is_empty()).then_some(Queue {
        stream,
        enters,
        towards,
        values,
        beside: (0, 1),
    })
}

fn held_value(slot: &Slot, stream: usize) -> Option<&str> {
    let value = slot.values.iter().find(|(n, _)| *n == stream);
    value.map(|(_, text)| text.as_str())
}

/// What is written into a PE: values that stay there, and what it takes from memory or hands to it,
/// without what stands beside the grid.
fn held(scene: &Scene, pe: &Vec<i128>, outside: &BTreeSet<(usize, bool)>) -> Vec<(usize, String)> {
    let slots: Vec<&Slot> = scene
        .slots
        .iter()
        .filter(|slot| slot.place == *pe)
        .collect();
    let mut lines = Vec::new();
    for (n, stream) in scene.streams.iter().enumerate() {
        let of = |ports: fn(&Slot) -> &Vec<(usize, String)>| -> BTreeSet<&str> {
            let slots = slots
                .iter()
                .filter(|slot| ports(slot).iter().any(|(s, _)| *s == n));
            slots.filter_map(|slot| held_value(slot, n)).collect()
        };
        let all: BTreeSet<&str> = slots
            .iter()
            .filter_map(|slot| held_value(slot, n))
            .collect();
        let (taken, handed) = (of(|s| &s.injects), of(|s| &s.drains));
        let one = |values: &BTreeSet<&str>| match values.iter().next() {
            Some(value) if values.len() == 1 => (*value).to_string(),
            _ => stream.name.clone(),
        };
        let stays = all.len() == 1;
        let enters = !taken.is_empty() && !outside.contains(&(n, true));
        let leaves = !handed.is_empty() && !outside.contains(&(n, false));
        if enters && leaves && taken == handed {
            lines.push((n, format!("{} in, out", one(&taken))));
            continue;
        }
        if enters {
            lines.push((n, format!("{} in", one(&taken))));
        }
        if leaves {
            lines.push((n, format!("{} out", one(&handed))));
        }
        if stays && !enters && !leaves && slots.len() > 1 {
            lines.push((n, one(&all)));
        }
    }
    lines
}
