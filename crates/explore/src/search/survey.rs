//! Every candidate, to see how well a model ranks them.

use super::{Board, Effort, Rank, Strategy};

/// The fastest are measured again in turns, so that who is first among them is no accident.
const AGAIN: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey;

impl Strategy for Survey {
    fn name(&self) -> &'static str {
        "survey"
    }

    fn search(&self, predicted: &[f64], _: &[Rank], board: &mut Board<'_>) {
        let order: Vec<Rank> = (0..predicted.len()).collect();
        board.expect(order.len());
        let batches = board.portions(&order);
        for (n, these) in batches.iter().enumerate() {
            let then = batches.get(n + 1).copied().unwrap_or(&[]);
            board.measure(these, then, Effort::SHORT);
            // Many codes would fill the memory.
            for rank in board.by_time().into_iter().skip(AGAIN) {
                board.forget(rank);
            }
        }
        let mut fastest = board.by_time();
        fastest.truncate(AGAIN);
        board.measure(&fastest, &[], Effort::LONG);
    }
}
