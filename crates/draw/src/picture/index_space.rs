//! Panel 1: points, dependences, one band for each PE, one dashed line for each step.

use std::collections::BTreeMap;

use systola_ir::diag::coordinates;

use super::{Position, Scene, Slot, heading, lane_offset, unit};
use crate::svg::{Anchor, Svg, text_width};

/// The distance of neighbouring points, and the radius of one.
const STEP: f64 = 54.0;
const RADIUS: f64 = 8.0;

/// Draws a plane of the index space.
pub(super) fn panel(scene: &Scene, (across, up): (usize, usize)) -> Svg {
    let mut svg = Svg::new();
    let title = "The recurrence: points and dependences";
    let reading = "a band joins the points of one PE, a dashed line those of one step";
    let top = heading(&mut svg, title, reading);
    let (across, up) = (Axis::new(scene, across), Axis::new(scene, up));
    let ticks = up
        .ticks(scene)
        .into_iter()
        .map(|(_, text)| text_width(&text, 10.5, false));
    let plane = Plane {
        origin: (ticks.fold(0.0, f64::max) + 64.0, top + 62.0 + up.length()),
        scene,
        across,
        up,
    };
    plane.bands(&mut svg);
    plane.wavefronts(&mut svg);
    plane.dependences(&mut svg);
    for slot in &scene.slots {
        svg.circle(&scene.class(slot, "point"), plane.at(slot), RADIUS);
    }
    let axis_y = plane.origin.1 + 62.0;
    plane.axis_labels(&mut svg, axis_y);
    plane.labels(&mut svg);
    let mut y = axis_y + 24.0;
    for line in &scene.mapping {
        y = svg.paragraph("small", (0.0, y), 480.0, line) + 15.0;
    }
    svg
}

/// A coordinate of the points, and its range.
struct Axis {
    dim: usize,
    min: i128,
    max: i128,
}

impl Axis {
    fn new(scene: &Scene, dim: usize) -> Self {
        let values = scene.slots.iter().map(|s| s.point[dim]);
        Axis {
            dim,
            min: values.clone().min().unwrap_or(0),
            max: values.max().unwrap_or(0),
        }
    }

    fn offset(&self, value: i128) -> f64 {
        STEP * (value - self.min) as f64
    }

    fn length(&self) -> f64 {
        self.offset(self.max)
    }

    /// Its values with their labels: `i=3`.
    fn ticks(&self, scene: &Scene) -> Vec<(i128, String)> {
        let name = &scene.dims[self.dim];
        let values = self.min..=self.max;
        values.map(|v| (v, format!("{name}={v}"))).collect()
    }
}

struct Plane<'a> {
    scene: &'a Scene,
    /// The position of the least coordinates.
    origin: Position,
    across: Axis,
    up: Axis,
}

impl<'a> Plane<'a> {
    fn at(&self, slot: &Slot) -> Position {
        (
            self.origin.0 + self.across.offset(slot.point[self.across.dim]),
            self.origin.1 - self.up.offset(slot.point[self.up.dim]),
        )
    }

    fn bands(&self, svg: &mut Svg) {
        for (_, points) in self.segments(|s| &s.place) {
            let band = points.extended(4.0, 12.0);
            svg.line("band", band.first, band.last);
        }
    }

    /// A wavefront crosses the whole picture, so its label is placed outside.
    fn wavefronts(&self, svg: &mut Svg) {
        for (_, points) in self.segments(|s| &s.time) {
            let wave = self.wave(&points);
            svg.line("wave", wave.first, wave.last);
        }
    }

    fn wave(&self, points: &Segment) -> Segment {
        let u = points.direction;
        let before = self.way_out(points.first, (-u.0, -u.1));
        points.extended(before, self.way_out(points.last, u))
    }

    /// The names of PEs and steps, at an end of the band or line where they cover nothing.
    fn labels(&self, svg: &mut Svg) {
        for (place, points) in self.segments(|s| &s.place) {
            let text = format!("PE {}", coordinates(place));
            points.extended(4.0, 12.0).label(svg, &[24.0, 36.0], &text);
        }
        for (time, points) in self.segments(|s| &s.time) {
            let text = self.scene.step_label(time);
            self.wave(&points).label(svg, &[12.0, 24.0, 36.0], &text);
        }
    }

    /// The distance from a position in a direction to the frame of the plane.
    fn way_out(&self, from: Position, u: (f64, f64)) -> f64 {
        let along = |at: f64, step: f64, low: f64, high: f64| {
            if step > 1e-9 {
                (high - at) / step
            } else if step < -1e-9 {
                (low - at) / step
            } else {
                f64::INFINITY
            }
        };
        let (x, y) = self.origin;
        let out_x = along(from.0, u.0, x - 20.0, x + self.across.length() + 20.0);
        let out_y = along(from.1, u.1, y - self.up.length() - 20.0, y + 20.0);
        let out = out_x.min(out_y);
        if out.is_finite() { out } else { 20.0 }
    }

    /// The points with the same key, for each key.
    fn segments(&self, key: fn(&Slot) -> &Vec<i128>) -> Vec<(&'a Vec<i128>, Segment)> {
        let mut groups: BTreeMap<&Vec<i128>, Vec<&Slot>> = BTreeMap::new();
        for slot in &self.scene.slots {
            groups.entry(key(slot)).or_default().push(slot);
        }
        let (dx, dy) = self.direction(&groups);
        let u = unit(dx as f64, -dy as f64);
        let along = |p: &Position| p.0 * u.0 + p.1 * u.1;
        let segments = groups.into_iter().filter_map(|(key, members)| {
            let mut ends: Vec<Position> = members.iter().map(|slot| self.at(slot)).collect();
            ends.sort_by(|p, q| along(p).total_cmp(&along(q)));
            let segment = Segment {
                first: *ends.first()?,
                last: *ends.last()?,
                direction: u,
            };
            Some((key, segment))
        });
        segments.collect()
    }

    /// The direction in which the points of one group follow each other.
    fn direction(&self, groups: &BTreeMap<&Vec<i128>, Vec<&Slot>>) -> (i128, i128) {
        let (a, b) = (self.across.dim, self.up.dim);
        let of_group = |members: &Vec<&Slot>| match members.as_slice() {
            [p, .., q] => Some((q.point[a] - p.point[a], q.point[b] - p.point[b])),
            _ => None,
        };
        groups.values().find_map(of_group).unwrap_or_else(|| {
            let n = self.scene.dims.len();
            (i128::from(a + 1 == n), i128::from(b + 1 == n))
        })
    }

    fn dependences(&self, svg: &mut Svg) {
        for hop in &self.scene.hops {
            let (p, q) = (&self.scene.slots[hop.from], &self.scene.slots[hop.to]);
            if p.point == q.point {
                continue;
            }
            let (from, to) = (self.at(p), self.at(q));
            let (ux, uy) = unit(to.0 - from.0, to.1 - from.1);
            let side = lane_offset(self.scene, hop.stream, 3.2);
            let (nx, ny) = (-uy * side, ux * side);
            let tail = (from.0 + ux * RADIUS + nx, from.1 + uy * RADIUS + ny);
            let reach = RADIUS + 1.5;
            let tip = (to.0 - ux * reach + nx, to.1 - uy * reach + ny);
            svg.arrow(hop.stream, "dep", tail, tip);
        }
    }

    fn axis_labels(&self, svg: &mut Svg, axis_y: f64) {
        let width = |text: &str| text_width(text, 10.5, false);
        let mut ticks = self.across.ticks(self.scene);
        if ticks.iter().any(|(_, text)| width(text) > STEP - 6.0) {
            // The name once, beside the numbers.
            let at = (self.origin.0 + self.across.length() + 36.0, axis_y);
            let name = &self.scene.dims[self.across.dim];
            svg.text("small", Anchor::Start, at, name);
            ticks = ticks.iter().map(|(v, _)| (*v, v.to_string())).collect();
        }
        for (v, text) in ticks {
            let at = (self.origin.0 + self.across.offset(v), axis_y);
            svg.text("small", Anchor::Middle, at, &text);
        }
        for (v, text) in self.up.ticks(self.scene) {
            let at = (
                self.origin.0 - 64.0,
                self.origin.1 - self.up.offset(v) + 4.0,
            );
            svg.text("small", Anchor::End, at, &text);
        }
    }
}

/// From the first point of a group to the last.
struct Segment {
    first: Position,
    last: Position,
    direction: (f64, f64),
}

impl Segment {
    fn extended(&self, before: f64, after: f64) -> Segment {
        let (first, last, u) = (self.first, self.last, self.direction);
        Segment {
            first: (first.0 - u.0 * before, first.1 - u.1 * before),
            last: (last.0 + u.0 * after, last.1 + u.1 * after),
            direction: u,
        }
    }

    /// A text beyond an end: at one of these distances, or nowhere if all of them are taken.
    fn label(&self, svg: &mut Svg, gaps: &[f64], text: &str) {
        let u = self.direction;
        let half = text_width(text, 10.5, false) / 2.0;
        // A flat line ends at the edge of its text, a steep one at its middle.
        let side = u.0 * (half - 12.0).max(0.0);
        let beyond = |(x, y): Position, sign: f64, gap: f64| {
            (x + sign * (u.0 * gap + side), y + sign * u.1 * gap + 4.0)
        };
        let after = gaps.iter().map(|gap| beyond(self.last, 1.0, *gap));
        let before = gaps.iter().map(|gap| beyond(self.first, -1.0, *gap));
        svg.text_where_free("small faint", Anchor::Middle, after.chain(before), text);
    }
}
