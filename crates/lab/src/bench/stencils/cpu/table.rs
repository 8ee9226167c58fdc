//! Ratios first: the time of a sweep in copies of the field, and the time of each baseline relative
//! to ours.

use systola_cli::table::{Align, Table};

use super::super::super::family::Family;
use super::super::super::report::{ProblemRow, Report, beside, milliseconds, percent};

pub fn text(report: &Report) -> String {
    let mut text = report.machine_text();
    let mut align = vec![Align::Left];
    align.extend([Align::Right; 11]);
    let mut table = Table::new(0, align);
    for family in [Family::Stencil2d, Family::Stencil3d] {
        let rows: Vec<&ProblemRow> = report.rows.iter().filter(|r| r.family == family).collect();
        if rows.is_empty() {
            continue;
        }
        let any_baselines = rows.iter().any(|r| !r.baselines.is_empty());
        let baselines = if any_baselines {
            family.baselines()
        } else {
            &[]
        };
        table.row([""]);
        let mut heads = vec![family.title(), "threads", "× copy", "at best"];
        heads.extend(baselines);
        heads.extend(["of limit", "ours ms", "GCell/s", "mapping"]);
        table.header(heads);
        for row in rows {
            let mut cells = vec![row.problem.clone(), row.threads.to_string()];
            let now = row.rates.map(|rates| rates.copy_bytes);
            let best = report.limits.with(row.threads).copy_bytes;
            cells.extend([now, Some(best)].map(|rate| times_copy(row, rate)));
            cells.extend(baselines.iter().map(|baseline| beside(row, baseline)));
            cells.extend([
                or_dash(row.of_limit().map(percent)),
                or_dash(row.ms.map(milliseconds)),
                or_dash(
                    row.ms
                        .map(|ms| format!("{:.2}", cells_swept(row) / ms / 1e6)),
                ),
                row.mapping.clone(),
            ]);
            table.row(cells);
        }
    }
    text.push_str(&table.render());
    if report.rows.iter().any(|r| !r.baselines.is_empty()) {
        text.push_str("\n2.00× 8.0: the baseline takes 8.0 ms, which is twice our time\n");
    }
    let scaled = |r: &ProblemRow| r.steps > 1 && r.baseline("SciPy").is_some();
    if report.rows.iter().any(scaled) {
        text.push_str("SciPy: only one sweep was measured; the time of many is a multiple of it\n");
    }
    text.push_str(&report.notes_text());
    text
}

/// The bytes of a field are those of one sweep, however many there are.
fn cells_swept(row: &ProblemRow) -> f64 {
    row.steps as f64 * row.work.bytes / 8.0
}

/// The time of as many copies as there are sweeps, relative to ours.
fn times_copy(row: &ProblemRow, bytes_per_second: Option<f64>) -> String {
    or_dash(bytes_per_second.zip(row.ms).map(|(rate, ms)| {
        let copies = row.steps as f64 * row.work.bytes / rate;
        format!("{:.2}×", copies * 1e3 / ms)
    }))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_string())
}
