//! Panel 2 for a linear array: boxes with registers, links between them.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::diag::coordinates;

use super::{Layout, Scene, Slot, heading, label, link_list, varying};
use crate::svg::{Anchor, N_COLOURS, Svg, text_width};

/// The height of a row of registers, of a label in it, and of a line of names outside a box.
const ROW: f64 = 22.0;
const DELAY: f64 = 13.0;
const NAME: f64 = 14.0;

/// The registers that are drawn, and their distance.
const MAX_REGISTERS: usize = 3;
const REGISTER: f64 = 13.0;

/// Draws the array.
pub(super) fn panel(scene: &Scene, layout: &Layout) -> Svg {
    let mut svg = Svg::new();
    let title = "The array: PEs, registers, links";
    let reading = "from above: values read from memory; below: values that leave";
    let top = heading(&mut svg, title, reading);
    let row = PeRow::new(scene, layout, top);
    for (k, pe) in row.shown.iter().enumerate() {
        row.pe(&mut svg, row.x_of(k), &layout.pes[*pe]);
    }
    if layout.pes.len() > row.shown.len() {
        let x = row.x_of(row.shown.len() - 1) - row.gap / 2.0;
        svg.text("", Anchor::Middle, (x, row.top + 14.0), "…");
    }
    row.busses(&mut svg);
    let n_jumps = row.links(&mut svg);
    let y = row.bottom() + 30.0 + row.n_outputs as f64 * NAME + 20.0 * n_jumps;
    link_list(&mut svg, scene, (0.0, y));
    svg
}

/// The boxes of the PEs.
struct PeRow<'a> {
    scene: &'a Scene,
    rows: Vec<Row>,
    /// Of a long array the first PEs and the last one.
    shown: Vec<usize>,
    /// The delays of the links of a stream over a number of PEs.
    delays: BTreeMap<(usize, i128), String>,
    top: f64,
    width: f64,
    gap: f64,
    /// Where the registers begin, within a box.
    registers_at: f64,
    /// Memory ports above and below one box, at most.
    n_inputs: usize,
    n_outputs: usize,
    busses: Vec<usize>,
}

/// A stream with registers, and its position below the top of the boxes.
struct Row {
    stream: usize,
    y: f64,
}

impl<'a> PeRow<'a> {
    fn new(scene: &'a Scene, layout: &Layout, top: f64) -> Self {
        let n_pes = layout.pes.len();
        let shown: Vec<usize> = if n_pes <= 5 {
            (0..n_pes).collect()
        } else {
            vec![0, 1, 2, 3, n_pes - 1]
        };
        let delays = delays(scene, varying(&layout.pes).first().copied());
        let mut rows = Vec::new();
        let mut y = 34.0;
        let registered = |n: &usize| scene.streams[*n].registers.is_some();
        for stream in (0..scene.streams.len()).filter(registered) {
            let is_returning = delays.contains_key(&(stream, -1));
            y += if is_returning { DELAY } else { 0.0 };
            rows.push(Row { stream, y });
            let is_labelled = delays.contains_key(&(stream, 1));
            y += ROW + if is_labelled { DELAY } else { 0.0 };
        }
        let small = |text: &str| text_width(text, 10.5, false);
        let names = rows
            .iter()
            .map(|row| small(&scene.streams[row.stream].name));
        let registers_at = names.fold(24.0, f64::max) + 14.0;
        let titles = shown
            .iter()
            .map(|k| text_width(&pe_name(&layout.pes[*k]), 12.0, false));
        let registers = REGISTER * MAX_REGISTERS as f64 + 14.0;
        let inner = titles.fold(registers_at + registers, f64::max);
        let next = delays.iter().filter(|((_, d), _)| d.abs() == 1);
        let gap = next.map(|(_, text)| small(text)).fold(42.0, f64::max) + 16.0;
        let ports = |of: fn(&Slot) -> &Vec<(usize, String)>| {
            let counts = shown
                .iter()
                .map(|k| ports(scene, &layout.pes[*k], of).len());
            counts.max().unwrap_or(0)
        };
        let (n_inputs, n_outputs) = (ports(|s| &s.injects), ports(|s| &s.drains));
        let broadcast = |n: &usize| scene.streams[*n].broadcast;
        let busses: Vec<usize> = (0..scene.streams.len()).filter(broadcast).collect();
        PeRow {
            scene,
            rows,
            shown,
            delays,
            top: top + 30.0 + NAME * n_inputs as f64 + 18.0 * busses.len() as f64,
            width: inner + 18.0,
            gap,
            registers_at,
            n_inputs,
            n_outputs,
            busses,
        }
    }

    fn bottom(&self) -> f64 {
        let last = self.rows.last().map_or(16.0, |row| row.y);
        self.top + last + 16.0
    }

    fn x_of(&self, k: usize) -> f64 {
        k as f64 * (self.width + self.gap)
    }

    fn row_y(&self, stream: usize) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.stream == stream)?;
        Some(self.top + row.y)
    }

    fn pe(&self, svg: &mut Svg, x: f64, pe: &[i128]) {
        svg.rect("pe", x, self.top, self.width, self.bottom() - self.top);
        let at = (x + self.width / 2.0, self.top + 16.0);
        svg.text("", Anchor::Middle, at, &pe_name(pe));
        for row in &self.rows {
            self.registers(svg, x, row);
        }
        self.memory_ports(svg, x, pe);
    }

    fn registers(&self, svg: &mut Svg, x: f64, row: &Row) {
        let y = self.top + row.y;
        let stream = &self.scene.streams[row.stream];
        label(
            svg,
            row.stream,
            Anchor::Start,
            (x + 8.0, y + 4.0),
            &stream.name,
        );
        let depth = stream.registers.unwrap_or(0);
        let x = x + self.registers_at;
        for r in 0..depth.min(MAX_REGISTERS) {
            let class = format!("reg s{}", row.stream % N_COLOURS);
            svg.rect(&class, x + REGISTER * r as f64, y - 6.0, 11.0, 11.0);
        }
        if depth > MAX_REGISTERS {
            let at = (x + REGISTER * MAX_REGISTERS as f64, y + 4.0);
            svg.text("small", Anchor::Start, at, "…");
        }
    }

    /// Arrows into a PE from memory and out of it, with the name of the array: one name below the
    /// other, the arrows side by side.
    fn memory_ports(&self, svg: &mut Svg, x: f64, pe: &[i128]) {
        let mut reads = ports(self.scene, pe, |s| &s.injects);
        reads.retain(|(n, _)| !self.scene.streams[*n].broadcast);
        let outs = ports(self.scene, pe, |s| &s.drains);
        let place = |k: usize| x + 14.0 + 12.0 * k as f64;
        let (top, bottom) = (self.top, self.bottom());
        for (k, (stream, name)) in reads.iter().enumerate() {
            let (px, y) = (place(k), top - 14.0 - NAME * (reads.len() - k) as f64);
            svg.arrow(*stream, "dep", (px, y), (px, top - 1.0));
            label(svg, *stream, Anchor::Start, (px + 5.0, y + 8.0), name);
        }
        for (k, (stream, name)) in outs.iter().enumerate() {
            let (px, y) = (place(k), bottom + 8.0 + NAME * (outs.len() - k) as f64);
            svg.arrow(*stream, "dep", (px, bottom + 1.0), (px, y));
            label(svg, *stream, Anchor::Start, (px + 6.0, y), name);
        }
    }

    /// Inputs of which all PEs read the same element.
    fn busses(&self, svg: &mut Svg) {
        let n = self.busses.len();
        for (k, stream) in self.busses.iter().enumerate() {
            let above = self.top - 18.0 - NAME * self.n_inputs as f64;
            let y = above - 12.0 - 18.0 * k as f64;
            let tap = |pe: usize| self.x_of(pe) + self.width - 10.0 - 9.0 * (n - 1 - k) as f64;
            let end = tap(self.shown.len().saturating_sub(1));
            let class = format!("bus s{}", stream % N_COLOURS);
            svg.line(&class, (self.x_of(0), y), (end, y));
            let name = &self.scene.streams[*stream].name;
            label(
                svg,
                *stream,
                Anchor::End,
                (self.x_of(0) - 4.0, y + 4.0),
                name,
            );
            for pe in 0..self.shown.len() {
                svg.arrow(*stream, "dep", (tap(pe), y), (tap(pe), self.top - 1.0));
            }
        }
    }

    /// Draws the links; the number of levels below the boxes.
    fn links(&self, svg: &mut Svg) -> f64 {
        let mut n_jumps = 0.0;
        for (&(stream, d), delay) in &self.delays {
            let Some(y) = self.row_y(stream) else {
                continue;
            };
            match d {
                0 => self.stay(svg, stream, y),
                1 | -1 => {
                    // Links in both directions lie one above the other.
                    let is_both = self.delays.contains_key(&(stream, -d));
                    let y = if is_both { y + 4.0 * d as f64 } else { y };
                    self.next(svg, (stream, d), y, delay);
                }
                _ => {
                    n_jumps += 1.0;
                    self.jump(svg, (stream, d), n_jumps);
                }
            }
        }
        n_jumps
    }

    /// Links from a PE to itself.
    fn stay(&self, svg: &mut Svg, stream: usize, y: f64) {
        for k in 0..self.shown.len() {
            let x = self.x_of(k) + self.width - 14.0;
            let by = ((x + 18.0, y + 12.0), (x + 18.0, y - 12.0));
            svg.curve(stream, "dep", (x, y + 3.0), by, (x, y - 3.0));
        }
    }

    /// Links between neighbours.
    fn next(&self, svg: &mut Svg, (stream, d): (usize, i128), y: f64, delay: &str) {
        for k in 1..self.shown.len() {
            let (low, high) = (self.x_of(k - 1) + self.width, self.x_of(k));
            let (from, to) = if d == 1 {
                (low, high - 1.0)
            } else {
                (high, low + 1.0)
            };
            svg.arrow(stream, "dep", (from, y), (to, y));
        }
        if self.shown.len() > 1 {
            let text_y = if d == 1 { y + 13.0 } else { y - 6.0 };
            let at = (self.x_of(0) + self.width + self.gap / 2.0, text_y);
            label(svg, stream, Anchor::Middle, at, delay);
        }
    }

    /// Links over PEs: below the boxes, one level for each.
    fn jump(&self, svg: &mut Svg, (stream, d): (usize, i128), level: f64) {
        let floor = self.bottom();
        let y = floor + 12.0 + self.n_outputs as f64 * NAME + 20.0 * level;
        let side = 8.0 * level;
        let hop = usize::try_from(d.unsigned_abs()).unwrap_or(usize::MAX);
        for (i, pe) in self.shown.iter().enumerate() {
            let target = pe.checked_add(hop);
            let Some(j) = self.shown.iter().position(|p| Some(*p) == target) else {
                continue;
            };
            let (i, j) = if d > 0 { (i, j) } else { (j, i) };
            let from = self.x_of(i) + self.width / 2.0 + side;
            let to = self.x_of(j) + self.width / 2.0 - side;
            let by = ((from, y), (to, y));
            svg.curve(stream, "dep", (from, floor), by, (to, floor + 1.0));
        }
    }
}

fn pe_name(pe: &[i128]) -> String {
    format!("PE {}", coordinates(pe))
}

/// What a PE takes from memory, or hands to it.
fn ports<'s>(
    scene: &'s Scene,
    pe: &[i128],
    of: fn(&Slot) -> &Vec<(usize, String)>,
) -> BTreeSet<&'s (usize, String)> {
    let slots = scene.slots.iter().filter(|slot| slot.place == pe);
    slots.flat_map(of).collect()
}

/// `1 step or 2 steps`, of the links of a stream over a number of PEs along a coordinate.
fn delays(scene: &Scene, axis: Option<usize>) -> BTreeMap<(usize, i128), String> {
    let mut delays: BTreeMap<(usize, i128), Vec<&str>> = BTreeMap::new();
    for link in &scene.links {
        let d = axis.map_or(0, |k| link.displacement[k]);
        let of_link = delays.entry((link.stream, d)).or_default();
        if !of_link.contains(&link.delay.as_str()) {
            of_link.push(&link.delay);
        }
    }
    let texts = delays
        .into_iter()
        .map(|(key, texts)| match texts.as_slice() {
            [first, second, _, ..] => (key, format!("{first}, {second}, …")),
            few => (key, few.join(" or ")),
        });
    texts.collect()
}
