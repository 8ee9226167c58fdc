//! Images.

use super::{EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Tensor};

/// Farther than any pixel.
const FAR: i64 = 1 << 29;

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "vision/chamfer.ure",
            system: "chamfer",
            sizes: &[&[1, 1], &[1, 6], &[5, 1], &[7, 8]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                let seed = Tensor::from_fn([n, m], |_| if rng.int(0, 6) == 0 { 0 } else { FAR });
                Arrays::new().with("seed", seed)
            },
            outputs: chamfer,
            tolerance: EXACT,
        },
        Reference {
            file: "vision/motion_estimation.ure",
            system: "motion_estimation",
            sizes: &[&[1, 1], &[1, 3], &[3, 1], &[2, 2], &[4, 3]],
            inputs: |p, rng| {
                let [m, n] = p.get(["M", "N"]);
                // Few grey levels: ties happen.
                Arrays::new()
                    .with("x", rng.ints([n, n], 0, 3))
                    .with("y", rng.ints([n + m - 1, n + m - 1], 0, 3))
            },
            outputs: motion_estimation,
            tolerance: EXACT,
        },
        Reference {
            file: "vision/sobel.ure",
            system: "sobel",
            sizes: &[&[1, 1], &[1, 6], &[5, 1], &[7, 8], &[35, 70]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("x", rng.floats([n, m]))
            },
            outputs: sobel,
            tolerance: SINGLE,
        },
    ]
}

/// Differences of pixels beside each other, with the weights 1, 2, 1 across.
fn sobel(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    let x = arrays.floats("x");
    let pixel = |i: usize, di: i64, j: usize, dj: i64| {
        let inside = |at: usize, d: i64, end: usize| (at as i64 + d).clamp(0, end as i64 - 1);
        x[[inside(i, di, n) as usize, inside(j, dj, m) as usize]]
    };
    let z = Tensor::from_fn([n, m], |[i, j]| {
        let (mut across, mut down) = (0.0, 0.0);
        for (d, weight) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
            across += weight * (pixel(i, d, j, 1) - pixel(i, d, j, -1));
            down += weight * (pixel(i, 1, j, d) - pixel(i, -1, j, d));
        }
        f64::hypot(across, down) / 4.0
    });
    Arrays::new().with("z", z)
}

/// The forward pass finds the cheapest path from a seed that never goes up or, within a row, left.
/// To a row k above and c columns aside there is one formula: k steps down, at best diagonal ones,
/// then right.
fn chamfer(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    let seed = arrays.ints("seed");
    let cost = |down: i64, right: i64| -> Option<i64> {
        if right >= 0 {
            let diagonal = down.min(right);
            Some(4 * diagonal + 3 * (down - diagonal) + 3 * (right - diagonal))
        } else if -right <= down {
            Some(4 * -right + 3 * (down + right))
        } else {
            // Too far to the left: paths do not go left without going down.
            None
        }
    };
    let d = Tensor::from_fn([n, m], |[i, j]| {
        let mut best = FAR;
        for a in 0..=i {
            for b in 0..m {
                if let Some(cost) = cost((i - a) as i64, j as i64 - b as i64) {
                    best = best.min(seed[[a, b]] + cost);
                }
            }
        }
        best
    });
    Arrays::new().with("d", d)
}

fn motion_estimation(p: &Params, arrays: &Arrays) -> Arrays {
    let [range, n] = p.get(["M", "N"]);
    let (x, y) = (arrays.ints("x"), arrays.ints("y"));
    let mut best = None;
    for m in 0..range {
        for k in 0..range {
            let mut sad = 0;
            for i in 0..n {
                for j in 0..n {
                    sad += (x[[i, j]] - y[[i + m, j + k]]).abs();
                }
            }
            if best.is_none_or(|(least, _)| sad < least) {
                best = Some((sad, [m as i64, k as i64]));
            }
        }
    }
    let (sad, motion) = best.expect("M >= 1");
    Arrays::new()
        .with("sad", Tensor::filled([], sad))
        .with("motion", Tensor::from_fn([2], |[axis]| motion[axis]))
}
