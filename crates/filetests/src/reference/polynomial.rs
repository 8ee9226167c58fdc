//! Polynomials: values, products, interpolation.

use super::{DOUBLE, EXACT, Reference};
use crate::tensor::{Arrays, Params, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "polynomial/horner.ure",
            system: "horner",
            sizes: &[&[1, 1], &[1, 5], &[6, 1], &[5, 7]],
            inputs: |p, rng| {
                let [points, terms] = p.get(["M", "N"]);
                Arrays::new()
                    .with("a", rng.floats([terms]))
                    .with("x", rng.floats([points]))
            },
            outputs: evaluate,
            tolerance: DOUBLE,
        },
        Reference {
            file: "polynomial/product.ure",
            system: "product",
            sizes: &[&[1, 1], &[1, 4], &[5, 1], &[6, 6]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new()
                    .with("a", rng.ints([n], -1000, 1000))
                    .with("b", rng.ints([m], -1000, 1000))
            },
            outputs: product,
            tolerance: EXACT,
        },
        Reference {
            file: "polynomial/divided_differences.ure",
            system: "divided_differences",
            sizes: &[&[1], &[2], &[3], &[7]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                // Distinct nodes, a quarter apart or more.
                let x = Tensor::from_fn([n], |[i]| i as f64 + rng.int(0, 3) as f64 / 4.0);
                Arrays::new().with("x", x).with("y", rng.floats([n]))
            },
            outputs: divided_differences,
            tolerance: DOUBLE,
        },
    ]
}

fn evaluate(p: &Params, arrays: &Arrays) -> Arrays {
    let [points, terms] = p.get(["M", "N"]);
    let (a, x) = (arrays.floats("a"), arrays.floats("x"));
    let y = Tensor::from_fn([points], |[m]| {
        (0..terms)
            .map(|n| a[[n]] * x[[m]].powi((terms - 1 - n) as i32))
            .sum::<f64>()
    });
    Arrays::new().with("y", y)
}

fn product(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    let (a, b) = (arrays.ints("a"), arrays.ints("b"));
    let mut c = Tensor::filled([n + m - 1], 0);
    for i in 0..n {
        for j in 0..m {
            c[[i + j]] += a[[i]] * b[[j]];
        }
    }
    Arrays::new().with("c", c)
}

/// f[x_0 .. x_k] = Σ_j y_j / Π_{m≠j} (x_j - x_m), the symmetric formula.
fn divided_differences(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let (x, y) = (arrays.floats("x"), arrays.floats("y"));
    let coef = Tensor::from_fn([n], |[k]| {
        (0..=k)
            .map(|j| {
                let others = (0..=k).filter(|m| *m != j);
                y[[j]] / others.map(|m| x[[j]] - x[[m]]).product::<f64>()
            })
            .sum::<f64>()
    });
    Arrays::new().with("coef", coef)
}
