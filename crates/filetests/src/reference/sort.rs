//! Sorting.

use super::{EXACT, Reference};
use crate::tensor::{Arrays, Params, Rng, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "sort/odd_even.ure",
            system: "odd_even",
            sizes: &[&[1], &[2], &[3], &[9]],
            inputs: keys,
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let sorted = sorted(arrays);
                Arrays::new().with("y", Tensor::from_fn([n], |[i]| sorted[i]))
            },
            tolerance: EXACT,
        },
        Reference {
            file: "sort/insertion.ure",
            system: "insertion",
            sizes: &[&[1, 1], &[1, 3], &[4, 1], &[3, 6], &[9, 5]],
            inputs: keys,
            outputs: |p, arrays| {
                let [cells] = p.get(["K"]);
                let sorted = sorted(arrays);
                let empty = i64::from(i32::MAX);
                let kept = |[k]: [usize; 1]| sorted.get(k).copied().unwrap_or(empty);
                Arrays::new().with("sorted", Tensor::from_fn([cells], kept))
            },
            tolerance: EXACT,
        },
        Reference {
            file: "sort/rank.ure",
            system: "rank",
            sizes: &[&[1], &[2], &[9]],
            inputs: keys,
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let x = arrays.ints("x");
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by_key(|i| x[[*i]]);
                let mut place = Tensor::filled([n], 0);
                for (rank, i) in order.into_iter().enumerate() {
                    place[[i]] = rank as i64;
                }
                Arrays::new().with("place", place)
            },
            tolerance: EXACT,
        },
    ]
}

/// Few different keys: ties are the rule.
fn keys(p: &Params, rng: &mut Rng) -> Arrays {
    let [n] = p.get(["N"]);
    Arrays::new().with("x", rng.ints([n], -4, 5))
}

fn sorted(arrays: &Arrays) -> Vec<i64> {
    let mut keys = arrays.ints("x").data.clone();
    keys.sort_unstable();
    keys
}
