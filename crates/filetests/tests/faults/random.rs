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
            ..
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

/// Cells of Life are drawn as dead or alive, and live on.
#[test]
fn random_cells_live() {
    let files = [
        (include_str!("../../../../stencils/life.ure"), "u", "u'"),
        (
            include_str!("../../../../gallery/stencil/life.ure"),
            "x",
            "y",
        ),
    ];
    for (text, input, output) in files {
        let module = load(text).unwrap_or_else(|e| panic!("{e:?}"));
        let system = &module.systems[0];
        for (n, m) in [(16, 16), (33, 20), (24, 40)] {
            let size = |name: &str| match name {
                "N" => n,
                "M" => m,
                _ => 10,
            };
            let params: Vec<i128> = system.params.iter().map(|p| size(&p.name)).collect();
            for seed in 0..3 {
                let inputs = random_inputs(system, &params, |_| seed).expect("small");
                let outputs = run_system(system, &params, &inputs);
                let outputs = outputs.unwrap_or_else(|e| panic!("{e:?}"));
                for (when, cells) in [("before", &inputs[input]), ("after", &outputs[output])] {
                    let cell = |at| cells.data.get(at).and_then(|v| v.as_int());
                    let all: Vec<_> = (0..cells.data.len()).map(cell).collect();
                    let alive = all.iter().filter(|cell| **cell == Some(1)).count();
                    let dead = all.iter().filter(|cell| **cell == Some(0)).count();
                    assert_eq!(alive + dead, all.len(), "{when}: cells are 0 or 1");
                    assert!(
                        alive > 0 && dead > 0,
                        "{n} x {m}, seed {seed}: {alive} {when}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_few_constants_are_found_by_their_use() {
    let text = "
system uses(N) where N >= 1 {
  const two: u8 = 2;
  input cell[N]: u8; input mode[N]: i32; input level[N]: u8; input free[N]: i32; input flag[N]: u8;
  input edge[N]: u8; input shown[N]: u8; input named[N]: u8; input large[N]: u8;
  index i in 0..N, t in 0..3;
  var C: u8 = select(t == 0, cell[i], select(C(i, t - 1) + 3 > 4, two, 5));
  var F: i32 = select(t == 0, mode[i], F(i, t - 1));
  var E: u8 = select(i == 0, 1, select(t == 0, 0, edge[i]));
  var S: u8 = select(t == 0, shown[i], S(i, t - 1));
  var G: i32 = let kind = named[i];
    select(F == 3 || F == 7, 1, 0) + select(level[i] < 100, 1, 0) + select(flag[i] == 0, free[i], 0)
    + select(free[i] == 9, 1, 0) + select(kind == 6 || kind == 4, 1, 0) + select(large[i] == 900, 1, 0) + i32(E);
  output z[N]: i32 = G at [i] when t == 2;
  output c[N]: u8 = C at [i] when t == 2;
  output s[N]: u8 = S at [i] when t == 2;
}
";
    let text = text.replace("large[i] == 900", "i32(large[i]) == 900");
    let module = load(&text).unwrap_or_else(|e| panic!("{e:?}"));
    let system = &module.systems[0];
    let found = wanted(system, &[50]);
    let check = |name: &str, letters: &[i128]| {
        let among = found[system.find_input(name).expect("an input").index()].among;
        let found = among.map(|among| among.letters().to_vec());
        assert_eq!(found.unwrap_or_default(), letters, "{name}");
    };
    check("cell", &[2, 5]);
    check("mode", &[3, 7]);
    check("level", &[99, 100, 101]);
    check("flag", &[0, 1]);
    check("named", &[4, 6]);
    // Used otherwise too, or beside constants that no condition chose.
    check("free", &[]);
    check("edge", &[]);
    check("shown", &[]);
    // Letters that the type does not have are left out.
    check("large", &[899, 900]);
    let inputs = random_inputs(system, &[50], |n| n.index() as u64).expect("small");
    let drawn = |name: &str| -> std::collections::BTreeSet<i128> {
        let data = &inputs[name].data;
        let all = (0..data.len()).filter_map(|n| data.get(n).and_then(|v| v.as_int()));
        all.collect()
    };
    assert_eq!(drawn("cell"), [2, 5].into());
    assert_eq!(drawn("level"), [99, 100, 101].into());
    assert!(drawn("large").len() > 5 && drawn("free").len() > 5);
    run_system(system, &[50], &inputs).unwrap_or_else(|e| panic!("{e:?}"));
}
