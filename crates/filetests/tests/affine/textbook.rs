//! Equations as textbooks have them, with variables of different dimensions and references that
//! are not uniform.

use systola_driver::load;
use systola_interp::{Arrays, Data, Demand, Options, Tensor, run_system_with};
use systola_ir::system::System;
use systola_lower::check_system::check_system;

const LU: &str = "
system lu(N) where N >= 1 {
  input a[N, N]: f64;
  var F(i in 0..N, j in 0..N): f64 =
      let x = a[i, j] - reduce(+, k in 0..i, select(k < j, F(i, k) * F(k, j), 0));
      select(j < i, x / F(j, j), x);
  output lu[N, N]: f64 = F at [i, j];
}";

/// The same with the partial sums as a variable of three iterators.
const LU_IN_STEPS: &str = "
system lu(N) where N >= 1 {
  input a[N, N]: f64;
  var S(i, j, k): f64 on 0 <= k < i < N, k < j < N =
      select(k == 0, a[i, j], S(i, j, k - 1)) - F(i, k) * F(k, j);
  var F(i in 0..N, j in 0..N): f64 =
      let x = select(i == 0 || j == 0, a[i, j], select(i <= j, S(i, j, i - 1), S(i, j, j - 1)));
      select(j < i, x / F(j, j), x);
  output lu[N, N]: f64 = F at [i, j];
}";

const CHOLESKY: &str = "
system cholesky(N) where N >= 1 {
  input a[N, N]: f64;
  var L(i in 0..N, j in 0..N): f64 on j <= i =
      let x = a[i, j] - reduce(+, k in 0..j, L(i, k) * L(j, k));
      select(i == j, sqrt(x), x / L(j, j));
  output l[N, N]: f64 = L at [i, j] else 0;
}";

const DURBIN: &str = "
system durbin(N) where N >= 1 {
  input r[N]: f64;
  var beta(k in 0..N): f64 =
      select(k == 0, 1.0, (1.0 - alpha(k - 1) * alpha(k - 1)) * beta(k - 1));
  var alpha(k in 0..N): f64 = select(k == 0, -r[0],
      -(r[k] + reduce(+, i in 0..k, r[k - i - 1] * Y(k - 1, i))) / beta(k));
  var Y(k in 0..N, i in 0..N): f64 on i <= k =
      select(i == k, alpha(k), Y(k - 1, i) + alpha(k) * Y(k - 1, k - i - 1));
  output y[N]: f64 = Y at [i] when k == N - 1;
}";

const FLOYD_WARSHALL: &str = "
system paths(N) where N >= 1 {
  input d[N, N]: i32;
  var D(k in 0..N + 1, i in 0..N, j in 0..N): i32 =
      select(k == 0, d[i, j], min(D(k - 1, i, j), D(k - 1, i, k - 1) + D(k - 1, k - 1, j)));
  output p[N, N]: i32 = D at [i, j] when k == N;
}";

const MATRIX_CHAIN: &str = "
system chain(N) where N >= 1 {
  input p[N + 1]: i64;
  var C(i in 0..N, j in 0..N): i64 on i <= j =
      select(i == j, 0, reduce(min, k in i..j, C(i, k) + C(k + 1, j) + p[i] * p[k + 1] * p[j + 1]));
  output c[]: i64 = C at [] when i == 0 && j == N - 1;
}";

const NUSSINOV: &str = "
system nussinov(N) where N >= 1 {
  input s[N]: i32;
  var T(i in 0..N, j in 0..N): i32 on i <= j =
      let pair = select(i < j - 1, T(i + 1, j - 1), 0) + select(s[i] + s[j] == 3, 1, 0);
      select(i == j, 0, max(max(T(i + 1, j), T(i, j - 1)),
          max(pair, select(j < i + 2, 0, reduce(max, k in i + 1..j, T(i, k) + T(k + 1, j))))));
  output t[]: i32 = T at [] when i == 0 && j == N - 1;
}";

const GAUSS_JORDAN: &str = "
system inverse(N) where N >= 1 {
  input a[N, N]: f64;
  var A(k in 0..N + 1, i in 0..N, j in 0..N): f64 =
      select(k == 0, a[i, j],
      let pivot = 1.0 / A(k - 1, k - 1, k - 1);
      select(i == k - 1, select(j == k - 1, pivot, A(k - 1, k - 1, j) * pivot),
          select(j == k - 1, -A(k - 1, i, k - 1) * pivot,
              A(k - 1, i, j) - A(k - 1, i, k - 1) * A(k - 1, k - 1, j) * pivot)));
  output b[N, N]: f64 = A at [i, j] when k == N;
}";

const SIZES: [i128; 7] = [1, 2, 3, 4, 7, 12, 17];

fn system(text: &str) -> System {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let system = module.systems.into_iter().next().expect("one system");
    assert_eq!(check_system(&system, None), vec![], "{text}");
    system
}

/// The output of a system with one output, for one input.
fn output(text: &str, n: i128, name: &str, input: Tensor) -> Tensor {
    let options = Options {
        demand: Demand::Everything,
        ..Options::default()
    };
    let inputs = Arrays::from([(name.to_string(), input)]);
    let found = run_system_with(&system(text), &[n], &inputs, &options);
    let found = found.unwrap_or_else(|e| panic!("N = {n}: {e}\n{text}"));
    found.into_values().next().expect("one output")
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    let at = |n| tensor.data.get(n).and_then(|value| value.as_float());
    let values = (0..tensor.data.len()).map(at);
    values.collect::<Option<_>>().expect("floats")
}

fn integers(tensor: &Tensor) -> Vec<i128> {
    let at = |n| tensor.data.get(n).and_then(|value| value.as_int());
    let values = (0..tensor.data.len()).map(at);
    values.collect::<Option<_>>().expect("integers")
}

fn tensor(shape: &[usize], data: impl Into<Data>) -> Tensor {
    Tensor::new(shape.to_vec(), data).expect("as many elements as the shape has")
}

/// Equal within 1e-10 of the larger one, or of 1: the programs add up in another order.
fn near(found: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (a, b) in found.iter().zip(wanted) {
        let scale = a.abs().max(b.abs()).max(1.0);
        assert!((a - b).abs() <= 1e-10 * scale, "{what}: {a} and {b}");
    }
}

/// A symmetric matrix whose diagonal outweighs its rows.
fn matrix(n: usize) -> Vec<f64> {
    let value = |i: usize, j: usize| match i == j {
        true => n as f64 + 2.0,
        false => ((i * j + i + j) % 7) as f64 / 7.0 - 0.4,
    };
    let points = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    points.map(|(i, j)| value(i, j)).collect()
}

fn square(n: usize, data: Vec<f64>) -> Tensor {
    tensor(&[n, n], data)
}

fn small(values: &[i128]) -> Vec<i32> {
    let small = values.iter().map(|value| i32::try_from(*value));
    small.collect::<Result<_, _>>().expect("small numbers")
}

#[test]
fn lu_decomposes() {
    for size in SIZES {
        let n = size as usize;
        let mut a = matrix(n);
        for (at, value) in a.iter_mut().enumerate() {
            *value += (at % 5) as f64 / 10.0;
        }
        let mut want = a.clone();
        for k in 0..n {
            for i in k + 1..n {
                want[i * n + k] /= want[k * n + k];
                for j in k + 1..n {
                    want[i * n + j] -= want[i * n + k] * want[k * n + j];
                }
            }
        }
        for text in [LU, LU_IN_STEPS] {
            let found = output(text, size, "a", square(n, a.clone()));
            near(&floats(&found), &want, "lu");
        }
    }
}

#[test]
fn cholesky_decomposes() {
    for size in SIZES {
        let n = size as usize;
        let a = matrix(n);
        let l = floats(&output(CHOLESKY, size, "a", square(n, a.clone())));
        let mut product = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                product[i * n + j] = (0..n).map(|k| l[i * n + k] * l[j * n + k]).sum();
            }
        }
        near(&product, &a, "cholesky");
    }
}

#[test]
fn durbin_solves() {
    for size in SIZES {
        let n = size as usize;
        let r: Vec<f64> = (0..n).map(|i| 0.5 / (i + 2) as f64).collect();
        let y = floats(&output(DURBIN, size, "r", tensor(&[n], r.clone())));
        // T y = -r for the symmetric Toeplitz matrix T with 1, r0, r1, … in its first row.
        let at = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 1.0,
            d => r[d - 1],
        };
        let left = (0..n).map(|i| (0..n).map(|j| at(i, j) * y[j]).sum());
        let right: Vec<f64> = r.iter().map(|r| -r).collect();
        near(&left.collect::<Vec<f64>>(), &right, "durbin");
    }
}

#[test]
fn floyd_warshall_finds_paths() {
    for size in SIZES {
        let n = size as usize;
        let mut d: Vec<i128> = (0..n * n).map(|at| (at * 37 % 23) as i128 + 1).collect();
        let found = integers(&output(
            FLOYD_WARSHALL,
            size,
            "d",
            tensor(&[n, n], small(&d)),
        ));
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    d[i * n + j] = d[i * n + j].min(d[i * n + k] + d[k * n + j]);
                }
            }
        }
        assert_eq!(found, d);
    }
}

#[test]
fn matrix_chains_are_cheapest() {
    fn cost(p: &[i128], i: usize, j: usize) -> i128 {
        let split = |k| cost(p, i, k) + cost(p, k + 1, j) + p[i] * p[k + 1] * p[j + 1];
        (i..j).map(split).min().unwrap_or(0)
    }
    for size in [1, 2, 3, 5, 8] {
        let n = size as usize;
        let p: Vec<i128> = (0..n + 1).map(|at| (at * 5 % 7) as i128 + 1).collect();
        let wide: Vec<i64> = small(&p).into_iter().map(i64::from).collect();
        let found = output(MATRIX_CHAIN, size, "p", tensor(&[n + 1], wide));
        assert_eq!(integers(&found), [cost(&p, 0, n - 1)]);
    }
}

#[test]
fn nussinov_counts_pairs() {
    fn most(s: &[i128], i: usize, j: usize) -> i128 {
        if i >= j {
            return 0;
        }
        let ends = i128::from(s[i] + s[j] == 3);
        let inner = if i + 1 < j { most(s, i + 1, j - 1) } else { 0 };
        let split = |k| most(s, i, k) + most(s, k + 1, j);
        (i..j).map(split).max().unwrap_or(0).max(inner + ends)
    }
    for size in [1, 2, 3, 5, 9] {
        let n = size as usize;
        let s: Vec<i128> = (0..n).map(|at| (at * at * 3 % 5 % 4) as i128).collect();
        let found = output(NUSSINOV, size, "s", tensor(&[n], small(&s)));
        assert_eq!(integers(&found), [most(&s, 0, n - 1)], "N = {n}");
    }
}

#[test]
fn gauss_jordan_inverts() {
    for size in SIZES {
        let n = size as usize;
        let a = matrix(n);
        let b = floats(&output(GAUSS_JORDAN, size, "a", square(n, a.clone())));
        let (mut product, mut unit) = (vec![0.0; n * n], vec![0.0; n * n]);
        for i in 0..n {
            unit[i * n + i] = 1.0;
            for j in 0..n {
                product[i * n + j] = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
            }
        }
        near(&product, &unit, "gauss-jordan");
    }
}
