//! Strategies on a bench with a simulated clock and simulated timings.

use std::collections::BTreeSet;

use systola_interp::tensor::split_mix;

use super::*;

/// Candidate n takes `truth[n]`; each compilation and each run advances the clock.
struct Fake {
    truth: Vec<Result<f64, Fault>>,
    compile_seconds: f64,
    budget: f64,
    clock: f64,
    noise: u64,
    compiled: BTreeSet<Rank>,
    log: Vec<Rank>,
    stop_after: usize,
    /// The neighbours of each candidate.
    near: Vec<(Rank, Rank)>,
}

impl Fake {
    fn new(truth: Vec<Result<f64, Fault>>) -> Fake {
        Fake {
            truth,
            compile_seconds: 0.1,
            budget: 60.0,
            clock: 0.0,
            noise: 1,
            compiled: BTreeSet::new(),
            log: Vec::new(),
            stop_after: usize::MAX,
            near: Vec::new(),
        }
    }

    fn times(seconds: &[f64]) -> Fake {
        Fake::new(seconds.iter().map(|s| Ok(*s)).collect())
    }
}

impl Bench for Fake {
    fn prepare(&mut self, next: &[Rank]) {
        for rank in next {
            if self.compiled.insert(*rank) {
                self.clock += self.compile_seconds;
            }
        }
    }

    fn overlaps(&self) -> bool {
        false
    }

    fn batch(&self) -> usize {
        4
    }

    fn neighbours(&self, of: Rank) -> Vec<Rank> {
        let near = self.near.iter().filter(|(rank, _)| *rank == of);
        near.map(|(_, other)| *other).collect()
    }

    fn first_ready(&mut self, of: &[Rank], _: f64) -> Option<Rank> {
        of.iter().find(|r| self.compiled.contains(r)).copied()
    }

    fn measure(&mut self, rank: Rank, effort: Enough, _: Option<f64>) -> Result<Vec<f64>, Fault> {
        assert!(self.compiled.contains(&rank), "{rank} was not prepared");
        self.log.push(rank);
        let seconds = self.truth[rank].clone()?;
        let n = effort.least;
        self.clock += seconds * n as f64;
        // Up to 2 %.
        let mut noisy = || seconds * (1.0 + (split_mix(&mut self.noise) % 200) as f64 * 1e-4);
        Ok((0..n).map(|_| noisy()).collect())
    }

    fn forget(&mut self, rank: Rank) {
        self.compiled.remove(&rank);
    }

    fn seconds_left(&self) -> f64 {
        self.budget - self.clock
    }

    fn is_stopped(&self) -> bool {
        self.log.len() >= self.stop_after
    }
}

fn run(strategy: &dyn Strategy, given: &[Rank], bench: &mut Fake) -> Vec<Trial> {
    let predicted: Vec<f64> = (0..bench.truth.len())
        .map(|n| 1e-3 + n as f64 * 1e-5)
        .collect();
    let mut quiet = |_: Progress| {};
    let mut board = Board::new(predicted.len(), bench, &mut quiet);
    strategy.search(&predicted, given, &mut board);
    board.into_trials()
}

/// 100 candidates between 1 and 2 ms; number 23 takes 0.8.
fn hundred() -> Vec<Result<f64, Fault>> {
    let mut state = 7;
    let mut truth: Vec<_> = (0..100)
        .map(|_| Ok(1e-3 + (split_mix(&mut state) % 1000) as f64 * 1e-6))
        .collect();
    truth[23] = Ok(0.8e-3);
    truth
}

#[test]
fn the_best_is_found_and_all_is_repeatable() {
    let mut first = Fake::new(hundred());
    let trials = run(&Halving { seed: 3 }, &[], &mut first);
    assert_eq!(trials[0].rank, 23);
    assert!(trials[0].rung > trials[20].rung);
    let mut second = Fake::new(hundred());
    assert_eq!(run(&Halving { seed: 3 }, &[], &mut second), trials);
    assert_eq!(first.log, second.log);
    let mut other = Fake::new(hundred());
    run(&Halving { seed: 4 }, &[], &mut other);
    assert_ne!(first.log, other.log);
}

/// With little time, the model ranks the best too low, and it is found as a neighbour of a good
/// one.
#[test]
fn the_best_is_near_to_a_good_one() {
    let mut truth: Vec<_> = vec![Ok(2e-3); 100];
    truth[2] = Ok(1.5e-3);
    truth[77] = Ok(1e-3);
    let mut alone = Fake::new(truth.clone());
    alone.budget = 3.0;
    let found = run(&Halving { seed: 3 }, &[], &mut alone);
    assert_eq!(found[0].rank, 2);
    let mut with = Fake::new(truth);
    with.budget = 3.0;
    with.near = vec![(2, 90), (2, 77), (77, 2)];
    let found = run(&Halving { seed: 3 }, &[], &mut with);
    assert_eq!(found[0].rank, 77);
    assert!(found.len() < 40, "{}", found.len());
}

#[test]
fn few_are_all_measured_for_long() {
    let mut bench = Fake::times(&[3e-3, 1e-3, 2e-3]);
    let trials = run(choose(3, 0).as_ref(), &[], &mut bench);
    let ranks: Vec<Rank> = trials.iter().map(|t| t.rank).collect();
    assert_eq!(ranks, [1, 2, 0]);
    assert!(trials.iter().all(|t| t.samples >= LONG.least));
    assert_eq!(choose(3, 0).name(), "every candidate");
    assert_eq!(choose(300, 0).name(), "successive halving");
}

#[test]
fn faults_are_survived_and_kept() {
    let mut truth = hundred();
    truth[0] = Err(Fault::Wrong("z[3]".into()));
    truth[1] = Err(Fault::TooSlow);
    truth[2] = Err(Fault::Refused("no compiler likes it".into()));
    truth[3] = Err(Fault::Failed("the device coughs".into()));
    let trials = run(&Halving { seed: 3 }, &[], &mut Fake::new(truth.clone()));
    assert_eq!(trials[0].rank, 23);
    for (n, expect) in truth.iter().take(4).enumerate() {
        let trial = trials.iter().find(|t| t.rank == n).unwrap();
        assert_eq!(
            (trial.seconds, trial.fault.clone()),
            (None, expect.clone().err())
        );
    }
}

#[test]
fn a_device_that_is_lost_ends_the_search() {
    let truth = (0..100)
        .map(|_| Err(Fault::Failed("gone".into())))
        .collect();
    let mut bench = Fake::new(truth);
    let trials = run(&Halving { seed: 0 }, &[], &mut bench);
    assert_eq!(trials.len(), LOST);
}

#[test]
fn the_budget_holds() {
    let mut bench = Fake::new(hundred());
    bench.budget = 2.0;
    let trials = run(&Halving { seed: 0 }, &[], &mut bench);
    assert!(bench.clock < 2.5, "{}", bench.clock);
    assert!(trials[0].seconds.is_some());
    // Not even the first is compiled by then.
    let mut little = Fake::new(hundred());
    little.budget = 1e-3;
    assert_eq!(run(&Halving { seed: 0 }, &[], &mut little), []);
    let mut none = Fake::new(hundred());
    none.budget = 0.0;
    assert_eq!(run(&Halving { seed: 0 }, &[], &mut none), []);
}

#[test]
fn an_interrupt_keeps_what_was_found() {
    let mut bench = Fake::new(hundred());
    bench.stop_after = 10;
    let trials = run(&Halving { seed: 0 }, &[], &mut bench);
    assert_eq!(bench.log.len(), 10);
    assert!(trials.len() >= 3 && trials[0].seconds.is_some());
}

#[test]
fn given_ones_are_measured_early_and_the_best_of_them_to_the_end() {
    let mut bench = Fake::new(hundred());
    let trials = run(&Halving { seed: 0 }, &[98, 99], &mut bench);
    assert_eq!(bench.log[..4], [0, 98, 1, 99]);
    let own: Vec<&Trial> = trials.iter().filter(|t| t.rank >= 98).collect();
    let finalist = |t: &&Trial| t.samples >= 3 * LONG.least;
    assert_eq!(
        (own.len(), own.into_iter().filter(finalist).count()),
        (2, 1)
    );
}

#[test]
fn doubtful_measurements_are_repeated() {
    struct Shaken(Fake, usize);
    impl Bench for Shaken {
        fn prepare(&mut self, next: &[Rank]) {
            self.0.prepare(next);
        }
        fn overlaps(&self) -> bool {
            true
        }
        fn batch(&self) -> usize {
            1
        }
        fn neighbours(&self, _: Rank) -> Vec<Rank> {
            Vec::new()
        }
        fn first_ready(&mut self, of: &[Rank], _: f64) -> Option<Rank> {
            of.first().copied()
        }

        fn measure(&mut self, _: Rank, _: Enough, _: Option<f64>) -> Result<Vec<f64>, Fault> {
            self.1 += 1;
            // The first is disturbed.
            Ok(if self.1 == 1 {
                vec![1.0, 5.0, 5.0]
            } else {
                vec![1.0; 9]
            })
        }
        fn forget(&mut self, _: Rank) {}
        fn seconds_left(&self) -> f64 {
            1.0
        }
        fn is_stopped(&self) -> bool {
            false
        }
    }
    let mut bench = Shaken(Fake::times(&[1.0]), 0);
    let mut quiet = |_: Progress| {};
    let mut board = Board::new(1, &mut bench, &mut quiet);
    board.measure(&[0], SHORT);
    assert_eq!(board.seconds(0), Some(1.0));
    assert_eq!(bench.1, 2);
}

/// A device that measures while others compile, on as many threads as there are candidates.
struct Overlapping {
    /// When the code of each is compiled; its runs take no time.
    ready: Vec<f64>,
    clock: f64,
    log: Vec<Rank>,
}

impl Bench for Overlapping {
    fn prepare(&mut self, _: &[Rank]) {}

    fn overlaps(&self) -> bool {
        true
    }

    fn batch(&self) -> usize {
        4
    }

    fn neighbours(&self, _: Rank) -> Vec<Rank> {
        Vec::new()
    }

    fn first_ready(&mut self, of: &[Rank], seconds: f64) -> Option<Rank> {
        let when = |rank: &&Rank| self.ready[**rank].max(self.clock);
        let first = of.iter().min_by(|a, b| when(a).total_cmp(&when(b)))?;
        let at = when(&first);
        (at - self.clock <= seconds).then(|| {
            self.clock = at;
            *first
        })
    }

    fn measure(&mut self, rank: Rank, _: Enough, _: Option<f64>) -> Result<Vec<f64>, Fault> {
        self.log.push(rank);
        Ok(vec![1e-3; 3])
    }

    fn forget(&mut self, _: Rank) {}

    fn seconds_left(&self) -> f64 {
        60.0 - self.clock
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_slow_compilation_does_not_block_the_others() {
    let mut bench = Overlapping {
        ready: vec![3.0, 1000.0, 1.0, 2.0, 5.0, 4.0],
        clock: 0.0,
        log: Vec::new(),
    };
    let mut quiet = |_: Progress| {};
    let mut board = Board::new(6, &mut bench, &mut quiet);
    board.measure_first(&[0, 1, 2, 3, 4, 5], &|_| 10.0);
    assert_eq!(board.by_time().len(), 5);
    assert_eq!(bench.log, [2, 3, 0, 5, 4]);
}
