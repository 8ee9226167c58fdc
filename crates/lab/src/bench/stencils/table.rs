//! A row for each stencil and type: one sweep, and many.

use systola_cli::term::{Paint, width};

use super::super::cuda::case::Work;
use super::super::cuda::limits::Limits;
use super::super::cuda::measure::Measured;
use super::catalogue::{Published, Stencil};
use super::{Precision, Tried};

/// The work of some sweeps.
pub struct Sweeps {
    /// Cells, counted in each sweep.
    pub cells: f64,
    pub work: Work,
}

/// The mappings of a stencil and their results.
pub struct StencilRow {
    pub stencil: &'static Stencil,
    pub precision: Precision,
    once: Vec<Tried>,
    many: Vec<Tried>,
}

const WIDTHS: [usize; 10] = [9, 5, 10, 8, 9, 15, 10, 8, 15, 9];

pub fn header(steps: u32) -> String {
    let many = format!("{steps} sweeps");
    let cells = [
        "stencil",
        "type",
        "one sweep",
        "GCell/s",
        "of limit",
        "best other",
        &many,
        "GCell/s",
        "best other",
        "of goal",
    ];
    format!("\n{}\n", Paint::Dim.out(line(&cells)))
}

/// Words to the left, numbers to the right.
fn line(cells: &[&str; 10]) -> String {
    let mut text = String::new();
    for (n, (cell, wide)) in cells.iter().zip(WIDTHS).enumerate() {
        let pad = " ".repeat(wide.saturating_sub(width(cell)));
        match n {
            0..=2 | 6 => text.extend([*cell, &pad]),
            _ => text.extend([pad.as_str(), cell]),
        }
        text.push_str("  ");
    }
    text.trim_end().to_string()
}

impl StencilRow {
    pub fn new(stencil: &'static Stencil, precision: Precision) -> StencilRow {
        StencilRow {
            stencil,
            precision,
            once: Vec::new(),
            many: Vec::new(),
        }
    }

    pub fn tried(&mut self, many: bool) -> &mut Vec<Tried> {
        if many { &mut self.many } else { &mut self.once }
    }

    /// A mapping was refused or wrong.
    pub fn failed(&self) -> bool {
        let mut all = self.once.iter().chain(&self.many);
        all.any(|(_, outcome)| outcome.is_err())
    }

    pub fn text(&self, [once, many]: &[Sweeps; 2], limits: &Limits, all: bool) -> String {
        let published: &Published = match self.precision {
            Precision::F32 => &self.stencil.single,
            Precision::F64 => &self.stencil.double,
        };
        let mut cells = vec![
            self.stencil.name.to_string(),
            self.precision.scalar().to_string(),
        ];
        match fastest(&self.once) {
            Some((name, measured)) => {
                let seconds = measured.timing.median();
                let rate = once.cells / seconds / 1e9;
                let of_limit = 100.0 * limits.seconds(&once.work) / seconds;
                cells.extend([
                    name.to_string(),
                    format!("{rate:.0}"),
                    format!("{of_limit:.0} %"),
                    beside(rate, published.best_once()),
                ]);
            }
            None => cells.extend(["-"; 4].map(String::from)),
        }
        match fastest(&self.many) {
            Some((name, measured)) => {
                let rate = many.cells / measured.timing.median() / 1e9;
                cells.extend([
                    name.to_string(),
                    format!("{rate:.0}"),
                    beside(rate, published.best_many()),
                    format!("{:.0} %", 100.0 * rate / published.goal),
                ]);
            }
            None => cells.extend(["-"; 4].map(String::from)),
        }
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let mut text = match <&[&str; 10]>::try_from(cells.as_slice()) {
            Ok(cells) => line(cells),
            Err(_) => cells.join("  "),
        };
        text.push('\n');
        for (tried, sweeps) in [(&self.once, once), (&self.many, many)] {
            for (name, outcome) in tried {
                match outcome {
                    // A refused or wrong one is always reported.
                    Err(why) => text.push_str(&format!("    {name}: {}\n", why.trim_end())),
                    Ok(measured) if all => text.push_str(&detail(name, measured, sweeps)),
                    Ok(_) => {}
                }
            }
        }
        text
    }
}

fn detail(name: &str, measured: &Measured, sweeps: &Sweeps) -> String {
    let seconds = measured.timing.median();
    let spilled = match measured.spilled {
        0 => String::new(),
        bytes => format!(", {bytes} bytes spilled"),
    };
    let (rate, ms) = (sweeps.cells / seconds / 1e9, seconds * 1e3);
    let registers = measured.registers;
    format!("    {name:<12} {rate:8.1} GCell/s {ms:9.3} ms, {registers} registers{spilled}\n")
}

fn fastest(tried: &[Tried]) -> Option<(&str, &Measured)> {
    let good = tried
        .iter()
        .filter_map(|(name, o)| Some((name.as_str(), o.as_ref().ok()?)));
    good.min_by(|a, b| a.1.timing.median().total_cmp(&b.1.timing.median()))
}

/// Our speed relative to the best published one.
fn beside(rate: f64, other: Option<(&'static str, f64)>) -> String {
    match other {
        Some((name, its)) => format!("{:.2}x {name}", rate / its),
        None => "-".to_string(),
    }
}
