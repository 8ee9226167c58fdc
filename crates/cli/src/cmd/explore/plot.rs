//! Pictures of an exploration: the model against measurements, and time against registers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use systola::rt::tuning::Entry;

use super::table::{front, name_of};
use super::{Answer, Task};
use crate::execute::duration;
use crate::files;
use crate::source::Failure;
use crate::svg::{Anchor, N_COLOURS, Svg};

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 54.0;

/// Writes both pictures into a folder.
pub fn write(answer: &Answer<'_>, task: &Task<'_>, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let designs = answer.designs();
    fs::create_dir_all(dir)
        .map_err(|e| Failure::new(format!("cannot make the folder {}: {e}", dir.display())))?;
    let pictures = [
        ("model", model(task, designs)),
        ("space", space(task, designs)),
    ];
    let mut written = Vec::new();
    for (name, picture) in pictures {
        let path = dir.join(format!("{}-{name}.svg", task.system.name));
        files::write(&path, picture.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// One axis.
enum Scale {
    Log { lo: f64, hi: f64 },
    Linear { hi: f64 },
}

impl Scale {
    /// Decades around some values.
    fn log(values: impl Iterator<Item = f64>) -> Scale {
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
                // Over many decades their beginnings suffice.
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

/// Axes, with their names.
struct Chart {
    svg: Svg,
    x: Scale,
    y: Scale,
}

impl Chart {
    fn new(title: &str, x: (Scale, &str), y: (Scale, &str), label: fn(f64) -> String) -> Chart {
        let ((x, x_name), (y, y_name)) = (x, y);
        let mut chart = Chart {
            svg: Svg::new(),
            x,
            y,
        };
        chart.svg.text("head", Anchor::Start, (LEFT, 22.0), title);
        let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
        for tick in chart.x.ticks() {
            let x = LEFT + WIDTH * chart.x.at(tick);
            chart.svg.line("idle", (x, TOP), (x, bottom));
            chart
                .svg
                .text("small", Anchor::Middle, (x, bottom + 18.0), &label(tick));
        }
        for tick in chart.y.ticks() {
            let y = bottom - HEIGHT * chart.y.at(tick);
            chart.svg.line("idle", (LEFT, y), (right, y));
            chart
                .svg
                .text("small", Anchor::End, (LEFT - 8.0, y + 4.0), &duration(tick));
        }
        chart.svg.line("axis", (LEFT, TOP), (LEFT, bottom));
        chart.svg.line("axis", (LEFT, bottom), (right, bottom));
        let middle = LEFT + WIDTH / 2.0;
        chart
            .svg
            .text("small", Anchor::Middle, (middle, bottom + 40.0), x_name);
        chart
            .svg
            .text("small", Anchor::Start, (LEFT - 8.0, TOP - 10.0), y_name);
        chart
    }

    fn point(&self, x: f64, y: f64) -> (f64, f64) {
        let bottom = TOP + HEIGHT;
        (LEFT + WIDTH * self.x.at(x), bottom - HEIGHT * self.y.at(y))
    }

    /// A disc in a colour; those of the file are diamonds, those of the front have a ring.
    fn mark(&mut self, at: (f64, f64), colour: usize, given: bool, on_front: bool) {
        if on_front {
            self.svg.circle("point", at, 7.0);
        }
        let class = format!("f{}", colour % N_COLOURS);
        if given {
            self.svg.diamond(&class, at, 5.0);
        } else {
            self.svg.circle(&class, at, 3.6);
        }
    }

    fn legend(&mut self, lines: &[(Option<usize>, bool, bool, String)]) {
        let x = LEFT + WIDTH + 24.0;
        for (n, (colour, given, on_front, text)) in lines.iter().enumerate() {
            let y = TOP + 8.0 + 22.0 * n as f64;
            self.mark((x, y), colour.unwrap_or(6), *given, *on_front);
            self.svg
                .text("small", Anchor::Start, (x + 16.0, y + 4.0), text);
        }
    }
}

/// The choice that tells the designs apart best: one with few values, but more than one, that most of them have.
fn telling(designs: &[Entry]) -> Option<String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (what, how) in designs.iter().flat_map(|d| &d.choices) {
        *values.entry(what).or_default().entry(how).or_default() += 1;
    }
    let fits = |(_, hows): &(&&str, &BTreeMap<&str, usize>)| (2..N_COLOURS).contains(&hows.len());
    let most = values
        .iter()
        .filter(fits)
        .max_by_key(|(_, hows)| (hows.values().sum::<usize>(), hows.len()));
    most.map(|(what, _)| (*what).to_string())
}

/// The colour of each design, and what the colours mean.
fn colours(designs: &[Entry]) -> (Vec<usize>, Vec<String>) {
    let Some(what) = telling(designs) else {
        return (vec![0; designs.len()], Vec::new());
    };
    let value = |d: &Entry| {
        d.choices
            .iter()
            .find(|(w, _)| *w == what)
            .map(|(_, h)| h.clone())
    };
    let mut known: Vec<String> = designs.iter().filter_map(value).collect();
    known.sort();
    known.dedup();
    let colour = |d: &Entry| match value(d) {
        Some(v) => known.iter().position(|k| *k == v).unwrap_or(0),
        None => known.len(),
    };
    let list = designs.iter().map(colour).collect();
    (list, known.iter().map(|v| format!("{what} {v}")).collect())
}

fn legend(designs: &[Entry], meanings: Vec<String>) -> Vec<(Option<usize>, bool, bool, String)> {
    let mut lines: Vec<_> = meanings
        .into_iter()
        .enumerate()
        .map(|(n, text)| (Some(n), false, false, text))
        .collect();
    if designs.iter().any(|d| d.given) {
        let colour = Some(lines.len());
        lines.push((colour, true, false, "stands in the file".to_string()));
    }
    lines.push((None, false, true, "fewest registers so fast".to_string()));
    lines
}

/// Predicted against measured, both by powers of ten.
fn model(task: &Task<'_>, designs: &[Entry]) -> String {
    let pairs = || {
        designs
            .iter()
            .filter_map(|d| Some((d.predicted?, d.measured)))
    };
    let both = || pairs().flat_map(|(p, m)| [p, m]);
    let title = format!("{}: model and measurement", heading(task));
    let mut chart = Chart::new(
        &title,
        (Scale::log(both()), "predicted"),
        (Scale::log(both()), "measured"),
        duration,
    );
    let (bottom, right) = (TOP + HEIGHT, LEFT + WIDTH);
    chart.svg.line("wave", (LEFT, bottom), (right, TOP));
    let (colours, meanings) = colours(designs);
    let front = front(designs);
    // The best last, on top.
    for (n, design) in designs.iter().enumerate().rev() {
        if let Some(predicted) = design.predicted {
            let at = chart.point(predicted, design.measured);
            chart.mark(at, colours[n], design.given, front[n]);
        }
    }
    chart.legend(&legend(designs, meanings));
    chart.svg.finish(&title)
}

/// Measured time against registers.
fn space(task: &Task<'_>, designs: &[Entry]) -> String {
    let most = designs
        .iter()
        .filter_map(|d| d.registers)
        .max()
        .unwrap_or(1);
    let registers = Scale::Linear {
        hi: f64::from(most.max(4)) * 1.08,
    };
    let title = format!("{}: time and registers", heading(task));
    let mut chart = Chart::new(
        &title,
        (registers, "registers"),
        (Scale::log(designs.iter().map(|d| d.measured)), "measured"),
        |x| format!("{x:.0}"),
    );
    let (colours, meanings) = colours(designs);
    let front = front(designs);
    for (n, design) in designs.iter().enumerate().rev() {
        if let Some(registers) = design.registers {
            let at = chart.point(registers.into(), design.measured);
            chart.mark(at, colours[n], design.given, front[n]);
        }
    }
    if let Some(best) = designs.first()
        && let Some(registers) = best.registers
    {
        let (x, y) = chart.point(registers.into(), best.measured);
        chart
            .svg
            .text("small", Anchor::Start, (x + 11.0, y + 14.0), name_of(best));
    }
    chart.legend(&legend(designs, meanings));
    chart.svg.finish(&title)
}

fn heading(task: &Task<'_>) -> String {
    let sizes = crate::source::Parameters::from(task.system).show(&task.params);
    format!("{} at {sizes} on {}", task.system.name, task.place.target())
}
