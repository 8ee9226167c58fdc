//! Products of matrices.

use std::ops::Range;
use std::sync::Arc;

use super::case::{Case, Data, Mappings, Output, Trial, Unit, Work};
use super::conv::tolerance;
use super::sample::sampled;

/// c(i, j) = Σ a(i, k) b(k, j).
pub fn matmul(n: usize) -> Case {
    let sizes = vec![("N", n as i64), ("M", n as i64), ("K", n as i64)];
    let of_trial = sizes.clone();
    Case {
        name: format!("{n}³"),
        program: "linear-algebra/matmul_core.ure",
        mappings: Mappings::Of {
            system: "matmul",
            but: &["panel"],
        },
        sizes,
        fix: &[],
        work: Work {
            operations: 2.0 * (n * n * n) as f64,
            unit: Unit::F32,
            bytes: 12.0 * (n * n) as f64,
            cells: None,
        },
        note: String::new(),
        baseline: Some(n.to_string()),
        make: Box::new(move |arrays| {
            let (a, b) = (arrays.f32(7, &[n, n]), arrays.f32(8, &[n, n]));
            let reference = {
                let (a, b) = (Arc::clone(&a), Arc::clone(&b));
                move |row: usize, all: Range<usize>, out: &mut [f64]| {
                    for k in 0..n {
                        b.add_scaled(k * n + all.start, a.get(row * n + k), out);
                    }
                }
            };
            let c = Output {
                name: "c",
                shape: vec![n, n],
                check: sampled([n, n], tolerance(n, Unit::F32), reference),
            };
            Data {
                inputs: vec![("a", a), ("b", b)],
                trials: vec![Trial {
                    sizes: of_trial.clone(),
                    outputs: vec![c],
                }],
            }
        }),
    }
}
