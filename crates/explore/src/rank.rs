//! Candidates in the order of their predicted times.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use affine::cancel::{self, Cancelled};
use systola_driver::Lowered;
use systola_rt::Deadline;

use crate::measure::STACK;
use crate::model::{Device, Prediction, predict};
use crate::problem::Problem;
use crate::space::Candidate;

/// A candidate that was proved legal and lowered.
#[derive(Clone, Debug)]
pub struct Ranked {
    pub candidate: Candidate,
    /// The mapping is one of the file.
    pub given: bool,
    /// Its class by Jo, Kim and Park: `SBM`.
    pub taxonomy: String,
    /// `None` where the model has no prediction.
    pub predicted: Option<Prediction>,
}

impl Ranked {
    pub fn predicted_seconds(&self) -> Option<f64> {
        self.predicted.as_ref().map(|p| p.seconds)
    }
}

/// Candidates by predicted time, and the fates of the others.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    pub ranked: Vec<Ranked>,
    /// Candidates that are illegal, or have no kernel at these sizes, each with the reason.
    pub refused: Vec<(String, String)>,
    /// The number of candidates skipped for lack of time.
    pub left: usize,
    /// Mappings that the compiler panics on: our bugs.
    pub panicked: Vec<Candidate>,
}

impl Ranking {
    /// Sorts by predicted time; candidates without a prediction keep their order after the others.
    pub fn sort(&mut self) {
        let seconds = |r: &Ranked| r.predicted_seconds().unwrap_or(f64::INFINITY);
        self.ranked
            .sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    }
}

/// Lowers candidates and predicts their times.
#[derive(Clone)]
pub struct Ranker<'a> {
    pub problem: &'a Problem<'a>,
    pub params: &'a [i128],
    pub model: &'a Device,
    /// When ranking ends, if a candidate was lowered by then,
    pub end: Instant,
    /// and when it ends in any case.
    pub deadline: Deadline,
}

/// Each candidate first gets this fraction of the time, so that a slow one does not block the
/// others. Those that need more are tried again at the end.
const PART: u32 = 4;

impl Ranker<'_> {
    pub fn is_over(&self) -> bool {
        self.deadline.is_over() || Instant::now() >= self.end
    }

    /// Lowers candidates on all threads, in order, until the time is over.
    pub fn rank(&self, candidates: Vec<(Candidate, bool)>) -> Ranking {
        let evaluations = Evaluations {
            ranker: self,
            candidates: &candidates,
            found: Arc::default(),
            done: Mutex::default(),
        };
        let time = self.end.saturating_duration_since(Instant::now());
        let beyond = self.deadline.end().saturating_duration_since(self.end);
        let all: Vec<usize> = (0..candidates.len()).collect();
        evaluations.at(&all, Some(time / PART), self.end + beyond / 2);
        let late = |at: &usize| matches!(evaluations.done().get(at), Some(Err(Refusal::Late)));
        let late: Vec<usize> = all.into_iter().filter(late).collect();
        evaluations.at(&late, None, self.deadline.end());
        let mut done = evaluations
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut ranking = Ranking::default();
        for (at, (candidate, _)) in candidates.into_iter().enumerate() {
            match done.remove(&at) {
                None | Some(Err(Refusal::Late)) => ranking.left += 1,
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
}

/// Proves a candidate legal, lowers it and predicts its time; or says why it has no kernel.
pub(crate) fn evaluate(
    problem: &Problem<'_>,
    params: &[i128],
    model: &Device,
    candidate: &Candidate,
    given: bool,
) -> Result<Ranked, String> {
    let Lowered {
        checked, program, ..
    } = problem
        .lower(&candidate.mapping)
        .map_err(|found| found.first().map_or_else(String::new, ToString::to_string))?;
    Ok(Ranked {
        candidate: candidate.clone(),
        given,
        taxonomy: checked.report.name,
        predicted: predict(&program, params, model).ok(),
    })
}

enum Refusal {
    Reason(String),
    Panic,
    /// It was cancelled.
    Late,
}

/// The results of the candidates so far.
struct Evaluations<'r, 'a> {
    ranker: &'r Ranker<'a>,
    candidates: &'r [(Candidate, bool)],
    /// At least one candidate was lowered.
    found: Arc<AtomicBool>,
    done: Mutex<BTreeMap<usize, Result<Ranked, Refusal>>>,
}

impl Evaluations<'_, '_> {
    fn done(&self) -> MutexGuard<'_, BTreeMap<usize, Result<Ranked, Refusal>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates some candidates, each until the limit; until `last` while none was lowered.
    fn at(&self, which: &[usize], limit: Option<Duration>, last: Instant) {
        let next = AtomicUsize::new(0);
        let deadline = self.ranker.deadline.or_at(last);
        let work = || {
            while let Some(at) = which.get(next.fetch_add(1, Ordering::Relaxed)) {
                let own = match limit {
                    Some(limit) => deadline.or_at(Instant::now() + limit),
                    None => deadline.clone(),
                };
                let (found, end) = (Arc::clone(&self.found), self.ranker.end);
                let enough = move || found.load(Ordering::Relaxed) && Instant::now() >= end;
                if deadline.is_over() || enough() {
                    return;
                }
                let (candidate, given) = &self.candidates[*at];
                let Ranker {
                    problem,
                    params,
                    model,
                    ..
                } = *self.ranker;
                let look =
                    || evaluate(problem, params, model, candidate, *given).map_err(Refusal::Reason);
                let over = move || own.is_over() || enough();
                let looked = catch_unwind(AssertUnwindSafe(|| cancel::run(over, look)));
                let ranked = match looked {
                    Ok(Ok(ranked)) => ranked,
                    Ok(Err(Cancelled)) => Err(Refusal::Late),
                    Err(_) => Err(Refusal::Panic),
                };
                if ranked.is_ok() {
                    self.found.store(true, Ordering::Relaxed);
                }
                self.done().insert(*at, ranked);
            }
        };
        if !which.is_empty() {
            on_all_threads(&work);
        }
    }
}

/// Runs `work` on every hardware thread of this machine.
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
