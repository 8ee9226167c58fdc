//! Pictures of an exploration: the model against measurements, and time against registers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use systola::rt::tuning::Entry;
use systola_draw::chart::{Axis, Chart, Mark, Scale, Shape};
use systola_draw::svg::N_COLOURS;

use super::table::{front, name_of};
use super::{Answer, Task};
use crate::execute::duration;
use crate::files;
use crate::source::{Failure, Parameters};

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

/// The choice that distinguishes the designs best: one with few values, but more than one, that
/// most of them have.
fn distinguishing(designs: &[Entry]) -> Option<String> {
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
    let Some(what) = distinguishing(designs) else {
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

fn legend(designs: &[Entry]) -> Vec<(Mark, String)> {
    let (_, meanings) = colours(designs);
    let disc = |colour| Mark {
        colour,
        shape: Shape::Disc,
        ringed: false,
    };
    let mut lines: Vec<_> = meanings
        .into_iter()
        .enumerate()
        .map(|(n, text)| (disc(n), text))
        .collect();
    if designs.iter().any(|d| d.given) {
        let mark = Mark {
            shape: Shape::Diamond,
            ..disc(lines.len())
        };
        lines.push((mark, "stands in the file".to_string()));
    }
    let ringed = Mark {
        ringed: true,
        ..disc(6)
    };
    lines.push((ringed, "fewest registers so fast".to_string()));
    lines
}

/// Marks designs at `x`, the best last, on top; those of the file are diamonds, those of the Pareto
/// front have a ring.
fn mark(chart: &mut Chart, designs: &[Entry], x: impl Fn(&Entry) -> Option<f64>) {
    let (colours, _) = colours(designs);
    let front = front(designs);
    for (n, design) in designs.iter().enumerate().rev() {
        if let Some(x) = x(design) {
            let mark = Mark {
                colour: colours[n],
                shape: if design.given {
                    Shape::Diamond
                } else {
                    Shape::Disc
                },
                ringed: front[n],
            };
            chart.mark(x, design.measured, mark);
        }
    }
}

/// A logarithmic axis of seconds.
fn times(name: &str, seconds: impl Iterator<Item = f64>) -> Axis<'_> {
    Axis {
        scale: Scale::log(seconds),
        name,
        label: duration,
    }
}

/// Predicted against measured time, both logarithmic.
fn model(task: &Task<'_>, designs: &[Entry]) -> String {
    let pairs = || {
        designs
            .iter()
            .filter_map(|d| Some((d.predicted?, d.measured)))
    };
    let both = || pairs().flat_map(|(p, m)| [p, m]);
    let title = format!("{}: model and measurement", heading(task));
    let axes = (times("predicted", both()), times("measured", both()));
    let mut chart = Chart::new(&title, axes.0, axes.1);
    chart.diagonal();
    mark(&mut chart, designs, |design| design.predicted);
    chart.finish(&legend(designs))
}

/// Measured time against registers.
fn space(task: &Task<'_>, designs: &[Entry]) -> String {
    let most = designs
        .iter()
        .filter_map(|d| d.registers)
        .max()
        .unwrap_or(1);
    let registers = Axis {
        scale: Scale::Linear {
            hi: f64::from(most.max(4)) * 1.08,
        },
        name: "registers",
        label: |x| format!("{x:.0}"),
    };
    let title = format!("{}: time and registers", heading(task));
    let measured = times("measured", designs.iter().map(|d| d.measured));
    let mut chart = Chart::new(&title, registers, measured);
    mark(&mut chart, designs, |design| {
        design.registers.map(f64::from)
    });
    if let Some(best) = designs.first()
        && let Some(registers) = best.registers
    {
        chart.note(registers.into(), best.measured, name_of(best));
    }
    chart.finish(&legend(designs))
}

fn heading(task: &Task<'_>) -> String {
    let sizes = Parameters::from(task.system).show(&task.params);
    format!(
        "{} at {sizes} on {}",
        task.system.name,
        task.target_device.target()
    )
}
