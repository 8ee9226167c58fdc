//! Programs as textbooks have them, whose references are at distances that change.

use super::linear_algebra::{dominant, multiply, solve, transpose};
use super::{DOUBLE, EXACT, Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

type Matrix = Tensor<f64>;

/// The smallest sizes, odd ones, and one that fills no vector.
const SIZES: &[&[i64]] = &[&[1], &[2], &[3], &[5], &[17]];

pub fn references() -> Vec<Reference> {
    let mut all = decompositions();
    all.extend(solvers());
    all.extend(splits_and_paths());
    all.extend(sweeps());
    all.extend(networks());
    all
}

fn decompositions() -> Vec<Reference> {
    let lu = Reference {
        file: "linear-algebra/lu_textbook.ure",
        system: "lu",
        sizes: SIZES,
        inputs: |p, rng| {
            let [n] = p.get(["N"]);
            Arrays::new().with("a", dominant(n, rng))
        },
        outputs: |_, arrays| Arrays::new().with("lu", eliminate(arrays.floats("a"))),
        tolerance: DOUBLE,
    };
    let by_steps = Reference {
        system: "lu_by_steps",
        ..lu.also(lu.file, SIZES)
    };
    let right_looking = Reference {
        system: "right_looking",
        ..lu.also(lu.file, SIZES)
    };
    let symmetric = |file: &'static str, system: &'static str| Reference {
        file,
        system,
        sizes: SIZES,
        inputs: |p, rng| {
            let [n] = p.get(["N"]);
            Arrays::new().with("a", positive_definite(n, rng))
        },
        outputs: |_, _| Arrays::new(),
        tolerance: DOUBLE,
    };
    let cholesky = Reference {
        outputs: |_, arrays| {
            let (d, l) = symmetric_factors(arrays.floats("a"));
            let n = d.data.len();
            let l = Tensor::from_fn([n, n], |[i, j]| l[[i, j]] * d[[j]].sqrt());
            Arrays::new().with("l", l)
        },
        ..symmetric("linear-algebra/cholesky_textbook.ure", "cholesky")
    };
    let cholesky_by_steps = Reference {
        system: "cholesky_by_steps",
        ..cholesky.also(cholesky.file, SIZES)
    };
    vec![
        lu,
        by_steps,
        right_looking,
        cholesky,
        cholesky_by_steps,
        Reference {
            outputs: |_, arrays| {
                let (d, l) = symmetric_factors(arrays.floats("a"));
                let n = d.data.len();
                let below = |[i, j]: [usize; 2]| if j < i { l[[i, j]] } else { 0.0 };
                let l = Tensor::from_fn([n, n], below);
                Arrays::new().with("d", d).with("l", l)
            },
            ..symmetric("linear-algebra/ldlt.ure", "ldlt")
        },
        Reference {
            file: "linear-algebra/gram_schmidt.ure",
            system: "gram_schmidt",
            sizes: &[&[1, 1], &[2, 1], &[2, 2], &[5, 3], &[17, 5]],
            inputs: |p, rng| {
                let [m, n] = p.get(["M", "N"]);
                let mut a = rng.floats([m, n]);
                for k in 0..n {
                    a[[k, k]] += 3.0 * n as f64;
                }
                Arrays::new().with("a", a)
            },
            outputs: |_, arrays| {
                // Aᵀ A = Rᵀ R and Q = A R⁻¹, which is accurate where A is well conditioned.
                let a = arrays.floats("a");
                let (d, l) = symmetric_factors(&multiply(&transpose(a), a));
                let n = d.data.len();
                let r = Tensor::from_fn([n, n], |[k, j]| l[[j, k]] * d[[k]].sqrt());
                let q = transpose(&solve(&transpose(&r), &transpose(a)));
                Arrays::new().with("q", q).with("r", r)
            },
            tolerance: DOUBLE,
        },
    ]
}

fn solvers() -> Vec<Reference> {
    vec![
        Reference {
            file: "linear-algebra/triangular_solve_textbook.ure",
            system: "triangular_solve",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new()
                    .with("l", dominant(n, rng))
                    .with("b", rng.floats([n]))
            },
            outputs: |p, arrays| {
                // Column by column: each element is taken out of all equations below it.
                let [n] = p.get(["N"]);
                let (l, mut x) = (arrays.floats("l"), arrays.floats("b").clone());
                for k in 0..n {
                    x[[k]] /= l[[k, k]];
                    for i in k + 1..n {
                        x[[i]] -= l[[i, k]] * x[[k]];
                    }
                }
                Arrays::new().with("x", x)
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/durbin.ure",
            system: "durbin",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                let r = Tensor::from_fn([n], |[i]| rng.float() / (4 + 4 * i * i) as f64);
                Arrays::new().with("r", r)
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let r = arrays.floats("r");
                let toeplitz = Tensor::from_fn([n, n], |[i, j]| match i.abs_diff(j) {
                    0 => 1.0,
                    distance => r[[distance - 1]],
                });
                let right = Tensor::from_fn([n, 1], |[i, _]| -r[[i]]);
                let y = solve(&toeplitz, &right);
                Arrays::new().with("y", Tensor::from_fn([n], |[i]| y[[i, 0]]))
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "linear-algebra/gauss_jordan_textbook.ure",
            system: "inverse",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("a", dominant(n, rng))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let one = Tensor::from_fn([n, n], |[i, j]| f64::from(i == j));
                Arrays::new().with("b", solve(arrays.floats("a"), &one))
            },
            tolerance: DOUBLE,
        },
    ]
}

fn splits_and_paths() -> Vec<Reference> {
    vec![
        Reference {
            file: "dynamic-programming/nussinov_textbook.ure",
            system: "nussinov",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("s", rng.ints([n], 0, 4))
            },
            outputs: nussinov,
            tolerance: EXACT,
        },
        Reference {
            file: "dynamic-programming/matrix_chain.ure",
            system: "matrix_chain",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("p", rng.ints([n + 1], 1, 30))
            },
            outputs: |p, arrays| {
                let [n] = p.get(["N"]);
                let mut c = Tensor::filled([n, n], -1);
                for i in 0..n {
                    for j in i..n {
                        cheapest(&arrays.ints("p").data, i, j, &mut c);
                    }
                }
                c.data.iter_mut().for_each(|cost| *cost = (*cost).max(0));
                Arrays::new().with("c", c)
            },
            tolerance: EXACT,
        },
        Reference {
            file: "graph/floyd_warshall_textbook.ure",
            system: "floyd_warshall",
            sizes: SIZES,
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                // Whole numbers, so that sums are exact; half of the edges are missing.
                let d = Tensor::from_fn([n, n], |[i, j]| {
                    let length = rng.int(1, 40) as f64;
                    match rng.int(0, 2) {
                        _ if i == j => 0.0,
                        0 => f64::INFINITY,
                        _ => length,
                    }
                });
                Arrays::new().with("d", d)
            },
            outputs: shortest_paths,
            tolerance: EXACT,
        },
    ]
}

fn sweeps() -> Vec<Reference> {
    let grid: fn(&Params, &mut Rng) -> Arrays = |p, rng| {
        let [n] = p.get(["N"]);
        Arrays::new().with("a", rng.floats([n, n]))
    };
    vec![
        Reference {
            file: "stencil/gauss_seidel_2d.ure",
            system: "gauss_seidel",
            sizes: &[&[1, 3], &[2, 3], &[1, 5], &[3, 6], &[5, 17]],
            inputs: grid,
            outputs: |p, arrays| {
                let [steps, n] = p.get(["T", "N"]);
                let mut u = arrays.floats("a").clone();
                for _ in 0..steps {
                    for i in 1..n - 1 {
                        for j in 1..n - 1 {
                            let cells =
                                (i - 1..i + 2).flat_map(|i| (j - 1..j + 2).map(move |j| [i, j]));
                            u[[i, j]] = cells.map(|cell| u[cell]).sum::<f64>() / 9.0;
                        }
                    }
                }
                Arrays::new().with("u", u)
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "stencil/gauss_seidel_3d.ure",
            system: "gauss_seidel",
            sizes: &[&[1, 3], &[2, 3], &[1, 5], &[3, 6], &[2, 9]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                Arrays::new().with("a", rng.floats([n, n, n]))
            },
            outputs: |p, arrays| {
                let [steps, n] = p.get(["T", "N"]);
                let mut u = arrays.floats("a").clone();
                let inner = 1..n - 1;
                for _ in 0..steps {
                    for i in inner.clone() {
                        for j in inner.clone() {
                            for k in inner.clone() {
                                let along_i = u[[i - 1, j, k]] + u[[i + 1, j, k]];
                                let along_j = u[[i, j - 1, k]] + u[[i, j + 1, k]];
                                let along_k = u[[i, j, k - 1]] + u[[i, j, k + 1]];
                                u[[i, j, k]] = (along_i + along_j + along_k + u[[i, j, k]]) / 7.0;
                            }
                        }
                    }
                }
                Arrays::new().with("u", u)
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "stencil/adi.ure",
            system: "adi",
            sizes: &[&[1, 3], &[2, 3], &[1, 5], &[3, 6], &[2, 17]],
            inputs: |p, rng| {
                let [n] = p.get(["N"]);
                let r = Tensor::filled([], 0.375);
                Arrays::new().with("a", rng.floats([n, n])).with("r", r)
            },
            outputs: |p, arrays| {
                let [steps, n] = p.get(["T", "N"]);
                let r = arrays.floats("r").data[0];
                let mut u = arrays.floats("a").clone();
                for _ in 0..steps {
                    // Implicit along the columns, then along the rows.
                    let v = transpose(&half_step(n, r, &transpose(&u)));
                    u = half_step(n, r, &v);
                }
                Arrays::new().with("u", u)
            },
            tolerance: DOUBLE,
        },
        Reference {
            file: "filter/deriche.ure",
            system: "deriche",
            sizes: &[&[1, 1], &[1, 5], &[2, 1], &[3, 2], &[5, 17]],
            inputs: |p, rng| {
                let [h, w] = p.get(["H", "W"]);
                let c = Tensor::from_fn([10], |[i]| match i {
                    8 => 0.75,
                    9 => -0.25,
                    _ => rng.float() / 4.0,
                });
                Arrays::new().with("x", rng.floats([h, w])).with("c", c)
            },
            outputs: deriche,
            tolerance: SINGLE,
        },
        Reference {
            file: "stencil/fdtd_2d.ure",
            system: "fdtd_2d",
            sizes: &[&[1, 2, 2], &[2, 2, 3], &[1, 5, 3], &[3, 4, 7], &[5, 6, 17]],
            inputs: |p, rng| {
                let [t, n, m] = p.get(["T", "N", "M"]);
                Arrays::new()
                    .with("ex0", rng.floats([n, m]))
                    .with("ey0", rng.floats([n, m]))
                    .with("hz0", rng.floats([n, m]))
                    .with("source", rng.floats([t]))
            },
            outputs: fdtd_2d,
            tolerance: DOUBLE,
        },
        Reference {
            file: "stencil/jacobi_two_statements.ure",
            system: "jacobi",
            sizes: &[&[1, 3], &[2, 3], &[1, 5], &[3, 6], &[5, 17]],
            inputs: grid,
            outputs: |p, arrays| {
                let [steps, n] = p.get(["T", "N"]);
                let mut a = arrays.floats("a").clone();
                for _ in 0..2 * steps {
                    a = Tensor::from_fn([n, n], |[i, j]| {
                        if i == 0 || j == 0 || i == n - 1 || j == n - 1 {
                            return a[[i, j]];
                        }
                        let beside = a[[i, j - 1]] + a[[i, j + 1]];
                        (a[[i, j]] + beside + a[[i - 1, j]] + a[[i + 1, j]]) / 5.0
                    });
                }
                Arrays::new().with("z", a)
            },
            tolerance: DOUBLE,
        },
    ]
}

fn networks() -> Vec<Reference> {
    vec![
        Reference {
            file: "neural/lstm.ure",
            system: "lstm",
            sizes: &[&[1, 1, 1], &[2, 1, 3], &[1, 3, 1], &[3, 5, 2], &[5, 7, 17]],
            inputs: |p, rng| {
                let [t, n, m] = p.get(["T", "N", "M"]);
                let mut weights =
                    |k: usize| Tensor::from_fn([4, n, k], |_| rng.float() / (2.0 + k as f64));
                let (u, w) = (weights(m), weights(n));
                Arrays::new()
                    .with("u", u)
                    .with("w", w)
                    .with("x", rng.floats([t, m]))
            },
            outputs: lstm,
            tolerance: SINGLE,
        },
        Reference {
            file: "neural/attention.ure",
            system: "attention",
            sizes: &[&[1, 1], &[2, 1], &[1, 3], &[5, 3], &[17, 5]],
            inputs: |p, rng| {
                let [n, d] = p.get(["N", "D"]);
                Arrays::new()
                    .with("q", rng.floats([n, d]))
                    .with("k", rng.floats([n, d]))
                    .with("v", rng.floats([n, d]))
            },
            outputs: attention,
            tolerance: SINGLE,
        },
    ]
}

/// B Bᵀ + I.
fn positive_definite(n: usize, rng: &mut Rng) -> Matrix {
    let b = rng.floats([n, n]);
    let mut a = multiply(&b, &transpose(&b));
    for i in 0..n {
        a[[i, i]] += 1.0;
    }
    a
}

/// Gaussian elimination: multipliers below the diagonal, the rest on and above it.
fn eliminate(a: &Matrix) -> Matrix {
    let (n, mut a) = (a.shape[0], a.clone());
    for k in 0..n {
        for i in k + 1..n {
            a[[i, k]] /= a[[k, k]];
            for j in k + 1..n {
                a[[i, j]] -= a[[i, k]] * a[[k, j]];
            }
        }
    }
    a
}

/// D and L with a unit diagonal of A = L D Lᵀ, by elimination.
fn symmetric_factors(a: &Matrix) -> (Tensor<f64>, Matrix) {
    let n = a.shape[0];
    let lu = eliminate(a);
    let d = Tensor::from_fn([n], |[i]| lu[[i, i]]);
    let l = Tensor::from_fn([n, n], |[i, j]| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => lu[[i, j]],
    });
    (d, l)
}

/// The pairs of the intervals that end at j: its last letter stays alone, or pairs with the letter k.
fn nussinov(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let s = &arrays.ints("s").data;
    let mut t = Tensor::filled([n, n], 0);
    let at = |t: &Tensor<i64>, i: usize, end: usize| if i + 1 < end { t[[i, end - 1]] } else { 0 };
    for j in 0..n {
        for i in (0..j).rev() {
            let alone = at(&t, i, j);
            let pairs = (i..j).filter(|k| s[*k] + s[j] == 3);
            let pairs = pairs.map(|k| at(&t, i, k) + at(&t, k + 1, j) + 1);
            t[[i, j]] = pairs.max().unwrap_or(0).max(alone);
        }
    }
    Arrays::new().with("t", t)
}

/// The cost of the products i to j, remembered in `c`, which holds -1 elsewhere.
fn cheapest(p: &[i64], i: usize, j: usize, c: &mut Tensor<i64>) -> i64 {
    if c[[i, j]] < 0 {
        let split = |k: usize, c: &mut Tensor<i64>| {
            cheapest(p, i, k, c) + cheapest(p, k + 1, j, c) + p[i] * p[k + 1] * p[j + 1]
        };
        c[[i, j]] = (i..j).map(|k| split(k, c)).min().unwrap_or(0);
    }
    c[[i, j]]
}

/// From each source, the nearest node that is not done yet is done next (Dijkstra).
fn shortest_paths(p: &Params, arrays: &Arrays) -> Arrays {
    let [n] = p.get(["N"]);
    let d = arrays.floats("d");
    let mut paths = Tensor::filled([n, n], f64::INFINITY);
    for source in 0..n {
        paths[[source, source]] = 0.0;
        let mut open: Vec<usize> = (0..n).collect();
        while !open.is_empty() {
            let length = |node: &usize| paths[[source, *node]];
            let (at, _) = open
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| length(a).total_cmp(&length(b)))
                .expect("an open node");
            let node = open.remove(at);
            for to in 0..n {
                let through = paths[[source, node]] + d[[node, to]];
                paths[[source, to]] = through.min(paths[[source, to]]);
            }
        }
    }
    Arrays::new().with("p", paths)
}

/// Half a step of alternating directions, implicit along the rows: each row solves a tridiagonal system.
fn half_step(n: usize, r: f64, u: &Matrix) -> Matrix {
    let mut next = Tensor::filled([n, n], 1.0);
    let system = Tensor::from_fn([n, n], |[i, j]| match i.abs_diff(j) {
        0 if i == 0 || i == n - 1 => 1.0,
        0 => 1.0 + 2.0 * r,
        1 if i != 0 && i != n - 1 => -r,
        _ => 0.0,
    });
    for line in 1..n - 1 {
        let right = Tensor::from_fn([n, 1], |[j, _]| match j == 0 || j == n - 1 {
            true => 1.0,
            false => {
                let beside = u[[line - 1, j]] + u[[line + 1, j]];
                r * beside + (1.0 - 2.0 * r) * u[[line, j]]
            }
        });
        let x = solve(&system, &right);
        for j in 0..n {
            next[[line, j]] = x[[j, 0]];
        }
    }
    next
}

/// Rows by their response to each pixel, then columns.
fn deriche(p: &Params, arrays: &Arrays) -> Arrays {
    let [h, w] = p.get(["H", "W"]);
    let (x, c) = (arrays.floats("x"), &arrays.floats("c").data);
    // The response of the recursion to an impulse, n steps later.
    let response = |first: f64, second: f64, n: usize| {
        let (mut y, mut before) = (first, 0.0);
        for step in 1..=n {
            let next = c[8] * y + c[9] * before + if step == 1 { second } else { 0.0 };
            (y, before) = (next, y);
        }
        y
    };
    let weight = |here: usize, from: usize, c: &[f64]| match here >= from {
        true => response(c[0], c[1], here - from),
        false => response(c[2], c[3], from - here - 1),
    };
    let rows = Tensor::from_fn([h, w], |[i, j]| {
        (0..w)
            .map(|k| weight(j, k, &c[0..4]) * x[[i, k]])
            .sum::<f64>()
    });
    let y = Tensor::from_fn([h, w], |[i, j]| {
        (0..h)
            .map(|k| weight(i, k, &c[4..8]) * rows[[k, j]])
            .sum::<f64>()
    });
    Arrays::new().with("y", y)
}

fn fdtd_2d(p: &Params, arrays: &Arrays) -> Arrays {
    let [steps, n, m] = p.get(["T", "N", "M"]);
    let field = |name: &str| arrays.floats(name).clone();
    let (mut ex, mut ey, mut hz) = (field("ex0"), field("ey0"), field("hz0"));
    for t in 0..steps {
        for i in 0..n {
            for j in 0..m {
                match i {
                    0 => ey[[i, j]] = arrays.floats("source")[[t]],
                    _ => ey[[i, j]] -= 0.5 * (hz[[i, j]] - hz[[i - 1, j]]),
                }
                if j > 0 {
                    ex[[i, j]] -= 0.5 * (hz[[i, j]] - hz[[i, j - 1]]);
                }
            }
        }
        for i in 0..n - 1 {
            for j in 0..m - 1 {
                let curl = ex[[i, j + 1]] - ex[[i, j]] + ey[[i + 1, j]] - ey[[i, j]];
                hz[[i, j]] -= 0.7 * curl;
            }
        }
    }
    Arrays::new().with("hz", hz)
}

fn lstm(p: &Params, arrays: &Arrays) -> Arrays {
    let [steps, n, m] = p.get(["T", "N", "M"]);
    let (u, w, x) = (arrays.floats("u"), arrays.floats("w"), arrays.floats("x"));
    let sigmoid = |a: f64| 1.0 / (1.0 + (-a).exp());
    let (mut state, mut cell) = (vec![0.0; n], vec![0.0; n]);
    let mut h = Tensor::filled([steps, n], 0.0);
    for t in 0..steps {
        let gate = |g: usize, i: usize| {
            let new: f64 = (0..m).map(|k| u[[g, i, k]] * x[[t, k]]).sum();
            let old: f64 = (0..n).map(|k| w[[g, i, k]] * state[k]).sum();
            new + old
        };
        let gates: Vec<[f64; 4]> = (0..n).map(|i| [0, 1, 2, 3].map(|g| gate(g, i))).collect();
        for (i, [input, forget, output, candidate]) in gates.into_iter().enumerate() {
            cell[i] = sigmoid(forget) * cell[i] + sigmoid(input) * candidate.tanh();
            state[i] = sigmoid(output) * cell[i].tanh();
            h[[t, i]] = state[i];
        }
    }
    Arrays::new().with("h", h)
}

fn attention(p: &Params, arrays: &Arrays) -> Arrays {
    let [n, d] = p.get(["N", "D"]);
    let scores = multiply(arrays.floats("q"), &transpose(arrays.floats("k")));
    let weights = Tensor::from_fn([n, n], |[i, j]| (scores[[i, j]] / (d as f64).sqrt()).exp());
    let sum = |i: usize| (0..n).map(|j| weights[[i, j]]).sum::<f64>();
    let weights = Tensor::from_fn([n, n], |[i, j]| weights[[i, j]] / sum(i));
    Arrays::new().with("o", multiply(&weights, arrays.floats("v")))
}
