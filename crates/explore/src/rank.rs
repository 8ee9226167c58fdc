//! Candidates in the order in which a model expects them to be fast.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use systola_driver::Lowered;

use crate::measure::STACK;
use crate::model::{Device, Prediction, predict};
use crate::problem::Problem;
use crate::space::Candidate;

/// A candidate that was proved legal and lowered.
#[derive(Clone, Debug)]
pub struct Ranked {
    pub candidate: Candidate,
    /// Stands in the file.
    pub given: bool,
    /// By Jo, Kim and Park: `SBM`.
    pub taxonomy: String,
    /// None where the model can not tell.
    pub predicted: Option<Prediction>,
}

impl Ranked {
    pub fn predicted_seconds(&self) -> Option<f64> {
        self.predicted.as_ref().map(|p| p.seconds)
    }
}

/// Candidates by predicted time, and what became of the others.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    pub ranked: Vec<Ranked>,
    /// Candidates that are not legal, or have no kernel at these sizes, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Candidates that there was no time for.
    pub left: usize,
    /// Mappings that the compiler panics on: our bugs.
    pub panicked: Vec<Candidate>,
}

impl Ranking {
    /// By predicted time; those without a prediction keep their place behind the others.
    pub fn sort(&mut self) {
        let seconds = |r: &Ranked| r.predicted_seconds().unwrap_or(f64::INFINITY);
        self.ranked
            .sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    }
}

/// What candidates are looked at with.
#[derive(Clone, Copy)]
pub struct Ranker<'a> {
    pub problem: &'a Problem<'a>,
    pub params: &'a [i128],
    pub model: &'a Device,
    pub end: Instant,
    /// Set by somebody who wants it to end.
    pub stop: &'a AtomicBool,
}

impl Ranker<'_> {
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.end
    }

    /// Lowers candidates on all threads, in their order, until the end of time; those that are given in any case.
    pub fn rank(&self, candidates: Vec<(Candidate, bool)>) -> Ranking {
        let next = AtomicUsize::new(0);
        let done: Mutex<BTreeMap<usize, Result<Ranked, Refusal>>> = Mutex::default();
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((candidate, given)) = candidates.get(at) else {
                    return;
                };
                if self.is_over() && !given {
                    continue;
                }
                let one = || self.look_at(candidate, *given);
                let ranked = catch_unwind(AssertUnwindSafe(one)).unwrap_or(Err(Refusal::Panic));
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.insert(at, ranked);
            }
        };
        on_all_threads(&work);
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut ranking = Ranking::default();
        for (at, (candidate, _)) in candidates.into_iter().enumerate() {
            match done.remove(&at) {
                None => ranking.left += 1,
                Some(Ok(ranked)) => ranking.ranked.push(ranked),
                Some(Err(Refusal::Reason(why))) => {
                    ranking.refused.push((candidate.mapping.name, why));
                }
                Some(Err(Refusal::Panic)) => ranking.panicked.push(candidate),
            }
        }
        ranking.sort();
        ranking
    }

    fn look_at(&self, candidate: &Candidate, given: bool) -> Result<Ranked, Refusal> {
        let Lowered {
            checked, program, ..
        } = self.problem.lower(&candidate.mapping).map_err(|found| {
            Refusal::Reason(found.first().map_or_else(String::new, ToString::to_string))
        })?;
        Ok(Ranked {
            candidate: candidate.clone(),
            given,
            taxonomy: checked.report.name,
            predicted: predict(&program, self.params, self.model).ok(),
        })
    }
}

enum Refusal {
    Reason(String),
    Panic,
}

/// Does the same on every thread of this machine.
fn on_all_threads(work: &(impl Fn() + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .filter_map(|_| {
                let builder = std::thread::Builder::new().stack_size(STACK);
                builder.spawn_scoped(scope, work).ok()
            })
            .collect();
        if started.is_empty() {
            work();
        }
    });
}
