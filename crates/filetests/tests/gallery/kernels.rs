//! Every mapping of the gallery as a program of kernels, against the equations of its system.

use std::collections::BTreeMap;

use systola_driver::{Copies, Fix, Lowered, Machine, Simd, Threads, Unsized, lower};
use systola_filetests::gallery::{self, Algorithm};
use systola_filetests::reference;
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::run_system;
use systola_ir::Diagnostic;

use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

/// Machines with vectors of 64 and 16 bytes, one without any, one with warps of threads, and such a one whose blocks have hardly
/// any memory.
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

/// Arrays that are legal at some sizes only: D11 asks N² ≥ 2M − 1, SSAM a filter that is narrower than a warp.
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
    // Mappings with arrays of blocks, and those of them that have none left where blocks have hardly any memory.
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
    println!("{with_arrays} with arrays of blocks, {spilled} with all of them in global memory");
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    assert!(spilled * 2 > with_arrays, "{spilled} of {with_arrays}");
    assert!(
        for_all_sizes * 2 > mappings,
        "{for_all_sizes} of {mappings}"
    );
}

fn is_fixed(lowered: &Lowered) -> bool {
    lowered.program.params.iter().any(|p| p.fixed.is_some())
}

fn list(errors: &[Diagnostic]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}
