//! Running sums.

use super::sums::{dot, first_largest};
use super::{EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

fn rows_of_integers(p: &Params, rng: &mut Rng) -> Arrays {
    let [rows, n] = p.get(["B", "N"]);
    Arrays::new().with("x", rng.ints([rows, n], -100, 100))
}

pub fn references() -> Vec<Reference> {
    let mut all = vec![
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
        Reference {
            file: "scan/aggregate.ure",
            system: "dot",
            sizes: &[&[1], &[2], &[15], &[16], &[17], &[47], &[48], &[49], &[131]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("x", rng.floats([n]))
                    .with("y", rng.floats([n]))
            },
            outputs: |p, arrays| Arrays::new().with("s", dot(p, arrays)),
            tolerance: SINGLE,
        },
        Reference {
            file: "scan/aggregate.ure",
            system: "largest",
            sizes: &[&[1], &[3], &[16], &[17], &[31], &[32], &[33], &[101]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("a", rng.ints([n], -9, 9))
            },
            outputs: |_, arrays| {
                let a = arrays.ints("a");
                let best = first_largest(&a.data);
                Arrays::new()
                    .with("value", Tensor::from_fn([], |[]| a[[best]]))
                    .with("place", Tensor::from_fn([], |[]| best as i64))
            },
            tolerance: EXACT,
        },
        Reference {
            file: "scan/aggregate.ure",
            system: "running",
            sizes: &[&[1, 1], &[2, 7], &[3, 16], &[1, 17], &[2, 33], &[4, 71]],
            inputs: |p, rng| {
                let [rows, n] = p.get(["B", "N"]);
                Arrays::new().with("v", rng.ints([rows, n], -100, 100))
            },
            outputs: |p, arrays| {
                let [rows, n] = p.get(["B", "N"]);
                let v = arrays.ints("v");
                let r = Tensor::from_fn([rows, n], |[b, i]| {
                    (0..=i).map(|j| v[[b, j]]).fold(i64::MIN, i64::max)
                });
                Arrays::new().with("r", r)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "scan/aggregate.ure",
            system: "twice",
            sizes: &[&[1], &[16], &[31], &[33], &[65], &[101]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("x", rng.ints([n], -100, 100))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let x = arrays.ints("x");
                let prefix = |i: usize| (0..=i).map(|j| x[[j]]).sum::<i64>();
                let t = Tensor::from_fn([n], |[i]| (0..=i).map(prefix).sum::<i64>());
                Arrays::new().with("t", t)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "scan/across_blocks.ure",
            system: "suffixes",
            sizes: &[&[1, 1], &[2, 17], &[3, 33], &[1, 100]],
            inputs: rows_of_integers,
            outputs: |p, arrays| {
                let [rows, n] = p.get(["B", "N"]);
                let x = arrays.ints("x");
                let s = Tensor::from_fn([rows, n], |[b, i]| (i..n).map(|j| x[[b, j]]).sum::<i64>());
                Arrays::new().with("s", s)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "scan/look_back.ure",
            system: "prefix",
            sizes: &[&[1], &[5], &[64], &[129], &[600]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("x", rng.floats([n]))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let x = arrays.floats("x");
                let s = Tensor::from_fn([n], |[i]| (0..=i).map(|j| x[[j]]).sum::<f64>());
                Arrays::new().with("s", s)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "scan/look_back.ure",
            system: "recurrence",
            sizes: &[&[1], &[7], &[33], &[300]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                // Products of these factors are exact, so any grouping has the same result.
                let factors = Tensor::from_fn([n], |_| rng.int(-3, 4).signum() as f64);
                Arrays::new().with("a", factors).with("b", rng.floats([n]))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let (a, b) = (arrays.floats("a"), arrays.floats("b"));
                let mut last = 0.0;
                let y = Tensor::from_fn([n], |[i]| {
                    last = a[[i]] * last + b[[i]];
                    last
                });
                Arrays::new().with("y", y)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "scan/look_back.ure",
            system: "suffixes",
            sizes: &[&[1, 1], &[2, 17], &[3, 33], &[1, 130]],
            inputs: rows_of_integers,
            outputs: |p, arrays| {
                let [rows, n] = p.get(["B", "N"]);
                let x = arrays.ints("x");
                let after = |b: usize, i: usize| (i + 1..n).map(|j| x[[b, j]]).sum::<i64>();
                let s = Tensor::from_fn([rows, n], |[b, i]| after(b, i));
                Arrays::new().with("s", s)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "scan/look_back.ure",
            system: "columns",
            sizes: &[&[1, 1], &[33, 5], &[40, 37], &[8, 64]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("x", rng.floats([n, m]))
            },
            outputs: |p, arrays| {
                let [n, m] = p.get(["N", "M"]);
                let x = arrays.floats("x");
                let column = |i: usize, j: usize| (0..=i).map(|a| x[[a, j]]).sum::<f64>();
                let s = Tensor::from_fn([n, m], |[i, j]| column(i, j));
                Arrays::new().with("s", s)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "scan/look_back.ure",
            system: "segments",
            sizes: &[&[1, 1], &[33, 5], &[40, 37], &[8, 64]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("x", rng.ints([n, m], -100, 100)).with(
                    "mark",
                    Tensor::from_fn([n, m], |_| i64::from(rng.int(0, 6) == 0)),
                )
            },
            outputs: |p, arrays| {
                let [n, m] = p.get(["N", "M"]);
                let (x, mark) = (arrays.ints("x"), arrays.ints("mark"));
                let begin = |i: usize, j: usize| (0..=i).rev().find(|a| mark[[*a, j]] != 0);
                let s = Tensor::from_fn([n, m], |[i, j]| {
                    let begin = begin(i, j).unwrap_or(0);
                    (begin..=i).map(|a| x[[a, j]]).sum::<i64>()
                });
                Arrays::new().with("s", s)
            },
            tolerance: EXACT,
        },
    ];
    let file = "scan/look_back.ure";
    let mut area = all[1].also(file, &[&[1, 1], &[4, 33], &[9, 40], &[13, 7]]);
    area.system = "area";
    all.push(area);
    let file = "scan/across_blocks.ure";
    all.push(all[0].also(file, &[&[1, 1], &[5, 33], &[40, 31], &[3, 129]]));
    all.push(all[1].also(file, &[&[1, 1], &[4, 33], &[9, 40], &[13, 7]]));
    all
}
