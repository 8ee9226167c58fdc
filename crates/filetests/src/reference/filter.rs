//! Filters that feed back.

use super::{DOUBLE, EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "filter/iir.ure",
            system: "iir",
            sizes: &[&[1, 1], &[1, 4], &[9, 1], &[5, 7], &[12, 2]],
            inputs: |p, rng| {
                let [n, taps] = p.get(["T", "I"]);
                // Small coefficients: a stable filter.
                let a = Tensor::from_fn([taps], |_| rng.float() / (4 * taps) as f64);
                Arrays::new().with("u", rng.floats([n])).with("a", a)
            },
            outputs: iir,
            tolerance: DOUBLE,
        },
        Reference {
            file: "filter/recursive2d.ure",
            system: "recursive2d",
            sizes: &[&[1, 1], &[1, 5], &[5, 1], &[7, 7]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                let h = Tensor::from_fn([3], |_| rng.float() / 8.0);
                Arrays::new().with("x", rng.floats([n, m])).with("h", h)
            },
            outputs: recursive2d,
            tolerance: DOUBLE,
        },
        Reference {
            file: "filter/schur.ure",
            system: "schur",
            sizes: &[&[1], &[2], &[3], &[9]],
            inputs: autocorrelation,
            outputs: levinson,
            tolerance: DOUBLE,
        },
        Reference {
            file: "filter/bank.ure",
            system: "leaky",
            sizes: &[
                &[1, 1],
                &[3, 2],
                &[15, 1],
                &[16, 3],
                &[17, 2],
                &[47, 4],
                &[53, 5],
            ],
            inputs: |p, rng| {
                let [channels, n] = p.get(["B", "N"]);
                let a = Tensor::from_fn([channels], |_| rng.float() / 2.0);
                Arrays::new()
                    .with("x", rng.floats([n, channels]))
                    .with("a", a)
            },
            outputs: |p, arrays| {
                let [channels, n] = p.get(["B", "N"]);
                let (x, a) = (arrays.floats("x"), arrays.floats("a"));
                let mut y: Tensor<f64> = Tensor::from_fn([n, channels], |_| 0.0);
                for b in 0..channels {
                    let mut last = 0.0;
                    for i in 0..n {
                        last = a[[b]] * last + x[[i, b]];
                        y[[i, b]] = last;
                    }
                }
                Arrays::new().with("y", y)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "filter/bank.ure",
            system: "short",
            sizes: &[
                &[1, 1],
                &[2, 3],
                &[3, 7],
                &[4, 5],
                &[5, 2],
                &[7, 4],
                &[13, 3],
            ],
            inputs: |p, rng| {
                let [channels, n] = p.get(["B", "N"]);
                Arrays::new()
                    .with("x", rng.ints([channels, n + 3], -50, 50))
                    .with("w", rng.ints([4], -9, 9))
            },
            outputs: |p, arrays| {
                let [channels, n] = p.get(["B", "N"]);
                let (x, w) = (arrays.ints("x"), arrays.ints("w"));
                let z = Tensor::from_fn([channels, n], |[b, i]| {
                    (0..4).map(|k| w[[k]] * x[[b, i + k]]).sum::<i64>()
                });
                Arrays::new().with("z", z)
            },
            tolerance: EXACT,
        },
    ]
}

fn iir(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, taps] = p.get(["T", "I"]);
    let (u, a) = (arrays.floats("u"), arrays.floats("a"));
    let mut y = Tensor::filled([n], 0.0);
    for t in 0..n {
        // y(t - 1 - i), with silence before the first sample.
        let past: f64 = (0..taps.min(t)).map(|i| a[[i]] * y[[t - 1 - i]]).sum();
        y[[t]] = u[[t]] + past;
    }
    Arrays::new().with("y", y)
}

fn recursive2d(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    let (x, h) = (arrays.floats("x"), arrays.floats("h"));
    // One more row and column, of zeros, above and to the left.
    let mut y = Tensor::filled([n + 1, m + 1], 0.0);
    for i in 1..=n {
        for j in 1..=m {
            y[[i, j]] = x[[i - 1, j - 1]]
                + h[[0]] * y[[i - 1, j]]
                + h[[1]] * y[[i, j - 1]]
                + h[[2]] * y[[i - 1, j - 1]];
        }
    }
    Arrays::new().with("y", Tensor::from_fn([n, m], |[i, j]| y[[i + 1, j + 1]]))
}

/// The autocorrelation of a random signal is the first row of a positive definite Toeplitz matrix.
fn autocorrelation(p: &Params, rng: &mut Rng) -> Arrays {
    let [n] = p.get(["N"]);
    let signal: Vec<f64> = (0..4 * n + 8).map(|_| rng.float()).collect();
    let t = Tensor::from_fn([n + 1], |[lag]| {
        signal
            .iter()
            .zip(&signal[lag..])
            .map(|(a, b)| a * b)
            .sum::<f64>()
    });
    Arrays::new().with("t", t)
}

/// Levinson's recursion: the same reflection coefficients from inner products.
fn levinson(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let t = arrays.floats("t");
    let mut predictor = vec![1.0];
    let mut error = t[[0]];
    let mut rho = Vec::new();
    for k in 1..=n {
        let mismatch: f64 = predictor
            .iter()
            .enumerate()
            .map(|(m, a)| a * t[[k - m]])
            .sum::<f64>();
        let r = -mismatch / error;
        rho.push(r);
        predictor.push(0.0);
        let reversed: Vec<f64> = predictor.iter().rev().copied().collect();
        for (a, b) in predictor.iter_mut().zip(reversed) {
            *a += r * b;
        }
        error *= 1.0 - r * r;
    }
    Arrays::new().with("rho", Tensor::from_fn([n], |[k]| rho[k]))
}
