//! Mappings for machines with warps of threads: what their kernels cost, and that they are right at sizes
//! that suit their wide accesses and at sizes that do not.

use std::collections::BTreeMap;

use systola_driver::{Copies, Fix, Machine, Threads, lower};
use systola_filetests::gallery;
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_interp::kernel::{Counts, Options, Order, run_kernel_program};
use systola_interp::run_system;
use systola_ir::kernel::Program;

use crate::support::{mapping, ordered, parse, seeded, system, to_interp};

/// Threads as GPUs have them.
const GPU: Machine = Machine {
    vector_bytes: 256,
    most_lanes: 32,
    registers: 255,
    code_budget: 2500,
    threads: Some(Threads {
        warps: 32,
        wide_bytes: 16,
        copies: Copies::Asynchronous,
    }),
};

/// Runs a mapping in several orders against the equations.
fn check(file: &str, name: &str, sizes: &[(&str, i64)], fix: &[&str]) -> (Program, Counts) {
    let file = gallery::files()
        .into_iter()
        .find(|f| f.path == file)
        .expect("a file of the gallery");
    let module = parse(&file);
    let mapping = mapping(&module, name);
    let system = system(&module, &mapping.system);
    let params = Params(sizes.iter().map(|(k, v)| (k.to_string(), *v)).collect());
    let by_name: BTreeMap<String, i128> = sizes
        .iter()
        .map(|(k, v)| (k.to_string(), i128::from(*v)))
        .collect();
    let fix = Fix::Names(fix.iter().map(ToString::to_string).collect());
    let lowered = lower(&module, mapping, &by_name, &fix, &GPU)
        .unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let reference = reference::find(&file.path, &system.name).expect("a reference");
    let inputs = to_interp(system, &seeded(&reference, &params));
    let values = ordered(system, &params);
    let want = run_system(system, &values, &inputs).expect("a legal system");
    let mut counts = None;
    for order in [Order::InOrder, Order::Reversed, Order::Shuffled(7)] {
        let options = Options {
            order,
            ..Options::default()
        };
        let got = run_kernel_program(&lowered.program, &values, &inputs, &options)
            .unwrap_or_else(|e| panic!("{name} at {sizes:?}: {e}\n{}", lowered.program));
        assert!(
            got.outputs == want,
            "{name} at {sizes:?}\n{}",
            lowered.program
        );
        counts = Some(got.counts);
    }
    (lowered.program, counts.expect("three runs"))
}

#[test]
fn columns_of_a_lane_are_loaded_and_stored_at_once() {
    let run = |c, q| {
        let sizes = [("R", 8), ("C", c), ("H", 3), ("Q", q)];
        check("conv2d/core.ure", "quads", &sizes, &["H", "Q"]).1
    };
    // Two blocks of 4 rows and 128 columns. Rows of 130 elements: 6 rows of the image, each 2 + 2 + 2 elements.
    let counts = run(128, 3);
    assert_eq!(counts.loads - 2 * 9, 2 * 6 * 3);
    assert_eq!(counts.stores, 2 * 4);
    // Rows of 132: 4 + 4, and the outputs too.
    let counts = run(128, 5);
    assert_eq!(counts.loads - 2 * 15, 2 * 6 * 2);
    assert_eq!(counts.stores, 2 * 4);
    // Odd rows: one by one, with an edge of one block in two.
    for (c, q) in [(127, 3), (129, 4), (131, 5), (1, 1), (256, 2), (260, 6)] {
        run(c, q);
    }
}
