//! `systola bench cpu`: compiled mappings beside the peers and the limits of this machine.

use std::path::Path;

use systola::rt::timing::Timing;

use super::designs;
use super::family::Family;
use super::limits::{self, Limits};
use super::ours::Ours;
use super::pace::Pace;
use super::peers::Peers;
use super::problem::{Make, Problem, Scale, problems};
use super::report::{Machine, Peer, Report, Row};
use super::seat::Seat;
use super::tools::{Progress, Scratch, root};
use crate::source::{Failure, Outcome, Status};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench-setup              once: installs the libraries to compare with, below target/
  systola bench cpu                    everything, in a few minutes
  systola bench cpu --only conv2d      2-D convolution alone
  systola bench cpu --only designs     the six designs of 1-D convolution
  systola bench cpu --no-peers         only us and the limits of the machine
  systola bench cpu --json > cpu.json  with every function that was tried

Every result, ours and the peers', is checked before its time counts. Times are medians of
warm runs of the kernel alone, without compiling and without reading files; ours are taken
before and after the peers. A library counts with the fastest of its functions.
The limit is the longer of two times: to copy what must be read and written, and to
multiply-add. \"of limit\" takes the rates that this command measures in turns with ours,
the median of each; \"at best\" the best rates that it finds before and after everything.
One thread stays on one processor, the one that is fastest at the moment: ours, the limit and the
peers of its row.";

/// Time compiled mappings beside OpenCV, SciPy, Halide, OpenBLAS, rapidfuzz, parasail and plain C
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these problems; can be given more than once
    #[arg(long, value_name = "PROBLEM")]
    only: Vec<Family>,
    /// Do not run the peers
    #[arg(long)]
    no_peers: bool,
    /// How many threads "all" are [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Tiny problems, to try the command itself: the times mean nothing
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
    let scale = if args.small {
        Scale::Small
    } else {
        Scale::Full
    };
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(available, usize::from);
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
    let mut progress = Progress::new(1 + list.len() + n_designs);

    let load = load_average();
    progress.step("the limits of this machine");
    let scratch = Scratch::new()?;
    let program = limits::program(root, &scratch)?;
    let mut limits = Limits::measure(&program, threads)?;
    let mut peers = (!args.no_peers).then(|| Peers::find(root, &scratch, scale));
    let mut rows = Vec::new();
    for (title, make) in &list {
        progress.step(title);
        let problem = make()?;
        let counts: &[usize] = if threads == 1 { &[1] } else { &[1, threads] };
        rows.extend(rows_of(
            root, &problem, &mut peers, &scratch, &program, counts, scale,
        )?);
    }
    let designs = if with_designs {
        designs::measure(root, &program, scale, &mut progress)
    } else {
        Vec::new()
    };
    limits = limits.best(Limits::measure(&program, threads)?);
    progress.finish();
    for row in &mut rows {
        if row.family.has_limit() {
            let seconds = limits.with(row.threads).seconds(row.work);
            row.best_limit_ms = Some(seconds * 1e3);
        }
    }
    let mut notes = Vec::new();
    if let Some(peers) = peers {
        notes.extend(missing(&rows));
        notes.extend(peers.notes);
    }
    Ok(Report {
        machine: Machine {
            processor: processor(),
            threads,
            load: [load, load_average()],
        },
        limits,
        rows,
        designs,
        notes,
    })
}

/// One problem, with each of these numbers of threads.
pub(super) fn rows_of(
    root: &Path,
    problem: &Problem,
    peers: &mut Option<Peers>,
    scratch: &Scratch,
    program: &Path,
    counts: &[usize],
    scale: Scale,
) -> Result<Vec<Row>, Failure> {
    if peers.is_some() {
        Peers::hand_over(problem, scratch)?;
    }
    let mut ours = match Ours::compile(root, problem) {
        Ok(ours) => ours,
        Err(why) => return Ok(vec![Row::new(problem, 1, Err(why), None)]),
    };
    let with = counts.iter();
    let one = |threads: &usize| {
        let peers = peers.as_mut();
        row(problem, &mut ours, peers, scratch, program, *threads, scale)
    };
    Ok(with.map(one).collect())
}

/// One problem with some threads: ours in turns with the limits, the peers, and again ours in turns with the limits.
fn row(
    problem: &Problem,
    ours: &mut Ours<'_>,
    peers: Option<&mut Peers>,
    scratch: &Scratch,
    limits: &Path,
    threads: usize,
    scale: Scale,
) -> Row {
    let limited = problem.family.has_limit();
    let seat = (threads == 1).then(|| Seat::take(limits, problem.work));
    let _seat = match seat.transpose() {
        Ok(seat) => seat,
        Err(why) => return Row::new(problem, threads, Err(why), None),
    };
    let mib = problem.family.copy_mib(scale);
    let mut pace = limited
        .then(|| Pace::start(limits, threads, mib))
        .transpose();
    let mut time = |ours: &mut Ours<'_>| {
        let pace = pace.as_mut().map_err(|why| why.clone())?;
        ours.time(threads, scale, pace.as_mut())
    };
    let first = ours.choose(threads).and_then(|()| time(ours));
    let measured = peers.map_or_else(Vec::new, |p| p.measure(problem, scratch, threads));
    let seconds = first.and_then(|mut timing: Timing| {
        timing.samples.extend(time(ours)?.samples);
        Ok(timing.median())
    });
    let rates = pace.ok().flatten().and_then(|pace| pace.median());
    let mut row = Row::new(problem, threads, seconds, rates);
    row.mapping = ours.mapping().to_string();
    row.peers = measured.into_iter().map(|m| Peer::new(m, row.ms)).collect();
    row
}

/// The peers that no row of their family has.
pub(super) fn missing(rows: &[Row]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for family in Family::ALL {
        let its = || rows.iter().filter(|r| r.family == family);
        for name in family.peers() {
            let there = its().any(|r| r.peers.iter().any(|p| p.peer == *name));
            if its().next().is_some() && !there && !names.contains(name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "not there to compare with: {}; `cargo xtask bench-setup` installs what is missing",
        names.join(", ")
    ))
}

/// What the system calls its processor.
pub(super) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_string())
    });
    named.unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

/// How many programs wanted to run in the last minute.
pub(super) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
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
            Err(Failure::Mistake { message, .. }) => panic!("{message}"),
            Err(Failure::Reported(status)) => panic!("{status:?}"),
        }
    }

    /// Every problem compiles and gives the right result.
    #[test]
    fn small_problems_are_solved() {
        let report = small(&["--threads", "2", "--no-peers"]);
        assert_eq!(report.rows.len(), 22);
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

    /// Plain C solves them all, and so does what is installed.
    #[test]
    fn peers_are_right() {
        let report = small(&["--threads", "1"]);
        assert_eq!(report.rows.len(), 11);
        for row in &report.rows {
            let c = row.peers.iter().find(|p| p.peer == "C");
            assert!(c.is_some(), "{}: {:?}", row.problem, report.notes);
            for peer in &row.peers {
                assert_eq!(peer.fault, None, "{} {}", row.problem, peer.how);
            }
        }
    }

    #[test]
    fn what_is_not_installed_is_named_once() {
        let mut report = small(&[
            "--only",
            "matmul",
            "--only",
            "conv1d",
            "--no-peers",
            "--threads",
            "1",
        ]);
        assert_eq!(report.rows.len(), 3);
        assert!(report.notes.is_empty() && report.designs.is_empty());
        for row in &mut report.rows {
            row.peers.clear();
        }
        let note = missing(&report.rows).unwrap();
        assert!(
            note.starts_with("not there to compare with: C, OpenCV, Halide, SciPy, OpenBLAS;"),
            "{note}"
        );
    }
}
