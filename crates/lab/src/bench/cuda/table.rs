//! The rows, printed one by one as they are measured.

use systola_cli::term::{Paint, width};

use super::baselines::Baselines;
use super::case::{Case, Group, Unit, Work};
use super::limits::Limits;
use super::measure::Measured;

/// Columns: problem and mapping, then numbers.
const WIDTHS: [usize; 2] = [28, 10];
const NUMBER: usize = 9;

pub fn header(group: Group, baselines: &Baselines) -> String {
    let mut line = left(["problem", "mapping"]);
    for name in ["limit ms", "ms", "of limit", "rate", "GB/s", "registers"] {
        line.push_str(&right(name));
    }
    for baseline in baselines_shown(group, baselines) {
        line.push_str(&right(baseline));
    }
    format!(
        "\n{}\n{}\n",
        Paint::Bold.out(group.title()),
        Paint::Dim.out(line)
    )
}

/// The result of a mapping; baselines are shown as multiples of our time.
pub fn row(
    group: Group,
    case: &Case,
    mapping: &str,
    outcome: &Result<Measured, String>,
    limits: &Limits,
    baselines: &Baselines,
) -> String {
    let mut line = left([&case.name, mapping]);
    match outcome {
        Err(why) => {
            line.push_str("  ");
            line.push_str(why.trim_end());
        }
        Ok(measured) => {
            let seconds = measured.timing.median();
            let limit = limits.seconds(&case.work);
            let spilled = match measured.spilled {
                0 => String::new(),
                bytes => format!("+{bytes}B"),
            };
            let cells = [
                format!("{:.3}", limit * 1e3),
                format!("{:.3}", seconds * 1e3),
                format!("{:.0} %", 100.0 * limit / seconds),
                rate(&case.work, seconds),
                format!("{:.0}", case.work.bytes / seconds / 1e9),
                format!("{}{spilled}", measured.registers),
            ];
            for cell in cells {
                line.push_str(&right(&cell));
            }
            for baseline in baselines_shown(group, baselines) {
                let ms = baselines.of(group, &case.name, baseline);
                let ratio = ms.map(|ms| format!("{:.2}x", ms / (seconds * 1e3)));
                line.push_str(&right(ratio.as_deref().unwrap_or("-")));
            }
            line.push_str(&case.note);
        }
    }
    format!("{}\n", line.trim_end())
}

fn baselines_shown(group: Group, baselines: &Baselines) -> &'static [&'static str] {
    if baselines.enabled() {
        group.baselines()
    } else {
        &[]
    }
}

/// The rate: cells per second where the problem has them, else operations.
pub fn rate(work: &Work, seconds: f64) -> String {
    match (work.cells, work.unit) {
        (Some(cells), _) => format!("{:.1} {}", cells.count / seconds / 1e9, cells.unit),
        (None, Unit::F32 | Unit::F64 | Unit::Single | Unit::Integer) => {
            format!("{:.2} TF", work.operations / seconds / 1e12)
        }
    }
}

pub fn left(cells: [&str; 2]) -> String {
    let cell = |(cell, wide): (&str, usize)| {
        let pad = wide.saturating_sub(width(cell));
        format!("{cell}{}  ", " ".repeat(pad))
    };
    cells.into_iter().zip(WIDTHS).map(cell).collect()
}

pub fn right(cell: &str) -> String {
    let pad = NUMBER.saturating_sub(width(cell));
    format!("{}{cell}  ", " ".repeat(pad))
}
