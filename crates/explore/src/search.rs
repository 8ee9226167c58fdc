//! Which candidates are measured, and for how long.
//!
//! A [`Strategy`] decides; a [`Bench`] compiles, verifies and measures; the [`Board`] between them keeps what was found, asks again
//! where a measurement is doubtful, and knows when to stop. A strategy sees predicted and measured times, never a clock: given
//! the same times it makes the same choices.
//!
//! **Doubtful measurements.** The time of a candidate is the median of its samples. Where that is more than `DOUBT` above the
//! fastest of them, something disturbed the runs: it is measured again, at most `AGAIN` times, and all samples count.
//!
//! **Little time.** A search ends with its budget, also where nothing was measured by then.

use systola_rt::timing::Timing;

pub mod exhaustive;
pub mod halving;
pub mod survey;

pub use exhaustive::Exhaustive;
pub use halving::Halving;
pub use survey::Survey;

/// A median so far above the fastest sample is doubted.
const DOUBT: f64 = 0.05;
/// Measurements of one candidate beyond the first, in one visit.
const AGAIN: usize = 2;
/// So many candidates in a row that the device fails on are the device's fault.
const LOST: usize = 8;

/// A candidate, by its rank: 0 is predicted to be the fastest.
pub type Rank = usize;

/// How long a candidate is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Runs go on until they took so long together,
    pub seconds: f64,
    /// and at least so often, unless a single run takes very long,
    pub least: usize,
    /// at most so often.
    pub most: usize,
}

impl Effort {
    pub const SHORT: Effort = Effort {
        seconds: 0.01,
        least: 3,
        most: 9,
    };

    pub const LONG: Effort = Effort {
        seconds: 0.15,
        least: 7,
        most: 51,
    };

    #[must_use]
    pub fn doubled(self) -> Effort {
        Effort {
            seconds: (self.seconds * 2.0).min(Effort::LONG.seconds),
            least: (self.least + 2).min(Effort::LONG.least),
            most: (self.most * 2).min(Effort::LONG.most),
        }
    }
}

/// Why a candidate has no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was not compiled, or can not run on this device.
    Refused(String),
    /// The device failed.
    Failed(String),
    /// It takes so long that it is not worth the wait.
    TooSlow,
    /// There was no time left to compile, verify or run it.
    Late,
    /// It gives another result than the equations: our bug.
    Wrong(String),
}

/// What measures.
pub trait Bench {
    /// These are measured next, in this order: a bench may begin to compile.
    fn prepare(&mut self, next: &[Rank]);

    /// Does it compile while it measures?
    fn overlaps(&self) -> bool;

    /// How many are worth preparing at once.
    fn batch(&self) -> usize;

    /// Those that differ from one in a single choice.
    fn neighbours(&self, of: Rank) -> Vec<Rank>;

    /// Of some that were prepared one that can be measured at once, after waiting so long at most.
    fn first_ready(&mut self, of: &[Rank], seconds: f64) -> Option<Rank>;

    /// Seconds of some runs. The first time it verifies the results too. `best`: seconds of the best so far.
    fn measure(&mut self, rank: Rank, effort: Effort, best: Option<f64>)
    -> Result<Vec<f64>, Fault>;

    /// It is not measured again.
    fn forget(&mut self, rank: Rank);

    /// Seconds that are left of the budget.
    fn seconds_left(&self) -> f64;

    /// Does the user want it to end?
    fn is_stopped(&self) -> bool;
}

/// What is known of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub rank: Rank,
    /// None: it has a fault.
    pub seconds: Option<f64>,
    pub samples: usize,
    /// How many times it came to be measured.
    pub rung: usize,
    pub fault: Option<Fault>,
}

/// What is said while a search runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Candidates that were tried, of so many that will be if time allows.
    pub tried: usize,
    pub wanted: usize,
    pub best: Option<(Rank, f64)>,
}

/// What a search has found so far.
pub struct Board<'a> {
    bench: &'a mut dyn Bench,
    tell: &'a mut dyn FnMut(Progress),
    samples: Vec<Vec<f64>>,
    rungs: Vec<usize>,
    faults: Vec<Option<Fault>>,
    order: Vec<Rank>,
    /// Measured in turns, to be compared with each other.
    finalists: Vec<Rank>,
    wanted: usize,
    failed_in_a_row: usize,
}

impl<'a> Board<'a> {
    pub fn new(
        candidates: usize,
        bench: &'a mut dyn Bench,
        tell: &'a mut dyn FnMut(Progress),
    ) -> Board<'a> {
        Board {
            bench,
            tell,
            samples: vec![Vec::new(); candidates],
            rungs: vec![0; candidates],
            faults: vec![None; candidates],
            order: Vec::new(),
            finalists: Vec::new(),
            wanted: candidates,
            failed_in_a_row: 0,
        }
    }

    /// Nothing more is to be measured.
    pub fn is_over(&self) -> bool {
        self.bench.is_stopped() || self.bench.seconds_left() <= 0.0 || self.failed_in_a_row >= LOST
    }

    pub fn seconds_left(&self) -> f64 {
        self.bench.seconds_left()
    }

    /// How many candidates are looked at, if time allows.
    pub fn expect(&mut self, wanted: usize) {
        self.wanted = wanted;
    }

    /// Measures some, one after the other. Returns at the end of time.
    pub fn measure(&mut self, these: &[Rank], effort: Effort) {
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

    /// Measures as many as there is time for shortly, in about this order, and leaves so many seconds for what comes then. Every other
    /// one is a neighbour of the best so far: what makes a design fast beyond what the model sees, it often shares with those
    /// next to it.
    pub fn measure_first(&mut self, order: &[Rank], reserve: &dyn Fn(&Board<'_>) -> f64) {
        if self.is_over() {
            return;
        }
        if self.bench.overlaps() {
            self.measure_as_ready(order, reserve);
            return;
        }
        let share = self.seconds_left();
        // What the longest portion took: the next one may take as long.
        let mut longest: f64 = 0.0;
        let mut waiting = order.to_vec();
        let mut around = None;
        // The first portion is small, so that something is soon found.
        let mut portion = self.bench.batch().div_ceil(2);
        while !waiting.is_empty() {
            let left = self.seconds_left();
            // Without a time there is nothing to leave time for.
            let later = match self.best() {
                Some(_) => reserve(self) + longest.min(share / 2.0),
                None => 0.0,
            };
            if left <= later {
                return;
            }
            let rest = waiting.split_off(portion.clamp(1, waiting.len()));
            let these = std::mem::replace(&mut waiting, rest);
            self.measure(&these, Effort::SHORT);
            longest = longest.max(left - self.seconds_left());
            portion = self.bench.batch();
            self.turn_to_neighbours(&mut waiting, &mut around);
        }
    }

    /// Some are compiled while one is measured; whoever is ready first comes first.
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
            self.visit(rank, Effort::SHORT);
            self.turn_to_neighbours(&mut waiting, &mut around);
        }
    }

    /// Measures the last ones for long, in turns: no candidate has the better minutes of the machine for itself.
    pub fn finish(&mut self, finalists: &[Rank], rounds: usize) {
        for _ in 0..rounds {
            self.measure(finalists, Effort::LONG);
        }
        if !self.is_over() {
            self.finalists = finalists.to_vec();
        }
    }

    /// Where another one is the best now, its neighbours come in turns with the others. `around`: whose did last.
    fn turn_to_neighbours(&self, waiting: &mut Vec<Rank>, around: &mut Option<Rank>) {
        let now = self.best().map(|(rank, _)| rank);
        if let Some(best) = now.filter(|_| now != *around) {
            *waiting = in_turns(std::mem::take(waiting), &self.bench.neighbours(best));
            *around = now;
        }
    }

    fn visit(&mut self, rank: Rank, effort: Effort) {
        if self.faults[rank].is_some() {
            return;
        }
        let best = self.best().map(|(_, seconds)| seconds);
        let mut fresh: Vec<f64> = Vec::new();
        for _ in 0..=AGAIN {
            match self.bench.measure(rank, effort, best) {
                Ok(samples) => fresh.extend(samples),
                Err(fault) => {
                    self.fail(rank, fault);
                    return;
                }
            }
            // What is far from the best need not be known exactly.
            let hopeless = best.is_some_and(|best| fastest(&fresh) > 1.5 * best);
            if hopeless || !is_doubtful(&fresh) || self.is_over() {
                break;
            }
        }
        self.failed_in_a_row = 0;
        // A longer measurement is a better one; equal ones are taken together.
        if self.rungs[rank] == 0 {
            self.order.push(rank);
        }
        if fresh.len() > 2 * self.samples[rank].len() {
            self.samples[rank] = fresh;
        } else {
            self.samples[rank].extend(fresh);
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
        self.samples[rank].clear();
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
        (self.tell)(progress);
    }

    pub fn seconds(&self, rank: Rank) -> Option<f64> {
        match (&self.faults[rank], self.samples[rank].as_slice()) {
            (None, [_, ..]) => Some(
                Timing {
                    samples: self.samples[rank].clone(),
                }
                .median(),
            ),
            (Some(_), _) | (None, []) => None,
        }
    }

    /// Those with a time, the fastest first.
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

    /// What was found: finalists first, and among equals the fastest.
    pub fn into_trials(self) -> Vec<Trial> {
        let mut trials: Vec<Trial> = self
            .order
            .iter()
            .map(|rank| Trial {
                rank: *rank,
                seconds: self.seconds(*rank),
                samples: self.samples[*rank].len(),
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

/// Some of those that wait come in turns with the others; both stay in their order.
fn in_turns(waiting: Vec<Rank>, some: &[Rank]) -> Vec<Rank> {
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

fn fastest(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::INFINITY, f64::min)
}

fn is_doubtful(samples: &[f64]) -> bool {
    let timing = Timing {
        samples: samples.to_vec(),
    };
    timing.median() > (1.0 + DOUBT) * timing.min()
}

/// A way to search.
pub trait Strategy {
    /// In words, for the report.
    fn name(&self) -> &'static str;

    /// `predicted`: seconds by rank, never falling; not a number where there is no prediction. `given`: candidates that are measured
    /// in any case.
    fn search(&self, predicted: &[f64], given: &[Rank], board: &mut Board<'_>);
}

/// So few candidates are all measured for long.
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
