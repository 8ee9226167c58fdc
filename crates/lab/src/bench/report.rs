//! The table of a comparison, and the same as JSON.

use std::fmt::Write;

use serde::Serialize;
use systola_cli::table::{Align, Table};
use systola_cli::term::Paint;

use super::baselines::Measured;
use super::designs::Design;
use super::family::Family;
use super::limits::{Limits, Rates};
use super::problem::{Problem, Work};

/// The share of the peak rate of multiply-adds that counts as reaching it.
const FMA_GOAL: f64 = 0.95;

/// The load from which on a machine counts as busy.
const BUSY: f64 = 0.5;

/// The relative difference of two medians of the same that counts as noise.
const NOISE: f64 = 0.05;

/// All measurements of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub limits: Limits,
    pub rows: Vec<ProblemRow>,
    pub designs: Vec<Design>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub threads: usize,
    /// The load average of a minute, before and after.
    pub load: [Option<f64>; 2],
}

/// One problem with some threads.
#[derive(Debug, Serialize)]
pub struct ProblemRow {
    pub family: Family,
    pub problem: String,
    /// Its file in the folder of its family.
    pub program: &'static str,
    pub mapping: String,
    /// The sizes that were known when it was compiled.
    pub fixed: &'static [&'static str],
    pub threads: usize,
    /// Sweeps over a field.
    pub steps: i64,
    pub work: Work,
    pub ms: Option<f64>,
    /// Why there is no time.
    pub refused: Option<String>,
    /// The medians of the machine's rates, measured alternately with ours.
    pub rates: Option<Rates>,
    /// The limit at these rates.
    pub limit_ms: Option<f64>,
    /// The limit at the best rates of all, known when everything is measured.
    pub best_limit_ms: Option<f64>,
    /// The rate in billions per second, in the unit of the family.
    pub rate: Option<f64>,
    pub unit: &'static str,
    pub baselines: Vec<Baseline>,
}

#[derive(Debug, Serialize)]
pub struct Baseline {
    pub baseline: String,
    pub how: String,
    pub threads: usize,
    pub ms: f64,
    /// Its time relative to ours.
    pub ratio: Option<f64>,
    pub fault: Option<String>,
}

impl Baseline {
    pub fn new(measured: Measured, ours_ms: Option<f64>) -> Baseline {
        let ms = measured.seconds * 1e3;
        Baseline {
            baseline: measured.baseline,
            how: measured.how,
            threads: measured.threads,
            ms,
            ratio: ours_ms.map(|ours| ms / ours),
            fault: measured.fault,
        }
    }
}

impl ProblemRow {
    /// A problem with our time, or why there is none, and the rates of the machine meanwhile.
    pub fn new(
        problem: &Problem,
        threads: usize,
        ours: Result<f64, String>,
        rates: Option<Rates>,
    ) -> ProblemRow {
        let seconds = ours.as_ref().ok().copied();
        ProblemRow {
            family: problem.family,
            problem: problem.name.clone(),
            program: problem.program,
            mapping: problem.mappings[0].clone(),
            fixed: problem.fix,
            threads,
            steps: problem.steps(),
            work: problem.work,
            ms: seconds.map(|s| s * 1e3),
            refused: ours.err(),
            rates,
            limit_ms: rates.map(|rates| rates.seconds(problem.work) * 1e3),
            best_limit_ms: None,
            rate: seconds.map(|s| problem.work.operations / s / 1e9),
            unit: problem.family.unit(),
            baselines: Vec::new(),
        }
    }

    pub fn of_limit(&self) -> Option<f64> {
        Some(self.limit_ms? / self.ms?)
    }

    fn of_best_limit(&self) -> Option<f64> {
        Some(self.best_limit_ms? / self.ms?)
    }

    /// The fastest of a library's functions that gave the right result; if there is none, the
    /// first.
    pub fn baseline(&self, name: &str) -> Option<&Baseline> {
        let its = || self.baselines.iter().filter(|p| p.baseline == name);
        its()
            .filter(|p| p.fault.is_none())
            .min_by(|a, b| a.ms.total_cmp(&b.ms))
            .or_else(|| its().next())
    }
}

impl Report {
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("numbers and texts are JSON") + "\n"
    }

    pub fn text(&self) -> String {
        let mut text = self.machine_text();
        text.push_str(&self.table());
        text.push_str(&self.designs_table());
        text.push_str(&self.notes_text());
        text
    }

    /// Refused, wrong or disturbed measurements.
    pub fn notes_text(&self) -> String {
        let mut text = String::new();
        let refused = self.rows.iter().filter_map(|row| {
            let why = row.refused.as_ref()?;
            Some(format!("{}, {}: {why}", row.family.title(), row.problem))
        });
        let wrong = self.rows.iter().flat_map(|row| {
            row.baselines.iter().filter_map(|baseline| {
                let fault = baseline.fault.as_ref()?;
                let what = format!("{} ({})", baseline.baseline, baseline.how);
                Some(format!(
                    "{}, {}: {what} is wrong: {fault}",
                    row.family.title(),
                    row.problem
                ))
            })
        });
        let designs = self.designs.iter().filter_map(|design| {
            Some(format!(
                "the design {}: {}",
                design.mapping,
                design.refused.as_ref()?
            ))
        });
        let above = self
            .rows
            .iter()
            .filter(|row| row.of_limit() > Some(1.0 + NOISE));
        let disturbed = above.map(|row| {
            format!(
                "{}, {}, threads {}: faster than its limit; other programs slowed down the measurement of the limit",
                row.family.title(),
                row.problem,
                row.threads
            )
        });
        let notes: Vec<String> = refused
            .chain(wrong)
            .chain(disturbed)
            .chain(designs)
            .chain(self.notes.iter().cloned())
            .collect();
        if !notes.is_empty() {
            text.push('\n');
        }
        for note in notes {
            let _ = writeln!(text, "{} {note}", Paint::Yellow.out("note:"));
        }
        text
    }

    pub fn machine_text(&self) -> String {
        let Limits {
            clock_hz,
            lanes,
            one,
            all,
        } = &self.limits;
        let (ports, part) = self.limits.ports();
        let mut text = format!(
            "{}, {} thread{}\n",
            self.machine.processor,
            self.machine.threads,
            if self.machine.threads == 1 { "" } else { "s" },
        );
        let _ = writeln!(
            text,
            "copy  {:.1} GB/s one thread, {:.1} GB/s all (read + written)",
            one.copy_bytes / 1e9,
            all.copy_bytes / 1e9,
        );
        let _ = writeln!(
            text,
            "FMA   {:.1} GFLOP/s one thread, {:.1} all; one is {:.1} % of {:.2} GHz × {ports} ports × {lanes} lanes × 2",
            one.fma_flops / 1e9,
            all.fma_flops / 1e9,
            part * 100.0,
            clock_hz / 1e9,
        );
        if part < FMA_GOAL {
            let _ = writeln!(
                text,
                "      less than {:.0} %: the machine is busy",
                FMA_GOAL * 100.0
            );
        }
        if let [Some(before), Some(after)] = self.machine.load {
            let _ = writeln!(
                text,
                "load  {before:.2} before, {after:.2} after (one or more of it is this command and its baselines)"
            );
            if before > BUSY {
                let _ = writeln!(
                    text,
                    "      other programs are running: the times below are disturbed"
                );
            }
        }
        text
    }

    /// A part for each family: its problems are rows, its baselines columns.
    fn table(&self) -> String {
        let mut align = vec![Align::Left];
        align.extend([Align::Right; 11]);
        let mut table = Table::new(0, align);
        for family in Family::ALL {
            let rows: Vec<&ProblemRow> = self.rows.iter().filter(|r| r.family == family).collect();
            if rows.is_empty() {
                continue;
            }
            table.row([""]);
            let mut heads = vec![
                family.title(),
                "threads",
                "limit ms",
                "ours ms",
                "of limit",
                "at best",
                family.unit(),
            ];
            let any_baselines = rows.iter().any(|r| !r.baselines.is_empty());
            let baselines = if any_baselines {
                family.baselines()
            } else {
                &[]
            };
            heads.extend(baselines);
            table.header(heads);
            for row in rows {
                table.row(cells(row, baselines));
            }
        }
        if self.rows.is_empty() {
            return String::new();
        }
        let mut text = table.render();
        if self.rows.iter().any(|r| !r.baselines.is_empty()) {
            text.push_str("\n2.00× 8.0: the baseline takes 8.0 ms, which is twice our time\n");
        }
        text
    }

    fn designs_table(&self) -> String {
        let Some(first) = self.designs.first() else {
            return String::new();
        };
        let mut table = Table::new(0, [Align::Left, Align::Right, Align::Right]);
        table.row([""]);
        table.header([
            &format!(
                "designs, {} samples, {} taps, one thread",
                first.samples, first.taps
            ),
            "ms",
            "of the fastest",
        ]);
        for design in &self.designs {
            let ms = design.ms.map_or("-".to_string(), |ms| format!("{ms:.3}"));
            let ratio = match (design.ms, first.ms) {
                (Some(ms), Some(best)) => format!("{:.2}×", ms / best),
                (_, None) | (None, _) => "-".to_string(),
            };
            table.row([design.mapping.to_uppercase(), ms, ratio]);
        }
        table.render()
    }
}

fn cells(row: &ProblemRow, baselines: &[&str]) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let mut cells = vec![
        row.problem.clone(),
        row.threads.to_string(),
        or_dash(row.limit_ms.map(milliseconds)),
        or_dash(row.ms.map(milliseconds)),
        or_dash(row.of_limit().map(percent)),
        or_dash(row.of_best_limit().map(percent)),
        or_dash(row.rate.map(|rate| format!("{rate:.1}"))),
    ];
    for name in baselines {
        cells.push(beside(row, name));
    }
    cells
}

/// The time of a baseline relative to ours, and its time.
pub fn beside(row: &ProblemRow, baseline: &str) -> String {
    let Some(baseline) = row.baseline(baseline) else {
        return "-".to_string();
    };
    match (&baseline.fault, baseline.ratio) {
        (Some(_), _) => Paint::Red.out("wrong"),
        (None, None) => milliseconds(baseline.ms),
        (None, Some(ratio)) => {
            let paint = if ratio >= 1.0 {
                Paint::Green
            } else {
                Paint::Red
            };
            format!(
                "{} {}",
                paint.out(format!("{ratio:.2}×")),
                milliseconds(baseline.ms)
            )
        }
    }
}

pub fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Three significant digits.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 1.0 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(name: &str, ms: f64, fault: Option<&str>) -> Baseline {
        let measured = Measured {
            baseline: name.to_string(),
            how: "f".to_string(),
            seconds: ms / 1e3,
            threads: 1,
            fault: fault.map(str::to_string),
        };
        Baseline::new(measured, Some(10.0))
    }

    fn report() -> Report {
        let one = Rates {
            threads: 1,
            fma_flops: 180e9,
            copy_bytes: 20e9,
        };
        Report {
            machine: Machine {
                processor: "P".into(),
                threads: 2,
                load: [None, None],
            },
            limits: Limits {
                clock_hz: 3e9,
                lanes: 16,
                one,
                all: one,
            },
            rows: vec![ProblemRow {
                family: Family::Conv2d,
                problem: "8², 3 × 3".into(),
                program: "conv2d/core.ure",
                mapping: "rows".into(),
                fixed: &["H", "Q"],
                threads: 1,
                steps: 1,
                work: Work {
                    operations: 3e8,
                    bytes: 1e8,
                },
                ms: Some(10.0),
                refused: None,
                rates: Some(one),
                limit_ms: Some(8.0),
                best_limit_ms: Some(6.0),
                rate: Some(30.0),
                unit: "GFLOP/s",
                baselines: vec![
                    baseline("C", 25.0, None),
                    baseline("SciPy", 40.0, None),
                    baseline("SciPy", 30.0, None),
                    baseline("SciPy", 1.0, Some("off by one")),
                    baseline("OpenCV", 5.0, Some("element 0 is 1")),
                ],
            }],
            designs: Vec::new(),
            notes: vec!["Halide is not installed".into()],
        }
    }

    #[test]
    fn ratios_of_the_best_right_result() {
        let text = report().text();
        let row = text.lines().find(|l| l.starts_with("8²")).unwrap();
        let cells: Vec<&str> = row
            .split("  ")
            .map(str::trim)
            .filter(|c| !c.is_empty())
            .collect();
        assert_eq!(
            cells,
            [
                "8², 3 × 3",
                "1",
                "8.00",
                "10.0",
                "80 %",
                "60 %",
                "30.0",
                "2.50× 25.0",
                "wrong",
                "-",
                "3.00× 30.0"
            ]
        );
        assert!(
            text.contains("OpenCV (f) is wrong: element 0 is 1"),
            "{text}"
        );
        assert!(text.contains("Halide is not installed"), "{text}");
        assert!(
            text.contains("93.8 % of 3.00 GHz × 2 ports × 16 lanes × 2"),
            "{text}"
        );
        assert!(text.contains("less than 95 %"), "{text}");
    }

    #[test]
    fn a_busy_machine_is_reported() {
        let mut report = report();
        report.machine.load = [Some(0.1), Some(1.5)];
        assert!(report.text().contains("load  0.10 before, 1.50 after"));
        assert!(!report.text().contains("disturbed"));
        report.machine.load[0] = Some(2.0);
        assert!(report.text().contains("disturbed"));
    }

    #[test]
    fn a_disturbed_limit_is_reported() {
        let mut report = report();
        assert!(!report.text().contains("slowed down"));
        report.rows[0].limit_ms = Some(12.0);
        let text = report.text();
        assert!(
            text.contains("8², 3 × 3, threads 1: faster than its limit"),
            "{text}"
        );
    }

    #[test]
    fn json_has_every_function() {
        let json: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
        assert_eq!(json["rows"][0]["baselines"].as_array().unwrap().len(), 5);
        assert_eq!(json["rows"][0]["family"], "conv2d");
        assert_eq!(json["rows"][0]["baselines"][0]["ratio"], 2.5);
        assert_eq!(json["limits"]["one"]["copy_bytes"], 20e9);
        assert_eq!(json["rows"][0]["rates"]["copy_bytes"], 20e9);
        assert_eq!(json["rows"][0]["limit_ms"], 8.0);
        assert_eq!(json["rows"][0]["best_limit_ms"], 6.0);
    }

    #[test]
    fn a_row_without_a_time_has_dashes() {
        let mut report = report();
        report.rows[0].ms = None;
        report.rows[0].refused = Some("no mapping".into());
        report.rows[0].baselines.clear();
        let text = report.text();
        let row = text.lines().find(|l| l.starts_with("8²")).unwrap();
        assert!(row.contains("8.00        -         -        -"), "{row}");
        assert!(
            text.contains("2-D convolution, 8², 3 × 3: no mapping"),
            "{text}"
        );
    }
}
