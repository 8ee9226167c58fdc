//! The picture that the literature draws of an array: the index space with its dependences, the
//! PEs with their links, and the slots (PE, step) with the values they hold.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::diag::coordinates;

use crate::svg::{Anchor, N_COLOURS, Svg};

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
    /// `1 step, shuffle`
    pub label: String,
}

/// The maximum numbers of PEs, steps and points in a readable picture.
const MAX_PES: usize = 14;
const MAX_STEPS: usize = 16;
const MAX_POINTS: usize = 400;

const MARGIN: f64 = 24.0;

/// Draws the scene; the second result lists the omitted parts.
pub fn draw(scene: &Scene) -> (String, Vec<String>) {
    let mut svg = Svg::new();
    let mut omitted = Vec::new();
    svg.text("title", Anchor::Start, (MARGIN, 34.0), &scene.title);
    svg.text("faint", Anchor::Start, (MARGIN, 54.0), &scene.subtitle);
    legend(&mut svg, scene, 76.0);

    let layout = Layout::new(scene);
    let top = 112.0;
    let mut below = top;
    let mut left = MARGIN;
    match plane(scene) {
        Some(axes) if scene.slots.len() <= MAX_POINTS => {
            let (right, bottom) = index_space(&mut svg, scene, axes, left, top);
            left = right + 48.0;
            below = below.max(bottom);
        }
        Some(_) => omitted.push(format!(
            "the index space: it has {} points; choose smaller sizes",
            scene.slots.len()
        )),
        None => omitted.push(format!(
            "the index space: it has {} dimensions",
            scene.dims.len()
        )),
    }
    let bottom = if layout.is_grid() {
        pe_grid(&mut svg, scene, &layout, left, top)
    } else {
        pe_row(&mut svg, scene, &layout, left, top)
    };
    below = below.max(bottom);
    space_time(&mut svg, scene, &layout, MARGIN, below + 44.0);

    if layout.pes.len() > MAX_PES {
        omitted.push(format!(
            "{} of {} PEs in the diagram of slots",
            layout.pes.len() - MAX_PES,
            layout.pes.len()
        ));
    }
    if layout.steps.len() > MAX_STEPS {
        omitted.push(format!(
            "{} of {} steps",
            layout.steps.len() - MAX_STEPS,
            layout.steps.len()
        ));
    }
    (svg.finish(&scene.title), omitted)
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

fn legend(svg: &mut Svg, scene: &Scene, y: f64) {
    let mut x = MARGIN;
    for (n, stream) in scene.streams.iter().enumerate() {
        svg.arrow(n, "dep", (x, y - 4.0), (x + 22.0, y - 4.0));
        let text = format!("{}: {}", stream.name, stream.meaning);
        svg.text(&format!("t{n}"), Anchor::Start, (x + 28.0, y), &text);
        x += 52.0 + 6.4 * text.chars().count() as f64;
    }
}

/// Panel 1: points, dependences, one band for each PE, one dashed line for each step.
fn index_space(
    svg: &mut Svg,
    scene: &Scene,
    (a, b): (usize, usize),
    left: f64,
    top: f64,
) -> (f64, f64) {
    const STEP: f64 = 54.0;
    const RADIUS: f64 = 8.0;
    svg.text(
        "head",
        Anchor::Start,
        (left, top),
        "The recurrence: points and dependences",
    );
    svg.text(
        "small faint",
        Anchor::Start,
        (left, top + 17.0),
        "a band joins the points of one PE, a dashed line those of one step",
    );
    let range = |k: usize| {
        let values = scene.slots.iter().map(|s| s.point[k]);
        (values.clone().min().unwrap_or(0), values.max().unwrap_or(0))
    };
    let ((a_min, a_max), (b_min, b_max)) = (range(a), range(b));
    let origin = (left + 88.0, top + 72.0 + STEP * (b_max - b_min) as f64);
    let at = |p: &[i128]| {
        (
            origin.0 + STEP * (p[a] - a_min) as f64,
            origin.1 - STEP * (p[b] - b_min) as f64,
        )
    };

    let frame = (
        (
            origin.0 - 20.0,
            origin.1 - STEP * (b_max - b_min) as f64 - 20.0,
        ),
        (
            origin.0 + STEP * (a_max - a_min) as f64 + 20.0,
            origin.1 + 20.0,
        ),
    );
    let by_place = groups(scene, |s| &s.place);
    let by_time = groups(scene, |s| &s.time);
    for (class, label, sets) in [("band", "PE", &by_place), ("wave", "t", &by_time)] {
        let along = direction(scene, sets);
        for (key, members) in sets {
            let mut ends: Vec<(f64, f64)> =
                members.iter().map(|n| at(&scene.slots[*n].point)).collect();
            let u = {
                let v = (along[a] as f64, -along[b] as f64);
                let length = v.0.hypot(v.1).max(1e-6);
                (v.0 / length, v.1 / length)
            };
            ends.sort_by(|p, q| (p.0 * u.0 + p.1 * u.1).total_cmp(&(q.0 * u.0 + q.1 * u.1)));
            let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
                continue;
            };
            // A wavefront crosses the whole picture, so its label is placed outside.
            let (before, after) = if label == "PE" {
                (4.0, 12.0)
            } else {
                (
                    way_out(*first, (-u.0, -u.1), frame),
                    way_out(*last, u, frame),
                )
            };
            let from = (first.0 - u.0 * before, first.1 - u.1 * before);
            let to = (last.0 + u.0 * after, last.1 + u.1 * after);
            svg.line(class, from, to);
            let gap = if label == "PE" { 24.0 } else { 12.0 };
            let text_at = (to.0 + u.0 * gap, to.1 + u.1 * gap + 4.0);
            let text = if label == "PE" {
                format!("PE {}", coordinates(key))
            } else {
                scene.step_label(key)
            };
            svg.text("small faint", Anchor::Middle, text_at, &text);
        }
    }
    for hop in &scene.hops {
        let (p, q) = (&scene.slots[hop.from], &scene.slots[hop.to]);
        if p.point == q.point {
            continue;
        }
        let (from, to) = (at(&p.point), at(&q.point));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1e-6);
        let (ux, uy) = (dx / length, dy / length);
        // Streams with the same direction are drawn side by side.
        let side = lane_offset(scene, hop.stream, 3.2);
        let (nx, ny) = (-uy * side, ux * side);
        svg.arrow(
            hop.stream,
            "dep",
            (from.0 + ux * RADIUS + nx, from.1 + uy * RADIUS + ny),
            (
                to.0 - ux * (RADIUS + 1.5) + nx,
                to.1 - uy * (RADIUS + 1.5) + ny,
            ),
        );
    }
    for slot in &scene.slots {
        svg.circle(&scene.class(slot, "point"), at(&slot.point), RADIUS);
    }
    let axis_y = origin.1 + 62.0;
    for v in a_min..=a_max {
        let x = origin.0 + STEP * (v - a_min) as f64;
        svg.text(
            "small",
            Anchor::Middle,
            (x, axis_y),
            &format!("{}={v}", scene.dims[a]),
        );
    }
    for v in b_min..=b_max {
        let y = origin.1 - STEP * (v - b_min) as f64 + 4.0;
        svg.text(
            "small",
            Anchor::End,
            (left + 26.0, y),
            &format!("{}={v}", scene.dims[b]),
        );
    }
    let mut y = axis_y + 22.0;
    for line in &scene.mapping {
        svg.text("small", Anchor::Start, (left, y), line);
        y += 15.0;
    }
    (origin.0 + STEP * (a_max - a_min) as f64 + 84.0, y)
}

/// The distance from a point in a direction to the frame.
fn way_out(from: (f64, f64), u: (f64, f64), frame: ((f64, f64), (f64, f64))) -> f64 {
    let along = |at: f64, step: f64, low: f64, high: f64| {
        if step > 1e-9 {
            (high - at) / step
        } else if step < -1e-9 {
            (low - at) / step
        } else {
            f64::INFINITY
        }
    };
    let (low, high) = frame;
    let out = along(from.0, u.0, low.0, high.0).min(along(from.1, u.1, low.1, high.1));
    if out.is_finite() { out } else { 20.0 }
}

fn lane_offset(scene: &Scene, stream: usize, by: f64) -> f64 {
    let moving: Vec<usize> = (0..scene.streams.len())
        .filter(|n| scene.hops.iter().any(|h| h.stream == *n))
        .collect();
    let at = moving.iter().position(|n| *n == stream).unwrap_or(0);
    by * (2.0 * at as f64 - (moving.len().max(1) - 1) as f64)
}

fn groups<'a>(
    scene: &'a Scene,
    key: impl Fn(&'a Slot) -> &'a Vec<i128>,
) -> BTreeMap<&'a Vec<i128>, Vec<usize>> {
    let mut groups: BTreeMap<&Vec<i128>, Vec<usize>> = BTreeMap::new();
    for (n, slot) in scene.slots.iter().enumerate() {
        groups.entry(key(slot)).or_default().push(n);
    }
    groups
}

/// The direction in which the points of one group follow each other.
fn direction(scene: &Scene, groups: &BTreeMap<&Vec<i128>, Vec<usize>>) -> Vec<i128> {
    let n = scene.dims.len();
    groups
        .values()
        .find_map(|members| match members.as_slice() {
            [first, .., last] => {
                let (p, q) = (&scene.slots[*first].point, &scene.slots[*last].point);
                Some(p.iter().zip(q).map(|(p, q)| q - p).collect())
            }
            _ => None,
        })
        .unwrap_or_else(|| {
            let mut along = vec![0; n];
            if let Some(last) = along.last_mut() {
                *last = 1;
            }
            along
        })
}

/// Panel 2 for a linear array: boxes with registers, links between them.
fn pe_row(svg: &mut Svg, scene: &Scene, layout: &Layout, left: f64, top: f64) -> f64 {
    const BOX: f64 = 100.0;
    const GAP: f64 = 58.0;
    const ROW: f64 = 22.0;
    svg.text(
        "head",
        Anchor::Start,
        (left, top),
        "The array: PEs, registers, links",
    );
    svg.text(
        "small faint",
        Anchor::Start,
        (left, top + 17.0),
        "from above: values read from memory; below: values that leave",
    );
    let cells: Vec<usize> = (0..scene.streams.len())
        .filter(|n| scene.streams[*n].registers.is_some())
        .collect();
    // Of a long array the first PEs and the last one.
    let n_pes = layout.pes.len();
    let shown: Vec<usize> = if n_pes <= 5 {
        (0..n_pes).collect()
    } else {
        vec![0, 1, 2, 3, n_pes - 1]
    };
    let box_top = top + 104.0;
    let box_height = 30.0 + ROW * cells.len() as f64;
    let x_of = |k: usize| left + 16.0 + k as f64 * (BOX + GAP);
    let row_y = |stream: usize| {
        let row = cells.iter().position(|c| *c == stream).unwrap_or(0);
        box_top + 34.0 + ROW * row as f64
    };
    for (k, pe) in shown.iter().enumerate() {
        let x = x_of(k);
        let pe = &layout.pes[*pe];
        svg.rect("pe", x, box_top, BOX, box_height);
        let name = format!("PE {}", coordinates(pe));
        svg.text("", Anchor::Middle, (x + BOX / 2.0, box_top + 16.0), &name);
        for cell in &cells {
            let y = row_y(*cell);
            let stream = &scene.streams[*cell];
            let label = short(&stream.name, 4);
            svg.text(
                &format!("small t{cell}"),
                Anchor::Start,
                (x + 8.0, y + 4.0),
                &label,
            );
            let depth = stream.registers.unwrap_or(0);
            for r in 0..depth.min(3) {
                let class = format!("reg s{}", cell % N_COLOURS);
                svg.rect(&class, x + 36.0 + 13.0 * r as f64, y - 6.0, 11.0, 11.0);
            }
            if depth > 3 {
                svg.text("small", Anchor::Start, (x + 75.0, y + 4.0), "…");
            }
        }
        memory_ports(svg, scene, pe, (x, BOX), box_top, box_height);
    }
    if n_pes > shown.len() {
        let x = x_of(4) - GAP / 2.0;
        svg.text("", Anchor::Middle, (x, box_top + 14.0), "…");
    }
    let busses = (0..scene.streams.len()).filter(|n| scene.streams[*n].broadcast);
    for (k, stream) in busses.enumerate() {
        let y = box_top - 46.0 - 16.0 * k as f64;
        let tap = |n: usize| x_of(n) + BOX - 12.0 - 9.0 * k as f64;
        let end = tap(shown.len().saturating_sub(1));
        svg.line(
            &format!("bus s{}", stream % N_COLOURS),
            (x_of(0), y),
            (end, y),
        );
        let name = &scene.streams[stream].name;
        svg.text(
            &format!("small t{stream}"),
            Anchor::End,
            (x_of(0) - 4.0, y + 4.0),
            name,
        );
        for n in 0..shown.len() {
            svg.arrow(stream, "dep", (tap(n), y), (tap(n), box_top - 1.0));
        }
    }

    let axis = varying(&layout.pes).first().copied();
    let mut ways: BTreeMap<(usize, i128), Vec<String>> = BTreeMap::new();
    for link in &scene.links {
        let d = axis.map_or(0, |k| link.displacement[k]);
        ways.entry((link.stream, d))
            .or_default()
            .push(delay_of(&link.label));
    }
    let mut n_jumps = 0.0;
    for ((stream, d), delays) in &ways {
        let y = row_y(*stream);
        match d {
            1 | -1 => {
                // Links in both directions lie one above the other.
                let y = if ways.contains_key(&(*stream, -d)) {
                    y + 4.0 * *d as f64
                } else {
                    y
                };
                for n in 1..shown.len() {
                    let (low, high) = (x_of(n - 1) + BOX, x_of(n));
                    let ends = if *d == 1 {
                        (low, high - 1.0)
                    } else {
                        (high, low + 1.0)
                    };
                    svg.arrow(*stream, "dep", (ends.0, y), (ends.1, y));
                }
                if shown.len() > 1 {
                    let at = (
                        x_of(0) + BOX + GAP / 2.0,
                        if *d == 1 { y + 11.0 } else { y - 4.0 },
                    );
                    let text = delays.join(" or ");
                    svg.text(&format!("small t{stream}"), Anchor::Middle, at, &text);
                }
            }
            0 => {
                for n in 0..shown.len() {
                    let x = x_of(n) + BOX - 14.0;
                    svg.curve(
                        *stream,
                        "dep",
                        (x, y + 3.0),
                        ((x + 18.0, y + 12.0), (x + 18.0, y - 12.0)),
                        (x, y - 3.0),
                    );
                }
            }
            _ => {
                // A jump: below the boxes, one level for each such link.
                n_jumps += 1.0;
                let level = box_top + box_height + 18.0 + 20.0 * n_jumps;
                let hop = usize::try_from(d.unsigned_abs()).unwrap_or(usize::MAX);
                for (i, pe) in shown.iter().enumerate() {
                    let Some(j) = shown.iter().position(|p| Some(*p) == pe.checked_add(hop)) else {
                        continue;
                    };
                    let (i, j) = if *d > 0 { (i, j) } else { (j, i) };
                    let side = 8.0 * n_jumps;
                    let (from, to) = (x_of(i) + BOX / 2.0 + side, x_of(j) + BOX / 2.0 - side);
                    let floor = box_top + box_height;
                    svg.curve(
                        *stream,
                        "dep",
                        (from, floor),
                        ((from, level + 8.0), (to, level + 8.0)),
                        (to, floor + 1.0),
                    );
                }
            }
        }
    }
    let y = box_top + box_height + 52.0 + 20.0 * n_jumps;
    link_list(svg, scene, left + 16.0, y)
}

/// Every link in words.
fn link_list(svg: &mut Svg, scene: &Scene, left: f64, top: f64) -> f64 {
    let mut y = top;
    for link in &scene.links {
        let stream = &scene.streams[link.stream];
        let text = format!(
            "{}: {}, {}",
            stream.name,
            way(&link.displacement),
            link.label
        );
        svg.text(
            &format!("small t{}", link.stream),
            Anchor::Start,
            (left, y),
            &text,
        );
        y += 15.0;
    }
    y
}

/// Arrows into a PE from memory and out of it, with the name of the array.
fn memory_ports(
    svg: &mut Svg,
    scene: &Scene,
    pe: &[i128],
    (x, width): (f64, f64),
    top: f64,
    height: f64,
) {
    let slots = || scene.slots.iter().filter(|s| s.place == pe);
    let reads: BTreeSet<(usize, &str)> = slots()
        .flat_map(|s| s.injects.iter().map(|(n, name)| (*n, name.as_str())))
        .filter(|(n, _)| !scene.streams[*n].broadcast)
        .collect();
    let outs: BTreeSet<(usize, &str)> = slots()
        .flat_map(|s| s.drains.iter().map(|(n, name)| (*n, name.as_str())))
        .collect();
    let place = |k: usize, n: usize| x + width * (k as f64 + 1.0) / (n as f64 + 1.0);
    for (k, (stream, name)) in reads.iter().enumerate() {
        let px = place(k, reads.len());
        svg.arrow(*stream, "dep", (px, top - 22.0), (px, top - 1.0));
        svg.text(
            &format!("small t{stream}"),
            Anchor::Middle,
            (px, top - 27.0),
            name,
        );
    }
    for (k, (stream, name)) in outs.iter().enumerate() {
        let px = place(k, outs.len());
        let bottom = top + height;
        svg.arrow(*stream, "dep", (px, bottom + 1.0), (px, bottom + 20.0));
        svg.text(
            &format!("small t{stream}"),
            Anchor::Start,
            (px + 6.0, bottom + 18.0),
            name,
        );
    }
}

/// Panel 2 for two place coordinates: a grid of PEs.
fn pe_grid(svg: &mut Svg, scene: &Scene, layout: &Layout, left: f64, top: f64) -> f64 {
    const BOX: f64 = 46.0;
    const PITCH: f64 = 84.0;
    svg.text(
        "head",
        Anchor::Start,
        (left, top),
        "The array: PEs and links",
    );
    let axes = varying(&layout.pes);
    let (row, column) = (axes[axes.len() - 2], axes[axes.len() - 1]);
    let min = |k: usize| layout.pes.iter().map(|p| p[k]).min().unwrap_or(0);
    let (row_min, column_min) = (min(row), min(column));
    let at = |p: &[i128]| {
        (
            left + 16.0 + PITCH * (p[column] - column_min) as f64,
            top + 34.0 + PITCH * (p[row] - row_min) as f64,
        )
    };
    // Of PEs that differ in further coordinates, one layer.
    let drawn: Vec<&Vec<i128>> = layout
        .pes
        .iter()
        .filter(|p| {
            p[row] - row_min < 6
                && p[column] - column_min < 6
                && axes[..axes.len() - 2].iter().all(|k| p[*k] == min(*k))
        })
        .collect();
    let mut bottom = top;
    for pe in &drawn {
        let (x, y) = at(pe);
        for (n, link) in scene.links.iter().enumerate() {
            let target: Vec<i128> = pe
                .iter()
                .zip(&link.displacement)
                .map(|(p, d)| p + d)
                .collect();
            if target == **pe || !drawn.contains(&&target) {
                continue;
            }
            let (tx, ty) = at(&target);
            let (dx, dy) = (tx - x, ty - y);
            let length = dx.hypot(dy);
            let (ux, uy) = (dx / length, dy / length);
            let reach = BOX / 2.0 / ux.abs().max(uy.abs());
            let side = 7.0 * n as f64 - 3.5 * (scene.links.len() - 1) as f64;
            let c = (x + BOX / 2.0 - uy * side, y + BOX / 2.0 + ux * side);
            svg.arrow(
                link.stream,
                "dep",
                (c.0 + ux * reach, c.1 + uy * reach),
                (c.0 + dx - ux * (reach + 1.0), c.1 + dy - uy * (reach + 1.0)),
            );
        }
        bottom = bottom.max(y + BOX);
    }
    for pe in &drawn {
        let (x, y) = at(pe);
        svg.rect("pe", x, y, BOX, BOX);
        let label = coordinates(&[pe[row], pe[column]]);
        svg.text(
            "small",
            Anchor::Middle,
            (x + BOX / 2.0, y + BOX / 2.0 + 4.0),
            &label,
        );
    }
    if drawn.len() < layout.pes.len() {
        let more = format!("… {} of {} PEs", drawn.len(), layout.pes.len());
        svg.text("faint", Anchor::Start, (left + 16.0, bottom + 18.0), &more);
        bottom += 18.0;
    }
    link_list(svg, scene, left + 16.0, bottom + 24.0)
}

/// Panel 3: time down, PEs across; a slot shows the values it holds.
fn space_time(svg: &mut Svg, scene: &Scene, layout: &Layout, left: f64, top: f64) {
    const LINE: f64 = 14.0;
    svg.text(
        "head",
        Anchor::Start,
        (left, top),
        "Space and time: what each PE holds at each step",
    );
    svg.text(
        "small faint",
        Anchor::Start,
        (left, top + 17.0),
        &match &scene.followed {
            Some((_, value)) => format!(
                "time runs down; an arrow carries a value to where it is due; empty slots are idle; \
                 outlined: the slots that make {value}"
            ),
            None => "time runs down; an arrow carries a value to where it is due; empty slots are idle"
                .to_string(),
        },
    );
    let pes = &layout.pes[..layout.pes.len().min(MAX_PES)];
    let steps = &layout.steps[..layout.steps.len().min(MAX_STEPS)];
    let lines = scene
        .slots
        .iter()
        .map(|s| s.values.len())
        .max()
        .unwrap_or(1)
        .max(1);
    let longest = scene
        .slots
        .iter()
        .flat_map(|s| s.values.iter().map(|(_, v)| v.chars().count()))
        .max()
        .unwrap_or(4);
    let (box_width, box_height) = (
        (18.0 + 6.6 * longest as f64).max(46.0),
        8.0 + LINE * lines as f64,
    );
    let (pitch_x, pitch_y) = (box_width + 22.0, box_height + 24.0);
    let time_width = steps
        .iter()
        .map(|t| scene.step_label(t).chars().count())
        .max()
        .unwrap_or(1) as f64
        * 6.6
        + 18.0;
    let corner = |pe: usize, step: usize| {
        (
            left + time_width + pitch_x * pe as f64,
            top + 46.0 + pitch_y * step as f64,
        )
    };
    let pe_at: BTreeMap<&Vec<i128>, usize> = pes.iter().enumerate().map(|(n, p)| (p, n)).collect();
    let step_at: BTreeMap<&Vec<i128>, usize> =
        steps.iter().enumerate().map(|(n, t)| (t, n)).collect();
    let cell_of = |slot: &Slot| Some((*pe_at.get(&slot.place)?, *step_at.get(&slot.time)?));
    for (n, pe) in pes.iter().enumerate() {
        let (x, y) = corner(n, 0);
        svg.text(
            "small",
            Anchor::Middle,
            (x + box_width / 2.0, y - 8.0),
            &format!("PE {}", coordinates(pe)),
        );
    }
    for (n, t) in steps.iter().enumerate() {
        let (_, y) = corner(0, n);
        svg.text(
            "small",
            Anchor::Start,
            (left, y + box_height / 2.0 + 4.0),
            &scene.step_label(t),
        );
        for pe in 0..pes.len() {
            let (x, y) = corner(pe, n);
            svg.rect("idle", x, y, box_width, box_height);
        }
    }
    for hop in &scene.hops {
        let (from, to) = (
            cell_of(&scene.slots[hop.from]),
            cell_of(&scene.slots[hop.to]),
        );
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        if from.1 == to.1 {
            continue;
        }
        let side = box_width / 2.0 + lane_offset(scene, hop.stream, 5.0);
        let (p, q) = (corner(from.0, from.1), corner(to.0, to.1));
        svg.arrow(
            hop.stream,
            "flow",
            (p.0 + side, p.1 + box_height),
            (q.0 + side, q.1 - 1.0),
        );
    }
    for slot in &scene.slots {
        let Some((pe, step)) = cell_of(slot) else {
            continue;
        };
        let (x, y) = corner(pe, step);
        svg.rect(&scene.class(slot, "busy"), x, y, box_width, box_height);
        for (line, (stream, value)) in slot.values.iter().enumerate() {
            svg.text(
                &format!("small t{stream}"),
                Anchor::Middle,
                (x + box_width / 2.0, y + 15.0 + LINE * line as f64),
                value,
            );
        }
    }
}

/// `1 step` of `1 step, shuffle`.
fn delay_of(label: &str) -> String {
    label.split(',').next().unwrap_or(label).to_string()
}

fn short(name: &str, n: usize) -> String {
    name.chars().take(n).collect()
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
