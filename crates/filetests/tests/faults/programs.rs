//! The programs, each for one idea.

use std::fmt::Write;

use super::*;

/// Quotients and remainders of all integer types, with blocks of lanes and one lane for each point.
fn quotients() -> String {
    let mut text = "system quotients(N) where N >= 1 {\n  index i in 0..N;\n".to_string();
    for ty in INTEGERS {
        let _ = writeln!(
            text,
            "  input a_{ty}[N]: {ty};
  input d_{ty}[N]: {ty};
  var Q_{ty}: {ty} = a_{ty}[i] / d_{ty}[i];
  var R_{ty}: {ty} = a_{ty}[i] % d_{ty}[i];
  output q_{ty}[N]: {ty} = Q_{ty} at [i];
  output r_{ty}[N]: {ty} = R_{ty} at [i];"
        );
    }
    text.push_str(
        "}
mapping blocks of quotients { tile i by 2*L as (b, ii); block = b; lane = ii%L; reg = ii/L; time = 0; }
mapping line of quotients { lane = i; time = 0; }
",
    );
    text
}

/// A case of it; the divisors are at their ends, and never zero but at one position.
fn dividing(zero: Option<(Scalar, usize)>) -> Case {
    let text = quotients();
    let mut case = case(&text, &[("N", 11)], &[]);
    let system = case.module.systems[0].clone();
    for ty in INTEGERS {
        let (least, greatest) = ty.int_range().expect("an integer");
        let ends = [least, greatest, 1, 7, 0];
        let divisors = [if least < 0 { -1 } else { 1 }, 3, greatest, 2];
        let numbers: [(&str, &dyn Fn(usize) -> i128); 2] = [
            ("a", &|n| ends[n / 2 % ends.len()]),
            ("d", &|n| match zero {
                Some((of, at)) if of == ty && at == n => 0,
                _ => divisors[n % divisors.len()],
            }),
        ];
        for (name, at) in numbers {
            let name = format!("{name}_{ty}");
            let input = &system.inputs[system.find_input(&name).expect("an input").index()];
            let mut tensor = Tensor::zeros(ty, &input.axes, &[11]).expect("small");
            for n in 0..11 {
                tensor.data.set(n, &value::literal(ty, Literal::Int(at(n))));
            }
            case.inputs.insert(name, tensor);
        }
    }
    case.wrong_where(move |point| zero.is_some_and(|(_, at)| point == [at as i64]))
}

/// The least number divided by −1, and lanes beyond the last point, which would divide by zero.
#[test]
fn lanes_without_a_point_divide_by_anything() {
    check(&dividing(None), None, &targets(true));
}

#[test]
fn an_integer_divided_by_zero_is_reported_with_its_point() {
    check(
        &dividing(Some((Scalar::I32, 6))),
        Some("E0613"),
        &targets(true),
    );
    check(
        &dividing(Some((Scalar::U8, 10))),
        Some("E0613"),
        &targets(false),
    );
}

const TABLES: &str = "
system tables(N) where N >= 1 {
  table t[2, 3]: i32 else 77 = [[1, 2, 3], [4, 5, 6]];
  table low[-2..2]: i16 else -5 = [10, 20, 30, 40];
  input x[N]: i64;
  input y[N]: i8;
  input z[N]: u64;
  index i in 0..N;
  var A: i32 = t[x[i], y[i]];
  var B: i16 = low[y[i]];
  var C: i32 = t[(i * 3) & 3, z[i]];
  output a[N]: i32 = A at [i];
  output b[N]: i16 = B at [i];
  output c[N]: i32 = C at [i];
}
mapping blocks of tables { tile i by L as (b, ii); block = b; lane = ii; time = 0; }
";

/// Negative indices, those beyond the end, and those that no shorter integer holds.
#[test]
fn a_table_has_its_else_outside_of_its_axes() {
    let x = |n: usize| [0, 1, 2, -1, i128::from(i64::MIN), 1 << 32, (1 << 40) + 1][n % 7];
    let y = |n: usize| [0, 2, 3, -1, -2, -3, 1, 127, -128][n % 9];
    let z = |n: usize| [2, 0, 3, i128::from(u64::MAX), 1 << 63, 1][n % 6];
    let tables = case(TABLES, &[("N", 61)], &[("x", &x), ("y", &y), ("z", &z)]);
    check(&tables, None, &targets(true));
}

fn lookups(ty: Scalar) -> String {
    format!(
        "
system lookups(N, M) where N >= 1, M >= 1 {{
  table t[M, 3]: i32;
  input x[N]: {ty};
  input y[N]: i32;
  index i in 0..N;
  var A: i32 = t[x[i], y[i] - 1];
  output a[N]: i32 = A at [i];
}}
mapping blocks of lookups {{ tile i by L as (b, ii); block = b; lane = ii; time = 0; }}
"
    )
}

#[test]
fn a_lookup_out_of_range_is_reported_with_its_point() {
    let t = |n: usize| n as i128;
    let sizes = [("N", 21), ("M", 4)];
    for (ty, x, y) in [
        (Scalar::I64, -1, 1),
        (Scalar::U64, i128::from(u64::MAX), 1),
        (Scalar::U8, 4, 1),
        (Scalar::I16, 3, 4),
        (Scalar::I16, 3, 0),
    ] {
        let wrong = move |n: usize| n == 13;
        let x = move |n: usize| if wrong(n) { x } else { (n % 4) as i128 };
        let y = move |n: usize| if wrong(n) { y } else { (n % 3) as i128 + 1 };
        let inputs: [(&str, &dyn Fn(usize) -> i128); 3] = [("t", &t), ("x", &x), ("y", &y)];
        let lookups = case(&lookups(ty), &sizes, &inputs).wrong_where(|point| point == [13]);
        let where_to = targets(ty == Scalar::I64);
        check(&lookups, Some("E0615"), &where_to);
    }
    let (x, y) = (|n: usize| (n % 4) as i128, |n: usize| (n % 3) as i128 + 1);
    let inputs: [(&str, &dyn Fn(usize) -> i128); 3] = [("t", &t), ("x", &x), ("y", &y)];
    check(
        &case(&lookups(Scalar::I8), &sizes, &inputs),
        None,
        &targets(false),
    );
}

/// A guard by position is lazy, a choice by a value is not, and an undefined guard ends the
/// evaluation.
#[test]
fn only_what_is_evaluated_goes_wrong() {
    let text = |body: &str| {
        format!(
            "
system guards(N) where N >= 4 {{
  input a[N]: i32;
  input d[N]: i32;
  index i in 0..N;
  var U: i32 = {body};
  var Z: i32 = select(i >= 1, U, 0);
  output z[N]: i32 = Z at [i];
}}
mapping blocks of guards {{ tile i by L as (b, ii); block = b; lane = ii; time = 0; }}
"
        )
    };
    let (a, d) = (|n: usize| 100 - n as i128, |n: usize| n as i128);
    let inputs: [(&str, &dyn Fn(usize) -> i128); 2] = [("a", &a), ("d", &d)];
    let of = |body: &str| case(&text(body), &[("N", 19)], &inputs).wrong_where(|p| p == [0]);
    let lazy = [
        "select(i >= 1, a[i] / d[i], 5)",
        "select(i < 1, 5, select(i < 9, a[i] / d[i], a[i] % d[i]))",
        "select(i >= 1, a[i]) / d[i]",
        "select(i >= 1, a[i] / d[i])",
    ];
    for body in lazy {
        check(&of(body), None, &targets(false));
    }
    let strict = [
        "select(d[i] != 0, a[i] / d[i], 5)",
        "a[i] / d[i]",
        "select(i >= 1, a[i] / d[i], a[i] % d[i])",
    ];
    for body in strict {
        check(&of(body), Some("E0613"), &targets(false));
    }
}

/// Divisors come from other lanes, earlier steps and earlier launches; tiles overlap, and the
/// contents of their halos beyond the reach of a tile are not used.
const SWEEPS: &str = "
system sweeps(N, T) where N >= 1, T >= 1 {
  input x[N]: i32;
  index t in 0..T, i in 0..N;
  var U: i32 = select(t == 0, x[i],
      1 + (U(t-1, i) + select(i == N-1, 5, U(t-1, i+1))) / select(i == 0, 3, U(t-1, i-1)));
  output u[N]: i32 = U at [i] when t == T-1;
}
mapping rows of sweeps { lane = i; time = t; }
mapping tiles of sweeps {
  tile t by 4 as (tt, ts);
  tile i by 24 as (b, ii) overlap (4, 4);
  launch = tt; block = b; lane = (ii + 4) / 4; reg = (ii + 4) % 4; time = ts;
}
";

#[test]
fn values_that_travel_go_wrong_where_they_are_used() {
    // All values are positive, and so all divisors of points.
    let sizes = [("N", 45), ("T", 9)];
    let good = |n: usize| 1 + (n % 3) as i128;
    check(
        &case(SWEEPS, &sizes, &[("x", &good)]),
        None,
        &targets(false),
    );
    let bad = |n: usize| if n == 30 { 0 } else { 1 };
    let sweeps = case(SWEEPS, &sizes, &[("x", &bad)]).wrong_where(|p| p == [1, 31]);
    check(&sweeps, Some("E0613"), &targets(false));
}

/// A propagated letter is tested at its first lookup, wherever it enters and wherever the equation
/// reads it.
#[test]
fn letters_that_travel_are_tested_once_and_never_missed() {
    let text = |guard: &str| {
        format!(
            "
system letters(N, M, S) where N >= 1, M >= 1, S >= 1 {{
  table t[S, S]: i32;
  input a[N]: u8;
  input b[M]: i32;
  index i in 0..N, j in 0..M;
  var A: u8 = select(j == 0, a[i], A(i, j - 1));
  var B: i32 = select(i == 0, b[j], B(i - 1, j));
  var Z: i32 = select({guard}, t[A, B - 1] + 6 / B, 3);
  output z[N, M]: i32 = Z at [i, j];
}}
mapping walk of letters {{ lane = 0; time = (i, j); }}
mapping skewed of letters {{ tile j by L as (b, jj); launch = b; lane = jj; time = i + jj; }}
mapping registers of letters {{ tile i by 2*L as (b, ii); launch = b; lane = ii/2; reg = ii%2; time = ii + j; }}
"
        )
    };
    let guards = [
        ("true", &(|_, _| true) as &dyn Fn(i64, i64) -> bool),
        ("j >= 2", &|_, j| j >= 2),
        ("i + j == 5", &|i, j| i + j == 5),
        ("i == 3 || j <= 1", &|i, j| i == 3 || j <= 1),
    ];
    let (n, m) = (7, 9);
    let sizes = [("N", n), ("M", m), ("S", 4)];
    let t = |n: usize| n as i128;
    let interpreted = [Target::Kernel(None), Target::Kernel(Some(simd::detect()))];
    for (guard, looks) in guards {
        let text = text(guard);
        for (of, at) in (0..n).map(|i| ('a', i)).chain((0..m).map(|j| ('b', j))) {
            let wrong = |name, k: usize| name == of && k as i128 == at;
            let a = |k: usize| if wrong('a', k) { 200 } else { (k % 4) as i128 };
            let b = |k: usize| {
                if wrong('b', k) {
                    0
                } else {
                    1 + (k % 4) as i128
                }
            };
            let letters = case(&text, &sizes, &[("t", &t), ("a", &a), ("b", &b)]);
            let is_wrong = |i: i64, j: i64| {
                let here = if of == 'a' { i } else { j };
                i128::from(here) == at && looks(i, j)
            };
            let all = (0..n as i64).flat_map(|i| (0..m as i64).map(move |j| (i, j)));
            let points: Vec<Vec<i64>> = all
                .filter(|(i, j)| is_wrong(*i, *j))
                .map(|(i, j)| vec![i, j])
                .collect();
            // A zero is no index and no divisor.
            let code = (!points.is_empty()).then_some("E0615");
            let letters = letters.wrong_where(move |p| points.contains(&p.to_vec()));
            if at == 2 {
                check(&letters, code, &targets(false));
            } else {
                check(&letters, code, &interpreted);
            }
        }
    }
}

/// The clamped element of the table is 0, and is used as a divisor: the reported fault is the
/// lookup, in whatever order points run.
#[test]
fn consequences_of_a_fault_are_not_reported() {
    let text = "
system follows(N, M, S) where N >= 1, M >= 1, S >= 1 {
  table t[S]: i32;
  input a[N]: u8;
  index i in 0..N, j in 0..M;
  var Z: i32 = 6 / t[a[i]];
  output z[N, M]: i32 = Z at [i, j];
}
mapping up of follows { tile i by L as (b, ii); block = b; lane = ii; time = j; }
mapping down of follows { tile i by L as (b, ii); block = b; lane = ii; time = -j; }
mapping blocks of follows { tile i by L as (b, ii); block = (b, j); lane = ii; time = 0; }
mapping warps of follows { tile i by L as (b, ii); block = b; warp = 2 - j; lane = ii; time = 0; }
";
    let t = |n: usize| 3 - n as i128;
    let a = |n: usize| if n == 5 { 200 } else { (n % 3) as i128 };
    let sizes = [("N", 37), ("M", 3), ("S", 4)];
    let follows = case(text, &sizes, &[("t", &t), ("a", &a)]).wrong_where(|p| p[0] == 5);
    check(&follows, Some("E0615"), &targets(false));
}

/// Terms of a sum, and the value of an output.
#[test]
fn sums_and_outputs_go_wrong_at_their_points() {
    let text = "
system sums(N, K) where N >= 1, K >= 1 {
  input a[N, K]: i32;
  input d[N, K]: i32;
  input e[N]: i32;
  index i in 0..N;
  var S: i32 = reduce(+, k in 0..K, a[i, k] / d[i, k]);
  output s[N]: i32 = S % e[i] at [i] when i < N - 1 else 0;
}
mapping chains of sums { tile i by L as (b, ii); block = b; lane = ii; time = k; }
";
    let (a, good) = (|n: usize| n as i128 * 7 - 100, |_: usize| 3);
    let sizes = [("N", 13), ("K", 5)];
    let last = |n: usize| i128::from(n != 12);
    let sums = case(text, &sizes, &[("a", &a), ("d", &good), ("e", &last)]);
    check(&sums, None, &targets(false));
    let zero = |n: usize| if n == 4 * 5 + 2 { 0 } else { 3 };
    let sums = case(text, &sizes, &[("a", &a), ("d", &zero), ("e", &last)]);
    check(
        &sums.wrong_where(|p| p == [4, 2]),
        Some("E0613"),
        &targets(false),
    );
    let zero = |n: usize| i128::from(n != 11);
    let sums = case(text, &sizes, &[("a", &a), ("d", &good), ("e", &zero)]);
    check(
        &sums.wrong_where(|p| p[0] == 11),
        Some("E0613"),
        &targets(false),
    );
}

/// A point that no output needs is a point all the same.
#[test]
fn a_value_that_nobody_needs_goes_wrong_everywhere() {
    let text = "
system unused(N) where N >= 2 {
  input d[N]: i32;
  index i in 0..N;
  var Z: i32 = 7 / d[i];
  output z[N - 1]: i32 = Z at [i] when i < N - 1;
}
mapping blocks of unused { tile i by L as (b, ii); block = b; lane = ii; time = 0; }
";
    let last = |n: usize| i128::from(n != 9);
    let unused = case(text, &[("N", 10)], &[("d", &last)]).wrong_where(|p| p == [9]);
    check(&unused, Some("E0613"), &targets(false));
}

#[test]
fn what_is_proved_is_not_tested() {
    let text = |body: &str| {
        format!(
            "
system proved(N, M) where N >= 1, M >= 1 {{
  table t[4]: i32 = [0, 1, 3, 2];
  table bytes[256]: i32;
  input x[N]: i32;
  input b[N]: u8;
  index i in 0..N;
  var Z: i32 = {body};
  output z[N]: i32 = Z at [i];
}}
mapping blocks of proved {{ tile i by L as (b, ii); block = b; lane = ii; time = 0; }}
"
        )
    };
    let proved = [
        "x[i] / 7",
        "x[i] % -3",
        "t[x[i] & 3]",
        "t[x[i] % 4]",
        "t[(i * 5) % 4]",
        "t[t[x[i] & 3]]",
        "bytes[b[i]]",
        "t[min(max(x[i], 0), 3)]",
        "t[select(x[i] > 0, 1, 2)]",
        "t[i64(x[i] > 3)]",
        "x[i] / (1 + i32(b[i]))",
        "i32(i64(x[i]) / M)",
        "x[i] / (abs(x[i] % 5) + 1)",
    ];
    for body in proved {
        assert!(!has_sites(&text(body)), "{body}");
    }
    let open = [
        "x[i] / x[i]",
        "t[x[i]]",
        "t[x[i] % 5]",
        "t[b[i]]",
        "x[i] / i32(M)",
        "x[i] / i32(b[i])",
        "t[t[x[i] & 3] + 1]",
    ];
    for body in open {
        assert!(has_sites(&text(body)), "{body}");
    }
}
