//! Sweeps over a grid.

use systola_stencil::reference::{Boundary, Grid};

use super::{DOUBLE, EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

pub fn references() -> Vec<Reference> {
    let seidel = Reference {
        file: "stencil/gauss_seidel.ure",
        system: "gauss_seidel",
        sizes: &[&[1, 1, 1], &[2, 1, 5], &[3, 4, 1], &[4, 5, 3]],
        inputs: |p, rng| {
            let [n, m] = p.get(["N", "M"]);
            Arrays::new()
                .with("b", rng.floats([n, m]))
                .with("x0", rng.floats([n, m]))
        },
        outputs: gauss_seidel,
        tolerance: DOUBLE,
    };
    let blocks = seidel.also(
        "stencil/gauss_seidel_blocks.ure",
        &[&[1, 1, 1], &[2, 9, 5], &[6, 20, 3], &[11, 7, 4]],
    );
    vec![
        Reference {
            file: "stencil/jacobi1d.ure",
            system: "jacobi1d",
            sizes: &[&[1, 1], &[3, 1], &[1, 5], &[3, 2], &[5, 9]],
            inputs: jacobi1d_inputs,
            outputs: jacobi1d,
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/jacobi1d_overlap.ure",
            system: "jacobi1d",
            sizes: &[&[1, 1], &[3, 1], &[4, 24], &[5, 31], &[9, 60]],
            inputs: jacobi1d_inputs,
            outputs: jacobi1d,
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/heat2d.ure",
            system: "heat2d",
            sizes: &[&[1, 1, 1], &[2, 1, 4], &[3, 4, 1], &[4, 5, 24], &[5, 6, 33]],
            inputs: field,
            outputs: |p, arrays| sweeps(p, arrays, &HEAT),
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/drift2d.ure",
            system: "drift2d",
            sizes: &[
                &[1, 1, 1],
                &[2, 1, 4],
                &[3, 4, 1],
                &[4, 5, 24],
                &[5, 6, 33],
                &[9, 38, 120],
                &[3, 39, 121],
            ],
            inputs: field,
            outputs: |p, arrays| sweeps(p, arrays, &DRIFT),
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/star2.ure",
            system: "star2",
            sizes: &[
                &[1, 1, 1],
                &[2, 5, 6],
                &[3, 4, 9],
                &[4, 3, 7],
                &[5, 9, 24],
                &[6, 7, 33],
            ],
            inputs: field,
            outputs: |p, arrays| sweeps(p, arrays, &STAR),
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/box3.ure",
            system: "box3",
            sizes: &[&[1, 1, 1], &[2, 1, 4], &[3, 4, 3], &[4, 5, 24], &[5, 6, 33]],
            inputs: field,
            outputs: |p, arrays| sweeps(p, arrays, &BOX),
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/life.ure",
            system: "life",
            sizes: &[&[1, 1, 2], &[2, 1, 5], &[3, 4, 2], &[4, 6, 7]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("x", rng.ints([n, m], 0, 2))
            },
            outputs: life,
            tolerance: EXACT,
        },
        seidel,
        blocks,
    ]
}

fn jacobi1d_inputs(p: &Params, rng: &mut Rng) -> Arrays {
    let [n] = p.get(["N"]);
    Arrays::new().with("x", rng.floats([n]))
}

fn jacobi1d(p: &Params, arrays: &Arrays) -> Arrays {
    let taps = [([-1], 0.25), ([0], 0.5), ([1], 0.25)];
    Arrays::new().with("y", swept(p, arrays.floats("x"), &taps))
}

const DRIFT: [([i64; 2], f64); 5] = [
    ([-1, 0], 0.15),
    ([0, 0], 0.5),
    ([0, -1], 0.11),
    ([0, 1], 0.14),
    ([1, 0], 0.1),
];

const HEAT: [([i64; 2], f64); 5] = [
    ([-1, 0], 0.125),
    ([0, -1], 0.125),
    ([0, 0], 0.5),
    ([0, 1], 0.125),
    ([1, 0], 0.125),
];

const STAR: [([i64; 2], f64); 9] = [
    ([-2, 0], 0.05),
    ([-1, 0], 0.12),
    ([0, -2], 0.04),
    ([0, -1], 0.09),
    ([0, 0], 0.4),
    ([0, 1], 0.11),
    ([0, 2], 0.08),
    ([1, 0], 0.08),
    ([2, 0], 0.03),
];

const BOX: [([i64; 2], f64); 9] = [
    ([-1, -1], 0.05),
    ([-1, 0], 0.17),
    ([-1, 1], 0.07),
    ([0, -1], 0.16),
    ([0, 0], 0.2),
    ([0, 1], 0.12),
    ([1, -1], 0.06),
    ([1, 0], 0.13),
    ([1, 1], 0.04),
];

fn field(p: &Params, rng: &mut Rng) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    Arrays::new().with("x0", rng.floats([n, m]))
}

/// Weighted sums of neighbours, T times; cells without all neighbours keep their value.
fn swept<const N: usize>(p: &Params, start: &Tensor<f64>, taps: &[([i64; N], f64)]) -> Tensor<f64> {
    let [times] = p.get(["T"]);
    let start = Grid {
        shape: start.shape.clone(),
        data: start.data.clone(),
    };
    let taps: Vec<_> = taps.iter().map(|(by, w)| (by.to_vec(), *w)).collect();
    let Grid { shape, data } = start.sweeps(&taps, Boundary::Fixed, times);
    Tensor { shape, data }
}

fn sweeps(p: &Params, arrays: &Arrays, taps: &[([i64; 2], f64)]) -> Arrays {
    Arrays::new().with("h", swept(p, arrays.floats("x0"), taps))
}

fn life(p: &Params, arrays: &Arrays) -> Arrays {
    let [times, n, m] = p.get(["T", "N", "M"]);
    let mut board = arrays.ints("x").clone();
    for _ in 0..times {
        let old = board.clone();
        board = Tensor::from_fn([n, m], |[i, j]| {
            let mut alive = 0;
            for a in i.saturating_sub(1)..n.min(i + 2) {
                for b in j.saturating_sub(1)..m.min(j + 2) {
                    alive += old[[a, b]];
                }
            }
            // The cell itself was counted too.
            i64::from(alive == 3 || (alive == 4 && old[[i, j]] == 1))
        });
    }
    Arrays::new().with("y", board)
}

fn gauss_seidel(p: &Params, arrays: &Arrays) -> Arrays {
    let [times, n, m] = p.get(["T", "N", "M"]);
    let (b, mut x) = (arrays.floats("b"), arrays.floats("x0").clone());
    for _ in 0..times {
        for i in 0..n {
            for j in 0..m {
                let mut sum = b[[i, j]];
                if i > 0 {
                    sum += x[[i - 1, j]];
                }
                if j > 0 {
                    sum += x[[i, j - 1]];
                }
                if i + 1 < n {
                    sum += x[[i + 1, j]];
                }
                if j + 1 < m {
                    sum += x[[i, j + 1]];
                }
                x[[i, j]] = sum / 4.0;
            }
        }
    }
    Arrays::new().with("x", x)
}
