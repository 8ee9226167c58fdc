//! All candidates, each for long.

use super::{Board, Effort, Rank, Strategy};

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
        let batches = board.portions(&order);
        // The first is short, so that something is found even if there is little time.
        for (n, these) in batches.iter().enumerate() {
            let then = batches.get(n + 1).copied().unwrap_or(&[]);
            board.measure(these, then, Effort::SHORT);
        }
        let order = board.by_time();
        board.finish(&order, ROUNDS);
    }
}
