//! The picture that the literature draws of an array: the index space with its dependences, the
//! PEs with their links, and the slots (PE, step) with the values they hold. Where values go through
//! memory, their places and how long each is taken.

use std::collections::BTreeSet;

use systola_ir::diag::coordinates;

use crate::svg::{Anchor, N_COLOURS, Position, Svg, text_area};

mod index_space;
pub mod memory;
mod pe_grid;
mod pe_row;
mod snapshots;
mod space_time;

/// The contents of the picture, as plain data.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub title: String,
    pub subtitle: String,
    /// Names of the coordinates of the points.
    pub dims: Vec<String>,
    /// The place and the time as functions of the point: `lane = c + q`.
    pub mapping: Vec<String>,
    pub streams: Vec<Stream>,
    pub slots: Vec<Slot>,
    pub hops: Vec<Hop>,
    pub links: Vec<Link>,
    /// A value whose path is outlined: the stream and the value's label.
    pub followed: Option<(usize, String)>,
    /// What is kept in memory, if values go from point to point through it.
    pub memory: Option<memory::Memory>,
}

/// A part of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    IndexSpace,
    Array,
    Slots,
    Memory,
}

impl Panel {
    pub const ALL: [Panel; 4] = [Panel::IndexSpace, Panel::Array, Panel::Slots, Panel::Memory];
}

/// A cell of the PEs, or an input that PEs read themselves.
#[derive(Clone, Debug)]
pub struct Stream {
    pub name: String,
    pub meaning: String,
    /// Registers of one PE; none for an input that is read.
    pub registers: Option<usize>,
    /// An input of which all PEs read the same element in one step.
    pub broadcast: bool,
}

/// A busy slot.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub point: Vec<i128>,
    pub place: Vec<i128>,
    pub time: Vec<i128>,
    /// A copy in the halo of a tile.
    pub copy: bool,
    /// The value of each stream that it holds: `x3`.
    pub values: Vec<(usize, String)>,
    /// Streams that take a value from memory here, with the name of the array.
    pub injects: Vec<(usize, String)>,
    /// Streams that leave here, with the name of the output.
    pub drains: Vec<(usize, String)>,
}

/// One value that moves from a slot to a later one.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub stream: usize,
    pub from: usize,
    pub to: usize,
}

/// A connection that every PE has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub stream: usize,
    pub displacement: Vec<i128>,
    /// `1 step`
    pub delay: String,
    /// `shuffle`
    pub realisation: String,
}

/// The maximum numbers of PEs, steps and points in a readable picture, and the length of an index
/// space along an axis.
const MAX_PES: usize = 14;
const MAX_STEPS: usize = 16;
const MAX_POINTS: usize = 400;
const MAX_ALONG: i128 = 40;

/// The width at which titles and legends break.
const WIDTH: f64 = 900.0;

/// The white space between panels.
const BETWEEN: f64 = 44.0;

/// Draws panels of the scene; the second result lists the omitted parts.
pub fn draw(scene: &Scene, panels: &[Panel]) -> (String, Vec<String>) {
    let wanted = |panel: Panel| panels.contains(&panel);
    let mut svg = Svg::new();
    let mut omitted = Vec::new();
    let y = svg.paragraph("title", (0.0, 0.0), WIDTH, &scene.title);
    let y = svg.paragraph("faint", (0.0, y + 20.0), WIDTH, &scene.subtitle);
    let index_space = index_space(scene);
    // The panel of the index space names it otherwise.
    let names_it = wanted(Panel::IndexSpace) && index_space.is_ok();
    let y = if !names_it && !scene.mapping.is_empty() {
        svg.paragraph("faint", (0.0, y + 18.0), WIDTH, &scene.mapping.join(",  "))
    } else {
        y
    };
    let top = legend(&mut svg, scene, y + 22.0) + 26.0;

    let layout = Layout::new(scene);
    if layout.pes.is_empty() {
        svg.text(
            "",
            Anchor::Start,
            (0.0, top),
            "There are no points at these sizes.",
        );
        return (
            svg.finish(&scene.title),
            vec!["the panels: there are no points".to_string()],
        );
    }
    let (mut left, mut below) = (0.0, top);
    if wanted(Panel::IndexSpace) {
        match index_space {
            Ok(panel) => {
                let area = svg.place(panel, (0.0, top));
                left = area.right + BETWEEN;
                below = area.bottom + BETWEEN;
            }
            Err(why) => omitted.push(format!("the index space: {why}")),
        }
    }
    if wanted(Panel::Array) {
        let array = match layout.is_grid() {
            true => pe_grid::panel(scene, &layout),
            false => pe_row::panel(scene, &layout),
        };
        let area = svg.place(array, (left, top));
        below = below.max(area.bottom + BETWEEN);
    }
    if let Some(memory) = &scene.memory
        && wanted(Panel::Memory)
    {
        let (panel, not_drawn) = memory::panel(scene, memory);
        below = svg.place(panel, (0.0, below)).bottom + BETWEEN;
        omitted.extend(not_drawn);
    }
    if wanted(Panel::Slots) {
        let slots = match layout.is_grid() {
            true => snapshots::panel(scene, &layout),
            false => space_time::panel(scene, &layout),
        };
        svg.place(slots, (0.0, below));
    }
    omitted.extend(layout.omitted(panels));
    (svg.finish(&scene.title), omitted)
}

/// The panel of the index space, or why there is none.
fn index_space(scene: &Scene) -> Result<Svg, String> {
    let axes = plane(scene).ok_or_else(|| format!("it has {} dimensions", scene.dims.len()))?;
    let n = scene.slots.len();
    if n > MAX_POINTS {
        return Err(format!("it has {n} points; choose smaller sizes"));
    }
    let extent = |axis: usize| {
        let values = scene.slots.iter().map(|s| s.point[axis]);
        let (low, high) = (values.clone().min(), values.max());
        high.zip(low).map_or(0, |(high, low)| high - low)
    };
    let longest = extent(axes.0).max(extent(axes.1));
    if longest > MAX_ALONG {
        return Err(format!(
            "it has {} points along an axis; choose smaller sizes",
            longest + 1
        ));
    }
    Ok(index_space::panel(scene, axes))
}

/// PEs and steps in order.
struct Layout {
    pes: Vec<Vec<i128>>,
    steps: Vec<Vec<i128>>,
}

impl Scene {
    /// `t=3`, unless an iterator is called t.
    fn step_label(&self, time: &[i128]) -> String {
        let prefix = if self.dims.iter().any(|d| d == "t") {
            "step "
        } else {
            "t="
        };
        format!("{prefix}{}", coordinates(time))
    }

    /// The class of a shape for this slot: copies are dashed, the followed value is outlined.
    fn class(&self, slot: &Slot, shape: &str) -> String {
        let copy = if slot.copy { " copy" } else { "" };
        match &self.followed {
            Some(value) if slot.values.contains(value) => {
                format!("{shape}{copy} hot s{}", value.0 % N_COLOURS)
            }
            _ => format!("{shape}{copy}"),
        }
    }
}

impl Layout {
    fn new(scene: &Scene) -> Self {
        let pes: BTreeSet<Vec<i128>> = scene.slots.iter().map(|s| s.place.clone()).collect();
        let times: BTreeSet<Vec<i128>> = scene.slots.iter().map(|s| s.time.clone()).collect();
        // With one time coordinate, a step in which nothing happens takes its row too.
        let first_last = times.first().zip(times.last());
        let steps = match first_last {
            Some((first, last)) if first.len() == 1 && last[0] - first[0] < 1000 => {
                (first[0]..=last[0]).map(|t| vec![t]).collect()
            }
            _ => times.into_iter().collect(),
        };
        Layout {
            pes: pes.into_iter().collect(),
            steps,
        }
    }

    /// The number of PEs of the layer and the corner of a grid that are drawn.
    fn drawn_of_grid(&self) -> usize {
        pe_grid::Plane::new(self).map_or(0, |plane| plane.drawn.len())
    }

    /// What panels leave out of large arrays.
    fn omitted(&self, panels: &[Panel]) -> Vec<String> {
        let mut omitted = Vec::new();
        let drawn = |panel: Panel| panels.contains(&panel);
        let n = self.pes.len();
        if self.is_grid() {
            let left_out = n - self.drawn_of_grid();
            if left_out > 0 && (drawn(Panel::Array) || drawn(Panel::Slots)) {
                omitted.push(format!("{left_out} of {n} PEs"));
            }
        } else if n > MAX_PES && drawn(Panel::Slots) {
            let left_out = n - MAX_PES;
            omitted.push(format!("{left_out} of {n} PEs in the diagram of slots"));
        }
        let n = self.steps.len();
        if n > MAX_STEPS && drawn(Panel::Slots) {
            omitted.push(format!("{} of {n} steps", n - MAX_STEPS));
        }
        omitted
    }

    /// Do two or more place coordinates vary?
    fn is_grid(&self) -> bool {
        varying(&self.pes).len() >= 2
    }
}

/// The coordinates that are not the same everywhere.
fn varying(vectors: &[Vec<i128>]) -> Vec<usize> {
    let n = vectors.first().map_or(0, Vec::len);
    (0..n)
        .filter(|k| vectors.iter().any(|v| v[*k] != vectors[0][*k]))
        .collect()
}

/// The two coordinates of a plane index space.
fn plane(scene: &Scene) -> Option<(usize, usize)> {
    let points: Vec<Vec<i128>> = scene.slots.iter().map(|s| s.point.clone()).collect();
    match (scene.dims.len(), varying(&points).as_slice()) {
        (2, _) => Some((0, 1)),
        (_, [a, b]) => Some((*a, *b)),
        _ => None,
    }
}

/// The names of the streams; the baseline of the last line.
fn legend(svg: &mut Svg, scene: &Scene, mut y: f64) -> f64 {
    let mut x = 0.0;
    for (n, stream) in scene.streams.iter().enumerate() {
        let class = format!("t{}", n % N_COLOURS);
        let text = format!("{}: {}", stream.name, stream.meaning);
        let right = text_area(&class, Anchor::Start, (x + 28.0, y), &text).right;
        if right > WIDTH && x > 0.0 {
            (x, y) = (0.0, y + 18.0);
        }
        svg.arrow(n, "dep", (x, y - 4.0), (x + 22.0, y - 4.0));
        svg.text(&class, Anchor::Start, (x + 28.0, y), &text);
        x = text_area(&class, Anchor::Start, (x + 28.0, y), &text).right + 24.0;
    }
    y
}

/// The title of a panel, and how to read it; where the panel goes on.
fn heading(svg: &mut Svg, title: &str, reading: &str) -> f64 {
    svg.text("head", Anchor::Start, (0.0, 0.0), title);
    svg.paragraph("small faint", (0.0, 17.0), 0.7 * WIDTH, reading) + 10.0
}

/// The class of a small text in the colour of a stream.
fn tinted(stream: usize) -> String {
    format!("small t{}", stream % N_COLOURS)
}

/// A small text in the colour of a stream.
fn label(svg: &mut Svg, stream: usize, anchor: Anchor, at: Position, text: &str) {
    svg.text(&tinted(stream), anchor, at, text);
}

fn unit(dx: f64, dy: f64) -> (f64, f64) {
    let length = dx.hypot(dy).max(1e-6);
    (dx / length, dy / length)
}

/// How far to the side a stream is drawn, so that streams with the same direction lie side by side.
fn lane_offset(scene: &Scene, stream: usize, by: f64) -> f64 {
    let moving: Vec<usize> = (0..scene.streams.len())
        .filter(|n| scene.hops.iter().any(|h| h.stream == *n))
        .collect();
    let at = moving.iter().position(|n| *n == stream).unwrap_or(0);
    by * (2.0 * at as f64 - (moving.len().max(1) - 1) as f64)
}

/// Every link in words.
fn link_list(svg: &mut Svg, scene: &Scene, (left, top): Position) {
    let mut y = top;
    for link in &scene.links {
        let (name, way) = (&scene.streams[link.stream].name, way(&link.displacement));
        let text = format!("{name}: {way}, {}, {}", link.delay, link.realisation);
        label(svg, link.stream, Anchor::Start, (left, y), &text);
        y += 15.0;
    }
}

/// A displacement in words.
fn way(displacement: &[i128]) -> String {
    let moves: Vec<i128> = displacement.iter().copied().filter(|d| *d != 0).collect();
    match moves.as_slice() {
        [] => "stays in its PE".to_string(),
        [1] if displacement.len() == 1 => "to the next PE".to_string(),
        [-1] if displacement.len() == 1 => "to the PE before".to_string(),
        _ => format!("by {} PEs", coordinates(displacement)),
    }
}
