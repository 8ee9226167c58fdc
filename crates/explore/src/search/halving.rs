//! Successive halving over ranked candidates: many are measured shortly, the better half of them longer, and so on; the last few in
//! turns, for long. (Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016.)
//!
//! The model decides who comes first. It may be wrong, so one in `EVERY` is drawn from all that are left.

use systola_interp::tensor::split_mix;

use super::{Board, Effort, Rank, Strategy};

/// Of so many candidates of the first rung one is drawn.
const EVERY: usize = 8;
/// The later rungs get this share of the time, or what they need if that is less: so many long measurements of the last ones, and one
/// for every other one of the first rung.
const LATER: f64 = 0.4;
const MEASUREMENTS: f64 = 20.0;
/// So many come to the last rung.
const LAST: usize = 4;
/// Turns of the last rung.
const ROUNDS: usize = 3;

/// For many candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halving {
    pub seed: u64,
}

impl Strategy for Halving {
    fn name(&self) -> &'static str {
        "successive halving"
    }

    fn search(&self, predicted: &[f64], given: &[Rank], board: &mut Board<'_>) {
        let order = self.order(predicted.len(), given);
        board.expect(order.len());
        let share = board.seconds_left() * LATER;
        let reserve = |board: &Board<'_>| {
            let best = board.best().map_or(f64::INFINITY, |(_, seconds)| seconds);
            let long = Effort::LONG.seconds.max(Effort::LONG.least as f64 * best);
            let others = board.by_time().len() as f64 / 2.0;
            share.min((MEASUREMENTS + others) * long)
        };
        board.measure_first(&order, &reserve);
        let mut alive = board.by_time();
        let mut effort = Effort::SHORT;
        while alive.len() > LAST {
            let kept = alive.len().div_ceil(2).max(LAST);
            for lost in alive.drain(kept..) {
                board.forget(lost);
            }
            effort = effort.doubled();
            board.measure(&alive, effort);
            if board.is_over() {
                return;
            }
            let times = board.by_time();
            alive.sort_by_key(|rank| times.iter().position(|r| r == rank));
        }
        // The best of those that were given is there to the end, to be compared with.
        let times = board.by_time();
        let own = times.into_iter().find(|rank| given.contains(rank));
        if let Some(own) = own.filter(|rank| !alive.contains(rank)) {
            alive.push(own);
        }
        board.finish(&alive, ROUNDS);
    }
}

impl Halving {
    /// By rank, some drawn; those that were given come in turns with the others.
    fn order(&self, candidates: usize, given: &[Rank]) -> Vec<Rank> {
        let mut left: Vec<Rank> = (0..candidates)
            .filter(|r| !given.contains(r))
            .rev()
            .collect();
        let mut given = given.iter();
        let mut order = Vec::new();
        let mut state = self.seed;
        while let Some(next) = left.pop() {
            order.push(next);
            order.extend(given.next());
            if order.len() % EVERY == EVERY - 1 && !left.is_empty() {
                let at = split_mix(&mut state) % left.len() as u64;
                order.push(left.remove(at as usize));
            }
        }
        order.extend(given);
        order
    }
}
