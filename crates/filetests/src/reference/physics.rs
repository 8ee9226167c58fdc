//! Bodies that attract one another.

use super::{DOUBLE, Reference};
use crate::tensor::{Arrays, Tensor};

pub fn references() -> Vec<Reference> {
    vec![Reference {
        file: "physics/n_body.ure",
        system: "n_body",
        sizes: &[&[1], &[2], &[7]],
        inputs: |p, rng| {
            let [n] = p.get(["N"]);
            Arrays::new().with("x", rng.floats([n]))
        },
        outputs: |p, arrays| {
            let [n] = p.get(["N"]);
            let x = arrays.floats("x");
            let force = Tensor::from_fn([n], |[i]| {
                (0..n)
                    .map(|j| {
                        let d = x[[j]] - x[[i]];
                        d / (d * d + 0.01).powf(1.5)
                    })
                    .sum::<f64>()
            });
            Arrays::new().with("force", force)
        },
        tolerance: DOUBLE,
    }]
}
