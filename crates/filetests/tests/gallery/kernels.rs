//! Every mapping of the gallery as a program of kernels, against the equations of its system.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;

use systola_driver::{Copies, Fix, Lowered, Machine, Simd, Threads, Unsized, load, lower};
use systola_explore::model::code::Lanes;
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, Algorithm, File};
use systola_filetests::read_back::read_back;
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_filetests::ways::{all_wanted, number};
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::{Arrays, run_system};
use systola_ir::Diagnostic;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Op, Program, Stmt};
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use systola_ir::target::{Links, WarpSizes};

use crate::census::Compared;
use crate::suite::AT_SOME_SIZES;
use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

/// The machine with warps of threads, and the one with hardly any shared memory.
const WARPS: usize = 3;
const SMALL_MEMORY: usize = 4;

/// Machines with vectors of 64 and 16 bytes, one without any, one with warps of threads, and one of
/// those with hardly any shared memory.
fn machines() -> [Machine; 5] {
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

/// The machines that a mapping is lowered for first: one with vectors, and the one with warps.
/// `SYSTOLA_TESTS=all` adds the others.
fn lowered_for(file: &str, mapping: &str) -> Vec<usize> {
    if all_wanted() {
        return vec![0, 1, 2, WARPS];
    }
    let vectors = [0, 1, 0, 2][(number(file, mapping) % 4) as usize];
    vec![vectors, WARPS]
}

/// Those whose code the census counts.
fn counted(machine: usize) -> Option<Lanes> {
    match machine {
        0 => Some(Lanes::Vectors { bytes: 64 }),
        WARPS => Some(Lanes::Threads),
        _ => None,
    }
}

/// The kernels of every mapping against the equations: as they are printed and read at the first
/// size, and with all that is counted at the last one.
#[test]
fn kernels_compute_what_their_systems_compute() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let files = gallery::files();
    let parts = on_all_cpus(&files, |file| {
        let mut seen = Seen::default();
        let module = parse(file);
        for mapping in &module.mappings {
            let algorithm = algorithms.get(&file.path);
            seen.mapping(file, &module, mapping, algorithm);
        }
        seen
    });
    let mut seen = Seen::default();
    for part in parts {
        seen.add(part);
    }
    let Seen {
        mappings,
        for_all_sizes,
        runs,
        reread,
        with_arrays,
        spilled,
        compared,
        failures,
    } = seen;
    println!("{mappings} mappings, {for_all_sizes} of them one kernel for all sizes; {runs} runs");
    println!("{} programs were printed, read and run", reread.programs);
    println!("{with_arrays} with arrays of blocks, {spilled} with all of them in global memory");
    let (censuses, with_lookups) = (compared.runs, compared.with_lookups);
    println!("{censuses} censuses, {with_lookups} of programs with lookups");
    for failures in [&failures, &compared.failures] {
        assert!(
            failures.is_empty(),
            "{} failures\n{}",
            failures.len(),
            failures.join("\n\n")
        );
    }
    // All statements but comments, and all operations.
    assert_eq!((reread.stmts.len(), reread.ops.len()), (18, 12));
    assert!(spilled * 2 > with_arrays, "{spilled} of {with_arrays}");
    assert!(
        for_all_sizes * 2 > mappings,
        "{for_all_sizes} of {mappings}"
    );
    assert!(censuses > mappings && with_lookups * 4 < censuses);
}

/// What was run.
#[derive(Default)]
struct Seen {
    mappings: usize,
    for_all_sizes: usize,
    runs: usize,
    reread: Reread,
    /// Mappings with shared arrays, and those that have none left with hardly any shared memory.
    with_arrays: usize,
    spilled: usize,
    compared: Compared,
    failures: Vec<String>,
}

impl Seen {
    fn mapping(
        &mut self,
        file: &File,
        module: &Module,
        mapping: &Mapping,
        algorithm: Option<&Algorithm>,
    ) {
        self.mappings += 1;
        let machines = machines();
        let system = system(module, &mapping.system);
        let reference = reference::find(&file.path, &system.name).expect("a reference");
        let all: Vec<Params> = sizes(&reference, system, algorithm).into_iter().collect();
        let cases: Vec<(Vec<i128>, Arrays, Arrays)> = all
            .iter()
            .map(|params| {
                let values = ordered(system, params);
                let inputs = to_interp(system, &seeded(&reference, params));
                let want = run_system(system, &values, &inputs).expect("a legal system");
                (values, inputs, want)
            })
            .collect();
        let mut tried = lowered_for(&file.path, &mapping.name);
        let mut next = 0;
        while let Some(&at) = tried.get(next) {
            next += 1;
            let machine = &machines[at];
            // A program for all sizes is made once for each machine.
            let mut made: Option<Lowered> = None;
            for (n, (params, (values, inputs, want))) in all.iter().zip(&cases).enumerate() {
                // All machines at the first size, every second one at the others.
                let lanes = counted(at).filter(|_| n + 1 == all.len());
                if n > 0 && (n + at) % 2 == 1 && lanes.is_none() {
                    continue;
                }
                let context = format!("{}: {} at {params:?}, {machine:?}", file.path, mapping.name);
                if made.as_ref().is_none_or(is_fixed) {
                    let by_name = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
                    match lower(module, mapping, &by_name.collect(), &Fix::Nothing, machine) {
                        Ok(lowered) => made = Some(lowered),
                        Err(_)
                            if AT_SOME_SIZES
                                .contains(&(file.path.as_str(), mapping.name.as_str())) =>
                        {
                            continue;
                        }
                        Err(errors) => {
                            self.failures.push(format!("{context}: {}", list(&errors)));
                            continue;
                        }
                    }
                    let for_all = made.as_ref().is_some_and(|l| !is_fixed(l));
                    self.for_all_sizes += usize::from(n == 0 && at == WARPS && for_all);
                    // A program without shared arrays is the same where there is less memory.
                    let has_arrays = made.as_ref().is_some_and(has_shared_arrays);
                    if at == WARPS && has_arrays && !tried.contains(&SMALL_MEMORY) {
                        tried.push(SMALL_MEMORY);
                        self.with_arrays += 1;
                    }
                    self.spilled += usize::from(n == 0 && at == SMALL_MEMORY && !has_arrays);
                }
                let program = &made.as_ref().expect("made above").program;
                let order = [Order::InOrder, Order::Reversed, Order::Shuffled(n as u64)][n % 3];
                let options = Options {
                    order,
                    ..Options::default()
                };
                let read = match n {
                    0 => read_back(program),
                    _ => Ok(program.clone()),
                };
                self.runs += 1;
                if n == 0 {
                    self.reread.add(program);
                }
                let run = read.map(|read| run_kernel_program(&read, values, inputs, &options));
                match run {
                    Err(why) => self.failures.push(format!("{context}: {why}")),
                    Ok(Err(error)) => self.failures.push(format!("{context}: {error}\n{program}")),
                    Ok(Ok(got)) if got.outputs != *want => self.failures.push(format!(
                        "{context}: {:?}, should be {want:?}\n{program}",
                        got.outputs
                    )),
                    Ok(Ok(got)) => {
                        if let Some(lanes) = lanes {
                            self.compared.add(program, values, lanes, &got, &context);
                        }
                    }
                }
            }
        }
    }

    fn add(&mut self, other: Seen) {
        self.mappings += other.mappings;
        self.for_all_sizes += other.for_all_sizes;
        self.runs += other.runs;
        self.reread.programs += other.reread.programs;
        self.reread.stmts.extend(other.reread.stmts);
        self.reread.ops.extend(other.reread.ops);
        self.with_arrays += other.with_arrays;
        self.spilled += other.spilled;
        self.compared.runs += other.compared.runs;
        self.compared.with_lookups += other.compared.with_lookups;
        self.compared.failures.extend(other.compared.failures);
        self.failures.extend(other.failures);
    }
}

fn has_shared_arrays(lowered: &Lowered) -> bool {
    let mut kernels = lowered.program.kernels.iter();
    kernels.any(|kernel| !kernel.shared.is_empty())
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

/// Every file of `stencils/` for vectors: lowering takes so long that a quarter of the mappings have
/// to do. The tests of `systola-lab` read others for warps of threads.
#[test]
fn kernels_of_stencils_are_read_as_they_are_printed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stencils");
    let entries = fs::read_dir(folder).expect("the folder of stencils");
    let mut files: Vec<_> = entries.map(|e| e.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ure"));
    let [vectors, ..] = machines();
    // What was wrong with each program.
    let programs = Mutex::new(Vec::new());
    on_all_cpus(&files, |path| {
        let text = fs::read_to_string(path).expect("a readable file");
        let module = load(&text).expect("a program");
        let name = path.file_name().expect("a file").to_string_lossy();
        for mapping in &module.mappings {
            let drawn = number(&name, &mapping.name).is_multiple_of(4);
            if !drawn && !all_wanted() {
                continue;
            }
            let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, &vectors);
            // Some need a size to be fixed.
            let Ok(lowered) = lowered else { continue };
            let wrong = read_back(&lowered.program).err();
            let wrong = wrong.map(|why| format!("{}: {}: {why}", path.display(), mapping.name));
            programs.lock().expect("no thread panicked").push(wrong);
        }
    });
    let programs = programs.into_inner().expect("no thread panicked");
    println!("{} programs of {} files", programs.len(), files.len());
    let failures: Vec<String> = programs.iter().flatten().cloned().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(programs.len() > 10, "{}", programs.len());
}

fn is_fixed(lowered: &Lowered) -> bool {
    lowered.program.params.iter().any(|p| p.fixed.is_some())
}

fn list(errors: &[Diagnostic]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}
