//! Shortest paths.

use super::{EXACT, Reference};
use crate::tensor::{Arrays, Params, Tensor};

pub fn references() -> Vec<Reference> {
    vec![Reference {
        file: "graph/floyd_warshall.ure",
        system: "floyd_warshall",
        sizes: &[&[1], &[2], &[7]],
        inputs: |p, rng| {
            let [n] = p.get(["N"]);
            // Half of the edges are missing; lengths are whole numbers, so that sums are exact.
            let a = Tensor::from_fn([n, n], |[i, j]| {
                let length = rng.int(1, 40) as f64;
                match rng.int(0, 2) {
                    _ if i == j => 0.0,
                    0 => f64::INFINITY,
                    _ => length,
                }
            });
            Arrays::new().with("a", a)
        },
        outputs: bellman_ford,
        tolerance: EXACT,
    }]
}

/// From each source, relax all edges N - 1 times.
fn bellman_ford(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let a = arrays.floats("a");
    let mut d = Tensor::from_fn([n, n], |[i, j]| if i == j { 0.0 } else { f64::INFINITY });
    for source in 0..n {
        for _ in 1..n {
            for u in 0..n {
                for v in 0..n {
                    let through = d[[source, u]] + a[[u, v]];
                    d[[source, v]] = through.min(d[[source, v]]);
                }
            }
        }
    }
    Arrays::new().with("d", d)
}
