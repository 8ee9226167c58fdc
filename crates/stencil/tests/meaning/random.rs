//! Random offsets.

use proptest::prelude::*;

use crate::boundaries::{check, shape, weighted};
use crate::reference::BOUNDARIES;

fn offsets(rank: usize) -> impl Strategy<Value = Vec<Vec<i64>>> {
    let offset = prop::collection::vec(-3i64..=3, rank);
    prop::collection::btree_set(offset, 1..8).prop_map(|set| set.into_iter().collect())
}

fn cases() -> impl Strategy<Value = (usize, Vec<Vec<i64>>, usize, usize, usize)> {
    (1usize..=3).prop_flat_map(|rank| {
        (
            Just(rank),
            offsets(rank),
            0..BOUNDARIES.len(),
            1usize..=3,
            0usize..3,
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_neighbourhood((rank, offsets, edge, steps, more) in cases()) {
        let taps = weighted(offsets);
        let shape = shape(BOUNDARIES[edge], steps, &taps, rank, more);
        // Larger grids do not test more than smaller ones.
        prop_assume!(shape.iter().product::<usize>() <= 2000);
        check(rank, BOUNDARIES[edge], steps, Some("T"), &taps, &shape);
    }
}
