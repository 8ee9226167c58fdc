//! Each check with a program that fails it, with its exact messages, and one that passes.

use systola_front::text::parse_module;
use systola_ir::system::System;
use systola_lower::check_system::{body_order, check_system};
use systola_lower::dependences::{dependences, input_reads};

fn system(source: &str) -> System {
    let mut module = match parse_module(source) {
        Ok(module) => module,
        Err(errors) => panic!("{errors:#?}\n{source}"),
    };
    module.systems.remove(0)
}

fn messages(source: &str, sizes: Option<&[i128]>) -> Vec<String> {
    let found = check_system(&system(source), sizes);
    found.iter().map(ToString::to_string).collect()
}

fn check(source: &str, expect: &[&str]) {
    assert_eq!(messages(source, None), expect, "{source}");
}

fn passes(source: &str) {
    check(source, &[]);
}

/// A system over (i, j) in N x M with one input and the given equations.
fn square(rest: &str) -> String {
    format!(
        "system s(N, M) where N >= 1, M >= 1 {{
           input x[N, M]: f32;
           index i in 0..N, j in 0..M;
           {rest}
         }}"
    )
}

/// The same with an output that writes Y everywhere.
fn equations(vars: &str) -> String {
    square(&format!("{vars} output y[N, M]: f32 = Y at [i, j];"))
}

const CONV: &str = "
system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  index c in 0..C, q in 0..Q;
  var X: f32 = select(q == 0 || c == C - 1, x[c + q], X(c + 1, q - 1));
  var Z: f32 reorderable = select(q == 0, 0, Z(c, q - 1)) + X * w[q];
  output z[C]: f32 = Z at [c] when q == Q - 1;
}";

#[test]
fn the_paper_s_convolution_passes() {
    passes(CONV);
    let list = dependences(&system(CONV)).unwrap();
    let distances: Vec<Vec<i128>> = list
        .iter()
        .map(|d| {
            d.distance
                .iter()
                .map(|e| e.as_constant().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(distances, [vec![-1, 1], vec![0, 1], vec![0, 0]]);
    assert_eq!(input_reads(&system(CONV)).len(), 2);
}

#[test]
fn contexts_have_sizes() {
    check(
        "system s(N) where N >= 4, N <= 3 {
           index i in 0..N;
           var Y: f32 = 1;
           output y[N]: f32 = Y at [i];
         }",
        &["E0301: no sizes satisfy `N >= 4, N <= 3`"],
    );
}

#[test]
fn domains_are_bounded() {
    let with = |domain: &str| {
        format!(
            "system s(N) where N >= 1 {{
               index i, j where {domain};
               var Y: f32 = 1;
               output y[N]: f32 = Y at [i] when j == 0;
             }}"
        )
    };
    check(
        &with("0 <= i, i < N, 0 <= j"),
        &["E0302: the domain has no upper bound for `j`"],
    );
    check(
        &with("0 <= i, i < N, i + j < N"),
        &["E0302: the domain has no lower bound for `j`"],
    );
    passes(&with("0 <= i, i < N, 0 <= j, 2*j <= i + N"));
    // Bounded through a stride.
    passes(&with("0 <= i, i < N, j == 0 || j == i % 3"));
}

#[test]
fn references_are_affine() {
    passes(&equations(
        "var Y: f32 = select(i == 0 || 2*j >= M, x[i, j], Y(i - 1, 2*j));",
    ));
    passes(&equations(
        "var Y: f32 = select(i == 0, x[i, j], reduce(+, k in 0..j + 1, Y(i - 1, k)));",
    ));
    // A parametric distance is uniform.
    passes(&equations(
        "var Y: f32 = select(i == 0, x[i, j], select(j == 0, Y(i - 1, j + M - 1), Y(i, j - 1)));",
    ));
    check(
        &equations("var Y: f32 = select(i + j == 0, x[i, j], Y(i, M - 1 - j));"),
        &["E0311: with N = 3, M = 3 Y(0, 1) needs Y(0, 1): no order can compute it"],
    );
}

/// A system of one parameter with these declarations.
fn own(declarations: &str) -> String {
    format!("system s(N) where N >= 1 {{ input x[N]: f32; {declarations} }}")
}

#[test]
fn variables_have_iterators_of_their_own() {
    // A triangular solve: rows upwards, and back again in another variable.
    passes(&own("
        var Y(i in 0..N): f32 = x[i] - reduce(+, k in 0..i, x[k] * Y(k));
        var Z(i in 0..N): f32 = Y(i) - reduce(+, k in i + 1..N, x[k] * Z(k));
        var S(): f32 = reduce(+, i in 0..N, Z(i));
        output z[N]: f32 = Z at [i];
        output s[]: f32 = S at [];"));
    // Intervals by their length.
    passes(&own("
        var C(i in 0..N, j in 0..N): f32 on i <= j =
            select(i == j, 0.0, reduce(min, k in i..j, C(i, k) + C(k + 1, j) + x[i] * x[k] * x[j]));
        output c[N, N]: f32 = C at [i, j] else 0;"));
    check(
        &own("var Y(i in 0..N): f32 = Y(i - 1); output y[N]: f32 = Y at [i];"),
        &[
            "E0304: Y(i - 1) is read at i = 0 with N = 1, but Y is not defined at (-1): -1 is not >= 0",
        ],
    );
    check(
        &own("var Y(i): f32 on i < N = 1; output y[N]: f32 = Y at [i];"),
        &["E0302: the domain has no lower bound for `i`"],
    );
    check(
        &own("
        var Y(i in 0..N): f32 = select(i == 0, x[0], Z(N - i));
        var Z(i in 1..N + 1): f32 = Y(N - i);
        output y[N]: f32 = Y at [i];"),
        &["E0311: with N = 3 Y(1) needs Z(2), which needs Y(1): no order can compute it"],
    );
    check(
        &own("
        var Y(i in 0..N): f32 = x[i];
        var Z(j in 0..N): f32 = x[j];
        output y[N]: f32 = Y at [i], Z at [0] when j == 0;"),
        &["E0308: y[0] is written twice, at i = 0 and at j = 0 with N = 1"],
    );
}

#[test]
fn windows_over_constant_bounds_are_dependences() {
    let source = equations(
        "var Y: f32 = select(i == 0 || j == 0 || j == M - 1, x[i, j], reduce(+, k in 0..3, Y(i - 1, j + k - 1)));",
    );
    passes(&source);
    let list = dependences(&system(&source)).unwrap();
    let distances: Vec<i128> = list
        .iter()
        .map(|d| d.distance[1].as_constant().unwrap())
        .collect();
    assert_eq!(distances, [1, 0, -1]);
    assert!(list.iter().all(|d| d.window));
    check(
        &equations(
            "var Y: f32 = select(i == 0 || j == 0, x[i, j], reduce(+, k in 0..3, Y(i - 1, j + k - 1)));",
        ),
        &[
            "E0304: Y(i - 1, j + k - 1) is read at (i, j, k) = (1, 1, 2) with N = 2, M = 2, but Y is not defined at (0, 2): 2 is not < M",
        ],
    );
}

#[test]
fn values_exist_where_they_are_read() {
    check(
        &CONV.replace("q == 0 || c == C - 1", "q == 0"),
        &[
            "E0304: X(c + 1, q - 1) is read at (c, q) = (0, 1) with C = 1, Q = 2, but X is not defined at (1, 0): 1 is not < C",
        ],
    );
    check(
        &equations("var Y: f32 = select(i == 0, x[i, j], Y(i - 2, j));"),
        &[
            "E0304: Y(i - 2, j) is read at (i, j) = (1, 0) with N = 2, M = 1, but Y is not defined at (-1, 0): -1 is not >= 0",
        ],
    );
    // On a restricted domain.
    check(
        &equations(
            "var X: f32 on j >= i = x[i, j];
             var Y: f32 = X;",
        ),
        &[
            "E0304: X(i, j) is read at (i, j) = (1, 0) with N = 2, M = 1, but X is not defined at (1, 0): `j >= i` does not hold there",
        ],
    );
    passes(&equations(
        "var X: f32 on j >= i = x[i, j];
         var Y: f32 = select(j >= i, X, 0);",
    ));
}

#[test]
fn holes_are_not_read() {
    check(
        &equations(
            "var X: f32 = select(j % 2 == 0, x[i, j]);
             var Y: f32 = select(j >= 1, X(i, j - 1), 0);",
        ),
        &[
            "E0305: X(i, j - 1) is read at (i, j) = (0, 2) with N = 1, M = 3, but the equation of X gives no value at (0, 1): no branch of its `select` holds there",
        ],
    );
    passes(&equations(
        "var X: f32 = select(j % 2 == 0, x[i, j]);
         var Y: f32 = select(j % 2 == 1, X(i, j - 1), 0);",
    ));
    // What an equation reads where it has no value itself does not count.
    passes(&equations(
        "var X: f32 = select(j > 0, x[i, j]);
         var W: f32 = select(j > 0, 1) + X;
         var Y: f32 = select(j > 0, W, 0);",
    ));
    // A hole inside a reduction is a hole of the sum.
    check(
        &equations(
            "var X: f32 = reduce(+, k in 0..i + 1, select(k < 2, x[i, j]));
             var Y: f32 = X;",
        ),
        &[
            "E0305: X(i, j) is read at (i, j) = (2, 0) with N = 3, M = 1, but the equation of X gives no value at (2, 0): no branch of its `select` holds there",
        ],
    );
}

#[test]
fn inputs_are_read_inside() {
    check(
        &equations("var Y: f32 = x[i, j] + x[i, j + 1];"),
        &[
            "E0306: x[i, j + 1] is read at (i, j) = (0, 0) with N = 1, M = 1, but x[0, 1] does not exist: 1 is not < M",
        ],
    );
    passes(&equations(
        "var Y: f32 = select(j < M - 1, x[i, j + 1], 0);",
    ));
    passes(
        "system s(N) where N >= 1 {
           input x[N]: f32 else 0;
           index i in 0..N;
           var Y: f32 = x[i - 1] + x[i] + x[i + 1];
           output y[N]: f32 = Y at [i];
         }",
    );
    // Inside a reduction, at the first point of both.
    check(
        "system s(N, K) where N >= 1, K >= 1 {
           input x[N]: f32;
           index i in 0..N;
           var Y: f32 = reduce(+, k in 0..K, x[i + k]);
           output y[N]: f32 = Y at [i];
         }",
        &[
            "E0306: x[i + k] is read at (i, k) = (0, 1) with N = 1, K = 2, but x[1] does not exist: 1 is not < N",
        ],
    );
}

#[test]
fn outputs_are_written_inside() {
    check(
        &square("var Y: f32 = x[i, j]; output y[N, M]: f32 = Y at [i + 1, j];"),
        &[
            "E0307: y[i + 1, j] is written at (i, j) = (0, 0) with N = 1, M = 1, but y[1, 0] does not exist: 1 is not < N",
        ],
    );
    passes(&square(
        "var Y: f32 = x[i, j]; output y[1..N + 1, M]: f32 = Y at [i + 1, j];",
    ));
}

#[test]
fn elements_are_written_once() {
    check(
        &square("var Y: f32 = x[i, j]; output y[N]: f32 = Y at [i];"),
        &[
            "E0308: y[0] is written twice, at (i, j) = (0, 0) and at (i, j) = (0, 1) with N = 1, M = 2",
        ],
    );
    check(
        &square(
            "var Y: f32 = x[i, j]; output y[N]: f32 = Y at [i] when j == 0, 1 at [i] when j == M - 1;",
        ),
        &["E0308: y[0] is written twice, by both writes at (i, j) = (0, 0) with N = 1, M = 1"],
    );
    passes(&square(
        "var Y: f32 = x[i, j]; output y[N]: f32 = Y at [i] when j == 0 && M > 1, 1 at [i] when j == M - 1 && M == 1;",
    ));
    // Injective only through both components of the index.
    passes(&square(
        "var Y: f32 = x[i, j]; output y[N + M, 0 - M..N]: f32 = Y at [i + j, i - j] else 0;",
    ));
}

#[test]
fn elements_are_all_written() {
    check(
        &square("var Y: f32 = x[i, j]; output y[N, M]: f32 = Y at [i, j] when i > 0 || j != 1;"),
        &["E0309: y[0, 1] is never written with N = 1, M = 2"],
    );
    passes(&square(
        "var Y: f32 = x[i, j]; output y[N, M]: f32 = Y at [i, j] when i > 0 || j != 1 else 0;",
    ));
    check(
        &square("var Y: f32 = x[i, j]; output y[2*N, M]: f32 = Y at [2*i, j];"),
        &["E0309: y[1, 0] is never written with N = 1, M = 1"],
    );
}

#[test]
fn equations_of_a_point_have_an_order() {
    check(
        &equations("var X: f32 = Y + 1; var Y: f32 = X * 2;"),
        &[
            "E0310: at (i, j) = (0, 0) with N = 1, M = 1 `X` needs `Y`, which needs `X` of the same point",
        ],
    );
    let later = equations("var Y: f32 = X * 2; var X: f32 = x[i, j];");
    passes(&later);
    let order: Vec<u32> = body_order(&system(&later))
        .unwrap()
        .iter()
        .map(|v| v.0)
        .collect();
    assert_eq!(order, [1, 0]);
    // Guards that never hold together break the cycle, but leave no single order.
    check(
        &equations("var X: f32 = select(i < 2, 1, Y); var Y: f32 = select(i < 2, X, 2);"),
        &["L0704: the order of `X`, `Y` changes from point to point"],
    );
}

#[test]
fn values_do_not_depend_on_themselves() {
    check(
        "system s(N) where N >= 1 {
           index i in 0..N;
           var X: f32 = select(i == 0, 0, Y(i - 1));
           var Y: f32 = select(i == N - 1, 0, X(i + 1));
           output y[N]: f32 = Y at [i];
         }",
        &["E0311: with N = 3 Y(0) needs X(1), which needs Y(0): no order can compute it"],
    );
    // The sum of three distances.
    check(
        &equations(
            "var Y: f32 = select(i == 0 || j == 0 || i >= N - 2 || j >= M - 2, x[i, j],
                            Y(i - 1, j + 2) + Y(i + 2, j - 1) + Y(i - 1, j - 1));",
        ),
        &[
            "E0311: with N = 6, M = 6 Y(1, 2) needs Y(3, 1), which needs Y(2, 3), which needs Y(1, 2): no order can compute it",
        ],
    );
    // One backward distance alone is a schedule like any other.
    passes(&equations(
        "var Y: f32 = select(j == M - 1, x[i, j], Y(i, j + 1));",
    ));
    // Zero-weight multi-cycles that are not connected (KMW's example of recursion).
    passes(&equations(
        "var X: f32 = select(i == 0, x[i, j], X(i - 1, j));
         var Y: f32 = select(i == N - 1, X, Y(i + 1, j));",
    ));
    // Opposite distances on either side of a condition.
    passes(&equations(
        "var Y: f32 = select(j == 2, x[i, j], select(j < 2, select(j == 0, 0, Y(i, j - 1)), select(j == M - 1, 1, Y(i, j + 1))));",
    ));
}

#[test]
fn parametric_distances_can_vanish() {
    check(
        "system s(N) where N >= 1 {
           index i in 0..N;
           var X: f32 = select(i == N - 1, X(i + 1 - N), 1);
           output y[N]: f32 = X at [i];
         }",
        &["E0311: with N = 1 X(0) needs X(0): no order can compute it"],
    );
    passes(
        "system s(N) where N >= 2 {
           index i in 0..N;
           var X: f32 = select(i == N - 1, X(i + 1 - N), 1);
           output y[N]: f32 = X at [i];
         }",
    );
}

#[test]
fn reductions_without_identity_have_terms() {
    let with = |range: &str| {
        format!(
            "system s(N) where N >= 1 {{
               input x[N]: f32;
               fn least(a: f32, b: f32) -> f32 reorderable = min(a, b);
               index i in 0..N;
               var Y: f32 = reduce(least, k in {range}, x[k]);
               output y[N]: f32 = Y at [i];
             }}"
        )
    };
    check(
        &with("0..i"),
        &[
            "E0314: at i = 0 with N = 1 the reduction has no term, and `least` has no neutral element",
        ],
    );
    passes(&with("0..i + 1"));
}

#[test]
fn scans_read_their_prefix() {
    passes(&equations("var Y: f32 = scan(+, j, x[i, j]);"));
    check(
        &equations(
            "var Y: f32 = select(j == 2, scan(+, j, select(j > 0, x[i, j - 1], x[i + 1, j])), 0);",
        ),
        &[
            "E0306: x[i + 1, j] is read at (i, j, j') = (0, 2, 0) with N = 1, M = 3, but x[1, 0] does not exist: 1 is not < N",
        ],
    );
    check(
        &equations("var Y: f32 = scan(+, j, select(j == M - 1, 0, Y(i, j + 1)));"),
        &[
            "E0311: with N = 3, M = 3 Y(0, 1) needs Y(0, 2), which needs Y(0, 1): no order can compute it",
        ],
    );
}

#[test]
fn products_of_parameters_need_sizes() {
    let source = "system s(N) where N >= 1 {
       input x[N*N]: f32;
       index i in 0..N, j in 0..N;
       var Y: f32 = x[N*i + j];
       output y[N*N]: f32 = Y at [N*i + j];
     }";
    let found = check_system(&system(source), None);
    assert!(!found.is_empty());
    assert!(found.iter().all(|d| d.code.id == "L0701"), "{found:#?}");
    assert_eq!(messages(source, Some(&[7])), Vec::<String>::new());
    assert_eq!(
        messages(&source.replace("x[N*i + j]", "x[N*i + j + 1]"), Some(&[7])),
        [
            "E0306: x[N*i + j + 1] is read at (i, j) = (6, 6) with N = 7, but x[49] does not exist: 49 is not < 49"
        ]
    );
}

/// Compares definedness by brute force at small sizes with the symbolic verdict and its first
/// point.
#[test]
fn random_systems_agree_with_brute_force() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |n: i128| -> i128 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        i128::from(state >> 33) % n
    };
    let mut n_bad = 0;
    for _ in 0..150 {
        let mut atom = || {
            let sides = ["i", "j", "i + j", "i - j", "(i + 2*j) % 3", "(i + j)/2"];
            let rights = ["0", "1", "2", "N - 1", "M - 1", "N - 2"];
            let rels = ["==", "!=", "<", "<=", ">", ">="];
            format!(
                "{} {} {}",
                sides[next(6) as usize],
                rels[next(6) as usize],
                rights[next(6) as usize]
            )
        };
        let mut guard = format!("{} || ({} && {})", atom(), atom(), atom());
        let (mut hole, mut on) = (atom(), atom());
        let (a, b) = (next(4) - 1, next(4) - 1);
        // Usually guard the boundary, and give the source no holes.
        if next(4) > 0 {
            let boundary = format!("i < {a} || i >= N + {a} || j < {b} || j >= M + {b}");
            guard = format!("{boundary} || {guard}").replace("+ -", "- ");
        }
        if next(3) > 0 {
            hole = "i < 0".to_string();
        }
        if next(3) > 0 {
            on = "i < 0".to_string();
        }
        let source = equations(&format!(
            "var X: f32 on !({on}) = select(!({hole}), 1);
             var Y: f32 = select({guard}, 0, X(i - {a}, j - {b}));"
        ))
        .replace("- -", "+ ");
        let system = system(&source);
        let found = check_system(&system, None);
        let symbolic = found
            .iter()
            .find(|d| ["E0304", "E0305"].contains(&d.code.id))
            .map(|d| {
                let example = d.counterexample.as_ref().unwrap();
                let sizes = [example.params[0].1, example.params[1].1];
                (sizes, example.points[0].point.clone())
            });
        let expect = first_bad(&system, a, b);
        n_bad += usize::from(expect.is_some());
        assert_eq!(symbolic, expect, "{source}\n{found:#?}");
    }
    assert!((30..120).contains(&n_bad), "{n_bad}");
}

type Bad = ([i128; 2], Vec<i128>);

fn first_bad(system: &System, a: i128, b: i128) -> Option<Bad> {
    use systola_ir::VarId;
    use systola_ir::system::Expr;
    let guard_of = |var: usize| match &system.vars[var].body {
        Expr::Guard { cond, .. } => cond.clone(),
        other => panic!("{other:?}"),
    };
    let (hole, guard) = (guard_of(0), guard_of(1));
    let domain = system.var_domain(VarId(0));
    for n in 1..8 {
        for m in 1..8 {
            let sizes = [n, m];
            for i in 0..n {
                for j in 0..m {
                    let source = [i - a, j - b];
                    let reads = !guard.eval(&sizes, &[i, j]).unwrap();
                    let defined = domain.eval(&sizes, &source).unwrap()
                        && hole.eval(&sizes, &source).unwrap();
                    if reads && !defined {
                        return Some((sizes, vec![i, j]));
                    }
                }
            }
        }
    }
    None
}

/// Every program of the gallery is well formed.
#[test]
fn the_gallery_passes() {
    let gallery = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gallery");
    let mut folders = vec![std::path::PathBuf::from(gallery)];
    let mut failed = String::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|e| e != "ure") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let module = match parse_module(&source) {
                Ok(module) => module,
                Err(errors) => panic!("{}: {errors:#?}", path.display()),
            };
            for system in &module.systems {
                for diagnostic in check_system(system, None) {
                    failed.push_str(&format!("{}: {diagnostic}\n", path.display()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// The time to check ten thousand equations grows with their number; comparing each with each would
/// take minutes.
#[test]
fn ten_thousand_equations_are_checked() {
    let n = 10_000;
    let mut source = String::from(
        "system s(N) where N >= 1 {\n input x[N]: i32;\n index i in 0..N;\n var V0: i32 = x[i];\n",
    );
    for k in 1..n {
        let (before, half) = (k - 1, k / 2);
        source.push_str(&format!(
            " var V{k}: i32 = select(i > 0, V{before}(i - 1) + V{k}(i - 1), x[i]) + V{half};\n"
        ));
    }
    source.push_str(&format!(" output y[N]: i32 = V{} at [i];\n}}", n - 1));
    passes(&source);
    let order = body_order(&system(&source)).unwrap();
    assert!(order.is_sorted());
}

/// A ring of equations: one component, with a circulation that only goes forwards.
#[test]
fn a_ring_of_ten_thousand_equations_is_checked() {
    let n = 10_000;
    let mut source = format!(
        "system s(N) where N >= 1 {{\n input x[N]: i32;\n index i in 0..N;\n var V0: i32 = select(i > 0, V{}(i - 1), x[i]);\n",
        n - 1
    );
    for k in 1..n {
        source.push_str(&format!(" var V{k}: i32 = V{} + 1;\n", k - 1));
    }
    source.push_str(" output y[N]: i32 = V0 at [i];\n}");
    passes(&source);
}

#[test]
fn functions_that_grow_with_each_other_are_counted_and_not_inlined() {
    let nested = |n: usize| {
        let mut functions = String::from("fn g0(a: f32) -> f32 = a + 1;\n");
        for k in 1..n {
            let below = k - 1;
            functions.push_str(&format!(
                "fn g{k}(a: f32) -> f32 = g{below}(g{below}(a));\n"
            ));
        }
        square(&format!(
            "{functions} var Y: f32 = g{}(x[i, j]); output y[N, M]: f32 = Y at [i, j];",
            n - 1
        ))
    };
    passes(&nested(8));
    for n in [20, 40, 64] {
        let found = messages(&nested(n), None);
        let [message] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(message.contains("E0106"), "{message}");
        assert!(
            message.contains(&format!("`g{}` alone", n - 1)),
            "{message}"
        );
    }
}
