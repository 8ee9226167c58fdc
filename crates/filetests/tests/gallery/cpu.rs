//! Every mapping of the gallery as machine code, against the equations of its system.

use std::collections::BTreeMap;
use std::sync::Mutex;

use systola::cpu::Effort;
use systola::rt::Simd;
use systola::{Compiled, CpuOptions, RunOptions, compile};
use systola_filetests::gallery::{self, Algorithm, File};
use systola_filetests::processors::on_all_processors;
use systola_filetests::reference;
use systola_interp::{Arrays, run_system};

use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

/// Legal at some sizes only: D11 asks N² ≥ 2M − 1, SSAM a filter that is narrower than a warp.
pub const AT_SOME_SIZES: &[(&str, &str)] = &[
    ("vision/motion_estimation.ure", "linear_n"),
    ("conv2d/same.ure", "ssam"),
];

#[derive(Default)]
struct Seen {
    mappings: usize,
    compiled: usize,
    runs: usize,
    failures: Vec<String>,
}

#[test]
fn machine_code_computes_what_the_systems_compute() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let files = gallery::files();
    let seen = Mutex::new(Seen::default());
    on_all_processors(&files, |file| {
        try_file(file, algorithms.get(&file.path), &seen);
    });
    let seen = seen.into_inner().expect("no thread panicked");
    println!(
        "{} mappings, {} kernels compiled, {} runs",
        seen.mappings, seen.compiled, seen.runs
    );
    assert!(
        seen.failures.is_empty(),
        "{} failures\n{}",
        seen.failures.len(),
        seen.failures.join("\n\n")
    );
    assert!(seen.mappings > 150 && seen.runs > 4 * seen.mappings);
}

fn try_file(file: &File, algorithm: Option<&Algorithm>, seen: &Mutex<Seen>) {
    let module = parse(file);
    for (m, mapping) in module.mappings.iter().enumerate() {
        let system = system(&module, &mapping.system);
        let reference = reference::find(&file.path, &system.name).expect("a reference");
        let mut made: Option<Compiled> = None;
        let (mut compiled, mut runs, mut failures) = (0, 0, Vec::new());
        for (n, params) in sizes(&reference, system, algorithm).iter().enumerate() {
            let context = format!("{}: {} at {params:?}", file.path, mapping.name);
            let values = ordered(system, params);
            let inputs = to_interp(system, &seeded(&reference, params));
            let want = run_system(system, &values, &inputs).expect("a legal system");
            let fixed = |c: &Compiled| c.program().params.iter().any(|p| p.fixed.is_some());
            if made.as_ref().is_none_or(fixed) {
                let named: Vec<(&str, i64)> =
                    params.0.iter().map(|(k, v)| (k.as_str(), *v)).collect();
                compiled += 1;
                match compile(&module, &mapping.name, &named, &options(m)) {
                    Ok(kernel) => made = Some(kernel),
                    Err(_) if AT_SOME_SIZES.contains(&(&file.path, &mapping.name)) => continue,
                    Err(error) => {
                        failures.push(format!("{context}: {error}"));
                        continue;
                    }
                }
            }
            let kernel = made.as_ref().expect("compiled above");
            runs += 1;
            let threads = [1, 2, 5][n % 3];
            match kernel.run_tensors(&values, &inputs, &RunOptions { threads }) {
                Err(error) => failures.push(format!("{context}: {error}")),
                Ok((got, _)) => {
                    if let Some(difference) = differs(&got, &want) {
                        failures.push(format!("{context}: {difference}\n{}", kernel.source));
                    }
                }
            }
        }
        let mut seen = seen.lock().expect("no thread panicked");
        seen.mappings += 1;
        seen.compiled += compiled;
        seen.runs += runs;
        seen.failures.extend(failures);
    }
}

/// The machine's vectors for most mappings, short ones for every fourth.
fn options(mapping: usize) -> CpuOptions {
    let mut options = CpuOptions::new();
    options.effort = Effort::Little;
    if mapping % 4 == 3 {
        options.simd = Simd::Portable;
    }
    options
}

/// Integers are equal, floats within 1e-5 of the largest magnitude: products may be fused with sums.
pub fn differs(got: &Arrays, want: &Arrays) -> Option<String> {
    for (name, want) in want {
        let Some(got) = got.get(name) else {
            return Some(format!("`{name}` is missing"));
        };
        if got.shape != want.shape || got.ty() != want.ty() {
            return Some(format!("`{name}` is {:?} of {}", got.shape, got.ty()));
        }
        let value = |t: &systola_interp::Tensor, at: usize| t.data.get(at).expect("in range");
        let float = |v: systola_interp::Value| v.as_float().unwrap_or(f64::NAN);
        let scale = (0..want.data.len())
            .map(|at| float(value(want, at)).abs())
            .filter(|x| x.is_finite())
            .fold(1f64, f64::max);
        for at in 0..want.data.len() {
            let (x, y) = (value(got, at), value(want, at));
            let close = x == y || (float(x.clone()) - float(y.clone())).abs() <= 1e-5 * scale;
            if !close {
                return Some(format!(
                    "`{name}` at {:?} is {x:?}, should be {y:?}",
                    want.index_of(at)
                ));
            }
        }
    }
    None
}
