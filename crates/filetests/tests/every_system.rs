//! The explorer has a design for every system: the gallery and the stencils without their mappings,
//! and systems that have neither a parallel iterator nor a two-dimensional recurrence. Its first
//! choice is lowered for this CPU and for an NVIDIA GPU; of every system, one of the two is run: as
//! machine code, or printed and in the kernel interpreter.

use std::collections::BTreeMap;
use std::sync::Mutex;

use systola::RunOptions;
use systola::cpu::compile_lowered;
use systola_driver::{Lowered, Machine, emit_cuda, load};
use systola_explore::model::{Cpu, Device, Gpu, predict};
use systola_explore::problem::{Problem, short_sums};
use systola_explore::space::{Candidate, candidates};
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, File};
use systola_filetests::ways::{all_wanted, number};
use systola_filetests::{quick_cpu, reference};
use systola_interp::compare::{Expected, compare};
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{Arrays, Tensor, expect_system};
use systola_ir::system::{Input, InputKind, Module, System};

#[expect(dead_code, reason = "shared with the tests of the gallery")]
#[path = "gallery/support.rs"]
mod support;

use support::{ordered, parse, seeded, sizes, to_interp};

/// Systems that only the last families fit.
const OTHERS: &str = "
system dot(N) where N >= 1 {
  input x[N]: f32;
  input y[N]: f32;
  var Z: f32 reorderable = reduce(+, i in 0..N, x[i] * y[i]);
  output z[]: f32 = Z at [];
}
system prefix(N) where N >= 1 {
  input x[N]: f32;
  index i in 0..N;
  var S: f32 reorderable = scan(+, i, x[i]);
  output s[N]: f32 = S at [i];
}
system rows_times_vector(N, M) where N >= 1, M >= 1 {
  input a[N, M]: f32;
  input x[M]: f32;
  index i in 0..N;
  var Z: f32 reorderable = reduce(+, k in 0..M, a[i, k] * x[k]);
  output z[N]: f32 = Z at [i];
}
system chain(N) where N >= 1 {
  input x[N]: f32;
  index i in 0..N;
  var X: f32 = x[i] * x[i];
  var Y: f32 = select(i == 0 || i == N - 1, X, X(i - 1) + X(i + 1));
  var Z: f32 = select(i < 2 || i >= N - 2, Y, Y(i - 2) - Y(i + 1));
  output z[N]: f32 = Z at [i];
}
system chain_of_planes(N, M) where N >= 1, M >= 1 {
  input x[N, M]: f32;
  index i in 0..N, j in 0..M;
  var X: f32 = x[i, j] + 1;
  var Y: f32 = select(i == 0 || i == N - 1 || j == 0 || j == M - 1, X, X(i - 1, j + 1) + X(i + 1, j - 1));
  output y[N, M]: f32 = Y at [i, j];
}
system far(N, M) where N >= 2, M >= 2 {
  input x[N, M]: i32;
  index i in 0..N, j in 0..M;
  var A: i32 = select(j == 0, 1, A(i, j - 1)) + select(i == 0 || j >= M - 40, x[i, j], A(i - 1, j + 40));
  output a[N, M]: i32 = A at [i, j];
}
system closure(N) where N >= 1 {
  input a[N, N]: i32;
  index k in 0..N, i in 0..N, j in 0..N;
  var D: i32 = select(k == 0, a[i, j], D(k - 1, i, j));
  var R: i32 = select(i == 0, D, R(k, i - 1, j));
  var C: i32 = select(j == 0, D, C(k, i, j - 1));
  var E: i32 = max(D, min(R, C));
  output d[N, N]: i32 = E at [i, j] when k == N - 1;
}
system inwards(N) where N >= 2 {
  input x[N]: i32;
  index i in 0..N;
  var A: i32 = select(i == 0 || i == N - 1, x[i], select(2*i < N, A(i - 1), A(i + 1)) + x[i]);
  output a[N]: i32 = A at [i];
}
system from_the_middle(N, M) where N >= 6, M >= 1 {
  input x[N, M]: f32;
  index i in 0..N, j in 0..M;
  var A: f32 = x[i, j] + select(i >= N/2 - 1 && i <= N/2, 1, select(i < N/2, A(i + 1, j), A(i - 1, j)) / 2);
  output a[N, M]: f32 = A at [i, j];
}
system two_sums(N, M, K) where N >= 1, M >= 1, K >= 1 {
  input x[N, M]: f32;
  input y[N, K]: f32;
  index i in 0..N;
  var A: f32 = reduce(+, q in 0..M, x[i, q]);
  var B: f32 = reduce(max, p in 0..K, y[i, p] * A);
  output z[N]: f32 = B at [i];
}
system named_sums(N, M) where N >= 1, M >= 1 {
  input x[N, M]: f32;
  input y[M]: f32;
  index i in 0..N;
  var Z: f32 = (let c = y[0]; let a = reduce(+, q in 0..M, c * x[i, q]); select(i == 0, a * a,
      (let b = reduce(+, q in 0..M, y[q] * x[i, q]); sqrt(a * a + b * b))));
  output z[N]: f32 = Z at [i];
}
";

const SOBEL: &str = include_str!("programs/sobel.ure");

/// Parameters of systems without a reference: the first that the context allows, all different.
const BASES: [i128; 9] = [12, 40, 9, 20, 64, 5, 3, 2, 1];

/// The most points of a box with the parameters as its sides: every cell of a stencil of 125 points
/// is interpreted for every lane.
const POINTS: i128 = 20_000;

/// Candidates that the model chooses from, for what is run.
const CONSIDERED: usize = 2;

/// A system at sizes, with inputs on which it is well posed.
struct Case {
    name: String,
    module: Module,
    system: usize,
    sizes: BTreeMap<String, i128>,
    inputs: Arrays,
}

impl Case {
    fn system(&self) -> &System {
        &self.module.systems[self.system]
    }

    fn params(&self) -> Vec<i128> {
        let params = self.system().params.iter();
        params.map(|p| self.sizes[&p.name]).collect()
    }
}

fn of_gallery(file: &File) -> Vec<Case> {
    let algorithms = gallery::algorithms();
    let mut module = parse(file);
    module.mappings.clear();
    let systems = module.systems.iter().enumerate();
    systems
        .map(|(n, system)| {
            let reference = reference::find(&file.path, &system.name).expect("a reference");
            let own = |a: &&gallery::Algorithm| a.file == file.path && a.system == system.name;
            let all = sizes(&reference, system, algorithms.iter().find(own));
            let largest = |params: &&systola_filetests::tensor::Params| -> i64 {
                params.0.values().product()
            };
            let params = all.iter().max_by_key(largest).expect("sizes");
            let values = ordered(system, params);
            Case {
                name: format!("{} {}", file.path, system.name),
                module: module.clone(),
                system: n,
                sizes: system.param_names().into_iter().zip(values).collect(),
                inputs: to_interp(system, &seeded(&reference, params)),
            }
        })
        .collect()
}

fn of_text(file: &str, text: &str) -> Vec<Case> {
    let mut module = load(text).unwrap_or_else(|errors| panic!("{file}: {errors:?}"));
    module.mappings.clear();
    let systems = module.systems.iter().enumerate();
    systems
        .map(|(n, system)| {
            let params = small(system);
            let expanded = system.expand_batch().expect("small numbers");
            let given = |input: &&Input| match &input.kind {
                InputKind::Table { data } => data.is_none(),
                InputKind::Array => true,
            };
            let inputs = expanded.inputs.iter().filter(given).enumerate();
            let inputs = inputs.map(|(seed, input)| {
                let tensor = Tensor::random(input.ty, &input.axes, &params, seed as u64);
                (input.name.clone(), tensor.expect("a small array"))
            });
            Case {
                name: format!("{file} {}", system.name),
                module: module.clone(),
                system: n,
                sizes: system
                    .param_names()
                    .into_iter()
                    .zip(params.clone())
                    .collect(),
                inputs: inputs.collect(),
            }
        })
        .collect()
}

fn small(system: &System) -> Vec<i128> {
    let n = system.params.len() as i128;
    let tried = BASES.iter().flat_map(|base| {
        let rising = (0..n).map(move |k| base + 2 * k);
        let falling = (0..n).map(move |k| base + 2 * (n - 1 - k));
        [rising.collect(), falling.collect::<Vec<i128>>()]
    });
    let fits = |params: &Vec<i128>| {
        let holds = |c: &systola_ir::Cond| c.eval(params, &[]) == Ok(true);
        params.iter().product::<i128>() <= POINTS && system.context.iter().all(holds)
    };
    let mut tried = tried.filter(fits);
    tried
        .next()
        .unwrap_or_else(|| panic!("no sizes for {}", system.name))
}

fn problem(case: &Case, machine: Machine) -> Problem<'_> {
    let system = case.system();
    Problem {
        module: &case.module,
        system,
        sizes: case.sizes.clone(),
        fix: short_sums(system, &case.sizes),
        machine,
    }
}

/// The choice of the explorer without measuring; its first candidate if it is not run.
fn choose(
    case: &Case,
    machine: Machine,
    device: &Device,
    runs: bool,
) -> Result<(Candidate, Lowered), String> {
    let problem = problem(case, machine);
    let list = candidates(&problem);
    let mut refusals = Vec::new();
    let mut best: Option<(f64, Candidate, Lowered)> = None;
    let mut lowered = 0;
    for candidate in &list {
        match problem.lower(&candidate.mapping) {
            Ok(found) => {
                lowered += 1;
                let predicted = predict(&found.program, &case.params(), device);
                let seconds = predicted.map_or(f64::INFINITY, |p| p.seconds);
                if best.as_ref().is_none_or(|(least, ..)| seconds < *least) {
                    best = Some((seconds, candidate.clone(), found));
                }
            }
            Err(why) => refusals.push(format!("{}: {}", candidate.mapping.name, why[0])),
        }
        let considered = if runs { CONSIDERED } else { 1 };
        if lowered == considered {
            break;
        }
    }
    let none = || format!("no design of {}\n  {}", list.len(), refusals.join("\n  "));
    best.map(|(_, candidate, found)| (candidate, found))
        .ok_or_else(none)
}

/// Checks lanes along sums, loops in order and orders of parts, even if other families have
/// candidates.
#[test]
fn sums_orders_and_pieces_compute_what_the_systems_compute() {
    for case in of_text("others", OTHERS)
        .into_iter()
        .chain(of_text("sobel", SOBEL))
    {
        let expected = expect_system(case.system(), &case.params(), &case.inputs);
        let expected = expected.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let problem = problem(&case, Machine::cuda());
        let mut run = 0;
        for candidate in candidates(&problem) {
            let name = &candidate.mapping.name;
            if !["sum", "order", "piece"]
                .iter()
                .any(|f| name.starts_with(f))
            {
                continue;
            }
            if let Ok(lowered) = problem.lower(&candidate.mapping) {
                let wrong = interpret(&case, &lowered, &expected);
                wrong.unwrap_or_else(|e| panic!("{}: {e}\n{}", case.name, candidate.mapping));
                run += 1;
            }
        }
        assert!(run > 0, "{}", case.name);
    }
}

fn differences(expected: &Expected, got: &Arrays) -> Result<(), String> {
    let lines = compare(expected, got);
    let wrong: Vec<String> = lines.into_iter().filter_map(Result::err).collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn on_the_cpu(case: &Case, expected: &Expected, runs: bool) -> Result<String, String> {
    let options = quick_cpu();
    let (candidate, lowered) = choose(case, options.machine(), &Device::Cpu(Cpu::default()), runs)?;
    if !runs {
        return Ok(candidate.mapping.name);
    }
    let with_mapping = |error: String| format!("{error}\n{}", candidate.mapping);
    let code = compile_lowered(lowered, &options).map_err(|e| with_mapping(e.to_string()))?;
    let ran = code.run_tensors(&case.params(), &case.inputs, &RunOptions { threads: 2 });
    let (got, _) = ran.map_err(|e| with_mapping(e.to_string()))?;
    differences(expected, &got).map_err(with_mapping)?;
    Ok(candidate.mapping.name)
}

fn interpret(case: &Case, lowered: &Lowered, expected: &Expected) -> Result<(), String> {
    let (params, options) = (case.params(), Options::default());
    let run = run_kernel_program(&lowered.program, &params, &case.inputs, &options);
    let run = run.map_err(|e| e.to_string())?;
    differences(expected, &run.outputs)
}

fn on_a_gpu(case: &Case, expected: &Expected, runs: bool) -> Result<String, String> {
    let (candidate, lowered) = choose(case, Machine::cuda(), &Device::Gpu(Gpu::default()), runs)?;
    let with_mapping = |error: String| format!("{error}\n{}", candidate.mapping);
    emit_cuda(&lowered.program).map_err(|e| with_mapping(e.to_string()))?;
    if !runs {
        return Ok(candidate.mapping.name);
    }
    interpret(case, &lowered, expected).map_err(with_mapping)?;
    Ok(candidate.mapping.name)
}

#[test]
fn there_is_a_design_for_every_system() {
    let mut cases: Vec<Case> = of_text("others", OTHERS);
    cases.extend(of_text("sobel", SOBEL));
    cases.extend(gallery::files().iter().flat_map(of_gallery));
    let stencils = gallery::root().join("../stencils");
    let mut files: Vec<_> = std::fs::read_dir(stencils)
        .expect("stencils")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.file_name().expect("a file").to_string_lossy();
        cases.extend(of_text(&name, &text));
    }
    let failures = Mutex::new(Vec::new());
    on_all_cpus(&cases, |case| {
        let start = std::time::Instant::now();
        let expected = expect_system(case.system(), &case.params(), &case.inputs);
        let expected = expected.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let equations = start.elapsed().as_secs_f32();
        let (even, all) = (number(&case.name, "").is_multiple_of(2), all_wanted());
        let cpu = on_the_cpu(case, &expected, even || all);
        let on_cpu = start.elapsed().as_secs_f32();
        let cuda = on_a_gpu(case, &expected, !even || all);
        println!(
            "{}: {:?} {:?} {equations:.1} {on_cpu:.1} {:.1}",
            case.name,
            cpu.as_deref().unwrap_or("none"),
            cuda.as_deref().unwrap_or("none"),
            start.elapsed().as_secs_f32()
        );
        for (target, result) in [("cpu", cpu), ("cuda", cuda)] {
            if let Err(why) = result {
                let text = format!("{} on {target} at {:?}: {why}", case.name, case.sizes);
                failures.lock().expect("no thread panicked").push(text);
            }
        }
    });
    let failures = failures.into_inner().expect("no thread panicked");
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    assert!(cases.len() > 110, "{}", cases.len());
}
