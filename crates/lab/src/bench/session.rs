//! The common state of all rows of a table about a CPU: the limits of the machine, the baselines,
//! and how one row is measured.

use std::path::{Path, PathBuf};

use systola::rt::timing::Timing;
use systola_cli::source::Failure;

use super::baselines::Baselines;
use super::designs::Design;
use super::family::Family;
use super::limits::{self, Limits};
use super::ours::Ours;
use super::pin_cpu::PinnedCpu;
use super::problem::{Problem, Scale};
use super::rate_probe::RateProbe;
use super::report::{Baseline, Machine, ProblemRow, Report};
use super::tools::{Progress, Scratch};

pub struct Session<'a> {
    root: &'a Path,
    scale: Scale,
    threads: usize,
    /// Measures the limits.
    pub program: PathBuf,
    pub progress: Progress,
    scratch: Scratch,
    limits: Limits,
    baselines: Option<Baselines>,
    /// The start of the session.
    load: Option<f64>,
}

impl Session<'_> {
    /// Measures the limits; `steps` steps follow.
    pub fn open(
        root: &Path,
        scale: Scale,
        threads: Option<u16>,
        with_baselines: bool,
        steps: usize,
    ) -> Result<Session<'_>, Failure> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.map_or(available, usize::from);
        let load = load_average();
        let mut progress = Progress::new(1 + steps);
        progress.step("the limits of this machine");
        let scratch = Scratch::new()?;
        let program = limits::program(root, &scratch)?;
        let limits = Limits::measure(&program, threads, scale)?;
        let baselines = with_baselines.then(|| Baselines::find(root, &scratch, scale));
        Ok(Session {
            root,
            scale,
            threads,
            program,
            progress,
            scratch,
            limits,
            baselines,
            load,
        })
    }

    pub fn step(&mut self, what: &str) {
        self.progress.step(what);
    }

    /// One problem, with one thread and with all of them.
    pub fn rows(&mut self, problem: &Problem) -> Result<Vec<ProblemRow>, Failure> {
        if self.baselines.is_some() {
            Baselines::hand_over(problem, &self.scratch)?;
        }
        let mut ours = match Ours::compile(self.root, problem, self.scale) {
            Ok(ours) => ours,
            Err(why) => return Ok(vec![ProblemRow::new(problem, 1, Err(why), None)]),
        };
        let mut rows = vec![self.row(problem, &mut ours, 1)];
        if self.threads > 1 {
            rows.push(self.row(problem, &mut ours, self.threads));
        }
        Ok(rows)
    }

    /// One problem with some threads: ours alternating with the limits, the baselines, and again
    /// ours alternating with the limits.
    fn row(&mut self, problem: &Problem, ours: &mut Ours<'_>, threads: usize) -> ProblemRow {
        let limited = problem.family.has_limit();
        let pinned =
            (threads == 1).then(|| PinnedCpu::take(&self.program, problem.work, self.scale));
        let _pinned = match pinned.transpose() {
            Ok(pinned) => pinned,
            Err(why) => return ProblemRow::new(problem, threads, Err(why), None),
        };
        let mib = problem.family.copy_mib(self.scale);
        let mut probe = limited
            .then(|| RateProbe::start(&self.program, threads, mib))
            .transpose();
        let mut time = |ours: &mut Ours<'_>| {
            let probe = probe.as_mut().map_err(|why| why.clone())?;
            ours.time(threads, self.scale, probe.as_mut())
        };
        let first = ours.choose(threads).and_then(|()| time(ours));
        let baselines = self.baselines.as_mut();
        let measured =
            baselines.map_or_else(Vec::new, |p| p.measure(problem, &self.scratch, threads));
        let seconds = first.and_then(|mut timing: Timing| {
            timing.samples.extend(time(ours)?.samples);
            Ok(timing.median())
        });
        let rates = probe.ok().flatten().and_then(|probe| probe.median());
        let mut row = ProblemRow::new(problem, threads, seconds, rates);
        row.mapping = ours.mapping().to_string();
        row.baselines = measured
            .into_iter()
            .map(|m| Baseline::new(m, row.ms))
            .collect();
        row
    }

    /// Measures the limits once more.
    pub fn report(
        self,
        mut rows: Vec<ProblemRow>,
        designs: Vec<Design>,
    ) -> Result<Report, Failure> {
        let again = Limits::measure(&self.program, self.threads, self.scale)?;
        let limits = self.limits.best(again);
        self.progress.finish();
        for row in rows.iter_mut().filter(|row| row.family.has_limit()) {
            let seconds = limits.with(row.threads).seconds(row.work);
            row.best_limit_ms = Some(seconds * 1e3);
        }
        let mut notes = Vec::new();
        if let Some(baselines) = self.baselines {
            notes.extend(missing(&rows));
            notes.extend(baselines.notes);
        }
        Ok(Report {
            machine: Machine {
                processor: cpu_name(),
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

/// The baselines that no row of their family has.
pub fn missing(rows: &[ProblemRow]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for family in Family::ALL {
        let its = || rows.iter().filter(|r| r.family == family);
        for name in family.baselines() {
            let there = its().any(|r| r.baselines.iter().any(|p| p.baseline == *name));
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

/// The system's name of its CPU.
fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_string())
    });
    named.unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

/// The load average of the last minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Plain C is available, and no result is wrong.
    pub fn assert_baselines_are_right(report: &Report) {
        for row in &report.rows {
            let c = row.baselines.iter().find(|p| p.baseline == "C");
            assert!(c.is_some(), "{}: {:?}", row.problem, report.notes);
            for baseline in &row.baselines {
                assert_eq!(baseline.fault, None, "{} {}", row.problem, baseline.how);
            }
        }
    }
}
