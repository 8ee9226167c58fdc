//! Running sums.

use super::{EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Tensor};

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "scan/prefix_rows.ure",
            system: "prefix_rows",
            sizes: &[&[1, 1], &[1, 9], &[6, 1], &[3, 7]],
            inputs: |p, rng| {
                let [rows, n] = p.get(["B", "N"]);
                Arrays::new().with("x", rng.floats([rows, n]))
            },
            outputs: |p, arrays| {
                let [rows, n] = p.get(["B", "N"]);
                let x = arrays.floats("x");
                let s =
                    Tensor::from_fn([rows, n], |[b, i]| (0..=i).map(|j| x[[b, j]]).sum::<f64>());
                Arrays::new().with("s", s)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "scan/summed_area.ure",
            system: "summed_area",
            sizes: &[&[1, 1], &[1, 4], &[5, 1], &[7, 5]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("x", rng.ints([n, m], -100, 100))
            },
            outputs: |p, arrays| {
                let [n, m] = p.get(["N", "M"]);
                let x = arrays.ints("x");
                let s = Tensor::from_fn([n, m], |[i, j]| {
                    let row = |a: usize| (0..=j).map(|b| x[[a, b]]).sum::<i64>();
                    (0..=i).map(row).sum::<i64>()
                });
                Arrays::new().with("s", s)
            },
            tolerance: EXACT,
        },
    ]
}
