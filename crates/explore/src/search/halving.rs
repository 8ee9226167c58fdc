//! Successive halving over ranked candidates: many are measured shortly, the better half of them
//! longer, and so on; the finalists round-robin, for long. (Jamieson and Talwalkar, Non-stochastic
//! best arm identification and hyperparameter optimization, 2016.)
//!
//! The model decides the order. It may be wrong, so one in `EVERY` is drawn at random from the
//! rest.

use systola_interp::tensor::split_mix;

use super::{Board, LONG, Rank, SHORT, Strategy, doubled};

/// One in this many candidates of the first rung is drawn at random.
const EVERY: usize = 8;
/// The later rungs get this share of the time, or what they need if that is less: `MEASUREMENTS`
/// long measurements of the finalists, and one for every other candidate of the first rung.
const LATER: f64 = 0.4;
const MEASUREMENTS: f64 = 20.0;
/// The number of finalists.
const LAST: usize = 4;
/// Rounds of the last rung.
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
            let long = LONG.seconds.max(LONG.least as f64 * best);
            let others = board.by_time().len() as f64 / 2.0;
            share.min((MEASUREMENTS + others) * long)
        };
        board.measure_first(&order, &reserve);
        let mut alive = board.by_time();
        let mut effort = SHORT;
        while alive.len() > LAST {
            let kept = alive.len().div_ceil(2).max(LAST);
            for lost in alive.drain(kept..) {
                board.forget(lost);
            }
            effort = doubled(effort);
            board.measure(&alive, effort);
            if board.is_over() {
                return;
            }
            let times = board.by_time();
            alive.sort_by_key(|rank| times.iter().position(|r| r == rank));
        }
        // The best of the given candidates stays until the end, for comparison.
        let times = board.by_time();
        let own = times.into_iter().find(|rank| given.contains(rank));
        if let Some(own) = own.filter(|rank| !alive.contains(rank)) {
            alive.push(own);
        }
        board.finish(&alive, ROUNDS);
    }
}

impl Halving {
    /// By rank, with some drawn at random; the given ones are interleaved.
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
