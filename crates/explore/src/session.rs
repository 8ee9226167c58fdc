//! One exploration, from candidates to designs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use systola::cpu::Error as RunError;
use systola_rt::Deadline;

use crate::measure::verify::{Evidence, Verifier, random_inputs};
use crate::measure::{Measurer, STACK, Target, Workers};
use crate::model::Device;
use crate::problem::Problem;
use crate::rank::{Ranked, Ranker};
use crate::reduced::Reduced;
use crate::report::{Design, Ended, Outcome, mark_front};
use crate::search::{Board, Fault, Progress, Survey, Trial, choose};
use crate::space::Candidate;

/// Lowering and prediction may take this share of the budget.
const RANKING: f64 = 0.3;
/// The same share if all of them are to be measured.
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
        "no design is as short as asked for: the longest kernel of each has {shortest:.0} instructions or more"
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
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let total = candidates.len();
    tell(Event::Ranking { candidates: total });
    let share = match options.survey {
        Some(_) => RANKING_ALL,
        None => RANKING,
    };
    let ranker = Ranker {
        problem,
        params,
        model,
        end: options.after(share),
        deadline: options.deadline.clone(),
    };
    let (ranking, shortest) = match options.survey {
        Some(reduced) => {
            let part = reduced.rank(&ranker, candidates);
            (part.ranking, part.shortest)
        }
        None => (ranker.rank(candidates), f64::INFINITY),
    };
    let seconds = || options.begin.elapsed().as_secs_f64();
    let stopped = || options.deadline.is_stopped();
    if ranking.ranked.is_empty() && ranking.panicked.is_empty() && !stopped() {
        if shortest.is_finite() {
            return Err(Error::AllLong { shortest });
        }
        if ranking.left > 0 {
            return Err(Error::BudgetTooSmall(seconds()));
        }
        let why = ranking.refused.first().map(|(_, why)| why.clone());
        return Err(Error::NoDesign(total, why));
    }
    let ranked = ranking.ranked;
    tell(Event::Ranked {
        candidates: ranked.len(),
    });
    let inputs = random_inputs(problem.system, params, options.seed)?;
    let verifier = Verifier::new(problem, target, params.to_vec(), options.seed, inputs);
    let placed = target.place(problem.system, params, verifier.inputs())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let confirming = options.budget().mul_f64(CONFIRMING).min(MOST_CONFIRMING);
    let deadline = options.deadline.or_at(options.deadline.end() - confirming);
    let workers: Workers<T::Code> = Workers::new(threads, &deadline);
    let strategy = if options.survey.is_some() {
        Box::new(Survey)
    } else {
        choose(ranked.len(), options.seed)
    };
    let found = std::thread::scope(|scope| {
        for _ in 0..threads {
            let builder = std::thread::Builder::new().stack_size(STACK);
            let work = || workers.work(problem, target, &ranked);
            builder
                .spawn_scoped(scope, work)
                .expect("a thread can be started");
        }
        let mut measurer = Measurer {
            target,
            all: options.survey.is_some(),
            ranked: &ranked,
            workers: &workers,
            verifier,
            placed,
            codes: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            registers: BTreeMap::new(),
            deadline,
        };
        let mut say = |progress: Progress| {
            let name = |rank: usize| ranked[rank].candidate.mapping.name.as_str();
            let best = progress.best.map(|(rank, seconds)| (name(rank), seconds));
            tell(Event::Measured { progress, best });
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
        workers.close();
        measurer.deadline = Deadline::after(GRACE);
        confirm_the_best(&mut trials, &mut measurer);
        Found {
            trials,
            is_over,
            registers: measurer.registers,
            evidence: measurer.verifier.evidence(),
        }
    });
    let tried = found.trials.len();
    let mut designs: Vec<Design> = found
        .trials
        .into_iter()
        .map(|trial| design(&ranked[trial.rank], &found.registers, trial))
        .collect();
    for candidate in ranking.panicked {
        designs.push(Design::panicked(candidate));
    }
    mark_front(&mut designs);
    let none_measured = designs.iter().all(|d| d.measured.is_none());
    let expected = none_measured.then(|| expected(&ranked, &designs)).flatten();
    Ok(Outcome {
        designs,
        expected,
        candidates: total,
        refused: ranking.refused,
        unranked: ranking.left,
        unmeasured: ranked.len() - tried,
        strategy: strategy.name(),
        evidence: found.evidence,
        seconds: seconds(),
        ended: match (stopped(), found.is_over) {
            (true, _) => Ended::Interrupted,
            (false, true) => Ended::Budget,
            (false, false) => Ended::Complete,
        },
    })
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
