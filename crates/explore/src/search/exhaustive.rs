//! All candidates, each for long.

use super::{Board, Rank, Strategy};

/// Long measurements of each.
const ROUNDS: usize = 2;

/// For few candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhaustive;

impl Strategy for Exhaustive {
    fn name(&self) -> &'static str {
        "every candidate"
    }

    fn search(&self, predicted: &[f64], given: &[Rank], board: &mut Board<'_>) {
        let mut order: Vec<Rank> = given.to_vec();
        order.extend((0..predicted.len()).filter(|rank| !given.contains(rank)));
        board.expect(order.len());
        // A short measurement first, so that there is a result even if there is little time.
        board.measure_first(&order, &|_| 0.0);
        let order = board.by_time();
        board.finish(&order, ROUNDS);
    }
}
