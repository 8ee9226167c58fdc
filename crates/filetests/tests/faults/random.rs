//! Random inputs are within what tables and divisions need.

use systola_driver::load;
use systola_filetests::gallery;
use systola_interp::draw::{Wanted, random_inputs, wanted};
use systola_interp::run_system;
use systola_ir::system::{InputKind, System};

/// Small sizes that the system allows.
fn small(system: &System) -> Option<Vec<i128>> {
    let n = system.params.len();
    let choices = [5, 4, 6, 8, 3, 2, 1];
    let mut at = vec![0; n];
    loop {
        let params: Vec<i128> = at.iter().map(|c| choices[*c]).collect();
        if system.context_cond().eval(&params, &[]) == Ok(true) {
            return Some(params);
        }
        let next = at.iter().position(|c| c + 1 < choices.len())?;
        at[next] += 1;
        at[..next].fill(0);
    }
}

#[test]
fn every_program_of_the_gallery_has_values_for_random_inputs() {
    let mut systems = 0;
    for file in gallery::files() {
        let module = load(&file.text).unwrap_or_else(|e| panic!("{}: {e:?}", file.path));
        for system in &module.systems {
            let Some(params) = small(system) else {
                panic!("{}: no small sizes for {}", file.path, system.name);
            };
            let expanded = system.expand_batch().expect("small");
            for seed in 0..3 {
                let inputs = random_inputs(&expanded, &params, |n| seed + n.index() as u64);
                let inputs = inputs.unwrap_or_else(|(name, e)| panic!("{name}: {e}"));
                if let Err(error) = run_system(system, &params, &inputs) {
                    let code = error.code.id;
                    let is_fault = ["E0613", "E0614", "E0615"].contains(&code);
                    assert!(!is_fault, "{} {}: {error:?}", file.path, system.name);
                }
            }
            systems += 1;
        }
    }
    assert!(systems > 50, "{systems} systems");
}

/// Through casts, signs, names, functions, variables that carry a value, choices, and sums,
/// products, remainders and masks with numbers.
#[test]
fn what_is_asked_of_inputs_is_found() {
    let text = "
system asks(N, M) where N >= 1, M >= 1 {
  table t[M]: i32;
  table low[-3..5]: i32;
  input a[N]: i64; input b[N]: u8; input c[N]: i32; input d[N]: i32; input e[N]: i32; input g[N]: i32;
  input h[N]: u8; input l[N]: i32; input m[N]: i32; input p[N]: i32; input v[N]: i32;
  fn ninth(k: i32) -> i32 = 9 / k;
  index i in 0..N;
  var A: i64 = select(i == 0, a[i], A(i-1));
  var Z: i32 = let q = c[i]; t[A] + low[i32(b[i]) - 3] + t[q] + t[min(d[i], 3) + 1] + ninth(e[i]) + t[g[i] & 1]
    + 9 / i32(h[i] & 15) + 9 % (l[i] & 24) + 9 / (m[i] % 7) + 9 / (p[i] + 2) + 9 / (3 * -v[i]);
  output z[N]: i32 = Z at [i];
}
";
    let module = load(text).unwrap_or_else(|e| panic!("{e:?}"));
    let system = &module.systems[0];
    let found = wanted(system, &[4, 6]);
    let of = |name: &str| found[system.find_input(name).expect("an input").index()];
    let between = |name: &str, least: i128, greatest: i128| {
        let Wanted {
            least: lo,
            greatest: hi,
            never,
        } = of(name);
        assert_eq!((lo, hi, never), (least, greatest, None), "{name}");
    };
    between("a", 0, 5);
    between("b", 0, 7);
    between("c", 0, 5);
    between("d", -1, 4);
    assert_eq!(of("e").never, Some(0));
    between("h", 1, 15);
    between("l", 8, 15);
    between("m", 1, 6);
    assert_eq!(of("p").never, Some(-2));
    assert_eq!(of("v").never, Some(0));
    assert_eq!(of("g"), Wanted::ANYTHING);
    let inputs = random_inputs(system, &[200, 6], |n| n.index() as u64).expect("small");
    run_system(system, &[200, 6], &inputs).unwrap_or_else(|e| panic!("{e:?}"));
    // All of a range is drawn.
    let a = &inputs["a"];
    let drawn: std::collections::BTreeSet<Option<i128>> = (0..a.data.len())
        .map(|n| a.data.get(n).and_then(|v| v.as_int()))
        .collect();
    assert_eq!(drawn.len(), 6, "{drawn:?}");
    let tables = system
        .inputs
        .iter()
        .filter(|i| matches!(i.kind, InputKind::Table { .. }));
    assert_eq!(tables.count(), 2);
}
