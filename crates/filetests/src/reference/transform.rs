//! Spectra.

use std::f64::consts::TAU;

use super::{DOUBLE, Reference};
use crate::tensor::{Arrays, Params, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "transform/dft_horner.ure",
            system: "dft_horner",
            sizes: &[&[1], &[2], &[3], &[9]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                let angle = TAU / n as f64;
                let omega = [angle.cos(), -angle.sin()];
                Arrays::new()
                    .with("re", rng.floats([n]))
                    .with("im", rng.floats([n]))
                    .with("omega", Tensor::from_fn([2], |[part]| omega[part]))
            },
            outputs: dft,
            tolerance: DOUBLE,
        },
        Reference {
            file: "transform/goertzel.ure",
            system: "goertzel",
            sizes: &[&[1, 1], &[1, 2], &[2, 1], &[3, 3], &[5, 9]],
            inputs: |p, rng| {
                let [bins, n] = p.get(["K", "N"]);
                let c = Tensor::from_fn([bins], |[k]| 2.0 * (TAU * (k + 1) as f64 / 17.0).cos());
                Arrays::new().with("x", rng.floats([n])).with("c", c)
            },
            outputs: goertzel,
            tolerance: DOUBLE,
        },
    ]
}

fn dft(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let (re, im) = (arrays.floats("re"), arrays.floats("im"));
    let bin = |k: usize| {
        let mut sum = (0.0, 0.0);
        for m in 0..n {
            let (sin, cos) = (-TAU * ((k * m) % n) as f64 / n as f64).sin_cos();
            sum.0 += re[[m]] * cos - im[[m]] * sin;
            sum.1 += re[[m]] * sin + im[[m]] * cos;
        }
        sum
    };
    Arrays::new()
        .with("yre", Tensor::from_fn([n], |[k]| bin(k).0))
        .with("yim", Tensor::from_fn([n], |[k]| bin(k).1))
}

/// The impulse response of the filter is sin((n + 1) θ) / sin θ with 2 cos θ = c.
fn goertzel(p: &Params, arrays: &Arrays) -> Arrays {
    let [bins, n] = p.get(["K", "N"]);
    let (x, c) = (arrays.floats("x"), arrays.floats("c"));
    let s = Tensor::from_fn([bins, n], |[k, at]| {
        let theta = (c[[k]] / 2.0).acos();
        (0..=at)
            .map(|m| x[[m]] * ((at - m + 1) as f64 * theta).sin() / theta.sin())
            .sum::<f64>()
    });
    Arrays::new().with("s", s)
}
