//! Panel 3 for two place coordinates: the grid of PEs at each step, with the values that it holds.

use super::pe_grid::Plane;
use super::{Layout, MAX_STEPS, Position, Scene, Slot, WIDTH, heading, label};
use crate::svg::{Anchor, Svg, text_width};

/// The height of a line of text, and the gap between cells and between grids.
const LINE: f64 = 14.0;
const GAP: f64 = 4.0;
const BETWEEN: f64 = 36.0;

/// The number of values of a slot that are written.
const MAX_VALUES: usize = 6;

pub(super) fn panel(scene: &Scene, layout: &Layout) -> Svg {
    let mut svg = Svg::new();
    let title = "Space and time: the grid at each step";
    let mut reading =
        "every grid is the array at one step, with the values that its PEs hold; empty cells are idle"
            .to_string();
    if let Some((_, value)) = &scene.followed {
        reading += &format!("; outlined: the slots that make {value}");
    }
    let top = heading(&mut svg, title, &reading);
    let Some(plane) = Plane::new(layout) else {
        return svg;
    };
    let shown = |slot: &&Slot| plane.is_drawn(&slot.place);
    let values = scene
        .slots
        .iter()
        .filter(shown)
        .map(|slot| slot.values.as_slice());
    let widths = values
        .clone()
        .flatten()
        .map(|(_, v)| text_width(v, 10.5, false));
    let lines = values.map(|values| values.len().min(MAX_VALUES + 1)).max();
    let snapshots = Snapshots {
        scene,
        width: widths.fold(28.0, f64::max) + 10.0,
        height: 8.0 + LINE * lines.unwrap_or(1).max(1) as f64,
        plane,
    };
    let steps = &layout.steps[..layout.steps.len().min(MAX_STEPS)];
    let (width, height) = snapshots.size();
    let names = steps
        .iter()
        .map(|t| text_width(&scene.step_label(t), 10.5, false));
    let pitch = names.fold(width, f64::max) + BETWEEN;
    let per_line = ((WIDTH + BETWEEN) / pitch).floor().max(1.0);
    for (k, step) in steps.iter().enumerate() {
        let (line, column) = ((k as f64 / per_line).floor(), k as f64 % per_line);
        let at = (pitch * column, top + 16.0 + (height + BETWEEN) * line);
        snapshots.at_step(&mut svg, step, at);
    }
    svg
}

struct Snapshots<'a> {
    scene: &'a Scene,
    plane: Plane<'a>,
    /// The size of a cell.
    width: f64,
    height: f64,
}

impl Snapshots<'_> {
    /// The size of a grid.
    fn size(&self) -> (f64, f64) {
        let (rows, columns) = self.plane.size();
        (columns * (self.width + GAP), rows * (self.height + GAP))
    }

    fn corner(&self, pe: &[i128], (left, top): Position) -> Position {
        let (row, column) = self.plane.cell(pe);
        (
            left + (self.width + GAP) * column,
            top + (self.height + GAP) * row,
        )
    }

    fn at_step(&self, svg: &mut Svg, step: &Vec<i128>, at: Position) {
        let name = self.scene.step_label(step);
        svg.text("small", Anchor::Start, (at.0, at.1 - 6.0), &name);
        let slots = self.scene.slots.iter().filter(|slot| slot.time == *step);
        let busy: Vec<&Slot> = slots
            .filter(|slot| self.plane.is_drawn(&slot.place))
            .collect();
        for pe in &self.plane.drawn {
            let (x, y) = self.corner(pe, at);
            if !busy.iter().any(|slot| slot.place == **pe) {
                svg.rect("idle", x, y, self.width, self.height);
            }
        }
        for slot in busy {
            let (x, y) = self.corner(&slot.place, at);
            svg.rect(
                &self.scene.class(slot, "busy"),
                x,
                y,
                self.width,
                self.height,
            );
            let middle = x + self.width / 2.0;
            for (line, (stream, value)) in slot.values.iter().enumerate() {
                let at = (middle, y + 15.0 + LINE * line as f64);
                if line == MAX_VALUES {
                    svg.text("small", Anchor::Middle, at, "…");
                    break;
                }
                label(svg, *stream, Anchor::Middle, at, value);
            }
        }
    }
}
