//! `systola bench cpu`: compiled mappings beside the peers and the limits of this machine.

use std::path::Path;

use systola::rt::timing::Timing;

use super::designs;
use super::limits::Limits;
use super::ours::Ours;
use super::peers::Peers;
use super::problem::{Family, Make, Problem, Scale, problems};
use super::report::{Machine, Peer, Report, Row};
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

Every result, ours and the peers', is checked before its time counts. Times are medians of warm runs, of the
kernel alone: without compiling and without reading files. Ours are taken before and after the peers.
The limit is the time to copy what must be read and written, or to multiply-add, at the rates that
this command measures: the longer of the two.
A library counts with the fastest of its functions. Compile systola with --release or without: the kernels are
the same.";

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
    term::print(if args.json { report.json() } else { report.text() });
    let failed = report.rows.iter().any(|r| r.refused.is_some())
        || report.designs.iter().any(|d| d.refused.is_some());
    Ok(if failed { Status::Limitation } else { Status::Done })
}

fn measure(args: &Args, root: &Path) -> Result<Report, Failure> {
    let scale = if args.small { Scale::Small } else { Scale::Full };
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
    let n_designs = if with_designs { designs::DESIGNS.len() } else { 0 };
    let mut progress = Progress::new(1 + list.len() + n_designs);

    let load = load_average();
    progress.step("the limits of this machine");
    let scratch = Scratch::new()?;
    let mut limits = Limits::measure(root, &scratch, threads)?;
    let mut peers = (!args.no_peers).then(|| Peers::find(root, &scratch));
    let mut rows = Vec::new();
    for (title, make) in &list {
        progress.step(title);
        let problem = make()?;
        if peers.is_some() {
            Peers::hand_over(&problem, &scratch)?;
        }
        let counts: &[usize] = if problem.one_thread_only || threads == 1 { &[1] } else { &[1, threads] };
        match Ours::compile(root, &problem) {
            Ok(mut ours) => {
                for count in counts {
                    rows.push(row(&problem, &mut ours, peers.as_mut(), &scratch, *count)?);
                }
            }
            Err(why) => rows.push(Row::refused(&problem, 1, why)),
        }
    }
    let designs = if with_designs {
        designs::measure(root, scale, &mut progress)
    } else {
        Vec::new()
    };
    limits = limits.best(Limits::measure(root, &scratch, threads)?);
    progress.finish();
    set_limits(&mut rows, &list, &limits)?;
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
