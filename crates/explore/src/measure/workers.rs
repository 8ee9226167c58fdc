//! Threads that lower and compile what will be measured.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use systola_driver::Lowered;

use super::{Target, fault};
use crate::problem::Problem;
use crate::rank::Ranked;
use crate::search::{Fault, Rank};

/// Lowering recurses with the depth of expressions.
pub(crate) const STACK: usize = 256 << 20;

/// What is to be compiled, and what was.
pub(crate) struct Workers<C> {
    pub(crate) threads: usize,
    /// The end of the search.
    end: Instant,
    state: Mutex<State<C>>,
    changed: Condvar,
}

type Made<C> = Result<(C, Lowered), Fault>;

struct State<C> {
    queue: VecDeque<Rank>,
    /// None: under way.
    done: BTreeMap<Rank, Option<Made<C>>>,
    /// Seconds that an instruction of the text took at most so far.
    pace: f64,
    closed: bool,
}

impl<C: Send> Workers<C> {
    pub(crate) fn new(threads: usize, end: Instant) -> Workers<C> {
        Workers {
            threads,
            end,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                done: BTreeMap::new(),
                pace: 0.0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one thread does until the end.
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
                let code = target.compile(lowered.clone()).map_err(fault)?;
                Ok((code, lowered))
            };
            let made = catch_unwind(AssertUnwindSafe(compile))
                .unwrap_or_else(|_| Err(Fault::Wrong("the compiler panics on it".to_string())));
            let mut state = self.state();
            if let Some(text) = text_of(&ranked[rank]) {
                state.pace = state.pace.max(start.elapsed().as_secs_f64() / text);
            }
            state.done.insert(rank, Some(made));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next one whose compilation can be expected to end in time.
    fn next(&self, ranked: &[Ranked]) -> Option<Rank> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(rank) = state.queue.pop_front() {
                let left = self.end.saturating_duration_since(Instant::now());
                let expected = text_of(&ranked[rank]).map_or(0.0, |text| text * state.pace);
                if expected <= left.as_secs_f64() {
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

    /// Asks for some before all others; of those that were asked for before, only what is under way goes on.
    pub(crate) fn prefer(&self, ranks: impl Iterator<Item = Rank>) {
        let mut state = self.state();
        state.queue = ranks
            .filter(|rank| !state.done.contains_key(rank))
            .collect();
        self.changed.notify_all();
    }

    /// Asks for some; those that were asked for already are not compiled again.
    pub(crate) fn want(&self, ranks: impl Iterator<Item = Rank>) {
        let mut state = self.state();
        for rank in ranks {
            if !state.done.contains_key(&rank) && !state.queue.contains(&rank) {
                state.queue.push_back(rank);
            }
        }
        self.changed.notify_all();
    }

    /// Until nothing is under way.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        let mut state = self.state();
        while !state.queue.is_empty() || state.done.values().any(Option::is_none) {
            if stop.load(Ordering::Relaxed) {
                state.queue.clear();
            }
            let patience = Duration::from_millis(100);
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The first of some that is there, after waiting so long at most.
    pub(crate) fn first_of(&self, ranks: &[Rank], seconds: f64, stop: &AtomicBool) -> Option<Rank> {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            let there = |rank: &&Rank| matches!(state.done.get(*rank), Some(Some(_)));
            if let Some(rank) = ranks.iter().find(there) {
                return Some(*rank);
            }
            if start.elapsed().as_secs_f64() >= seconds || stop.load(Ordering::Relaxed) {
                return None;
            }
            let patience = Duration::from_millis(100);
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The code of a candidate, when it is there.
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

    /// Workers end when they have done what they are at.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

/// Instructions in the text of its longest kernel, as the model counts them.
fn text_of(ranked: &Ranked) -> Option<f64> {
    let predicted = ranked.predicted.as_ref()?;
    Some(predicted.code).filter(|text| *text > 0.0)
}
