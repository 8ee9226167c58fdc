//! Charts of measurements: two axes, marks, a legend.

use crate::svg::{Anchor, Area, N_COLOURS, Position, Svg, text_area, text_width};

/// The plot lies to the right of `LEFT` and below 0.
const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 0.0;
const BOTTOM: f64 = TOP + HEIGHT;
const RIGHT: f64 = LEFT + WIDTH;

/// The width at which a title breaks.
const TITLE: f64 = 760.0;

/// The free space between the labels of two ticks.
const APART: f64 = 8.0;

#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    pub scale: Scale,
    pub name: &'a str,
    /// The label of a tick.
    pub label: fn(f64) -> String,
}

/// The mark at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// One of the colours of [`crate::svg`].
    pub colour: usize,
    pub shape: Shape,
    /// Whether it has a ring around it.
    pub ringed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Disc,
    Diamond,
}

/// Axes, and the marks between them.
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    plot: Svg,
    x: Scale,
    y: Scale,
    marks: Vec<Area>,
    /// Texts beside marks, placed when all marks are known.
    notes: Vec<(Position, String)>,
}

impl Chart {
    pub fn new(title: &str, x: Axis<'_>, y: Axis<'_>) -> Chart {
        let mut plot = Svg::new();
        let mut taken: Option<Area> = None;
        // The label of a tick, unless it would touch the one before.
        let mut tick_label = |plot: &mut Svg, anchor, at, text: &str| {
            let area = text_area("small", anchor, at, text);
            if taken.is_none_or(|taken| !area.grown(APART).overlaps(&taken)) {
                plot.text("small", anchor, at, text);
                taken = Some(area);
            }
        };
        for tick in x.scale.ticks() {
            let at = LEFT + WIDTH * x.scale.at(tick);
            plot.line("idle", (at, TOP), (at, BOTTOM));
            tick_label(
                &mut plot,
                Anchor::Middle,
                (at, BOTTOM + 18.0),
                &(x.label)(tick),
            );
        }
        for tick in y.scale.ticks() {
            let at = BOTTOM - HEIGHT * y.scale.at(tick);
            plot.line("idle", (LEFT, at), (RIGHT, at));
            tick_label(
                &mut plot,
                Anchor::End,
                (LEFT - 8.0, at + 4.0),
                &(y.label)(tick),
            );
        }
        plot.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
        plot.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        let middle = LEFT + WIDTH / 2.0;
        plot.text("small", Anchor::Middle, (middle, BOTTOM + 40.0), x.name);
        plot.text("small", Anchor::Start, (LEFT - 8.0, TOP - 12.0), y.name);
        Chart {
            title: title.to_string(),
            plot,
            x: x.scale,
            y: y.scale,
            marks: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The line on which both numbers are equal, where both axes have the same scale.
    pub fn diagonal(&mut self) {
        self.plot.line("wave", (LEFT, BOTTOM), (RIGHT, TOP));
    }

    pub fn mark(&mut self, x: f64, y: f64, mark: Mark) {
        let at = self.point(x, y);
        self.marks.push(Area::of(at, at).grown(mark.radius()));
        self.mark_at(at, mark);
    }

    /// A line through points, in a colour of [`crate::svg`].
    pub fn line(&mut self, points: &[(f64, f64)], colour: usize) {
        let class = format!("dep s{}", colour % N_COLOURS);
        let points = points.iter().map(|(x, y)| self.point(*x, *y));
        let points: Vec<Position> = points.collect();
        for ends in points.windows(2) {
            self.plot.line(&class, ends[0], ends[1]);
        }
    }

    /// A text beside a mark, where it covers no other one.
    pub fn note(&mut self, x: f64, y: f64, text: &str) {
        self.notes.push((self.point(x, y), text.to_string()));
    }

    /// The picture, with a legend of its marks.
    pub fn finish(mut self, legend: &[(Mark, String)]) -> String {
        if self.marks.is_empty() {
            let middle = (LEFT + WIDTH / 2.0, TOP + HEIGHT / 2.0);
            self.plot
                .text_where_free("faint", Anchor::Middle, [middle], "no measurements");
        }
        for (at, text) in std::mem::take(&mut self.notes) {
            self.place_note(at, &text);
        }
        let x = RIGHT + 24.0;
        for (n, (mark, text)) in legend.iter().enumerate() {
            let y = TOP + 8.0 + 22.0 * n as f64;
            self.mark_at((x, y), *mark);
            let beside = (x + 16.0, y + 4.0);
            self.plot.text("small", Anchor::Start, beside, text);
        }
        let mut svg = Svg::new();
        let y = svg.paragraph("head", (0.0, 0.0), TITLE, &self.title);
        svg.place(self.plot, (0.0, y + 16.0));
        svg.finish(&self.title)
    }

    /// Near the mark if there is room among the others, further away with a line to it otherwise.
    fn place_note(&mut self, (x, y): Position, text: &str) {
        let width = text_width(text, 10.5, false);
        let frame = Area::of((LEFT, TOP), (RIGHT, BOTTOM));
        let around = [11.0, 30.0, 55.0, 90.0, 140.0]
            .into_iter()
            .flat_map(|distance| {
                let (right, left) = (x + distance, x - distance - width);
                let (above, below) = (y - distance * 0.6, y + 8.0 + distance * 0.6);
                [(right, below), (right, above), (left, below), (left, above)]
            });
        let area = |at: Position| text_area("small", Anchor::Start, at, text);
        let inside: Vec<Position> = around.filter(|at| frame.contains(&area(*at))).collect();
        let is_free = |at: &&Position| self.marks.iter().all(|mark| !mark.overlaps(&area(**at)));
        let Some(at) = inside.iter().find(is_free).or(inside.first()) else {
            // Wider than the plot.
            let above = (RIGHT - width, TOP - 12.0);
            self.plot
                .text_where_free("small", Anchor::Start, [above], text);
            return;
        };
        let area = area(*at);
        let near = (
            x.clamp(area.left, area.right),
            y.clamp(area.top, area.bottom),
        );
        if (near.0 - x).hypot(near.1 - y) > 20.0 {
            self.plot.line("axis", (x, y), near);
        }
        self.plot
            .text_where_free("small", Anchor::Start, [*at], text);
    }

    fn point(&self, x: f64, y: f64) -> Position {
        (LEFT + WIDTH * self.x.at(x), BOTTOM - HEIGHT * self.y.at(y))
    }

    fn mark_at(&mut self, at: Position, mark: Mark) {
        let class = format!("mark f{}", mark.colour % N_COLOURS);
        match mark.shape {
            Shape::Diamond => self.plot.diamond(&class, at, 5.0),
            Shape::Disc => self.plot.circle(&class, at, 3.6),
        }
        if mark.ringed {
            self.plot.circle("ring", at, 7.0);
        }
    }
}

impl Mark {
    fn radius(self) -> f64 {
        match (self.ringed, self.shape) {
            (true, _) => 7.0,
            (false, Shape::Diamond) => 5.0,
            (false, Shape::Disc) => 3.6,
        }
    }
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug)]
pub enum Scale {
    Log { lo: f64, hi: f64 },
    Linear { hi: f64 },
}

impl Scale {
    /// Around some values, on both sides by a quarter.
    pub fn log(values: impl Iterator<Item = f64>) -> Scale {
        let (lo, hi) = values
            .filter(|x| *x > 0.0 && x.is_finite())
            .fold((f64::INFINITY, 0.0f64), |(lo, hi), x| {
                (lo.min(x), hi.max(x))
            });
        if lo > hi {
            return Scale::Log { lo: 1e-6, hi: 1e-3 };
        }
        Scale::Log {
            lo: lo / 1.25,
            hi: hi * 1.25,
        }
    }

    /// 0 … 1.
    fn at(&self, x: f64) -> f64 {
        match self {
            Scale::Log { lo, hi } => (x / lo).ln() / (hi / lo).ln(),
            Scale::Linear { hi } => x / hi,
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self {
            Scale::Log { lo, hi } => {
                // Less than a decade has the ticks of a linear axis.
                if hi / lo < 10.0 {
                    return even_ticks(*lo, *hi);
                }
                let decades = lo.log10().floor() as i32..=hi.log10().ceil() as i32;
                let with = |steps: &[f64]| -> Vec<f64> {
                    let all = decades
                        .clone()
                        .flat_map(|p| steps.iter().map(move |m| m * 10f64.powi(p)));
                    all.filter(|x| x >= lo && x <= hi).collect()
                };
                let mut ticks = with(&[1.0, 2.0, 5.0]);
                if ticks.len() > MAX_TICKS {
                    ticks = with(&[1.0]);
                }
                let every = ticks.len().div_ceil(MAX_TICKS).max(1);
                ticks.into_iter().step_by(every).collect()
            }
            Scale::Linear { hi } => even_ticks(0.0, *hi),
        }
    }
}

const MAX_TICKS: usize = 9;

/// Multiples of a round number from `lo` to `hi`: four to nine of them.
fn even_ticks(lo: f64, hi: f64) -> Vec<f64> {
    let power = 10f64.powf(((hi - lo) / 8.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let fits = |step: &f64| (hi / step).floor() - (lo / step).ceil() < MAX_TICKS as f64;
    let Some(step) = steps.into_iter().find(fits) else {
        return Vec::new();
    };
    let first = (lo / step).ceil();
    let n = ((hi / step).floor() - first).max(0.0) as usize;
    (0..=n).map(|k| (first + k as f64) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale) -> Axis<'static> {
        Axis {
            scale,
            name: "seconds",
            label: |x| format!("{x}"),
        }
    }

    #[test]
    fn ticks_lie_within_their_axis() {
        let scale = Scale::log([1e-6, 3e-3, 0.0].into_iter());
        let ticks = scale.ticks();
        assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
        for tick in ticks {
            assert!((0.0..=1.0).contains(&scale.at(tick)), "{tick}");
        }
        assert_eq!(
            Scale::Linear { hi: 10.0 }.ticks(),
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        );
        assert_eq!(Scale::Linear { hi: 1e6 }.ticks().len(), 6);
    }

    /// Wherever the values lie and however close together they are.
    #[test]
    fn every_axis_has_some_ticks() {
        for exponent in -100..40 {
            let x = 10f64.powf(f64::from(exponent) / 10.0);
            for ratio in [1.0, 1.001, 1.3, 4.0, 9.0, 11.0, 500.0, 1e6, 1e15] {
                let ticks = Scale::log([x, x * ratio].into_iter()).ticks();
                assert!((3..=9).contains(&ticks.len()), "{x} … × {ratio}: {ticks:?}");
            }
        }
    }

    #[test]
    fn notes_keep_off_the_marks() {
        let scale = Scale::log([1.0, 1.01].into_iter());
        let mut chart = Chart::new("Close together", axis(scale), axis(scale));
        let mark = Mark {
            colour: 0,
            shape: Shape::Disc,
            ringed: true,
        };
        for n in 0..300 {
            let x = 1.0 + f64::from(n % 17) * 6e-4;
            chart.mark(x, 1.0 + f64::from(n % 23) * 4e-4, mark);
        }
        chart.note(1.0, 1.0, "the best of them all");
        let marks = chart.marks.clone();
        let svg = chart.finish(&[]);
        let note = svg
            .lines()
            .find(|line| line.contains("the best"))
            .expect("a note");
        assert!(note.contains("small"), "{note}");
        // Placed before the plot moves below its title.
        let mut chart = Chart::new("", axis(scale), axis(scale));
        chart.marks = marks;
        let before = chart.plot.text_areas().count();
        chart.place_note(chart.point(1.0, 1.0), "the best of them all");
        let area = chart.plot.text_areas().nth(before).expect("the note");
        assert!(
            chart.marks.iter().all(|mark| !mark.overlaps(&area)),
            "{area:?}"
        );
    }

    #[test]
    fn a_chart_without_marks_says_so() {
        let scale = Scale::log([].into_iter());
        let svg = Chart::new("Nothing", axis(scale), axis(scale)).finish(&[]);
        assert!(svg.contains("no measurements"), "{svg}");
    }

    #[test]
    fn marks_and_their_meanings_are_drawn() {
        let scale = Scale::log([1.0, 100.0].into_iter());
        let mut chart = Chart::new("Two points", axis(scale), axis(scale));
        let mark = |shape, ringed| Mark {
            colour: 2,
            shape,
            ringed,
        };
        chart.diagonal();
        chart.mark(1.0, 100.0, mark(Shape::Disc, false));
        chart.note(1.0, 100.0, "the first");
        let svg = chart.finish(&[(mark(Shape::Diamond, true), "a ring".to_string())]);
        assert_eq!(svg.matches("class=\"mark f2\"").count(), 2, "{svg}");
        for text in ["Two points", "the first", "a ring", "class=\"ring\""] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }
}
