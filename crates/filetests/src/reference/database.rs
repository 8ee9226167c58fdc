//! Joining, counting, looking up.

use super::{EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "database/equi_join.ure",
            system: "equi_join",
            sizes: &[&[1, 1, 1], &[1, 5, 2], &[6, 1, 1], &[5, 4, 4]],
            inputs: |p, rng| {
                let [n, m, k] = p.get(["N", "M", "K"]);
                Arrays::new()
                    .with("a", rng.ints([n, k], 0, 2))
                    .with("b", rng.ints([m, k], 0, 2))
            },
            outputs: |p, arrays| {
                let [n, m, k] = p.get(["N", "M", "K"]);
                let (a, b) = (arrays.ints("a"), arrays.ints("b"));
                let agree = Tensor::from_fn([n, m], |[i, j]| {
                    i64::from(a.data[i * k..(i + 1) * k] == b.data[j * k..(j + 1) * k])
                });
                Arrays::new().with("match", agree)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "database/histogram.ure",
            system: "histogram",
            sizes: &[&[1, 1], &[1, 4], &[8, 1], &[20, 5]],
            inputs: |p, rng| {
                let [n, bins] = p.get(["N", "K"]);
                // Some values fall into no bin.
                Arrays::new().with("x", rng.ints([n], 0, bins as i64 + 2))
            },
            outputs: |p, arrays| {
                let [bins] = p.get(["K"]);
                let mut h = Tensor::filled([bins], 0);
                for x in &arrays.ints("x").data {
                    if *x < bins as i64 {
                        h[[*x as usize]] += 1;
                    }
                }
                Arrays::new().with("h", h)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "database/nearest_neighbour.ure",
            system: "nearest_neighbour",
            sizes: &[&[1, 1, 1], &[1, 4, 2], &[5, 1, 3], &[4, 6, 1]],
            inputs: |p, rng| {
                let [n, m, k] = p.get(["N", "M", "K"]);
                // Small whole numbers: distances are exact and ties happen.
                let mut points = |n| Tensor::from_fn([n, k], |_| rng.int(-3, 4) as f64);
                let (q, r) = (points(n), points(m));
                Arrays::new().with("q", q).with("r", r)
            },
            outputs: nearest_neighbour,
            tolerance: SINGLE,
        },
    ]
}

fn nearest_neighbour(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m, features] = p.get(["N", "M", "K"]);
    let (q, r) = (arrays.floats("q"), arrays.floats("r"));
    let distance = |i: usize, j: usize| -> f64 {
        (0..features).map(|k| (q[[i, k]] - r[[j, k]]).powi(2)).sum()
    };
    let nearest = |i: usize| {
        // `min_by` keeps the first of equals.
        let best = (0..m).min_by(|a, b| distance(i, *a).total_cmp(&distance(i, *b)));
        best.expect("M >= 1")
    };
    Arrays::new()
        .with("dist", Tensor::from_fn([n], |[i]| distance(i, nearest(i))))
        .with("best", Tensor::from_fn([n], |[i]| nearest(i) as i64))
}
