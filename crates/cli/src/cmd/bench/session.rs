//! What all rows of a table about a processor share: the limits of the machine, the peers, and how one row is measured.

use std::path::{Path, PathBuf};

use systola::rt::timing::Timing;

use super::designs::Design;
use super::family::Family;
use super::limits::{self, Limits};
use super::ours::Ours;
use super::pace::Pace;
use super::peers::Peers;
use super::problem::{Problem, Scale};
use super::report::{Machine, Peer, Report, Row};
use super::seat::Seat;
use super::tools::{Progress, Scratch};
use crate::source::Failure;

pub struct Session<'a> {
    root: &'a Path,
    scale: Scale,
    threads: usize,
    /// Measures the limits.
    pub program: PathBuf,
    pub progress: Progress,
    scratch: Scratch,
    limits: Limits,
    peers: Option<Peers>,
    /// When it began.
    load: Option<f64>,
}

impl Session<'_> {
    /// Measures the limits; `steps` are to come.
    pub fn open(
        root: &Path,
        scale: Scale,
        threads: Option<u16>,
        with_peers: bool,
        steps: usize,
    ) -> Result<Session<'_>, Failure> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.map_or(available, usize::from);
        let load = load_average();
        let mut progress = Progress::new(1 + steps);
        progress.step("the limits of this machine");
        let scratch = Scratch::new()?;
        let program = limits::program(root, &scratch)?;
        let limits = Limits::measure(&program, threads)?;
        let peers = with_peers.then(|| Peers::find(root, &scratch, scale));
        Ok(Session {
            root,
            scale,
            threads,
            program,
            progress,
            scratch,
            limits,
            peers,
            load,
        })
    }

    pub fn step(&mut self, what: &str) {
        self.progress.step(what);
    }

    /// One problem, with one thread and with all of them.
    pub fn rows(&mut self, problem: &Problem) -> Result<Vec<Row>, Failure> {
        if self.peers.is_some() {
            Peers::hand_over(problem, &self.scratch)?;
        }
        let mut ours = match Ours::compile(self.root, problem) {
            Ok(ours) => ours,
            Err(why) => return Ok(vec![Row::new(problem, 1, Err(why), None)]),
        };
        let mut rows = vec![self.row(problem, &mut ours, 1)];
        if self.threads > 1 {
            rows.push(self.row(problem, &mut ours, self.threads));
        }
        Ok(rows)
    }

    /// One problem with some threads: ours in turns with the limits, the peers, and again ours in turns with the limits.
    fn row(&mut self, problem: &Problem, ours: &mut Ours<'_>, threads: usize) -> Row {
        let limited = problem.family.has_limit();
        let seat = (threads == 1).then(|| Seat::take(&self.program, problem.work));
        let _seat = match seat.transpose() {
            Ok(seat) => seat,
            Err(why) => return Row::new(problem, threads, Err(why), None),
        };
        let mib = problem.family.copy_mib(self.scale);
        let mut pace = limited
            .then(|| Pace::start(&self.program, threads, mib))
            .transpose();
        let mut time = |ours: &mut Ours<'_>| {
            let pace = pace.as_mut().map_err(|why| why.clone())?;
            ours.time(threads, self.scale, pace.as_mut())
        };
        let first = ours.choose(threads).and_then(|()| time(ours));
        let peers = self.peers.as_mut();
        let measured = peers.map_or_else(Vec::new, |p| p.measure(problem, &self.scratch, threads));
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

    /// Measures the limits once more.
    pub fn report(self, mut rows: Vec<Row>, designs: Vec<Design>) -> Result<Report, Failure> {
        let again = Limits::measure(&self.program, self.threads)?;
        let limits = self.limits.best(again);
        self.progress.finish();
        for row in rows.iter_mut().filter(|row| row.family.has_limit()) {
            let seconds = limits.with(row.threads).seconds(row.work);
            row.best_limit_ms = Some(seconds * 1e3);
        }
        let mut notes = Vec::new();
        if let Some(peers) = self.peers {
            notes.extend(missing(&rows));
            notes.extend(peers.notes);
        }
        Ok(Report {
            machine: Machine {
                processor: processor(),
                threads: self.threads,
                load: [self.load, load_average()],
            },
            limits,
            rows,
            designs,
            notes,
        })
    }
}

/// The peers that no row of their family has.
pub fn missing(rows: &[Row]) -> Option<String> {
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
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_string())
    });
    named.unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

/// How many programs wanted to run in the last minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Plain C is there, and nobody's result is wrong.
    pub fn assert_peers_are_right(report: &Report) {
        for row in &report.rows {
            let c = row.peers.iter().find(|p| p.peer == "C");
            assert!(c.is_some(), "{}: {:?}", row.problem, report.notes);
            for peer in &row.peers {
                assert_eq!(peer.fault, None, "{} {}", row.problem, peer.how);
            }
        }
    }
}
