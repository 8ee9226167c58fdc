//! Every mapping of the gallery as a program of kernels, against the equations of its system.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;

use systola_driver::{Copies, Fix, Lowered, Machine, Simd, Threads, Unsized, load, lower};
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, Algorithm};
use systola_filetests::read_back::read_back;
use systola_filetests::reference;
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::run_system;
use systola_ir::Diagnostic;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Op, Program, Stmt};
use systola_ir::target::{Links, WarpSizes};

use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

/// Machines with vectors of 64 and 16 bytes, one without any, one with warps of threads, and one of
/// those with hardly any shared memory.
pub fn machines() -> [Machine; 5] {
    let vectors = |vector_bytes| Machine {
        vector_bytes,
        code_budget: 400,
        ..Machine::cpu(Simd::Avx512)
    };
    let threads = |block_memory, unsized_arrays| Machine {
        registers: 255,
        code_budget: 400,
        threads: Some(Threads {
            warps: 16,
            wide_bytes: 16,
            copies: Copies::Asynchronous,
            block_memory,
            unsized_arrays,
            links: Links::Shuffles(WarpSizes::one(32)),
            multiprocessor: None,
        }),
        ..Machine::cuda()
    };
    [
        vectors(64),
        vectors(16),
        vectors(1),
        threads(227 << 10, Unsized::Block),
        threads(256, Unsized::Global),
    ]
}

/// Arrays that are legal at some sizes only: D11 requires N² ≥ 2M − 1, SSAM a filter that is
/// narrower than a warp.
pub const AT_SOME_SIZES: &[(&str, &str)] = &[
    ("vision/motion_estimation.ure", "linear_n"),
    ("conv2d/same.ure", "ssam"),
];

#[test]
fn kernels_compute_what_their_systems_compute() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let mut failures = Vec::new();
    let (mut runs, mut for_all_sizes, mut mappings) = (0, 0, 0);
    let mut reread = Reread::default();
    // Mappings with shared arrays, and those that have none left with hardly any shared memory.
    let (mut with_arrays, mut spilled) = (0, 0);
    for file in gallery::files() {
        let module = parse(&file);
        let algorithm = algorithms.get(&file.path);
        for mapping in &module.mappings {
            mappings += 1;
            let system = system(&module, &mapping.system);
            let reference = reference::find(&file.path, &system.name).expect("a reference");
            // A program for all sizes is made once for each machine.
            let mut made: [Option<Lowered>; 5] = [const { None }; 5];
            for (n, params) in sizes(&reference, system, algorithm).iter().enumerate() {
                let values = ordered(system, params);
                let inputs = to_interp(system, &seeded(&reference, params));
                let want = run_system(system, &values, &inputs).expect("a legal system");
                for (at, machine) in machines().iter().enumerate() {
                    // All machines at the first size, every second one at the others.
                    if n > 0 && (n + at) % 2 == 1 {
                        continue;
                    }
                    let context =
                        format!("{}: {} at {params:?}, {machine:?}", file.path, mapping.name);
                    if made[at].as_ref().is_none_or(is_fixed) {
                        let by_name = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
                        match lower(&module, mapping, &by_name.collect(), &Fix::Nothing, machine) {
                            Ok(lowered) => made[at] = Some(lowered),
                            Err(_)
                                if AT_SOME_SIZES
                                    .contains(&(file.path.as_str(), mapping.name.as_str())) =>
                            {
                                continue;
                            }
                            Err(errors) => {
                                failures.push(format!("{context}: {}", list(&errors)));
                                continue;
                            }
                        }
                        if n == 0 && at == 0 && made[at].as_ref().is_some_and(|l| !is_fixed(l)) {
                            for_all_sizes += 1;
                        }
                    }
                    let program = &made[at].as_ref().expect("made above").program;
                    let has_arrays = |made: &Option<Lowered>| {
                        let kernels = made.iter().flat_map(|l| &l.program.kernels);
                        kernels.into_iter().any(|k| !k.shared.is_empty())
                    };
                    if n == 0 && at == 4 && has_arrays(&made[3]) {
                        with_arrays += 1;
                        spilled += usize::from(!has_arrays(&made[4]));
                    }
                    let order = [Order::InOrder, Order::Reversed, Order::Shuffled(n as u64)][n % 3];
                    let options = Options {
                        order,
                        ..Options::default()
                    };
                    if n == 0 {
                        reread.add(program);
                        let run = |read| run_kernel_program(&read, &values, &inputs, &options);
                        match read_back(program).map(run) {
                            Err(why) => failures.push(format!("{context}: {why}")),
                            Ok(Ok(got)) if got.outputs == want => {}
                            Ok(got) => {
                                failures.push(format!("{context}, read: {got:?}\n{program}"))
                            }
                        }
                    }
                    runs += 1;
                    match run_kernel_program(program, &values, &inputs, &options) {
                        Err(error) => failures.push(format!("{context}: {error}\n{program}")),
                        Ok(got) if got.outputs != want => failures.push(format!(
                            "{context}: {:?}, should be {want:?}\n{program}",
                            got.outputs
                        )),
                        Ok(_) => {}
                    }
                }
            }
        }
    }
    println!("{mappings} mappings, {for_all_sizes} of them one kernel for all sizes; {runs} runs");
    println!("{} programs were printed, read and run", reread.programs);
    println!("{with_arrays} with arrays of blocks, {spilled} with all of them in global memory");
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    // All statements but comments, and all operations.
    assert_eq!((reread.stmts.len(), reread.ops.len()), (18, 12));
    assert!(spilled * 2 > with_arrays, "{spilled} of {with_arrays}");
    assert!(
        for_all_sizes * 2 > mappings,
        "{for_all_sizes} of {mappings}"
    );
}

/// Programs that were printed and read, and what they are made of.
#[derive(Default)]
struct Reread {
    programs: usize,
    stmts: HashSet<Discriminant<Stmt>>,
    ops: HashSet<Discriminant<Op>>,
}

impl Reread {
    fn add(&mut self, program: &Program) {
        self.programs += 1;
        for kernel in &program.kernels {
            walk(&kernel.body, &mut |stmt| {
                self.stmts.insert(discriminant(stmt));
                if let Stmt::Let(_, op) = stmt {
                    self.ops.insert(discriminant(op));
                }
            });
        }
    }
}

/// Every file of `stencils/`, for vectors and for warps of threads.
#[test]
fn kernels_of_stencils_are_read_as_they_are_printed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stencils");
    let entries = fs::read_dir(folder).expect("the folder of stencils");
    let mut files: Vec<_> = entries.map(|e| e.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ure"));
    let [vectors, _, _, warps, _] = machines();
    // What was wrong with each program.
    let programs = Mutex::new(Vec::new());
    on_all_cpus(&files, |path| {
        let text = fs::read_to_string(path).expect("a readable file");
        let module = load(&text).expect("a program");
        for mapping in &module.mappings {
            for machine in [&vectors, &warps] {
                let sizes = BTreeMap::new();
                let lowered = lower(&module, mapping, &sizes, &Fix::Nothing, machine);
                // Some need a size to be fixed.
                let Ok(lowered) = lowered else { continue };
                let wrong = read_back(&lowered.program).err();
                let wrong = wrong.map(|why| format!("{}: {}: {why}", path.display(), mapping.name));
                programs.lock().expect("no thread panicked").push(wrong);
            }
        }
    });
    let programs = programs.into_inner().expect("no thread panicked");
    println!("{} programs of {} files", programs.len(), files.len());
    let failures: Vec<String> = programs.iter().flatten().cloned().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(programs.len() > files.len(), "{}", programs.len());
}

fn is_fixed(lowered: &Lowered) -> bool {
    lowered.program.params.iter().any(|p| p.fixed.is_some())
}

fn list(errors: &[Diagnostic]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}
