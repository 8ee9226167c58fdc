//! One suite for all targets: every mapping of the gallery, compiled for a target and run at
//! several sizes, against the equations of its system.

use std::collections::BTreeMap;
use std::sync::Mutex;

use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, Algorithm, File};
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_interp::{Arrays, run_system};
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

/// Legal at some sizes only: D11 requires N² ≥ 2M − 1, SSAM a filter that is narrower than a warp.
pub const AT_SOME_SIZES: &[(&str, &str)] = &[
    ("vision/motion_estimation.ure", "linear_n"),
    ("conv2d/same.ure", "ssam"),
];

/// Compiles and runs programs of kernels.
pub trait Target: Sync {
    type Code;

    /// Does it run this mapping, the n-th of its file?
    fn takes(&self, _: &File, _: &Mapping, _: usize) -> bool {
        true
    }

    /// Compiles the n-th mapping of a file, for all sizes or for these; or an error.
    fn compile(
        &self,
        module: &Module,
        mapping: &Mapping,
        n: usize,
        params: &Params,
    ) -> Result<Self::Code, String>;

    fn program<'c>(&self, code: &'c Self::Code) -> &'c Program;

    fn source<'c>(&self, code: &'c Self::Code) -> &'c str;

    /// Sizes that are tried: of a kernel for all of them, and where each is compiled anew.
    fn most_sizes(&self) -> (usize, usize) {
        (usize::MAX, usize::MAX)
    }

    /// The n-th run of a mapping.
    fn run(
        &self,
        code: &Self::Code,
        n: usize,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Arrays, String>;
}

/// The counts of a suite.
#[derive(Default)]
pub struct Seen {
    pub files: usize,
    pub mappings: usize,
    pub left_out: usize,
    pub compiled: usize,
    pub runs: usize,
    pub failures: Vec<String>,
}

/// All files on all CPUs.
pub fn run_suite(target: &impl Target) -> Seen {
    let seen = Mutex::new(Seen::default());
    let algorithms = algorithms();
    on_all_cpus(&gallery::files(), |file| {
        try_file(target, file, algorithms.get(&file.path), &seen);
    });
    finish(seen)
}

/// All files one after the other, for targets whose compiler does one thing at a time.
pub fn run_suite_alone(target: &impl Target) -> Seen {
    let seen = Mutex::new(Seen::default());
    let algorithms = algorithms();
    for file in &gallery::files() {
        try_file(target, file, algorithms.get(&file.path), &seen);
    }
    finish(seen)
}

fn algorithms() -> BTreeMap<String, Algorithm> {
    let all = gallery::algorithms().into_iter();
    all.map(|a| (a.file.clone(), a)).collect()
}

fn finish(seen: Mutex<Seen>) -> Seen {
    let seen = seen.into_inner().expect("no thread panicked");
    println!(
        "{} files, {} mappings, {} left out, {} kernels compiled, {} runs",
        seen.files, seen.mappings, seen.left_out, seen.compiled, seen.runs
    );
    assert!(
        seen.failures.is_empty(),
        "{} failures\n{}",
        seen.failures.len(),
        seen.failures.join("\n\n")
    );
    seen
}

fn try_file<T: Target>(target: &T, file: &File, algorithm: Option<&Algorithm>, seen: &Mutex<Seen>) {
    let module = parse(file);
    let mut any = false;
    for (m, mapping) in module.mappings.iter().enumerate() {
        if !target.takes(file, mapping, m) {
            seen.lock().expect("no thread panicked").left_out += 1;
            continue;
        }
        any = true;
        let system = system(&module, &mapping.system);
        let reference = reference::find(&file.path, &system.name).expect("a reference");
        let mut made: Option<T::Code> = None;
        let is_fixed = |c: &T::Code| target.program(c).params.iter().any(|p| p.fixed.is_some());
        let (mut compiled, mut runs, mut failures) = (0, 0, Vec::new());
        for (n, params) in sizes(&reference, system, algorithm).iter().enumerate() {
            let (most, most_anew) = target.most_sizes();
            let most = match &made {
                Some(code) if is_fixed(code) => most_anew,
                Some(_) | None => most,
            };
            if n >= most {
                break;
            }
            let context = format!("{}: {} at {params:?}", file.path, mapping.name);
            let values = ordered(system, params);
            let inputs = to_interp(system, &seeded(&reference, params));
            let want = run_system(system, &values, &inputs).expect("a legal system");
            if made.as_ref().is_none_or(is_fixed) {
                compiled += 1;
                match target.compile(&module, mapping, m, params) {
                    Ok(code) => made = Some(code),
                    Err(_) if AT_SOME_SIZES.contains(&(&file.path, &mapping.name)) => continue,
                    Err(error) => {
                        failures.push(format!("{context}: {error}"));
                        continue;
                    }
                }
            }
            let code = made.as_ref().expect("compiled above");
            runs += 1;
            let wrong = match target.run(code, n, &values, &inputs) {
                Err(error) => Some(error),
                Ok(got) => differs(&got, &want),
            };
            if let Some(wrong) = wrong {
                failures.push(format!("{context}: {wrong}\n{}", target.source(code)));
            }
        }
        let mut seen = seen.lock().expect("no thread panicked");
        seen.mappings += 1;
        seen.compiled += compiled;
        seen.runs += runs;
        seen.failures.extend(failures);
    }
    seen.lock().expect("no thread panicked").files += usize::from(any);
}

/// Integers are equal, floats within 1e-5 of the largest magnitude: products may be fused with
/// sums.
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
