//! Dense matrices.

use super::{DOUBLE, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

type Matrix = Tensor<f64>;

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: "linear-algebra/matvec.ure",
            system: "matvec",
            sizes: &[&[1, 1], &[1, 6], &[5, 1], &[7, 7]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new()
                    .with("a", rng.floats([n, m]))
                    .with("x", rng.floats([m]))
            },
            outputs: |p, arrays| {
                let [n, m] = p.get(["N", "M"]);
                let (a, x) = (arrays.floats("a"), arrays.floats("x"));
                let y = Tensor::from_fn([n], |[i]| (0..m).map(|j| a[[i, j]] * x[[j]]).sum::<f64>());
                Arrays::new().with("y", y)
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "linear-algebra/matmul.ure",
            system: "matmul",
            sizes: &[&[1, 1, 1], &[1, 4, 3], &[5, 1, 2], &[2, 3, 1], &[5, 5, 5]],
            inputs: |p, rng| {
                let [n, m, k] = p.get(["N", "M", "K"]);
                Arrays::new()
                    .with("a", rng.floats([n, k]))
                    .with("b", rng.floats([k, m]))
            },
            outputs: |_, arrays| {
                Arrays::new().with("c", multiply(arrays.floats("a"), arrays.floats("b")))
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "linear-algebra/matmul_core.ure",
            system: "matmul",
            sizes: &[
                &[1, 1, 1],
                &[1, 4, 3],
                &[13, 1, 2],
                &[12, 32, 5],
                &[25, 35, 7],
            ],
            inputs: |p, rng| {
                let [n, m, k] = p.get(["N", "M", "K"]);
                Arrays::new()
                    .with("a", rng.floats([n, k]))
                    .with("b", rng.floats([k, m]))
            },
            outputs: |_, arrays| {
                Arrays::new().with("c", multiply(arrays.floats("a"), arrays.floats("b")))
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "linear-algebra/band_matmul.ure",
            system: "band_matmul",
            sizes: &[&[1, 0], &[1, 2], &[4, 0], &[3, 5], &[7, 3]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                // Full matrices: what lies outside the band must not be read.
                Arrays::new()
                    .with("a", rng.floats([n, n]))
                    .with("b", rng.floats([n, n]))
            },
            outputs: |p, arrays| {
                let [w] = p.get(["W"]);
                let (a, b) = (band(arrays.floats("a"), w), band(arrays.floats("b"), w));
                Arrays::new().with("c", multiply(&a, &b))
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "linear-algebra/lu.ure",
            system: "lu",
            sizes: &[&[1], &[2], &[3], &[7]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("a", dominant(n, rng))
            },
            outputs: doolittle,
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/faddeev.ure",
            system: "faddeev",
            sizes: &[&[1, 1], &[1, 3], &[4, 1], &[5, 3]],
            inputs: |p, rng| {
                let [n, m] = p.get(["N", "M"]);
                Arrays::new().with("a", dominant(n + m, rng))
            },
            outputs: schur_complement,
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/cholesky.ure",
            system: "cholesky",
            sizes: &[&[1], &[2], &[3], &[7]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                // B B^T + I is positive definite.
                let b = rng.floats([n, n]);
                let mut a = multiply(&b, &transpose(&b));
                for i in 0..n {
                    a[[i, i]] += 1.0;
                }
                Arrays::new().with("a", a)
            },
            outputs: |_, arrays| Arrays::new().with("l", cholesky(arrays.floats("a"))),
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/givens_qr.ure",
            system: "givens_qr",
            sizes: &[&[1, 1], &[1, 3], &[5, 1], &[3, 4], &[7, 3]],
            inputs: |p, rng| {
                let [m, n] = p.get(["M", "N"]);
                let mut a = rng.floats([m, n]);
                for i in 0..m.min(n) {
                    a[[i, i]] += 4.0;
                }
                Arrays::new().with("a", a)
            },
            outputs: householder,
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/triangular_solve.ure",
            system: "triangular_solve",
            sizes: &[&[1], &[2], &[3], &[9]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("l", dominant(n, rng))
                    .with("b", rng.floats([n]))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let b = arrays.floats("b");
                let b = Tensor::from_fn([n, 1], |[i, _]| b[[i]]);
                let x = solve(&lower(arrays.floats("l")), &b);
                Arrays::new().with("x", Tensor::from_fn([n], |[i]| x[[i, 0]]))
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/trsm.ure",
            system: "trsm",
            sizes: &[&[1, 1], &[1, 4], &[5, 1], &[6, 5]],
            inputs: |p, rng| {
                let [n, r] = p.get(["N", "R"]);
                Arrays::new()
                    .with("l", dominant(n, rng))
                    .with("b", rng.floats([n, r]))
            },
            outputs: |_, arrays| {
                let x = solve(&lower(arrays.floats("l")), arrays.floats("b"));
                Arrays::new().with("x", x)
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/gauss_jordan.ure",
            system: "gauss_jordan",
            sizes: &[&[1], &[2], &[5], &[7]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("a", dominant(n, rng))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let one = Tensor::from_fn([n, n], |[i, j]| f64::from(i == j));
                Arrays::new().with("inv", solve(arrays.floats("a"), &one))
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/iterated_matvec.ure",
            system: "iterated_matvec",
            sizes: &[&[1, 1], &[2, 1], &[1, 4], &[2, 3], &[5, 4]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("mat", rng.floats([n, n]))
                    .with("x", rng.floats([n]))
            },
            outputs: |p, arrays| {
                let [times, n] = p.get(["T", "N"]);
                let (mat, mut x) = (arrays.floats("mat"), arrays.floats("x").clone());
                for _ in 0..times {
                    x = Tensor::from_fn([n], |[i]| {
                        (0..n).map(|j| mat[[i, j]] * x[[j]]).sum::<f64>()
                    });
                }
                Arrays::new().with("y", x)
            },
            tolerance: DOUBLE,
        },
    ]
}

/// A matrix with a heavy diagonal: elimination needs no pivoting, and is well conditioned.
pub(super) fn dominant(n: usize, rng: &mut Rng) -> Matrix {
    let mut a = rng.floats([n, n]);
    for i in 0..n {
        a[[i, i]] += 3.0 * n as f64;
    }
    a
}

pub(super) fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    Tensor::from_fn([a.shape[0], b.shape[1]], |[i, j]| {
        (0..a.shape[1]).map(|k| a[[i, k]] * b[[k, j]]).sum::<f64>()
    })
}

pub(super) fn transpose(a: &Matrix) -> Matrix {
    Tensor::from_fn([a.shape[1], a.shape[0]], |[i, j]| a[[j, i]])
}

fn band(a: &Matrix, w: usize) -> Matrix {
    Tensor::from_fn([a.shape[0], a.shape[1]], |[i, j]| {
        if i.abs_diff(j) <= w { a[[i, j]] } else { 0.0 }
    })
}

fn lower(a: &Matrix) -> Matrix {
    Tensor::from_fn([a.shape[0], a.shape[1]], |[i, j]| {
        if j <= i { a[[i, j]] } else { 0.0 }
    })
}

/// A^-1 B by Gaussian elimination with row pivoting and back substitution.
pub(super) fn solve(a: &Matrix, b: &Matrix) -> Matrix {
    let (n, m) = (a.shape[0], b.shape[1]);
    let (mut a, mut b) = (a.clone(), b.clone());
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|r, s| a[[*r, k]].abs().total_cmp(&a[[*s, k]].abs()))
            .expect("k < n");
        for j in 0..n {
            a.data.swap(k * n + j, pivot * n + j);
        }
        for j in 0..m {
            b.data.swap(k * m + j, pivot * m + j);
        }
        for i in k + 1..n {
            let factor = a[[i, k]] / a[[k, k]];
            for j in 0..n {
                a[[i, j]] -= factor * a[[k, j]];
            }
            for j in 0..m {
                b[[i, j]] -= factor * b[[k, j]];
            }
        }
    }
    let mut x = Tensor::filled([n, m], 0.0);
    for i in (0..n).rev() {
        for j in 0..m {
            let known: f64 = (i + 1..n).map(|k| a[[i, k]] * x[[k, j]]).sum();
            x[[i, j]] = (b[[i, j]] - known) / a[[i, i]];
        }
    }
    x
}

/// Doolittle's formulas: row k of U, then column k of L.
fn doolittle(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let a = arrays.floats("a");
    let (mut l, mut u) = (Tensor::filled([n, n], 0.0), Tensor::filled([n, n], 0.0));
    for k in 0..n {
        for j in k..n {
            let done: f64 = (0..k).map(|m| l[[k, m]] * u[[m, j]]).sum();
            u[[k, j]] = a[[k, j]] - done;
        }
        l[[k, k]] = 1.0;
        for i in k + 1..n {
            let done: f64 = (0..k).map(|m| l[[i, m]] * u[[m, k]]).sum();
            l[[i, k]] = (a[[i, k]] - done) / u[[k, k]];
        }
    }
    Arrays::new().with("l", l).with("u", u)
}

fn schur_complement(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, m] = p.get(["N", "M"]);
    let whole = arrays.floats("a");
    let a = Tensor::from_fn([n, n], |[i, j]| whole[[i, j]]);
    let b = Tensor::from_fn([n, m], |[i, j]| whole[[i, n + j]]);
    let c = Tensor::from_fn([m, n], |[i, j]| whole[[n + i, j]]);
    let product = multiply(&c, &solve(&a, &b));
    let d = Tensor::from_fn([m, m], |[i, j]| whole[[n + i, n + j]] - product[[i, j]]);
    Arrays::new().with("d", d)
}

fn cholesky(a: &Matrix) -> Matrix {
    let n = a.shape[0];
    let mut l = Tensor::filled([n, n], 0.0);
    for i in 0..n {
        for j in 0..=i {
            let done: f64 = (0..j).map(|k| l[[i, k]] * l[[j, k]]).sum();
            let rest: f64 = a[[i, j]] - done;
            l[[i, j]] = if i == j {
                rest.sqrt()
            } else {
                rest / l[[j, j]]
            };
        }
    }
    l
}

/// R by Householder reflections, with the signs that make its diagonal positive.
fn householder(p: &Params, arrays: &Arrays) -> Arrays {
    let [m, n] = p.get(["M", "N"]);
    let mut a = arrays.floats("a").clone();
    for k in 0..m.min(n) {
        let norm = (k..m).map(|i| a[[i, k]] * a[[i, k]]).sum::<f64>().sqrt();
        if norm == 0.0 {
            continue;
        }
        // Reflect column k onto a multiple of the k-th unit vector, away from cancellation.
        let mut v: Vec<f64> = (k..m).map(|i| a[[i, k]]).collect();
        v[0] += norm.copysign(v[0]);
        let square: f64 = v.iter().map(|x| x * x).sum();
        for j in k..n {
            let dot: f64 = (k..m).map(|i| v[i - k] * a[[i, j]]).sum();
            for i in k..m {
                a[[i, j]] -= 2.0 * dot / square * v[i - k];
            }
        }
    }
    let r = Tensor::from_fn([n, n], |[k, j]| {
        if k < m && k <= j {
            a[[k, j]] * 1f64.copysign(a[[k, k]])
        } else {
            0.0
        }
    });
    Arrays::new().with("r", r)
}
