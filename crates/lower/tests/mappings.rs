//! Mappings through the pipeline: what is legal, what is refused and why, and what comes out.

use systola_front::text::parse_module;
use systola_ir::Diagnostic;
use systola_ir::array::Realisation;
use systola_ir::target::{Machine, Simd};
use systola_lower::localise::localise;
use systola_lower::names::LANES;
use systola_lower::pipeline::{Analysed, analyse, compile};
use systola_lower::report::Scope;
use systola_lower::watch::unwatched;

const CORE: &str = "
system conv(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: i32;
  input w[Q]: i32;
  index c in 0..C;
  var Z: i32 = reduce(+, q in 0..Q, x[c + q] * w[q]);
  output z[C]: i32 = Z at [c] when true;
}
";

const HEAT: &str = "
system heat(T, N) where T >= 1, N >= 3 {
  input u0[N]: i32;
  index t in 0..T, x in 0..N;
  var U: i32 = select(t == 0, u0[x],
                 select(x == 0 || x == N - 1, U(t-1, x), U(t-1, x-1) + U(t-1, x) + U(t-1, x+1)));
  output u[N]: i32 = U at [x] when t == T - 1;
}
";

const MATMUL: &str = "
system matmul(N, M, K) where N >= 1, M >= 1, K >= 1 {
  input a[N, K]: i32;
  input b[K, M]: i32;
  index i in 0..N, j in 0..M, k in 0..K;
  var A: i32 = select(j == 0, a[i, k], A(i, j-1, k));
  var B: i32 = select(i == 0, b[k, j], B(i-1, j, k));
  var C: i32 = select(k == 0, 0, C(i, j, k-1)) + A * B;
  output c[N, M]: i32 = C at [i, j] when k == K - 1;
}
";

fn run(system: &str, mapping: &str, sizes: &[i128]) -> Result<Analysed, Vec<Diagnostic>> {
    let name = system.split_whitespace().nth(1).unwrap();
    let name = name.split('(').next().unwrap();
    let text = format!("{system}\nmapping m of {name} {{ {mapping} }}");
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let n = module.systems[0].params.len();
    let sizes: Vec<Option<i128>> = (0..n).map(|k| sizes.get(k).copied()).collect();
    analyse(&module.systems[0], &module.mappings[0], &sizes)
}

fn legal(system: &str, mapping: &str, sizes: &[i128]) -> Analysed {
    run(system, mapping, sizes).unwrap_or_else(|e| panic!("{mapping}: {e:#?}"))
}

fn refused(system: &str, mapping: &str, code: &str) -> Diagnostic {
    let errors = match run(system, mapping, &[]) {
        Ok(_) => panic!("{mapping} is legal"),
        Err(errors) => errors,
    };
    assert_eq!(errors[0].code.id, code, "{mapping}: {errors:#?}");
    errors[0].clone()
}

#[test]
fn a_sum_is_serialised_in_the_order_of_the_mapping() {
    let text = |mapping: &str| {
        let module = parse_module(&format!("{CORE} mapping m of conv {{ {mapping} }}")).unwrap();
        let localised = localise(&module.systems[0], Some(&module.mappings[0]), LANES).unwrap();
        localised.system.to_string()
    };
    let up = text("lane = c; time = q;");
    assert!(
        up.contains("select(q == 0, x[c + q] * w[q], Z(c, q - 1) + x[c + q] * w[q])"),
        "{up}"
    );
    assert!(up.contains("when q == Q - 1"), "{up}");
    let down = text("lane = c; time = -q; sum Z along -q;");
    assert!(
        down.contains("select(q == Q - 1, x[c + q] * w[q], Z(c, q + 1) + x[c + q] * w[q])"),
        "{down}"
    );
    assert!(down.contains("when q == 0"), "{down}");
    let forwarded = text("lane = c; time = q; forward x along (-1, 1);");
    assert!(
        forwarded.contains("X(c + 1, q - 1), x[c + q])"),
        "{forwarded}"
    );
}

#[test]
fn a_localised_system_comes_back_unchanged() {
    let module = parse_module(MATMUL).unwrap();
    assert_eq!(
        localise(&module.systems[0], None, LANES).unwrap().system,
        module.systems[0]
    );
}

#[test]
fn a_sum_inside_a_sum_stays_on_its_moving_face() {
    let text = "
system nested(N) where N >= 1 {
  input x[N]: i32;
  index i in 0..N;
  var S: i32 = reduce(+, j in 0..i + 1, reduce(max, k in 0..j + 1, x[k] - x[j]));
  output s[N]: i32 = S at [i];
}";
    let analysed = legal(text, "lane = i; time = (j, k);", &[]);
    // S is on the face k = j, so its step along j goes along k too.
    let rows: Vec<&str> = analysed
        .report
        .links
        .iter()
        .filter(|l| l.source == "S")
        .map(|l| l.distance.as_str())
        .collect();
    assert_eq!(rows, ["(0, 1, 1)"]);
}

#[test]
fn the_six_designs_and_the_tree_have_the_names_of_the_literature() {
    let xs = "forward x along (-1, 1);";
    let xf = "forward x along (1, -1);";
    let wf = "forward w along (1, 0);";
    for (mapping, name) in [
        (format!("{xs} lane = c + q; time = q;"), "SBM"),
        (format!("{wf} lane = q; time = c + q;"), "BSM"),
        (
            format!("{xf} {wf} sum Z along -q; lane = q; time = c - q;"),
            "FSM",
        ),
        (format!("{wf} lane = c; time = c + q;"), "BFS"),
        (format!("{xf} {wf} lane = c; time = 2*c + q;"), "FFS"),
        (format!("{xs} lane = c; time = q;"), "FBS"),
        ("lane = q; time = c; sum Z tree;".to_string(), "FSA"),
    ] {
        let analysed = legal(CORE, &mapping, &[]);
        assert_eq!(analysed.report.name, name, "{mapping}");
        assert_eq!(analysed.report.scope, Scope::AllSizes);
    }
}

#[test]
fn loops_and_time_coordinates_can_be_unrolled() {
    let place = "lane = c; time = (c + q, q);";
    for unroll in ["unroll q;", "unroll time by 2;", "unroll time1;"] {
        legal(CORE, &format!("{place} {unroll}"), &[]);
    }
    for unroll in ["unroll time2;", "unroll lane;", "unroll z by 2;"] {
        refused(CORE, &format!("{place} {unroll}"), "E0401");
    }
}

#[test]
fn causality_and_conflicts_come_with_concrete_points() {
    let back = refused(MATMUL, "lane = (i, j); time = i + j - k;", "E0501");
    let example = back.counterexample.unwrap();
    assert_eq!(example.points.len(), 2);
    assert!(example.points[0].time >= example.points[1].time);
    let clash = refused(MATMUL, "lane = i; time = i + j + k;", "E0502");
    let example = clash.counterexample.unwrap();
    assert_ne!(example.points[0].point, example.points[1].point);
    assert_eq!(example.points[0].place, example.points[1].place);
    assert_eq!(example.points[0].time, example.points[1].time);
    refused(MATMUL, "lane = (i, j); time = k;", "E0501");
    legal(
        MATMUL,
        "lane = (i, j); time = k; broadcast A; broadcast B;",
        &[],
    );
}

#[test]
fn schedules_with_parameters_are_decided_by_their_digits() {
    let analysed = legal(MATMUL, "lane = i; time = i + K*j + k;", &[]);
    assert_eq!(analysed.report.scope, Scope::AllSizes);
    // The digits overlap for K - 1: (i, 0, K-1) and (i, 1, 0).
    let errors = run(MATMUL, "lane = i; time = i + K*j - j + k;", &[]).unwrap_err();
    assert_eq!(errors[0].code.id, "L0701");
    let errors = run(MATMUL, "lane = i; time = i + K*j - j + k;", &[2, 3, 4]).unwrap_err();
    assert_eq!(errors[0].code.id, "E0502");
    // 5 is enough for K = 4 but not for all K, and the report says so.
    let at_sizes = legal(MATMUL, "lane = i; time = i + 5*j + k;", &[2, 3, 4]);
    match at_sizes.report.scope {
        Scope::GivenSizes(why) => assert!(why.contains("E0502"), "{why}"),
        Scope::AllSizes => panic!("5 is too small for large K"),
    }
    refused(MATMUL, "lane = i; time = i + 5*j + k;", "E0502");
}

#[test]
fn a_reverse_transform_is_derived_and_a_users_one_verified() {
    let sbm = "forward x along (-1, 1); lane = c + q; time = q;";
    let analysed = legal(CORE, sbm, &[]);
    assert_eq!(analysed.report.reverse, ["c = lane - time", "q = time"]);
    legal(
        CORE,
        &format!("{sbm} reverse (c = lane - time, q = time);"),
        &[],
    );
    refused(
        CORE,
        &format!("{sbm} reverse (c = lane + time, q = time);"),
        "E0503",
    );
    let hexagonal = legal(MATMUL, "lane = (i - k, j - k); time = i + j + k;", &[]);
    assert!(
        hexagonal.report.reverse[0].contains("/3"),
        "{:?}",
        hexagonal.report.reverse
    );
    let linear = legal(MATMUL, "lane = i; time = i + K*j + k;", &[2, 3, 4]);
    assert_eq!(
        linear.report.reverse,
        ["i = lane", "j = (-lane + time)/4", "k = (-lane + time) % 4"]
    );
}

#[test]
fn a_halo_must_reach_as_far_as_the_steps_of_a_launch() {
    let with = |halo: i128| {
        format!(
            "tile t by 4 as (l, u); tile x by 16 overlap ({halo}, {halo}) as (bx, xx);
             block = bx; lane = xx + {halo}; launch = l; time = u;"
        )
    };
    // Three steps of radius 1 within a launch; its first reads memory.
    legal(HEAT, &with(3), &[]);
    let narrow = refused(HEAT, &with(2), "E0505");
    assert!(narrow.counterexample.is_some());
    let analysed = legal(HEAT, &with(3), &[8, 40]);
    let counts = analysed.report.counts.unwrap();
    assert_eq!(counts.points, 8 * 40);
    assert!(counts.expanded > counts.points);
}

#[test]
fn the_halo_of_a_chain_of_stencils_is_decided_for_all_sizes() {
    // Three sums in a row, each with its own boundary; `A` is needed three cells to the left and
    // two to the right.
    let chain = "
stencil chain(N, M) {
  field u[N, M]: i32 clamp;
  var A: i32 clamp = u[-1, 0] + u[1, 0];
  var B: i32 clamp = A[0, -2] + A + A[0, 2];
  u = B[0, -1] + B;
}";
    let with = |left: i128, right: i128| {
        format!(
            "tile y by 8 as (by, yy); tile x by 16 as (bx, xx) overlap ({left}, {right});
             block = (by, bx); lane = xx + {left}; reg = yy; time = 0; broadcast A; broadcast B;"
        )
    };
    legal(chain, &with(3, 2), &[]);
    legal(chain, &with(3, 2), &[50, 70]);
    legal(chain, &with(4, 5), &[]);
    for (left, right) in [(2, 2), (3, 1), (0, 0)] {
        let narrow = refused(chain, &with(left, right), "E0505");
        assert!(narrow.counterexample.is_some());
    }
    // One tile as wide as the grid: cells beyond it are at the boundary, where cells read
    // themselves.
    legal(chain, &with(0, 0), &[50, 16]);
    let narrow = run(chain, &with(2, 2), &[50, 70]).unwrap_err();
    assert_eq!(narrow[0].code.id, "E0505");
}

#[test]
fn without_overlap_a_dependence_must_not_cross_blocks_in_a_launch() {
    let crossing = "tile x by 16 as (bx, xx); block = bx; lane = xx; time = t;";
    refused(HEAT, crossing, "E0504");
    legal(HEAT, &format!("{crossing} flags;"), &[]);
    legal(
        HEAT,
        "tile x by 16 as (bx, xx); block = bx; lane = xx; launch = t; time = 0;",
        &[],
    );
}

#[test]
fn four_points_per_lane_make_piecewise_links() {
    let analysed = legal(
        HEAT,
        "tile x by 4 as (l, r); lane = l; reg = r; time = t;",
        &[],
    );
    let mut kinds: Vec<String> = analysed
        .report
        .links
        .iter()
        .map(|l| format!("{} {:?}", l.displacement, l.realisation))
        .collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "(-1, 3) Shuffle",
            "(0, -1) Register",
            "(0, 0) Register",
            "(0, 1) Register",
            "(1, -3) Shuffle",
        ]
    );
}

#[test]
fn table_one_primitives_resolve_to_the_same_array() {
    let text = "
system conv(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  index c in 0..C, q in 0..Q;
  var X: f32 = select(q == 0 || c == C - 1, x[c + q], X(c + 1, q - 1));
  var W: f32 = w[q];
  var Z: f32 = select(q == 0, 0, Z(c, q - 1)) + X * W;
  output z[C]: f32 = Z at [c] when q == Q - 1;
}";
    let analysed = legal(
        text,
        "func X(f32, (c, q), device); X.merge_ures(W, Z);
         X.tile(c, oc, cc, 64); X.tile(cc, cc, ccc, 16); X.reorder(ccc, q, cc, oc);
         X.gpu_blocks(oc); X.gpu_threads(cc);
         w.in(X).compute_at(X, oc).store_in(shared);
         X.space_time_transform((ccc, q), (s, t), ((1, 1), (0, 1)), reverse (s - t, t));",
        &[],
    );
    assert_eq!(analysed.report.name, "SBM");
    // At the edge of a tile the propagated input is injected again.
    let reinjected = analysed
        .report
        .links
        .iter()
        .filter(|l| l.realisation == Realisation::Reinject)
        .count();
    assert_eq!(reinjected, 2);
    assert_eq!(analysed.array.transfers.len(), 1);
    let wrong = run(
        text,
        "X.merge_ures(Z, W); X.space_time_transform((c, q), (s, t), ((1, 1), (0, 1)));",
        &[],
    );
    assert_eq!(wrong.unwrap_err()[0].code.id, "E0415");
}

#[test]
fn tests_are_proved_away_or_kept_with_a_reason() {
    let sbm = "forward x along (-1, 1); lane = c + q; time = q;";
    let guards = legal(CORE, sbm, &[]).array.guards;
    let kept: Vec<bool> = guards.iter().map(|g| g.kept).collect();
    // w[q] and x[lane] are always there; z[c] is not written for c < 0.
    assert_eq!(kept, [false, false, true], "{guards:#?}");
    refused(CORE, &format!("{sbm} trust;"), "E0506");
    let full = legal(
        CORE,
        "forward x along (-1, 1); lane = c; time = q; trust;",
        &[],
    );
    assert!(full.array.guards.iter().all(|g| !g.kept));
    let checked = legal(CORE, &format!("{sbm} check;"), &[]);
    assert!(checked.array.guards.iter().all(|g| g.kept));
}

#[test]
fn pieces_that_differ_by_constants_are_linked() {
    let analysed = legal(
        HEAT,
        "when x < 2 { lane = x; time = t; } lane = x + 5; time = t;",
        &[4, 6],
    );
    assert_eq!(analysed.array.pieces.len(), 2);
    assert_eq!(analysed.report.counts.unwrap().pes, 6);
    refused(
        HEAT,
        "when x < 2 { lane = 2*x; time = t; } lane = x; time = t;",
        "L0717",
    );
}

/// Tiles of a band have edges that run through them, so the condition on what is read later is a
/// disjunction of many cases. Multiplying it out for each question would take minutes.
#[test]
fn tiles_of_a_band_are_lowered() {
    let source = "
        system dtw(N, W) where N >= 1, W >= 0 {
          input a[N]: i32;
          input b[N]: i32;
          index i in 0..N, j in 0..N where i - j <= W, j - i <= W;
          var A: i32 = select(j > 0 && i - (j - 1) <= W, A(i, j - 1), a[i]);
          var B: i32 = select(i > 0 && j - (i - 1) <= W, B(i - 1, j), b[j]);
          var D: i32 =
              let up = select(i > 0 && j - (i - 1) <= W, D(i - 1, j), 1000000000);
              let left = select(j > 0 && i - (j - 1) <= W, D(i, j - 1), 1000000000);
              let diag = select(i > 0 && j > 0, D(i - 1, j - 1), select(i == 0 && j == 0, 0, 1000000000));
              abs(A - B) + min(up, left, diag);
          output d[]: i32 = D at [] when i == N - 1 && j == N - 1;
        }
        mapping z of dtw {
          tile i by 4 as (bi, ii);
          tile j by 4 as (bj, jj);
          launch = bi + bj;
          block = bj;
          lane = jj;
          time = ii + jj;
        }";
    let module = parse_module(source).unwrap();
    let machine = Machine::cpu(Simd::Avx512);
    let (system, mapping) = (&module.systems[0], &module.mappings[0]);
    let (sizes, fixed) = ([None, None], [false, false]);
    let compiled = unwatched(|watch| compile(system, mapping, &sizes, &fixed, &machine, watch));
    assert_eq!(compiled.unwrap().analysed.report.scope, Scope::AllSizes);
}

/// A star of radius four under `clamp` has holes at every side of a tile. If each is a separate
/// question from the start, the whole is given up as too complex.
#[test]
fn the_halo_of_a_wide_star_under_clamp_is_decided_for_all_sizes() {
    let source = "
        stencil many(N, M, T) {
          field u[N, M]: f32 clamp;
          input w[17]: f32;
          steps T;
          u = sum(w * u over star 4);
        }
        mapping waves of many {
          tile t by 3 as (tl, s);
          tile y by 196 as (by, yy) overlap (16, 8);
          tile x by 112 as (bx, xx) overlap (8, 8);
          launch = tl;
          block = (by, bx);
          lane = (xx + 8) / 4;
          reg = (xx + 8) % 4;
          time = (yy + 4*s, s);
        }";
    let module = parse_module(source).unwrap();
    let found = analyse(&module.systems[0], &module.mappings[0], &[None, None, None]).unwrap();
    assert_eq!(found.report.scope, Scope::AllSizes);
}

const TWO_SUMS: &str = "
system two(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: i32;
  input w[Q]: i32;
  index c in 0..C;
  var A: i32 = reduce(+, q in 0..Q, x[c + q] * w[q]);
  var D: i32 = reduce(+, q in 0..Q, x[c + q]);
  output a[C]: i32 = A at [c];
  output d[C]: i32 = D at [c];
}
";

#[test]
fn sums_under_one_name_share_an_iterator() {
    for mapping in [
        "lane = c; time = q;",
        "lane = c; time = q; sum A along q; sum D along q;",
        "lane = c; time = -q; sum A along -q; sum D along -q;",
        "lane = c; time = (q, q); sum A along q; sum D along q;",
        "lane = c + q; time = q; sum A along q; sum D tree;",
        "lane = c; time = q; forward x along (-1, 1);",
        "tile q by 2 as (bq, qq); lane = c; time = (bq, qq);",
    ] {
        assert_eq!(
            legal(TWO_SUMS, mapping, &[]).array.dims,
            ["c", "q"],
            "{mapping}"
        );
    }
    // All terms of a PE in one step: as for a single sum, each needs a slot of its own.
    refused(
        TWO_SUMS,
        "lane = c; time = 0; sum A tree; sum D tree;",
        "E0502",
    );
}

#[test]
fn two_sums_of_one_equation_share_an_iterator() {
    let system = TWO_SUMS.replace(
        "reduce(+, q in 0..Q, x[c + q]);",
        "reduce(+, q in 0..Q, x[c + q]) * reduce(max, q in 0..Q, w[q]);",
    );
    let found = legal(
        &system,
        "lane = c; time = -q; sum A along -q; sum D along -q;",
        &[],
    );
    assert_eq!(found.array.dims, ["c", "q"]);
}

#[test]
fn a_name_of_sums_that_can_not_share_is_refused() {
    let waits = TWO_SUMS.replace("q in 0..Q, x[c + q]);", "q in 0..Q, x[c + q] - A);");
    let ranges = TWO_SUMS.replace("q in 0..Q, x[c + q]);", "q in 0..C, x[c]);");
    for mapping in [
        "lane = c; time = q;",
        "tile q by 2 as (bq, qq); lane = c; time = (bq, qq);",
        "tile q by 2 as (bq, qq) overlap (1, 1); lane = c; time = (bq, qq);",
    ] {
        refused(&waits, mapping, "E0418");
        refused(&ranges, mapping, "E0418");
    }
    refused(
        TWO_SUMS,
        "lane = c; time = q; sum A along q; sum D along -q;",
        "E0418",
    );
}

#[test]
fn sums_that_need_each_other_a_step_later_share_an_iterator() {
    let text = "
system rotate(T, Q) where T >= 1, Q >= 1 {
  input x[T, Q]: i32;
  index t in 0..T;
  var A: i32 = select(t == 0, 0, D(t - 1)) + reduce(+, q in 0..Q, x[t, q]);
  var D: i32 = select(t == 0, 0, A(t - 1)) - reduce(+, q in 0..Q, x[t, q]);
  output a[T]: i32 = A at [t];
  output d[T]: i32 = D at [t];
}";
    assert_eq!(legal(text, "time = (t, q);", &[]).array.dims, ["t", "q"]);
}

#[test]
fn a_parameter_does_not_replace_the_lanes() {
    let band = CORE.replace("C, Q", "C, L").replace("Q", "L");
    let band = band.replace("conv(C, L)", "band(C, L)");
    refused(
        &band,
        "tile c by L as (bc, cc); block = bc; lane = cc; time = q;",
        "E0419",
    );
    let found = legal(
        &band,
        "tile c by lanes as (bc, cc); block = bc; lane = cc; time = q;",
        &[],
    );
    let plain = CORE.replace("conv", "band");
    let same = legal(
        &plain,
        "tile c by L as (bc, cc); block = bc; lane = cc; time = q;",
        &[],
    );
    assert_eq!(found.array.pieces, same.array.pieces);
    // An iterator of that name is the iterator.
    let iterator = plain
        .replace("c in 0..C", "L in 0..C")
        .replace("c + q", "L + q")
        .replace("[c]", "[L]");
    legal(&iterator, "lane = L; time = q;", &[]);
}

#[test]
fn references_are_uniform_where_they_are_read() {
    let text = "
system ends(T, N) where T >= 1, N >= 3 {
  input x[N]: i32;
  index t in 0..T, i in 0..N;
  var Y: i32 = select(t == 0, x[i],
      select(i == 0, Y(t - 1, 0) + Y(t - 1, 1),
      select(i > N - 2, Y(t - 1, N - 1) - Y(t - 1, N - 2),
      Y(t - 1, i - 1) + Y(t - 1, i + 1))));
  output y[N]: i32 = Y at [i] when t == T - 1;
}";
    let analysed = legal(text, "lane = i; time = t;", &[]);
    let mut distances: Vec<&str> = analysed
        .report
        .links
        .iter()
        .map(|l| l.distance.as_str())
        .collect();
    distances.sort_unstable();
    distances.dedup();
    assert_eq!(distances, ["(1, -1)", "(1, 0)", "(1, 1)"]);
}
