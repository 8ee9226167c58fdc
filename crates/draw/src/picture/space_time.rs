//! Panel 3: time down, PEs across; a slot shows the values it holds.

use systola_ir::diag::coordinates;

use super::{Layout, MAX_PES, MAX_STEPS, Position, Scene, Slot, heading, label, lane_offset};
use crate::svg::{Anchor, Svg, text_width};

/// The height of a line of text, and the gap between boxes.
const LINE: f64 = 14.0;
const GAP: f64 = 22.0;

/// The number of values of a slot that are written.
const MAX_VALUES: usize = 10;

pub(super) fn panel(scene: &Scene, layout: &Layout) -> Svg {
    let mut svg = Svg::new();
    let mut reading =
        "time runs down; an arrow carries a value to where it is due; empty slots are idle"
            .to_string();
    if let Some((_, value)) = &scene.followed {
        reading += &format!("; outlined: the slots that make {value}");
    }
    let title = "Space and time: what each PE holds at each step";
    let top = heading(&mut svg, title, &reading);
    let slots = Slots::new(scene, layout, top);
    slots.axes(&mut svg);
    slots.hops(&mut svg);
    slots.values(&mut svg);
    svg
}

/// A box for each PE at each step.
struct Slots<'a> {
    scene: &'a Scene,
    /// In order.
    pes: &'a [Vec<i128>],
    steps: &'a [Vec<i128>],
    top: f64,
    width: f64,
    height: f64,
    /// The width of the column of steps.
    time_width: f64,
}

impl<'a> Slots<'a> {
    fn new(scene: &'a Scene, layout: &'a Layout, top: f64) -> Self {
        let steps = &layout.steps[..layout.steps.len().min(MAX_STEPS)];
        let pes = &layout.pes[..layout.pes.len().min(MAX_PES)];
        let small = |text: &str| text_width(text, 10.5, false);
        let labels = steps.iter().map(|t| small(&scene.step_label(t)));
        let names = pes.iter().map(|pe| small(&pe_name(pe)) - GAP + 6.0);
        let values = scene.slots.iter().flat_map(|s| &s.values);
        let widest = values.map(|(_, v)| small(v) + 14.0).fold(46.0, f64::max);
        let lines = scene
            .slots
            .iter()
            .map(|s| s.values.len().min(MAX_VALUES + 1));
        Slots {
            scene,
            pes,
            steps,
            top,
            width: names.fold(widest, f64::max),
            height: 8.0 + LINE * lines.max().unwrap_or(1).max(1) as f64,
            time_width: labels.fold(0.0, f64::max) + 16.0,
        }
    }

    fn corner(&self, (pe, step): (usize, usize)) -> Position {
        (
            self.time_width + (self.width + GAP) * pe as f64,
            self.top + 20.0 + (self.height + 24.0) * step as f64,
        )
    }

    /// The PE and the step of a slot, if they are shown.
    fn cell_of(&self, slot: &Slot) -> Option<(usize, usize)> {
        let pe = self.pes.binary_search(&slot.place).ok()?;
        Some((pe, self.steps.binary_search(&slot.time).ok()?))
    }

    /// The names of PEs and steps, and all boxes, empty.
    fn axes(&self, svg: &mut Svg) {
        for (n, pe) in self.pes.iter().enumerate() {
            let (x, y) = self.corner((n, 0));
            let at = (x + self.width / 2.0, y - 8.0);
            svg.text("small", Anchor::Middle, at, &pe_name(pe));
        }
        for (n, t) in self.steps.iter().enumerate() {
            let (_, y) = self.corner((0, n));
            let at = (0.0, y + self.height / 2.0 + 4.0);
            svg.text("small", Anchor::Start, at, &self.scene.step_label(t));
            for pe in 0..self.pes.len() {
                let (x, y) = self.corner((pe, n));
                svg.rect("idle", x, y, self.width, self.height);
            }
        }
    }

    fn hops(&self, svg: &mut Svg) {
        for hop in &self.scene.hops {
            let cell = |slot: usize| self.cell_of(&self.scene.slots[slot]);
            let (Some(from), Some(to)) = (cell(hop.from), cell(hop.to)) else {
                continue;
            };
            if from.1 == to.1 {
                continue;
            }
            let side = self.width / 2.0 + lane_offset(self.scene, hop.stream, 5.0);
            let (p, q) = (self.corner(from), self.corner(to));
            svg.arrow(
                hop.stream,
                "flow",
                (p.0 + side, p.1 + self.height),
                (q.0 + side, q.1 - 1.0),
            );
        }
    }

    fn values(&self, svg: &mut Svg) {
        for slot in &self.scene.slots {
            let Some(cell) = self.cell_of(slot) else {
                continue;
            };
            let (x, y) = self.corner(cell);
            let class = self.scene.class(slot, "busy");
            svg.rect(&class, x, y, self.width, self.height);
            for (line, (stream, value)) in slot.values.iter().enumerate() {
                let at = (x + self.width / 2.0, y + 15.0 + LINE * line as f64);
                if line == MAX_VALUES {
                    svg.text("small", Anchor::Middle, at, "…");
                    break;
                }
                label(svg, *stream, Anchor::Middle, at, value);
            }
        }
    }
}

fn pe_name(pe: &[i128]) -> String {
    format!("PE {}", coordinates(pe))
}
