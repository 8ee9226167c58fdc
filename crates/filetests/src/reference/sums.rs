//! Sums in stages.

use super::{EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Tensor};

/// The sum of products of `x` and `y`.
pub(super) fn dot(p: &Params, arrays: &Arrays) -> Tensor<f64> {
    let [n] = p.get(["N"]);
    let (x, y) = (arrays.floats("x"), arrays.floats("y"));
    let sum = (0..n).map(|i| x[[i]] * y[[i]]).sum::<f64>();
    Tensor::from_fn([], |[]| sum)
}

/// The first place of the largest element.
pub(super) fn first_largest<T: PartialOrd>(all: &[T]) -> usize {
    (1..all.len()).fold(0, |best, i| if all[i] > all[best] { i } else { best })
}

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "sums/dot.ure",
            system: "dot",
            sizes: &[&[1], &[3], &[16], &[31], &[64], &[129], &[300]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("x", rng.floats([n]))
                    .with("y", rng.floats([n]))
            },
            outputs: |p, arrays| Arrays::new().with("z", dot(p, arrays)),
            tolerance: SINGLE,
        },
        Reference {
            file: "sums/argmax.ure",
            system: "argmax",
            sizes: &[&[1], &[5], &[32], &[127], &[257]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("x", rng.floats([n]))
            },
            outputs: |_, arrays| {
                let x = arrays.floats("x");
                let best = first_largest(&x.data);
                Arrays::new()
                    .with("value", Tensor::from_fn([], |[]| x[[best]]))
                    .with("place", Tensor::from_fn([], |[]| best as i64))
            },
            tolerance: EXACT,
        },
        Reference {
            file: "sums/gemv.ure",
            system: "gemv",
            sizes: &[&[1, 1], &[9, 3], &[3, 17], &[2, 128], &[5, 301]],
            inputs: |p, rng| {
                let [n, k] = p.get(["N", "K"]);
                Arrays::new()
                    .with("A", rng.floats([n, k]))
                    .with("x", rng.floats([k]))
            },
            outputs: |p, arrays| {
                let [n, k] = p.get(["N", "K"]);
                let (a, x) = (arrays.floats("A"), arrays.floats("x"));
                let row = |i: usize| (0..k).map(|j| a[[i, j]] * x[[j]]).sum::<f64>();
                Arrays::new().with("z", Tensor::from_fn([n], |[i]| row(i)))
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "sums/statistics.ure",
            system: "statistics",
            sizes: &[&[1, 1], &[9, 2], &[3, 33], &[2, 260]],
            inputs: |p, rng| {
                let [n, k] = p.get(["N", "K"]);
                Arrays::new().with("A", rng.floats([n, k]))
            },
            outputs: |p, arrays| {
                let [n, k] = p.get(["N", "K"]);
                let a = arrays.floats("A");
                let mean = |i: usize| (0..k).map(|j| a[[i, j]]).sum::<f64>() / k as f64;
                let square = |i: usize| (0..k).map(|j| a[[i, j]] * a[[i, j]]).sum::<f64>();
                let variance = |i: usize| square(i) / k as f64 - mean(i) * mean(i);
                Arrays::new()
                    .with("mean", Tensor::from_fn([n], |[i]| mean(i)))
                    .with("variance", Tensor::from_fn([n], |[i]| variance(i)))
            },
            tolerance: SINGLE,
        },
    ]
}
