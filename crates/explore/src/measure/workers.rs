//! Threads that lower and compile candidates before they are measured.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use affine::cancel::Cancelled;
use systola_driver::Lowered;
use systola_rt::Deadline;

use super::{Target, fault};
use crate::deadline::run_until;
use crate::problem::Problem;
use crate::rank::Ranked;
use crate::search::{Fault, Rank};

/// Lowering recurses with the depth of expressions.
pub(crate) const STACK: usize = 256 << 20;

/// Candidates to compile, and compiled ones.
pub(crate) struct Workers<C> {
    pub(crate) threads: usize,
    /// The end of the search, or an earlier cancellation of all work.
    deadline: Deadline,
    closed: Arc<AtomicBool>,
    state: Mutex<State<C>>,
    changed: Condvar,
}

/// How often a waiting thread checks the deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

type Made<C> = Result<(C, Lowered), Fault>;

struct State<C> {
    queue: VecDeque<Rank>,
    /// `None`: in progress.
    done: BTreeMap<Rank, Option<Made<C>>>,
    /// Seconds spent compiling, and instructions compiled in them.
    seconds: f64,
    text: f64,
}

impl<C: Send> Workers<C> {
    pub(crate) fn new(threads: usize, deadline: &Deadline) -> Workers<C> {
        let closed = Arc::new(AtomicBool::new(false));
        Workers {
            threads,
            deadline: deadline.or_when(&closed),
            closed,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                done: BTreeMap::new(),
                seconds: 0.0,
                text: 0.0,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of one worker thread.
    pub(crate) fn work<T: Target<Code = C>>(
        &self,
        problem: &Problem<'_>,
        target: &T,
        ranked: &[Ranked],
    ) {
        loop {
            let Some(rank) = self.next(ranked) else {
                return;
            };
            let start = Instant::now();
            let compile = || {
                let mapping = &ranked[rank].candidate.mapping;
                let lowered = problem.lower(mapping).map_err(|found| {
                    Fault::Refused(found.first().map_or_else(String::new, ToString::to_string))
                })?;
                let code = target.compile(lowered.clone(), &self.deadline);
                Ok((code.map_err(fault)?, lowered))
            };
            let work = || run_until(&self.deadline, compile);
            let made = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(made)) => made,
                Ok(Err(Cancelled)) => Err(Fault::Late),
                Err(_) => Err(Fault::Wrong("the compiler panics on it".to_string())),
            };
            let mut state = self.state();
            if let (Ok(_), Some(text)) = (&made, text_of(&ranked[rank])) {
                state.seconds += start.elapsed().as_secs_f64();
                state.text += text;
            }
            state.done.insert(rank, Some(made));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next candidate whose compilation is expected to end in time.
    fn next(&self, ranked: &[Ranked]) -> Option<Rank> {
        let mut state = self.state();
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(rank) = state.queue.pop_front() {
                let left = self.deadline.left().as_secs_f64();
                let pace = state.seconds / state.text.max(1.0);
                let expected = text_of(&ranked[rank]).map_or(0.0, |text| text * pace);
                if left > 0.0 && expected <= left {
                    state.done.insert(rank, None);
                    return Some(rank);
                }
                state.done.insert(rank, Some(Err(Fault::Late)));
                self.changed.notify_all();
                continue;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Queues candidates before all others; of those queued earlier, only those in progress
    /// continue.
    pub(crate) fn prefer(&self, ranks: impl Iterator<Item = Rank>) {
        let mut state = self.state();
        state.queue = ranks
            .filter(|rank| !state.done.contains_key(rank))
            .collect();
        self.changed.notify_all();
    }

    /// Queues candidates; those already queued are not compiled again.
    pub(crate) fn want(&self, ranks: impl Iterator<Item = Rank>) {
        let mut state = self.state();
        for rank in ranks {
            if !state.done.contains_key(&rank) && !state.queue.contains(&rank) {
                state.queue.push_back(rank);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until nothing is in progress.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        while !state.queue.is_empty() || state.done.values().any(Option::is_none) {
            if self.deadline.is_over() {
                state.queue.clear();
            }
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The first of the given candidates that is compiled, after waiting `seconds` at most.
    pub(crate) fn first_of(&self, ranks: &[Rank], seconds: f64) -> Option<Rank> {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            let there = |rank: &&Rank| matches!(state.done.get(*rank), Some(Some(_)));
            if let Some(rank) = ranks.iter().find(there) {
                return Some(*rank);
            }
            if start.elapsed().as_secs_f64() >= seconds || self.deadline.is_over() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the code of a candidate.
    pub(crate) fn take(&self, rank: Rank) -> Made<C> {
        self.want(std::iter::once(rank));
        let mut state = self.state();
        loop {
            if let Some(Some(_)) = state.done.get(&rank)
                && let Some(Some(made)) = state.done.remove(&rank)
            {
                return made;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn drop_code(&self, rank: Rank) {
        let mut state = self.state();
        if let Some(Some(_)) = state.done.get(&rank) {
            state.done.remove(&rank);
        }
    }

    /// Ends the workers and cancels their current work.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // A thread about to wait has seen the flag before, or sees it now.
        drop(self.state());
        self.changed.notify_all();
    }
}

/// Instructions in the code of the longest kernel, as the model counts them.
fn text_of(ranked: &Ranked) -> Option<f64> {
    let predicted = ranked.predicted.as_ref()?;
    Some(predicted.code).filter(|text| *text > 0.0)
}
