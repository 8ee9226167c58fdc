//! Compiles, verifies and times candidates.
//!
//! Worker threads compile. For a device other than this CPU they do so while other candidates are
//! measured; for this CPU a batch is compiled before any of it is measured, since a running
//! compiler would disturb the measurement. Before a candidate is timed its results are
//! [verified](verify).

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use affine::cancel::Cancelled;
use systola_driver::Lowered;
use systola_interp::Arrays;
use systola_ir::system::System;
use systola_jit::cpu::Error;
use systola_rt::Deadline;
use systola_rt::timing::Enough;

use crate::deadline::run_until;
use crate::rank::Ranked;
use crate::search::{Bench, Fault, Rank, SHORT};

pub mod cpu;
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub mod device;
pub mod verify;
mod workers;

use verify::Verifier;
pub(crate) use workers::{STACK, Workers};

/// Where candidates run.
pub trait Target: Sync {
    /// Machine code.
    type Code: Send;
    /// Inputs and outputs at the sizes of the problem, in the memory of the device.
    type Placed;

    /// Stops at the deadline with an error that says so.
    fn compile(&self, lowered: Lowered, deadline: &Deadline) -> Result<Self::Code, Error>;

    /// Does compiling leave the device undisturbed?
    fn overlaps(&self) -> bool;

    /// Can the code run at these sizes without being compiled again?
    fn is_for(&self, _: &Self::Code, _: &[i128]) -> bool {
        true
    }

    /// Runs once, at any sizes that the code supports.
    fn run(&self, code: &Self::Code, params: &[i128], inputs: &Arrays) -> Result<Arrays, Error>;

    fn place(
        &self,
        system: &System,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Self::Placed, Error>;

    /// Seconds of each of `times` consecutive runs.
    fn time(
        &self,
        code: &Self::Code,
        placed: &mut Self::Placed,
        times: usize,
    ) -> Result<Vec<f64>, Error>;

    /// The outputs of the last run.
    fn outputs<'p>(&self, placed: &'p mut Self::Placed) -> Result<&'p Arrays, Error>;

    /// Fills the outputs with contents that no run produces.
    fn clear(&self, placed: &mut Self::Placed) -> Result<(), Error>;

    /// Registers of one thread, where the device reports them.
    fn registers(&self, code: &Self::Code) -> Option<u32>;
}

/// A run of at least this many seconds is measured once.
const SLOW: f64 = 0.3;
/// A candidate predicted to take `HOPELESS` times as long as the best is not run. One that must be
/// measured is run nevertheless, unless its predicted time exceeds `PATIENCE` seconds.
const HOPELESS: f64 = 32.0;
const PATIENCE: f64 = 1.0;

/// Measures candidates of one problem on one target.
pub(crate) struct Measurer<'s, 'a, T: Target> {
    pub(crate) target: &'s T,
    /// Candidates that cannot be the best are measured too.
    pub(crate) all: bool,
    pub(crate) ranked: &'s [Ranked],
    pub(crate) workers: &'s Workers<T::Code>,
    pub(crate) verifier: Verifier<'s, 'a, T>,
    pub(crate) placed: T::Placed,
    pub(crate) codes: BTreeMap<Rank, (T::Code, Lowered)>,
    /// Candidates whose results were compared at the sizes of the problem.
    pub(crate) confirmed: BTreeSet<Rank>,
    /// Registers of all compiled candidates.
    pub(crate) registers: BTreeMap<Rank, u32>,
    pub(crate) deadline: Deadline,
}

impl<T: Target> Measurer<'_, '_, T> {
    /// Compiles a candidate and verifies it as far as `effort` requires.
    fn ready(&mut self, rank: Rank, effort: Enough) -> Result<(), Fault> {
        if !self.codes.contains_key(&rank) {
            let (code, lowered) = self.workers.take(rank)?;
            if let Some(registers) = self.target.registers(&code) {
                self.registers.insert(rank, registers);
            }
            let mapping = &self.ranked[rank].candidate.mapping;
            let (verifier, deadline) = (&mut self.verifier, &self.deadline);
            let verified = guarded(deadline, || {
                verifier.before_it_is_timed(mapping, &code, &lowered, deadline)
            })?;
            self.codes.insert(rank, (code, lowered));
            if !verified {
                return self.confirm(rank);
            }
        }
        if effort == SHORT {
            return Ok(());
        }
        self.confirm(rank)
    }

    /// Compares all results of a compiled candidate at the sizes of the problem, once.
    pub(crate) fn confirm(&mut self, rank: Rank) -> Result<(), Fault> {
        let Some((code, lowered)) = self.codes.get(&rank) else {
            return Ok(());
        };
        if !self.confirmed.insert(rank) {
            return Ok(());
        }
        let mapping = &self.ranked[rank].candidate.mapping;
        let (verifier, placed) = (&mut self.verifier, &mut self.placed);
        let deadline = &self.deadline;
        guarded(deadline, || {
            verifier.in_full(mapping, code, lowered, placed, deadline)
        })
    }
}

impl<T: Target> Measurer<'_, '_, T> {
    /// Candidates without those that are hopeless beside the best of them: short code is compiled
    /// first, but its run may take longer than all others.
    fn promising(&self, of: &[Rank]) -> Vec<Rank> {
        let predicted = |rank: &Rank| self.ranked[*rank].predicted_seconds();
        let best = of
            .iter()
            .filter_map(predicted)
            .fold(f64::INFINITY, f64::min);
        let is_hopeless =
            |rank: &&Rank| predicted(rank).is_some_and(|seconds| seconds > HOPELESS * best);
        of.iter()
            .filter(|rank| !is_hopeless(rank))
            .copied()
            .collect()
    }
}

/// Runs a function: a panic is a wrong result, and exceeding the deadline is reported as late.
fn guarded<R>(deadline: &Deadline, run: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    match catch_unwind(AssertUnwindSafe(|| run_until(deadline, run))) {
        Ok(Ok(result)) => result,
        Ok(Err(Cancelled)) => Err(Fault::Late),
        Err(_) => Err(Fault::Wrong("its run panics".to_string())),
    }
}

impl<T: Target> Bench for Measurer<'_, '_, T> {
    fn prepare(&mut self, next: &[Rank]) {
        let missing = next.iter().filter(|rank| !self.codes.contains_key(rank));
        self.workers.prefer(missing.copied());
        if !self.target.overlaps() {
            self.workers.wait();
        }
    }

    fn overlaps(&self) -> bool {
        self.target.overlaps()
    }

    fn batch(&self) -> usize {
        2 * self.workers.threads
    }

    fn neighbours(&self, of: Rank) -> Vec<Rank> {
        let own = &self.ranked[of].candidate.choices;
        let is_near = |other: &[(&str, String)]| {
            let differ = |(a, b): &(&(&str, String), &(&str, String))| a != b;
            own.len() == other.len() && own.iter().zip(other).filter(differ).count() == 1
        };
        let all = self.ranked.iter().enumerate();
        let near = all.filter(|(_, ranked)| is_near(&ranked.candidate.choices));
        near.map(|(rank, _)| rank).collect()
    }

    fn first_ready(&mut self, of: &[Rank], seconds: f64) -> Option<Rank> {
        let compiled = of.iter().find(|rank| self.codes.contains_key(rank));
        compiled
            .copied()
            .or_else(|| self.workers.first_of(&self.promising(of), seconds))
    }

    fn measure(
        &mut self,
        rank: Rank,
        effort: Enough,
        best: Option<f64>,
    ) -> Result<Vec<f64>, Fault> {
        let predicted = self.ranked[rank].predicted_seconds();
        let wanted = self.all || self.ranked[rank].given;
        if let (Some(best), Some(predicted)) = (best, predicted)
            && predicted > HOPELESS * best
            && (!wanted || predicted > PATIENCE)
        {
            return Err(Fault::TooSlow);
        }
        // A run cannot be cancelled.
        if predicted.is_some_and(|predicted| predicted > self.seconds_left()) {
            return Err(Fault::Late);
        }
        self.ready(rank, effort)?;
        let Some((code, _)) = self.codes.get(&rank) else {
            unreachable!("it was made ready")
        };
        let placed = &mut self.placed;
        let mut time = |times| self.target.time(code, placed, times).map_err(fault);
        // The first run finds cold caches, or a device that waited for the host.
        let first = time(1)?;
        let one = first.first().copied().unwrap_or(0.0);
        if one >= SLOW {
            return Ok(first);
        }
        let fits = (self.deadline.left().as_secs_f64() / one.max(1e-7)) as usize;
        time(effort.batch(one).min(fits.max(1)))
    }

    fn forget(&mut self, rank: Rank) {
        self.codes.remove(&rank);
        self.workers.drop_code(rank);
    }

    fn seconds_left(&self) -> f64 {
        self.deadline.left().as_secs_f64()
    }

    fn is_stopped(&self) -> bool {
        self.deadline.is_stopped()
    }
}

/// The fault of a candidate that an error of the compiler or the runtime means.
pub(crate) fn fault(error: Error) -> Fault {
    use systola_rt::Error as E;
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().to_string();
    match error {
        Error::Runtime(E::CudaFailed { .. } | E::OpenClFailed { .. } | E::DeviceLost { .. }) => {
            Fault::Failed(line)
        }
        Error::Runtime(E::OutOfTime) => Fault::Late,
        Error::Refused(_) | Error::Runtime(_) => Fault::Refused(line),
    }
}
