//! Every candidate, to see how well a model ranks them.

use super::{Board, LONG, Rank, Strategy};

/// The number of fastest candidates that are measured again, for long, so that their order is not
/// an accident.
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
        let share = board.seconds_left() / 4.0;
        let last = |board: &Board<'_>| {
            let best = board.best().map_or(f64::INFINITY, |(_, seconds)| seconds);
            share.min(AGAIN as f64 * LONG.seconds.max(LONG.least as f64 * best))
        };
        board.measure_first(&order, &last);
        let mut fastest = board.by_time();
        fastest.truncate(AGAIN);
        board.measure(&fastest, LONG);
    }
}
