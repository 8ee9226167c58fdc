//! Values that points read through memory: what the compiler says of places in memory is what a run
//! of the array finds, and the interpreter of arrays finds every wrong place, order and crossing.

use systola_driver::load;
use systola_interp::{Arrays, run_array, run_system};
use systola_ir::array::{Array, Storage, StorageMap};
use systola_ir::form::{Cond, Form};
use systola_ir::mapping::{Mapping, TimeLevel};
use systola_ir::system::{Axis, System};
use systola_ir::{Diagnostic, DimId, StorageId};
use systola_lower::check_system::check_system;
use systola_lower::loops::loops;
use systola_lower::pipeline::analyse;

use crate::random::{Draw, alignments, cases, text};
use crate::values::inputs;

const LU: &str = "
system lu(N) where N >= 1 {
  input a[N, N]: i32;
  var S(k in 0..N, i in k..N, j in k..N): i32
      = select(k == 0, a[i, j], S(k - 1, i, j) - L(k - 1, i) * U(k - 1, j));
  var U(k in 0..N, j in k..N): i32 = S(k, k, j);
  var L(k in 0..N, i in k + 1..N): i32 = S(k, i, k) + 3 * U(k, k);
  output lu[N, N]: i32 = U at [k, j], L at [i, k];
}
mapping right of lu {
  space (k, i, j);
  align U (k, j) -> (k, k, j);
  align L (k, i) -> (k, i, k);
  time = (k, i, j);
}";

const PATHS: &str = "
system paths(N) where N >= 1 {
  input d[N, N]: i32;
  var D(k in 0..N + 1, i in 0..N, j in 0..N): i32
      = select(k == 0, d[i, j], min(D(k - 1, i, j), D(k - 1, i, k - 1) + D(k - 1, k - 1, j)));
  output p[N, N]: i32 = D at [i, j] when k == N;
}
mapping rows of paths { space (k, i, j); launch = k; block = i; lane = j; time = 0; }";

const JACOBI: &str = "
system jacobi(T, N) where T >= 1, N >= 3 {
  input a[N]: i32;
  index t in 0..T + 1, i in 0..N;
  var A: i32 = select(t == 0, a[i], select(i == 0 || i == N - 1, A(t - 1, i),
      A(t - 1, i - 1) + 2 * A(t - 1, i) - A(t - 1, i + 1)));
  output z[N]: i32 = A at [i] when t == T;
}
mapping rows of jacobi { store A modulo (2, 0); launch = t; block = i; lane = 0; time = 0; }
mapping rotated of jacobi { store A modulo (2, 0); time = (t, -i); }";

fn parts(text: &str) -> (System, Vec<Mapping>) {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let system = module.systems.into_iter().next().expect("one system");
    (system, module.mappings)
}

/// For which the array is.
fn open(system: &System) -> Vec<Option<i128>> {
    vec![None; system.params.len()]
}

#[test]
fn places_are_found() {
    let place = |text: &str, mapping: usize| {
        let (system, mappings) = parts(text);
        let analysed = analyse(&system, &mappings[mapping], &open(&system)).expect("legal");
        analysed.report.kept
    };
    // In place, as in the C of a textbook.
    assert_eq!(
        place(LU, 0),
        [
            "`S` in lu[i, j], where the output is",
            "`U` in lu[k, j], where the output is",
            "`L` in lu[i, k], where the output is"
        ]
    );
    assert_eq!(
        place(PATHS, 0),
        ["`D` in D[k % 2, i, j], an array of 2 x N x N"]
    );
    assert_eq!(place(JACOBI, 0), ["`A` in A[t % 2, i], an array of 2 x N"]);
}

/// What a mapping of LU with a directive is told.
fn told(directive: &str) -> Result<Vec<String>, String> {
    let (system, mappings) = parts(&LU.replace("time = ", &format!("{directive} time = ")));
    match analyse(&system, &mappings[0], &open(&system)) {
        Ok(analysed) => Ok(analysed.report.kept),
        Err(errors) => Err(format!("{}: {}", errors[0].code.id, errors[0].message)),
    }
}

#[test]
fn directives_choose_places() {
    let kept = told("store S in s[i, j]; store U in s[k, j];").expect("legal");
    assert_eq!(kept[0], "`S` in s[i, j], an array of N x N");
    assert_eq!(kept[1], "`U` in s[k, j], an array of N x N");
    let refused = |directive: &str| told(directive).expect_err(directive);
    assert_eq!(
        refused("store S modulo (1, 1, 0);"),
        "E0507: `S` at (0, 1, 1) may be overwritten by `S` at (0, 2, 1) before `S` at (1, 1, 1) reads it"
    );
    assert_eq!(
        refused("store S in lu[j, i];"),
        "E0507: `S` at (0, 2, 1) may be overwritten by `U` at (1, 1, 2) before `S` at (1, 2, 1) reads it"
    );
    assert_eq!(
        refused("store S modulo (1, 0);"),
        "E0423: 2 moduli for 3 iterators"
    );
    assert_eq!(
        refused("store S in lu[i];"),
        "E0423: `lu` has 2 axes, and 1 of them are given"
    );
    assert_eq!(
        refused("store S in lu[i + 1, j];"),
        "E0423: `S` has values outside of the axes of `lu`"
    );
}

/// Runs an array with the values of one cell in places of a modulus for each iterator.
fn run_with(array: &Array, cell: usize, moduli: &[i128], n: i128) -> Result<(), Diagnostic> {
    let mut array = array.clone();
    let index = moduli.iter().enumerate().filter(|(_, m)| **m != 1);
    let index: Vec<Form> = index
        .map(|(d, m)| {
            let iterator = Form::from(DimId::from(d));
            match m {
                0 => iterator,
                m => iterator.modulo(*m),
            }
        })
        .collect();
    let whole = Axis {
        lo: Form::from(-1000),
        hi: Form::from(1000),
    };
    array.storages.push(Storage {
        name: "places".to_string(),
        ty: array.cells[cell].ty.clone(),
        axes: vec![whole; index.len()],
        output: None,
    });
    let when = array.cells[cell].kept.as_ref().expect("kept").when.clone();
    array.cells[cell].kept = Some(StorageMap {
        storage: StorageId::from(array.storages.len() - 1),
        index,
        when,
    });
    run_array(&array, &[n], &Arrays::new()).map(drop)
}

const SCHEDULES: [&str; 4] = [
    "time = (p, q, r);",
    "time = (p, -q, r);",
    "launch = p; lane = r; time = q;",
    "launch = p; block = q; lane = 0; time = -r;",
];

/// Verdicts about moduli against runs.
#[test]
fn verdicts_about_places_are_those_of_runs() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..cases(1000) {
        let draw = &mut Draw(seed);
        let (system, arity) = text(draw);
        let alignments = alignments(draw, &arity);
        let schedule = draw.of(&SCHEDULES);
        let with = |store: &str| {
            let mapping = format!("space (p, q, r);{alignments} {store} {schedule}");
            parts(&format!("{system}\nmapping m of s {{ {mapping} }}"))
        };
        let (plain, mappings) = with("");
        if !check_system(&plain, None).is_empty() {
            continue;
        }
        let Ok(free) = analyse(&plain, &mappings[0], &[None]) else {
            continue;
        };
        let kept = free.array.cells.iter().position(|c| c.kept.is_some());
        let Some(cell) = kept else { continue };
        for _ in 0..3 {
            let moduli: Vec<i128> = (0..3).map(|_| i128::from(draw.below(4))).collect();
            let name = &free.array.cells[cell].name;
            let list = format!("{}, {}, {}", moduli[0], moduli[1], moduli[2]);
            let (stored, mappings) = with(&format!("store {name} modulo ({list});"));
            let at = format!(
                "seed {seed}, {name} modulo ({list})\n{stored}\n{}",
                mappings[0]
            );
            match analyse(&stored, &mappings[0], &[None]) {
                Ok(analysed) => {
                    for n in 1..7 {
                        let run = run_with(&free.array, cell, &moduli, n);
                        assert_eq!(run, Ok(()), "N = {n}, {at}");
                        let run = run_array(&analysed.array, &[n], &Arrays::new());
                        let want = run_system(&stored, &[n], &Arrays::new());
                        assert_eq!(run, want, "N = {n}, {at}");
                    }
                    right += 1;
                }
                Err(errors) => {
                    assert_eq!(errors[0].code.id, "E0507", "{at}");
                    let example = errors[0].counterexample.as_ref().expect("points");
                    let n = example.params[0].1;
                    if n > 12 {
                        continue;
                    }
                    let run = run_with(&free.array, cell, &moduli, n).expect_err(&at);
                    assert!(["E0651", "E0659"].contains(&run.code.id), "{run}, {at}");
                    wrong += 1;
                }
            }
        }
    }
    println!("{right} places are right, {wrong} are wrong");
    let least = cases(1000) / 50;
    assert!(
        right >= least && wrong >= least,
        "{right} right, {wrong} wrong"
    );
}

/// A system whose values have an order runs in loops, without a mapping by hand.
#[test]
fn systems_run_in_loops() {
    let mut runs = 0;
    for seed in 0..cases(300) {
        let (text, _) = text(&mut Draw(seed));
        let (system, _) = parts(&text);
        if !check_system(&system, None).is_empty() {
            continue;
        }
        let Some(mapping) = loops(&system, "loops") else {
            continue;
        };
        let at = format!("seed {seed}\n{system}\n{mapping}");
        let analysed = analyse(&system, &mapping, &[None]);
        let analysed = analysed.unwrap_or_else(|e| panic!("{e:?}, {at}"));
        for n in [1, 2, 5] {
            let want = run_system(&system, &[n], &Arrays::new());
            let found = run_array(&analysed.array, &[n], &Arrays::new());
            assert_eq!(found, want, "N = {n}, {at}");
        }
        runs += 1;
    }
    println!("{runs} systems run in loops");
    assert!(runs >= cases(300) / 20, "{runs}");
}

/// Corrupts what an array says of memory; each must fail or give another result.
#[test]
fn wrong_memory_is_found() {
    let mut found = 0;
    for (text, sizes) in [(LU, &[5][..]), (PATHS, &[4]), (JACOBI, &[3, 6])] {
        let (system, mappings) = parts(text);
        let arrays = inputs(&system, sizes).expect("small arrays");
        let want = run_system(&system, sizes, &arrays).expect("a legal system");
        for mapping in &mappings {
            let analysed = analyse(&system, mapping, &open(&system)).expect("legal");
            assert_eq!(
                run_array(&analysed.array, sizes, &arrays).as_ref(),
                Ok(&want)
            );
            for (what, array) in corrupted(&analysed.array) {
                let name = format!("{} of {}: {what}", mapping.name, system.name);
                if let Ok(outputs) = run_array(&array, sizes, &arrays) {
                    assert_ne!(outputs, want, "{name}\n{array}");
                }
                found += 1;
            }
        }
    }
    assert!(found >= 25, "{found}");
}

fn corrupted(array: &Array) -> Vec<(String, Array)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Array)| {
        let mut made = array.clone();
        change(&mut made);
        all.push((what, made));
    };
    for (n, cell) in array.cells.iter().enumerate() {
        let Some(kept) = &cell.kept else { continue };
        for axis in 0..kept.index.len() {
            add(
                format!("`{}` has one place along axis {axis}", cell.name),
                &|a| {
                    let kept = a.cells[n].kept.as_mut().expect("kept");
                    kept.index[axis] = Form::from(1);
                },
            );
        }
        add(format!("`{}` is kept nowhere", cell.name), &|a| {
            a.cells[n].kept.as_mut().expect("kept").when = Cond::Const(false);
        });
    }
    for (t, time) in array.time.iter().enumerate().take(1) {
        let constant = array
            .pieces
            .iter()
            .all(|p| p.time[t].as_constant().is_some());
        if constant {
            continue;
        }
        add(format!("time {t} runs backwards"), &|a| {
            for piece in &mut a.pieces {
                piece.time[t] = piece.time[t].neg();
                piece.reverse = systola_ir::array::Reverse::Scan;
            }
        });
        let blocks = array
            .place
            .iter()
            .any(|c| c.level == systola_ir::mapping::PlaceLevel::Block);
        if time.level == TimeLevel::Launch && blocks {
            add(format!("time {t} is no launch"), &|a| {
                a.time[t].level = TimeLevel::Step;
            });
        }
    }
    all
}
