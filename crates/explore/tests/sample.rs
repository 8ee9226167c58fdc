//! Samples of outputs are what whole runs give.

use systola_interp::domain::Domain;
use systola_interp::{Arrays, SampleOptions, Tensor, run_system, sample_system};
use systola_ir::system::{InputKind, System};

fn parse(text: &str) -> System {
    systola_driver::load(text).unwrap().systems.remove(0)
}

fn draw(system: &System, params: &[i128]) -> Arrays {
    let own = system.inputs.iter().enumerate();
    own.filter(|(_, i)| !matches!(i.kind, InputKind::Table { data: Some(_) }))
        .map(|(n, i)| {
            let tensor = Tensor::random(i.ty, &i.axes, params, n as u64).unwrap();
            (i.name.clone(), tensor)
        })
        .collect()
}

fn options(most_values: u64) -> SampleOptions {
    SampleOptions {
        count: 40,
        seed: 3,
        most_values,
    }
}

fn check(text: &str, params: &[i128]) -> usize {
    let system = parse(text);
    let inputs = draw(&system, params);
    let all = run_system(&system, params, &inputs).unwrap();
    let sample = sample_system(&system, params, &inputs, &options(100_000)).unwrap();
    for one in &sample {
        let whole = all[&one.output].get(&one.index);
        assert_eq!(
            whole.as_ref(),
            Some(&one.value),
            "{}{:?}",
            one.output,
            one.index
        );
    }
    sample.len()
}

const CORE: &str = "system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  index c in 0..C;
  var Z: f32 reorderable = reduce(+, q in 0..Q, x[c + q] * w[q]);
  output z[C]: f32 = Z at [c];
}";

const WRITTEN: &str = "system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: i32;
  input w[Q]: i32;
  index c in 0..C, q in 0..Q;
  var X: i32 = select(q == 0 || c == C - 1, x[c + q], X(c + 1, q - 1));
  var Z: i32 = select(q == 0, 0, Z(c, q - 1)) + X * w[q];
  output z[C]: i32 = Z at [c] when q == Q - 1;
}";

#[test]
fn a_sample_has_the_values_of_a_run() {
    assert!(check(CORE, &[1000, 7]) > 35);
    assert!(check(WRITTEN, &[1000, 7]) > 35);
    assert_eq!(check(CORE, &[3, 2]), 3);
    // A triangle: the corners that exist are there, and what is drawn is inside.
    assert!(
        check(
            "system t(N) where N >= 1 {
      input x[N]: i32;
      index i in 0..N, j in 0..N where j <= i;
      var A: i32 = select(j == 0, x[i], A(i, j - 1) + 1);
      output a[N, N]: i32 = A at [i, j] else 0;
    }",
            &[50]
        ) > 30
    );
}

#[test]
fn a_sample_of_a_huge_run_takes_no_time() {
    let system = parse(CORE);
    let params = [1 << 22, 9];
    let inputs = draw(&system, &params);
    let sample = sample_system(&system, &params, &inputs, &options(1000)).unwrap();
    let indices: Vec<i128> = sample.iter().map(|s| s.index[0]).collect();
    assert!(indices.contains(&0) && indices.contains(&((1 << 22) - 1)));
}

#[test]
fn what_needs_too_much_is_refused() {
    let system = parse(WRITTEN);
    let params = [1000, 7];
    let inputs = draw(&system, &params);
    let refused = sample_system(&system, &params, &inputs, &options(50)).unwrap_err();
    assert_eq!(refused.code.id, "E0608");
    let scan = parse(
        "system p(N) where N >= 1 {
      input x[N]: i32;
      index i in 0..N;
      var S: i32 = scan(+, i, x[i]);
      output s[N]: i32 = S at [i];
    }",
    );
    let given = draw(&scan, &[10]);
    let refused = sample_system(&scan, &[10], &given, &options(1000)).unwrap_err();
    assert_eq!(refused.code.id, "E0608");
}

#[test]
fn chosen_points_are_inside() {
    let system = parse(WRITTEN);
    let domain = Domain::new(&system.domain_cond(), 2, &[10, 4]).unwrap();
    assert_eq!(domain.choose(|_, lo, _| lo), Some(vec![0, 0]));
    assert_eq!(domain.choose(|_, _, hi| hi), Some(vec![9, 3]));
}
