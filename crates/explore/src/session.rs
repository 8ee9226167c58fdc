//! One exploration, from candidates to designs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use systola_jit::cpu::Error as RunError;
use systola_rt::Deadline;

use crate::measure::verify::{Evidence, Verifier, random_inputs};
use crate::measure::{Measurer, STACK, Target, Workers};
use crate::model::Device;
use crate::problem::Problem;
use crate::rank::{Ranked, Ranker, Ranking};
use crate::reduced::{Part, Reduced};
use crate::report::{Design, Ended, Outcome, mark_front};
use crate::search::{Board, Fault, Progress, Strategy, Survey, Trial, choose};
use crate::space::Candidate;

/// The share of the budget for lowering and prediction.
const RANKING: f64 = 0.3;
/// The same if all candidates are to be measured.
const RANKING_ALL: f64 = 0.5;
/// Measuring leaves this share of the budget, but at most `MOST_CONFIRMING`, to compare the best
/// with the equations again,
const CONFIRMING: f64 = 0.05;
const MOST_CONFIRMING: Duration = Duration::from_millis(500);
/// which ends after this time even if it exceeds the budget.
const GRACE: Duration = Duration::from_secs(1);

/// Options of an exploration.
pub struct Options {
    /// The start of the budget, which covers everything: writing mappings, lowering, compiling,
    /// measuring.
    pub begin: Instant,
    /// The end of the budget, or an interrupt.
    pub deadline: Deadline,
    /// The seed of the inputs and of the strategy.
    pub seed: u64,
    /// Measure a sample of all candidates instead of searching, to assess the model.
    pub survey: Option<Reduced>,
}

impl Options {
    /// The instant after this share of the budget.
    fn after(&self, share: f64) -> Instant {
        self.begin + self.budget().mul_f64(share)
    }

    /// Seconds since the start.
    fn elapsed(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn budget(&self) -> Duration {
        self.deadline.end().saturating_duration_since(self.begin)
    }
}

/// Progress of a running exploration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Ranking of this many candidates begins.
    Ranking { candidates: usize },
    /// This many were lowered; the search begins.
    Ranked { candidates: usize },
    /// `best`: the name of the best, and its seconds.
    Measured {
        progress: Progress,
        best: Option<(&'a str, f64)>,
    },
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no candidate is legal and has a kernel at these sizes, of {0}")]
    NoDesign(usize, Option<String>),
    #[error(
        "no design is short enough: the longest kernel of each has {shortest:.0} instructions or more"
    )]
    AllLong { shortest: f64 },
    #[error("no candidate was proved legal and lowered in {0:.1} s")]
    BudgetTooSmall(f64),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Ranks candidates, measures those that matter on a target, and reports.
pub fn explore<T: Target>(
    problem: &Problem<'_>,
    params: &[i128],
    candidates: Vec<(Candidate, bool)>,
    target: &T,
    model: &Device,
    options: &Options,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let total = candidates.len();
    on_event(Event::Ranking { candidates: total });
    let session = Session {
        problem,
        params,
        target,
        options,
    };
    let ranking = session.rank(candidates, model)?;
    let ranked = ranking.ranked;
    on_event(Event::Ranked {
        candidates: ranked.len(),
    });
    let found = session.search(&ranked, on_event)?;
    let unmeasured = ranked.len() - found.trials.len();
    let mut designs: Vec<Design> = found
        .trials
        .into_iter()
        .map(|trial| design(&ranked[trial.rank], &found.registers, trial))
        .collect();
    designs.extend(ranking.panicked.into_iter().map(Design::panicked));
    mark_front(&mut designs);
    let none_measured = designs.iter().all(|d| d.measured.is_none());
    let expected = none_measured.then(|| expected(&ranked, &designs)).flatten();
    Ok(Outcome {
        designs,
        expected,
        candidates: total,
        refused: ranking.refused,
        unranked: ranking.left,
        unmeasured,
        strategy: found.strategy,
        evidence: found.evidence,
        seconds: options.elapsed(),
        ended: match (options.deadline.is_stopped(), found.is_over) {
            (true, _) => Ended::Interrupted,
            (false, true) => Ended::Budget,
            (false, false) => Ended::Complete,
        },
    })
}

/// One problem at one size on one target.
struct Session<'s, 'a, T> {
    problem: &'s Problem<'a>,
    params: &'s [i128],
    target: &'s T,
    options: &'s Options,
}

impl<T: Target> Session<'_, '_, T> {
    fn rank(&self, candidates: Vec<(Candidate, bool)>, model: &Device) -> Result<Ranking, Error> {
        let (options, total) = (self.options, candidates.len());
        let share = match options.survey {
            Some(_) => RANKING_ALL,
            None => RANKING,
        };
        let ranker = Ranker {
            problem: self.problem,
            params: self.params,
            model,
            end: options.after(share),
            deadline: options.deadline.clone(),
        };
        let Part { ranking, shortest } = match options.survey {
            Some(reduced) => reduced.rank(&ranker, candidates),
            None => Part {
                ranking: ranker.rank(candidates),
                shortest: f64::INFINITY,
            },
        };
        let is_empty = ranking.ranked.is_empty() && ranking.panicked.is_empty();
        if !is_empty || options.deadline.is_stopped() {
            return Ok(ranking);
        }
        Err(if shortest.is_finite() {
            Error::AllLong { shortest }
        } else if ranking.left > 0 {
            Error::BudgetTooSmall(options.elapsed())
        } else {
            let why = ranking.refused.into_iter().next().map(|(_, why)| why);
            Error::NoDesign(total, why)
        })
    }

    /// Compiles on all threads and measures on this one.
    fn search(
        &self,
        ranked: &[Ranked],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Found, Error> {
        let (problem, params) = (self.problem, self.params);
        let (target, options) = (self.target, self.options);
        let inputs = random_inputs(problem.system, params, options.seed)?;
        let verifier = Verifier::new(problem, target, params.to_vec(), options.seed, inputs);
        let placed = target.place(problem.system, params, verifier.inputs())?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let confirming = options.budget().mul_f64(CONFIRMING).min(MOST_CONFIRMING);
        let deadline = options.deadline.or_at(options.deadline.end() - confirming);
        let workers: Workers<T::Code> = Workers::new(threads, &deadline);
        let measurer = Measurer {
            target,
            all: options.survey.is_some(),
            ranked,
            workers: &workers,
            verifier,
            placed,
            codes: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            registers: BTreeMap::new(),
            deadline,
        };
        let strategy = if options.survey.is_some() {
            Box::new(Survey)
        } else {
            choose(ranked.len(), options.seed)
        };
        Ok(std::thread::scope(|scope| {
            for _ in 0..threads {
                let builder = std::thread::Builder::new().stack_size(STACK);
                let work = || workers.work(problem, target, ranked);
                builder
                    .spawn_scoped(scope, work)
                    .expect("a thread can be started");
            }
            run_strategy(strategy.as_ref(), measurer, on_event)
        }))
    }
}

/// Searches, ends the workers, and confirms the best.
fn run_strategy<T: Target>(
    strategy: &dyn Strategy,
    mut measurer: Measurer<'_, '_, T>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Found {
    let ranked = measurer.ranked;
    let mut say = |progress: Progress| {
        let name = |rank: usize| ranked[rank].candidate.mapping.name.as_str();
        let best = progress.best.map(|(rank, seconds)| (name(rank), seconds));
        on_event(Event::Measured { progress, best });
    };
    let predicted: Vec<f64> = ranked
        .iter()
        .map(|r| r.predicted_seconds().unwrap_or(f64::NAN))
        .collect();
    let given: Vec<usize> = (0..ranked.len()).filter(|n| ranked[*n].given).collect();
    let mut board = Board::new(ranked.len(), &mut measurer, &mut say);
    strategy.search(&predicted, &given, &mut board);
    let is_over = board.is_over();
    let mut trials = board.into_trials();
    measurer.workers.close();
    measurer.deadline = Deadline::after(GRACE);
    confirm_the_best(&mut trials, &mut measurer);
    Found {
        trials,
        is_over,
        strategy: strategy.name(),
        registers: measurer.registers,
        evidence: measurer.verifier.evidence(),
    }
}

/// The candidate that the model predicts to be the fastest, of those without a known fault.
fn expected(ranked: &[Ranked], tried: &[Design]) -> Option<Design> {
    let is_possible = |one: &&Ranked| {
        let own = tried.iter().find(|d| d.candidate == one.candidate);
        match own.and_then(|design| design.fault.as_ref()) {
            None | Some(Fault::Late | Fault::TooSlow) => one.predicted.is_some(),
            Some(Fault::Refused(_) | Fault::Failed(_) | Fault::Wrong(_)) => false,
        }
    };
    let best = ranked.iter().find(is_possible)?;
    let untried = Trial {
        rank: 0,
        seconds: None,
        samples: 0,
        rung: 0,
        fault: None,
    };
    Some(design(best, &BTreeMap::new(), untried))
}

/// The best may never have been measured for long: it is compared at the sizes of the problem now.
fn confirm_the_best<T: Target>(trials: &mut [Trial], measurer: &mut Measurer<'_, '_, T>) {
    for trial in trials.iter_mut().filter(|t| t.seconds.is_some()) {
        match measurer.confirm(trial.rank) {
            Ok(()) => return,
            // The verification before it was timed still holds.
            Err(Fault::Late) => return,
            Err(fault) => {
                trial.seconds = None;
                trial.fault = Some(fault);
            }
        }
    }
}

struct Found {
    trials: Vec<Trial>,
    is_over: bool,
    strategy: &'static str,
    registers: BTreeMap<usize, u32>,
    evidence: Evidence,
}

fn design(ranked: &Ranked, registers: &BTreeMap<usize, u32>, trial: Trial) -> Design {
    let predicted = ranked.predicted.as_ref();
    Design {
        candidate: ranked.candidate.clone(),
        given: ranked.given,
        taxonomy: ranked.taxonomy.clone(),
        predicted: predicted.map(|p| p.seconds),
        limit: predicted.map(|p| p.limit.to_string()),
        measured: trial.seconds,
        samples: trial.samples,
        registers: registers
            .get(&trial.rank)
            .copied()
            .or(predicted.map(|p| p.registers)),
        fault: trial.fault,
        on_front: false,
    }
}

impl Design {
    fn panicked(candidate: Candidate) -> Design {
        Design {
            candidate,
            given: false,
            taxonomy: String::new(),
            predicted: None,
            limit: None,
            measured: None,
            samples: 0,
            registers: None,
            fault: Some(Fault::Wrong("the compiler panics on it".to_string())),
            on_front: false,
        }
    }
}
