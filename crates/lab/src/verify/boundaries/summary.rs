//! The number of runs, and the largest error.

use systola_cli::table::{Align, Table};
use systola_cli::term::Paint;

use super::boundary_name::BoundaryName;
use super::case::Runs;
use crate::verify::tally::RunResult;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub verified: usize,
    pub failed: usize,
    /// The largest error of the verified runs, relative to its bound.
    pub worst: f64,
}

impl Summary {
    /// A part that did not end.
    pub fn failed() -> Summary {
        Summary {
            failed: 1,
            ..Summary::default()
        }
    }

    pub fn count(&mut self, runs: &Runs) {
        for (_, row) in &runs.rows {
            match row {
                RunResult::Verified(_) => self.verified += 1,
                RunResult::Failed(_) => self.failed += 1,
                RunResult::Refused(_) | RunResult::Skipped(_) => {}
            }
        }
        self.worst = self.worst.max(runs.worst);
    }

    pub fn add(&mut self, other: &Summary) {
        self.verified += other.verified;
        self.failed += other.failed;
        self.worst = self.worst.max(other.worst);
    }

    pub fn line(&self) -> String {
        let Summary {
            verified,
            failed,
            worst,
        } = self;
        format!("{verified} runs verified, {failed} failed, largest error {worst:.3} of its bound")
    }

    /// Reads what [`Summary::line`] writes.
    pub fn parse(line: &str) -> Option<Summary> {
        let (verified, rest) = line.split_once(" runs verified, ")?;
        let (failed, rest) = rest.split_once(" failed, largest error ")?;
        let worst = rest.strip_suffix(" of its bound")?;
        Some(Summary {
            verified: verified.parse().ok()?,
            failed: failed.parse().ok()?,
            worst: worst.parse().ok()?,
        })
    }
}

/// A row for each stencil, a column for each boundary condition: the largest error relative to its
/// bound.
pub fn table(boundaries: &[BoundaryName], cells: &[(&str, BoundaryName, Summary)]) -> String {
    let mut align = vec![Align::Left];
    align.extend(boundaries.iter().map(|_| Align::Right));
    align.push(Align::Right);
    let mut table = Table::new(0, align);
    let words = boundaries.iter().map(|b| b.word());
    table.header(["stencil"].into_iter().chain(words).chain(["runs"]));
    let mut names: Vec<&str> = cells.iter().map(|(name, ..)| *name).collect();
    names.dedup();
    for name in names {
        let its = || cells.iter().filter(|(other, ..)| *other == name);
        let cell = |boundary: &BoundaryName| {
            let mut all = Summary::default();
            let found = its().filter(|(_, b, _)| b == boundary);
            found.for_each(|(.., summary)| all.add(summary));
            match (all.failed, all.verified) {
                (0, 0) => "-".to_string(),
                (0, _) => format!("{:.3}", all.worst),
                (n, _) => Paint::Red.out(format!("{n} FAILED")),
            }
        };
        let runs: usize = its().map(|(.., summary)| summary.verified).sum();
        let row = boundaries.iter().map(cell);
        let row = [name.to_string()].into_iter().chain(row);
        table.row(row.chain([runs.to_string()]));
    }
    format!("\n{}\n", table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_as_they_are_written() {
        let summary = Summary {
            verified: 16,
            failed: 2,
            worst: 0.125,
        };
        assert_eq!(Summary::parse(&summary.line()), Some(summary));
        assert_eq!(Summary::parse("16 runs verified, 2 failed"), None);
    }

    #[test]
    fn the_table_lines_up_and_shows_failures() {
        let good = Summary {
            verified: 16,
            failed: 0,
            worst: 0.0312,
        };
        let cells = [
            ("2d5pt", BoundaryName::Clamp, good),
            ("2d5pt", BoundaryName::Clamp, good),
            ("2d5pt", BoundaryName::Wrap, Summary::failed()),
            ("2d121pt", BoundaryName::Clamp, good),
        ];
        let text = table(&[BoundaryName::Clamp, BoundaryName::Wrap], &cells);
        let expect = "
stencil  clamp      wrap  runs
2d5pt    0.031  1 FAILED    32
2d121pt  0.031         -    16
";
        assert_eq!(text.trim(), expect.trim());
    }
}
