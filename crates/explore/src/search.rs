//! Which candidates are measured, and for how long.
//!
//! A [`Strategy`] decides; a [`Bench`] compiles, verifies and measures; the [`Board`] between them
//! keeps the results, repeats doubtful measurements, and knows when to stop. A strategy sees
//! predicted and measured times, never a clock: given the same times it makes the same choices.
//!
//! **Doubtful measurements.** The time of a candidate is the median of its samples. Where the
//! median exceeds the fastest sample by more than `DOUBT`, the runs were disturbed: the candidate
//! is measured again, at most `AGAIN` times, and all samples count.
//!
//! **Little time.** A search ends with its budget, even if nothing was measured by then.

use systola_rt::timing::{Enough, Timing};

pub mod exhaustive;
pub mod halving;
pub mod survey;

pub use exhaustive::Exhaustive;
pub use halving::Halving;
pub use survey::Survey;

/// A median that exceeds the fastest sample by this share is doubtful.
const DOUBT: f64 = 0.05;
/// Repeated measurements of one candidate in one visit.
const AGAIN: usize = 2;
/// After this many consecutive failures of the device, the device is lost.
const LOST: usize = 8;

/// A candidate, by its rank: 0 is predicted to be the fastest.
pub type Rank = usize;

/// How long a candidate is measured.
pub const SHORT: Enough = Enough {
    seconds: 0.01,
    least: 3,
    most: 9,
};
pub const LONG: Enough = Enough {
    seconds: 0.15,
    least: 7,
    most: 51,
};

fn doubled(effort: Enough) -> Enough {
    Enough {
        seconds: (effort.seconds * 2.0).min(LONG.seconds),
        least: (effort.least + 2).min(LONG.least),
        most: (effort.most * 2).min(LONG.most),
    }
}

/// Why a candidate has no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was not compiled, or cannot run on this device.
    Refused(String),
    /// The device failed.
    Failed(String),
    /// It is predicted to be too slow to be worth a run.
    TooSlow,
    /// There was no time left to compile, verify or run it.
    Late,
    /// Its result differs from the equations: our bug.
    Wrong(String),
}

/// Compiles, verifies and measures candidates.
pub trait Bench {
    /// Announces the candidates that are measured next, in order: a bench may begin to compile.
    fn prepare(&mut self, next: &[Rank]);

    /// Does it compile while it measures?
    fn overlaps(&self) -> bool;

    /// The number of candidates worth preparing at once.
    fn batch(&self) -> usize;

    /// Candidates that differ from this one in a single choice.
    fn neighbours(&self, of: Rank) -> Vec<Rank>;

    /// One of the prepared candidates that can be measured now, after waiting `seconds` at most.
    fn first_ready(&mut self, of: &[Rank], seconds: f64) -> Option<Rank>;

    /// The seconds of each run. The first call verifies the results too. `best`: seconds of the
    /// best so far.
    fn measure(&mut self, rank: Rank, effort: Enough, best: Option<f64>)
    -> Result<Vec<f64>, Fault>;

    /// Drops a candidate that is not measured again.
    fn forget(&mut self, rank: Rank);

    /// Remaining seconds of the budget.
    fn seconds_left(&self) -> f64;

    /// Has the user interrupted the search?
    fn is_stopped(&self) -> bool;
}

/// The results of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub rank: Rank,
    /// `None`: it has a fault.
    pub seconds: Option<f64>,
    pub samples: usize,
    /// The number of visits.
    pub rung: usize,
    pub fault: Option<Fault>,
}

/// A progress report of a running search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Tried candidates, and the number that will be tried if time allows.
    pub tried: usize,
    pub wanted: usize,
    pub best: Option<(Rank, f64)>,
}

/// The results of a search so far.
pub struct Board<'a> {
    bench: &'a mut dyn Bench,
    on_progress: &'a mut dyn FnMut(Progress),
    timings: Vec<Timing>,
    rungs: Vec<usize>,
    faults: Vec<Option<Fault>>,
    order: Vec<Rank>,
    /// Finalists, measured round-robin so that they can be compared.
    finalists: Vec<Rank>,
    wanted: usize,
    failed_in_a_row: usize,
}

impl<'a> Board<'a> {
    pub fn new(
        candidates: usize,
        bench: &'a mut dyn Bench,
        on_progress: &'a mut dyn FnMut(Progress),
    ) -> Board<'a> {
        Board {
            bench,
            on_progress,
            timings: vec![Timing::default(); candidates],
            rungs: vec![0; candidates],
            faults: vec![None; candidates],
            order: Vec::new(),
            finalists: Vec::new(),
            wanted: candidates,
            failed_in_a_row: 0,
        }
    }

    /// No more candidates are measured.
    pub fn is_over(&self) -> bool {
        self.bench.is_stopped() || self.bench.seconds_left() <= 0.0 || self.failed_in_a_row >= LOST
    }

    pub fn seconds_left(&self) -> f64 {
        self.bench.seconds_left()
    }

    /// Sets the number of candidates that are tried if time allows.
    pub fn expect(&mut self, wanted: usize) {
        self.wanted = wanted;
    }

    /// Measures some candidates in order. Returns when the time is over.
    pub fn measure(&mut self, these: &[Rank], effort: Enough) {
        if self.is_over() {
            return;
        }
        self.bench.prepare(these);
        for rank in these {
            if self.is_over() {
                return;
            }
            self.visit(*rank, effort);
        }
    }

    /// Measures as many as there is time for shortly, in about this order, and leaves `reserve`
    /// seconds for later rungs. Every other one is a neighbour of the best so far: properties that
    /// make a design fast and that the model does not see are often shared by its neighbours.
    pub fn measure_first(&mut self, order: &[Rank], reserve: &dyn Fn(&Board<'_>) -> f64) {
        if self.is_over() {
            return;
        }
        if self.bench.overlaps() {
            self.measure_as_ready(order, reserve);
            return;
        }
        let share = self.seconds_left();
        // The time of the longest batch: the next one may take as long.
        let mut longest: f64 = 0.0;
        let mut waiting = order.to_vec();
        let mut around = None;
        // The first batch is small, so that there is a result soon.
        let mut portion = self.bench.batch().div_ceil(2);
        while !waiting.is_empty() {
            let left = self.seconds_left();
            // Without a measured candidate there is no reserve.
            let later = match self.best() {
                Some(_) => reserve(self) + longest.min(share / 2.0),
                None => 0.0,
            };
            if left <= later {
                return;
            }
            let rest = waiting.split_off(portion.clamp(1, waiting.len()));
            let these = std::mem::replace(&mut waiting, rest);
            self.measure(&these, SHORT);
            longest = longest.max(left - self.seconds_left());
            portion = self.bench.batch();
            self.interleave_neighbours(&mut waiting, &mut around);
        }
    }

    /// Compiles some candidates while one is measured; the first that is ready is measured first.
    fn measure_as_ready(&mut self, order: &[Rank], reserve: &dyn Fn(&Board<'_>) -> f64) {
        let mut waiting = order.to_vec();
        let mut around = None;
        while !waiting.is_empty() && !self.is_over() {
            let found = self.best().is_some();
            let left = self.seconds_left() - if found { reserve(self) } else { 0.0 };
            if left <= 0.0 {
                return;
            }
            let near = &waiting[..waiting.len().min(self.bench.batch().max(1))];
            self.bench.prepare(near);
            let Some(rank) = self.bench.first_ready(near, left) else {
                return;
            };
            waiting.retain(|r| *r != rank);
            self.visit(rank, SHORT);
            self.interleave_neighbours(&mut waiting, &mut around);
        }
    }

    /// Measures the finalists for long, round-robin, so that a disturbance of the machine affects
    /// all of them alike.
    pub fn finish(&mut self, finalists: &[Rank], rounds: usize) {
        for _ in 0..rounds {
            self.measure(finalists, LONG);
        }
        if !self.is_over() {
            self.finalists = finalists.to_vec();
        }
    }

    /// If there is a new best candidate, interleaves its neighbours with the waiting ones.
    /// `around`: the candidate whose neighbours were interleaved last.
    fn interleave_neighbours(&self, waiting: &mut Vec<Rank>, around: &mut Option<Rank>) {
        let now = self.best().map(|(rank, _)| rank);
        if let Some(best) = now.filter(|_| now != *around) {
            *waiting = interleave(std::mem::take(waiting), &self.bench.neighbours(best));
            *around = now;
        }
    }

    fn visit(&mut self, rank: Rank, effort: Enough) {
        if self.faults[rank].is_some() {
            return;
        }
        let best = self.best().map(|(_, seconds)| seconds);
        let mut fresh = Timing::default();
        for _ in 0..=AGAIN {
            match self.bench.measure(rank, effort, best) {
                Ok(samples) => fresh.samples.extend(samples),
                Err(fault) => {
                    self.fail(rank, fault);
                    return;
                }
            }
            // The time of a candidate far from the best need not be exact.
            let hopeless = best.is_some_and(|best| fresh.min() > 1.5 * best);
            if hopeless || !is_doubtful(&fresh) || self.is_over() {
                break;
            }
        }
        self.failed_in_a_row = 0;
        // A longer measurement replaces a shorter one; equally long ones are merged.
        if self.rungs[rank] == 0 {
            self.order.push(rank);
        }
        let timing = &mut self.timings[rank];
        if fresh.samples.len() > 2 * timing.samples.len() {
            *timing = fresh;
        } else {
            timing.samples.extend(fresh.samples);
        }
        self.rungs[rank] += 1;
        self.report();
    }

    fn fail(&mut self, rank: Rank, fault: Fault) {
        self.failed_in_a_row = match &fault {
            Fault::Failed(_) => self.failed_in_a_row + 1,
            Fault::Refused(_) | Fault::TooSlow | Fault::Late | Fault::Wrong(_) => 0,
        };
        if self.rungs[rank] == 0 {
            self.order.push(rank);
        }
        self.timings[rank].samples.clear();
        self.faults[rank] = Some(fault);
        self.bench.forget(rank);
        self.report();
    }

    fn report(&mut self) {
        let progress = Progress {
            tried: self.order.len(),
            wanted: self.wanted.max(self.order.len()),
            best: self.best(),
        };
        (self.on_progress)(progress);
    }

    pub fn seconds(&self, rank: Rank) -> Option<f64> {
        let timing = &self.timings[rank];
        let is_measured = self.faults[rank].is_none() && !timing.samples.is_empty();
        is_measured.then(|| timing.median())
    }

    /// Measured candidates, the fastest first.
    pub fn by_time(&self) -> Vec<Rank> {
        let mut timed: Vec<(f64, Rank)> = self
            .order
            .iter()
            .filter_map(|rank| Some((self.seconds(*rank)?, *rank)))
            .collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        timed.into_iter().map(|(_, rank)| rank).collect()
    }

    pub fn best(&self) -> Option<(Rank, f64)> {
        let rank = *self.by_time().first()?;
        Some((rank, self.seconds(rank)?))
    }

    pub fn forget(&mut self, rank: Rank) {
        self.bench.forget(rank);
    }

    /// The results: finalists first, then the others, each by time.
    pub fn into_trials(self) -> Vec<Trial> {
        let mut trials: Vec<Trial> = self
            .order
            .iter()
            .map(|rank| Trial {
                rank: *rank,
                seconds: self.seconds(*rank),
                samples: self.timings[*rank].samples.len(),
                rung: self.rungs[*rank],
                fault: self.faults[*rank].clone(),
            })
            .collect();
        trials.sort_by(|a, b| {
            let key = |t: &Trial| (!self.finalists.contains(&t.rank), t.fault.is_some());
            let seconds = |t: &Trial| t.seconds.unwrap_or(f64::INFINITY);
            key(a)
                .cmp(&key(b))
                .then(seconds(a).total_cmp(&seconds(b)))
                .then(a.rank.cmp(&b.rank))
        });
        trials
    }
}

/// Alternates `some` of the waiting candidates with the others; both keep their order.
fn interleave(waiting: Vec<Rank>, some: &[Rank]) -> Vec<Rank> {
    let (near, others): (Vec<Rank>, Vec<Rank>) =
        waiting.into_iter().partition(|rank| some.contains(rank));
    let (mut near, mut others) = (near.into_iter(), others.into_iter());
    let mut order = Vec::new();
    loop {
        let next = [near.next(), others.next()];
        if next == [None, None] {
            return order;
        }
        order.extend(next.into_iter().flatten());
    }
}

fn is_doubtful(timing: &Timing) -> bool {
    timing.median() > (1.0 + DOUBT) * timing.min()
}

/// A search strategy.
pub trait Strategy {
    /// Its name in the report.
    fn name(&self) -> &'static str;

    /// `predicted`: seconds by rank, in non-decreasing order; NaN where there is no prediction.
    /// `given`: candidates that must be measured.
    fn search(&self, predicted: &[f64], given: &[Rank], board: &mut Board<'_>);
}

/// Up to this number of candidates, all are measured for long.
pub const FEW: usize = 12;

/// Every candidate where there are few, else successive halving.
pub fn choose(candidates: usize, seed: u64) -> Box<dyn Strategy> {
    if candidates <= FEW {
        Box::new(Exhaustive)
    } else {
        Box::new(Halving { seed })
    }
}

#[cfg(test)]
mod tests;
