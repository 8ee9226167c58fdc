//! Variables that a mapping moves to one index space.

use std::collections::BTreeMap;

use systola_driver::{Fix, Machine, Simd, load, lower};
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{run_array, run_system};
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_lower::align::align;
use systola_lower::failure::Failure;
use systola_lower::pipeline::analyse;

use crate::values::inputs;

fn parts(text: &str) -> (System, Vec<Mapping>) {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let system = module.systems.into_iter().next().expect("one system");
    (system, module.mappings)
}

/// Statements of one recurrence that run at different times.
pub const PROGRAMS: [(&str, &[i128]); 8] = [
    (
        "system jacobi(T, N) where T >= 1, N >= 3 {
           input a[N]: i32;
           var A(t in 0..T + 1, i in 0..N): i32 = select(t == 0, a[i],
               select(i == 0 || i == N - 1, A(t - 1, i), B(t - 1, i)));
           var B(t in 0..T, i in 1..N - 1): i32 = A(t, i - 1) + 2 * A(t, i) - A(t, i + 1);
           output z[N]: i32 = A at [i] when t == T;
         }
         mapping rows of jacobi {
           space (u, i);
           align A (t, i) -> (2*t, i);
           align B (t, i) -> (2*t + 1, i);
           tile i by L as (b, l);
           launch = u; block = b; lane = l; time = 0;
         }
         mapping points of jacobi {
           space (u, i);
           align A (t, i) -> (2*t, i);
           align B (s, j) -> (2*s + 1, j);
           lane = 0; time = (u, i);
         }
         mapping skewed of jacobi {
           space (u, i);
           align A (t, i) -> (2*t, i + 2*t);
           align B (t, i) -> (2*t + 1, i + 2*t + 1);
           lane = 0; time = (i, u);
         }",
        &[3, 17],
    ),
    (
        "system fdtd(T, N) where T >= 1, N >= 2 {
           input e[N]: i32;
           input h[N]: i32;
           var E(t in 0..T, x in 0..N): i32 = select(t == 0, e[x], E(t - 1, x))
               + select(x == 0, 0, select(t == 0, h[x] - h[x - 1], H(t - 1, x) - H(t - 1, x - 1)));
           var H(t in 0..T, x in 0..N): i32 = select(t == 0, h[x], H(t - 1, x))
               + select(x == N - 1, 0, E(t, x + 1) - E(t, x));
           output y[N]: i32 = H at [x] when t == T - 1;
         }
         mapping skewed of fdtd {
           space (t, s);
           align E (t, x) -> (t, 2*x);
           align H (t, x) -> (t, 2*x + 3);
           lane = 0; time = (t, s);
         }
         mapping down of fdtd {
           space (v, x);
           align E (t, x) -> (2*t, x);
           align H (t, x) -> (2*t + 1, x);
           launch = v; lane = 0; time = N - 1 - x;
         }",
        &[4, 9],
    ),
    (
        "system sums(N) where N >= 1 {
           input x[N]: i32;
           index i in 0..N;
           var X: i32 = x[i];
           var P(j in 0..N): i32 = scan(+, j, X(j));
           var M(j in 0..N): i32 = select(j == 0, P(0), max(M(j - 1), P(j)));
           output m[N]: i32 = M at [j];
         }
         mapping one of sums {
           space (i);
           align P (j) -> (j);
           align M (k) -> (k);
           lane = 0; time = i;
         }",
        &[11],
    ),
    (
        "system product(M, N) where M >= 1, N >= 2 {
           input a[M, N]: i32;
           input x[N]: i32;
           var Y(i in 0..M): i32 = reduce(+, k in 0..N, a[i, k] * x[k]);
           var Z(i in 0..M): i32 = select(i == 0, Y(0), Z(i - 1) + Y(i));
           output z[M]: i32 = Z at [i];
         }
         mapping late of product {
           space (p, i);
           align Y (i) -> (0, i);
           align Z (i) -> (1, i);
           lane = 0; time = (p, i, k);
         }",
        &[5, 6],
    ),
    // Values that several points read are forwarded.
    (
        "system elimination(N) where N >= 1 {
           input a[N, N]: i32;
           var S(i, j, k): i32 on 0 <= k < i < N, k < j < N =
               select(k == 0, a[i, j], S(i, j, k - 1)) - L(i, k) * U(k, j);
           var U(i, j): i32 on 0 <= i <= j < N = select(i == 0, a[i, j], S(i, j, i - 1));
           var L(i, j): i32 on 0 <= j < i < N =
               3 * select(j == 0, a[i, j], S(i, j, j - 1)) + U(j, j);
           output lu[N, N]: i32 = U at [i, j], L at [i, j];
         }
         mapping rows of elimination {
           space (k, i, j);
           align U (i, j) -> (i, i, j);
           align L (i, j) -> (j, i, j);
           forward U along (0, 1, 0);
           forward L along (0, 0, 1);
           lane = j; time = (i, k + j);
         }
         mapping waves of elimination {
           space (k, i, j);
           align U (i, j) -> (i, i, j);
           align L (i, j) -> (j, i, j);
           forward U along (0, 1, 0);
           forward L along (0, 0, 1);
           block = i; launch = k + i; lane = 0; time = j;
         }",
        &[7],
    ),
    (
        "system solve(N) where N >= 1 {
           input l[N, N]: i32;
           input b[N]: i32;
           var T(i, j): i32 on 0 <= j < i < N =
               select(j == 0, b[i], T(i, j - 1)) - l[i, j] * X(j);
           var X(i in 0..N): i32 = 5 * select(i == 0, b[0], T(i, i - 1));
           output x[N]: i32 = X at [i];
         }
         mapping columns of solve {
           space (i, j);
           align X (i) -> (i, i);
           forward X along (1, 0);
           lane = j; time = i + j;
         }
         mapping rows of solve {
           space (i, j);
           align X (j) -> (j, j);
           forward X along (1, 0);
           lane = i; time = i + j;
         }",
        &[9],
    ),
    (
        "system solutions(N, B) where N >= 1, B >= 1 {
           input l[N, N]: i32;
           input b[N]: i32;
           batch n in 0..B shared(l);
           var T(i, j): i32 on 0 <= j < i < N =
               select(j == 0, b[i], T(i, j - 1)) - l[i, j] * X(j);
           var X(i in 0..N): i32 = select(i == 0, b[0], T(i, i - 1));
           output x[N]: i32 = X at [i];
         }
         mapping lanes of solutions {
           space (i, j);
           align X (i) -> (i, i);
           forward X along (1, 0);
           lane = n; time = (i, j);
         }",
        &[6, 5],
    ),
    (
        "system gauss(N) where N >= 1 {
           input a[N, N]: i32;
           index k in 0..N, i in 0..N, j in 0..N;
           var A: i32 on k <= i, k <= j = select(k == 0, a[i, j],
               A(k - 1, i, j) - A(k - 1, i, k - 1) * A(k - 1, k - 1, j));
           output u[N, N]: i32 = A at [i, j] when k == i && i <= j else 0;
         }
         mapping along of gauss {
           forward A along (0, 0, 1);
           forward A along (0, 1, 0);
           lane = 0; time = (k, i, j);
         }
         mapping steps of gauss {
           forward A along (0, 0, 1);
           forward A along (0, 1, 0);
           launch = k; lane = j; time = i + j;
         }",
        &[6],
    ),
];

#[test]
fn aligned_systems_compute_the_same() {
    let mut runs = 0;
    for (text, sizes) in PROGRAMS {
        let (system, mappings) = parts(text);
        let expanded = system.expand_batch().expect("small numbers");
        let arrays = inputs(&expanded, sizes).expect("small arrays");
        let want = run_system(&system, sizes, &arrays).expect("a legal system");
        for mapping in &mappings {
            let name = format!("{} of {}", mapping.name, system.name);
            let aligned = align(&system, mapping);
            let aligned = aligned.unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert!(aligned.has_one_space(), "{name}\n{aligned}");
            let found = run_system(&aligned, sizes, &arrays);
            assert_eq!(found.as_ref(), Ok(&want), "{name}\n{aligned}");
            let given: Vec<Option<i128>> = sizes.iter().copied().map(Some).collect();
            let analysed = analyse(&system, mapping, &given);
            let analysed = analysed.unwrap_or_else(|e| panic!("{name}: {e:?}\n{aligned}"));
            let found = run_array(&analysed.array, sizes, &arrays);
            assert_eq!(found.as_ref(), Ok(&want), "{name}\n{}", analysed.array);
            let module = load(text).expect("loaded before");
            for machine in [Machine::cpu(Simd::Avx2), Machine::cuda()] {
                let program = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, &machine);
                let program = program.unwrap_or_else(|e| panic!("{name}: {e:?}")).program;
                let found = run_kernel_program(&program, sizes, &arrays, &Options::default());
                let found = found.unwrap_or_else(|e| panic!("{name}: {e}\n{program}"));
                assert_eq!(found.outputs, want, "{name}\n{program}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 28);
}

/// The refusal of the first mapping.
fn refusal(text: &str) -> String {
    let (system, mappings) = parts(text);
    match align(&system, &mappings[0]) {
        Err(Failure::Refused(errors)) => format!("{}: {}", errors[0].code.id, errors[0].message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn alignments_are_changes_of_basis() {
    let with = |mapping: &str| {
        refusal(&format!(
            "system s(N) where N >= 1 {{
               input x[N]: i32;
               var A(i in 0..N, j in 0..N): i32 = select(j == 0, x[i], A(i, j - 1));
               var S(i in 0..N): i32 = scan(+, i, A(i, N - 1));
               output z[N]: i32 = S at [i];
             }}
             mapping m of s {{ {mapping} lane = 0; time = (i, j); }}"
        ))
    };
    assert_eq!(
        with("space (i, j);"),
        "E0421: `S` has the iterators (i), and the space has (i, j)"
    );
    assert_eq!(
        with(""),
        "E0421: `A` has the iterators (i, j), and there is no common space"
    );
    assert_eq!(
        with("space (i, j); align S (i) -> (i);"),
        "E0422: `S` is aligned with 1 coordinates of the space, and there are 2"
    );
    assert_eq!(
        with("space (i, j); align A (i, j) -> (i, 0); align S (i) -> (i, N);"),
        "E0422: A(0, 0) and A(0, 1) are aligned with the same point of the space"
    );
    assert_eq!(
        with("space (i, j); align S (i) -> (2*i, N);"),
        "E0422: `S` has a running sum along `i`, which no coordinate of the space is"
    );
    assert_eq!(
        with("space (i, j); align T (i) -> (i, N);"),
        "E0402: `T` is no variable of `s`"
    );
}
