//! `systola-lab bench cpu`: compiled mappings compared with the baselines and the limits of this
//! machine.

use std::path::Path;

use systola_cli::source::{Failure, Outcome, Status};
use systola_cli::term;

use super::designs;
use super::family::Family;
use super::problem::{Make, Scale, problems};
use super::report::Report;
use super::session::Session;
use super::tools::root;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench-setup                  once: installs the libraries to compare with, below target/
  cargo xtask bench cpu                    everything, in a few minutes
  cargo xtask bench cpu --only conv2d      2-D convolution alone
  cargo xtask bench cpu --only designs     the six designs of 1-D convolution
  cargo xtask bench cpu --no-baselines     only us and the limits of the machine
  cargo xtask bench cpu --json > cpu.json  with every function that was tried

Every result, ours and the baselines', is checked before its time counts. Times are medians of
warm runs of the kernel alone, without compiling and without reading files; ours are taken
before and after the baselines. A library counts with the fastest of its functions.
The limit is the longer of two times: to copy the compulsory bytes, and to multiply-add.
\"of limit\" takes the rates that this command measures alternately with ours,
the median of each; \"at best\" the best rates that it finds before and after everything.
One thread stays on one CPU, the one that is fastest at the moment: ours, the limit and the
baselines of its row.";

/// Time compiled mappings and OpenCV, SciPy, Halide, OpenBLAS, rapidfuzz, parasail and plain C
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these problems; can be given more than once
    #[arg(long, value_name = "PROBLEM")]
    only: Vec<Family>,
    /// Do not run the baselines
    #[arg(long)]
    no_baselines: bool,
    /// The number of threads in rows with all threads [default: all hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Tiny problems, to test the command itself: the times mean nothing
    #[arg(long)]
    small: bool,
}

pub fn run(args: &Args) -> Outcome {
    let root = root()?;
    let report = measure(args, &root)?;
    term::print(if args.json {
        report.json()
    } else {
        report.text()
    });
    let failed = report.rows.iter().any(|r| r.refused.is_some())
        || report.designs.iter().any(|d| d.refused.is_some());
    Ok(if failed {
        Status::Limitation
    } else {
        Status::Done
    })
}

fn measure(args: &Args, root: &Path) -> Result<Report, Failure> {
    let scale = Scale::of(args.small);
    let wanted = |family: &Family| args.only.is_empty() || args.only.contains(family);
    let list: Vec<(String, Make)> = Family::ALL
        .into_iter()
        .filter(wanted)
        .flat_map(|family| {
            let title = family.title();
            let named = move |(name, make)| (format!("{title}, {name}"), make);
            problems(family, scale).into_iter().map(named)
        })
        .collect();
    let with_designs = wanted(&Family::Designs);
    let n_designs = if with_designs {
        designs::DESIGNS.len()
    } else {
        0
    };
    let mut session = Session::open(
        root,
        scale,
        args.threads,
        !args.no_baselines,
        list.len() + n_designs,
    )?;
    let mut rows = Vec::new();
    for (title, make) in &list {
        session.step(title);
        rows.extend(session.rows(&make()?)?);
    }
    let designs = if with_designs {
        designs::measure(root, &session.program, scale, &mut session.progress)
    } else {
        Vec::new()
    };
    session.report(rows, designs)
}

#[cfg(test)]
mod tests {
    use super::super::session::{missing, tests::assert_baselines_are_right};
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn small(words: &[&str]) -> Report {
        let words = ["bench", "--small"]
            .into_iter()
            .chain(words.iter().copied());
        let args = Line::parse_from(words).args;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        match measure(&args, &root) {
            Ok(report) => report,
            Err(Failure::Outside { message, .. }) => panic!("{message}"),
            Err(Failure::Reported(status)) => panic!("{status:?}"),
        }
    }

    /// Every problem compiles and gives the right result, with one thread and with two; so do plain
    /// C and the installed baselines.
    #[test]
    fn small_problems_are_solved() {
        let report = small(&["--threads", "2"]);
        assert_eq!(report.rows.len(), 22);
        assert_baselines_are_right(&report);
        for row in &report.rows {
            assert_eq!(row.refused, None, "{}", row.problem);
            assert!(row.ms > Some(0.0), "{}", row.problem);
            let limits = [row.limit_ms, row.best_limit_ms];
            let limited = row.family.has_limit();
            assert_eq!(
                limits.map(|l| l > Some(0.0)),
                [limited; 2],
                "{}",
                row.problem
            );
            let threads = row.rates.map(|r| r.threads);
            assert_eq!(threads, limited.then_some(row.threads), "{}", row.problem);
        }
        assert_eq!(report.designs.len(), 6);
        for design in &report.designs {
            assert_eq!(design.refused, None, "{}", design.mapping);
        }
    }

    #[test]
    fn what_is_not_installed_is_named_once() {
        let mut report = small(&[
            "--only",
            "matmul",
            "--only",
            "conv1d",
            "--no-baselines",
            "--threads",
            "1",
        ]);
        assert_eq!(report.rows.len(), 3);
        assert!(report.notes.is_empty() && report.designs.is_empty());
        for row in &mut report.rows {
            row.baselines.clear();
        }
        let note = missing(&report.rows).unwrap();
        assert!(
            note.starts_with("not there to compare with: C, OpenCV, Halide, SciPy, OpenBLAS;"),
            "{note}"
        );
    }
}
