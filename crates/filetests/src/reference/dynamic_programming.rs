//! Best paths and best splits.

use super::{DOUBLE, EXACT, Reference};
use crate::tensor::{Arrays, Params, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "dynamic-programming/viterbi.ure",
            system: "viterbi",
            sizes: &[&[1, 1], &[2, 1], &[1, 4], &[2, 3], &[5, 3]],
            inputs: |p, rng| {
                let [times, n] = p.get(["T", "N"]);
                Arrays::new()
                    .with("pi", rng.floats([n]))
                    .with("trans", rng.floats([n, n]))
                    .with("emit", rng.floats([n, 4]))
                    .with("obs", rng.ints([times], 0, 4))
            },
            outputs: best_paths,
            tolerance: DOUBLE,
        },
        Reference {
            file: "dynamic-programming/parenthesisation.ure",
            system: "parenthesisation",
            sizes: &[&[2], &[3], &[4], &[10]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("base", rng.ints([n], 0, 50))
                    .with("w", rng.ints([n, n + 1], 0, 100))
            },
            outputs: parenthesisation,
            tolerance: EXACT,
        },
        Reference {
            file: "dynamic-programming/nussinov.ure",
            system: "nussinov",
            sizes: &[&[2], &[3], &[4], &[5], &[13]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("s", rng.ints([n], 0, 4))
            },
            outputs: nussinov,
            tolerance: EXACT,
        },
    ]
}

/// The best of all N^(T+1) paths, tried one by one.
fn best_paths(p: &Params, arrays: &Arrays) -> Arrays {
    let [times, n] = p.get(["T", "N"]);
    let (pi, trans) = (arrays.floats("pi"), arrays.floats("trans"));
    let (emit, obs) = (arrays.floats("emit"), arrays.ints("obs"));
    let mut best = Tensor::filled([n], f64::NEG_INFINITY);
    for code in 0..n.pow(times as u32 + 1) {
        let state = |t: usize| code / n.pow(t as u32) % n;
        let mut score = pi[[state(0)]];
        for t in 0..times {
            let (from, to) = (state(t), state(t + 1));
            score += trans[[from, to]] + emit[[to, obs[[t]] as usize]];
        }
        let last = &mut best[[state(times)]];
        *last = last.max(score);
    }
    Arrays::new().with("d", best)
}

fn parenthesisation(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let (base, w) = (arrays.ints("base"), arrays.ints("w"));
    let mut cost = Tensor::filled([n + 1, n + 1], 0);
    for length in 1..=n {
        for i in 0..=n - length {
            let j = i + length;
            cost[[i, j]] = if length == 1 {
                base[[i]]
            } else {
                let splits = (i + 1..j).map(|m| cost[[i, m]] + cost[[m, j]]);
                splits.min().expect("length > 1") + w[[i, j]]
            };
        }
    }
    let c = Tensor::from_fn(
        [n, n + 1],
        |[i, j]| if j >= i + 2 { cost[[i, j]] } else { 0 },
    );
    Arrays::new()
        .with("c", c)
        .with("total", Tensor::filled([], cost[[0, n]]))
}

/// The other classical form: the first letter of [i, j) stays alone, or pairs with the letter k.
fn nussinov(p: &Params, arrays: &Arrays) -> Arrays {
    let [len] = p.get(["N"]);
    let s = arrays.ints("s");
    let pairs = |a: i64, b: i64| matches!((a.min(b), a.max(b)), (0, 3) | (1, 2) | (2, 3));
    let mut n = Tensor::filled([len + 1, len + 1], 0);
    for length in 1..=len {
        for i in 0..=len - length {
            let j = i + length;
            let mut best = n[[i + 1, j]];
            for k in i + 1..j {
                if pairs(s[[i]], s[[k]]) {
                    best = best.max(1 + n[[i + 1, k]] + n[[k + 1, j]]);
                }
            }
            n[[i, j]] = best;
        }
    }
    let table = Tensor::from_fn([len, len + 1], |[i, j]| if i < j { n[[i, j]] } else { 0 });
    Arrays::new()
        .with("n", table)
        .with("pairs", Tensor::filled([], n[[0, len]]))
}
