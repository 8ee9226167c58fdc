//! Charts of measurements: two axes, marks, a legend.

use crate::svg::{Anchor, N_COLOURS, Svg};

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 54.0;
const BOTTOM: f64 = TOP + HEIGHT;
const RIGHT: f64 = LEFT + WIDTH;

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
    svg: Svg,
    x: Scale,
    y: Scale,
}

impl Chart {
    pub fn new(title: &str, x: Axis<'_>, y: Axis<'_>) -> Chart {
        let mut svg = Svg::new();
        svg.text("head", Anchor::Start, (LEFT, 22.0), title);
        for tick in x.scale.ticks() {
            let at = LEFT + WIDTH * x.scale.at(tick);
            svg.line("idle", (at, TOP), (at, BOTTOM));
            let below = (at, BOTTOM + 18.0);
            svg.text("small", Anchor::Middle, below, &(x.label)(tick));
        }
        for tick in y.scale.ticks() {
            let at = BOTTOM - HEIGHT * y.scale.at(tick);
            svg.line("idle", (LEFT, at), (RIGHT, at));
            let beside = (LEFT - 8.0, at + 4.0);
            svg.text("small", Anchor::End, beside, &(y.label)(tick));
        }
        svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
        svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        let middle = LEFT + WIDTH / 2.0;
        svg.text("small", Anchor::Middle, (middle, BOTTOM + 40.0), x.name);
        svg.text("small", Anchor::Start, (LEFT - 8.0, TOP - 10.0), y.name);
        Chart {
            title: title.to_string(),
            svg,
            x: x.scale,
            y: y.scale,
        }
    }

    /// The line on which both numbers are equal, where both axes have the same scale.
    pub fn diagonal(&mut self) {
        self.svg.line("wave", (LEFT, BOTTOM), (RIGHT, TOP));
    }

    pub fn mark(&mut self, x: f64, y: f64, mark: Mark) {
        self.mark_at(self.point(x, y), mark);
    }

    /// A text to the right of a mark.
    pub fn note(&mut self, x: f64, y: f64, text: &str) {
        let (x, y) = self.point(x, y);
        let beside = (x + 11.0, y + 14.0);
        self.svg.text("small", Anchor::Start, beside, text);
    }

    /// The picture, with a legend of its marks.
    pub fn finish(mut self, legend: &[(Mark, String)]) -> String {
        let x = RIGHT + 24.0;
        for (n, (mark, text)) in legend.iter().enumerate() {
            let y = TOP + 8.0 + 22.0 * n as f64;
            self.mark_at((x, y), *mark);
            let beside = (x + 16.0, y + 4.0);
            self.svg.text("small", Anchor::Start, beside, text);
        }
        self.svg.finish(&self.title)
    }

    fn point(&self, x: f64, y: f64) -> (f64, f64) {
        (LEFT + WIDTH * self.x.at(x), BOTTOM - HEIGHT * self.y.at(y))
    }

    fn mark_at(&mut self, at: (f64, f64), mark: Mark) {
        if mark.ringed {
            self.svg.circle("point", at, 7.0);
        }
        let class = format!("f{}", mark.colour % N_COLOURS);
        match mark.shape {
            Shape::Diamond => self.svg.diamond(&class, at, 5.0),
            Shape::Disc => self.svg.circle(&class, at, 3.6),
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
    /// Decades around some values.
    pub fn log(values: impl Iterator<Item = f64>) -> Scale {
        let (lo, hi) = values
            .filter(|x| *x > 0.0)
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
                let steps: &[f64] = match hi / lo {
                    narrow if narrow < 5.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
                    _ => &[1.0, 2.0, 5.0],
                };
                let all = (-10..4).flat_map(|p| steps.iter().map(move |m| m * 10f64.powi(p)));
                let inside: Vec<f64> = all.filter(|x| x >= lo && x <= hi).collect();
                // Over many decades only their starts are labelled.
                let decade = |x: &&f64| (x.log10() - x.log10().round()).abs() < 1e-9;
                match inside.len() {
                    0..=9 => inside,
                    _ => inside.iter().filter(decade).copied().collect(),
                }
            }
            Scale::Linear { hi } => {
                let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
                    .into_iter()
                    .find(|step| hi / step <= 8.0);
                let step = step.unwrap_or(1000.0);
                (0..)
                    .map(|n| f64::from(n) * step)
                    .take_while(|x| x <= hi)
                    .collect()
            }
        }
    }
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
        assert_eq!(svg.matches("class=\"f2\"").count(), 2, "{svg}");
        for text in ["Two points", "the first", "a ring", "class=\"point\""] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }
}
