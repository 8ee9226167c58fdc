//! Generated kernels, C and CUDA: snapshots, and the warnings of compilers for the C.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use systola_driver::{Fix, Machine, Simd, emit_c, emit_cuda, load, lower};
use systola_filetests::gallery;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Op, Program, Stmt};
use systola_ir::{Cond, RegId};

const AVX512: Machine = Machine {
    code_budget: 1000,
    ..Machine::cpu(Simd::Avx512)
};

/// The same machine, where loops are not unrolled.
const ROLLED: Machine = Machine {
    code_budget: 20,
    ..AVX512
};

type Sizes = &'static [(&'static str, i128)];

fn kernel(file: &str, mapping: &str, sizes: Sizes, machine: &Machine) -> Program {
    let text = fs::read_to_string(gallery::root().join(file)).expect("a file of the gallery");
    program(&text, mapping, sizes, machine)
}

fn program(text: &str, mapping: &str, sizes: Sizes, machine: &Machine) -> Program {
    let module = load(text).expect("it parses");
    let mapping = module.mappings.iter().find(|m| m.name == mapping);
    let fix = Fix::Names(sizes.iter().map(|(name, _)| (*name).to_string()).collect());
    let sizes: BTreeMap<String, i128> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let lowered = lower(
        &module,
        mapping.expect("the mapping"),
        &sizes,
        &fix,
        machine,
    );
    lowered.expect("it lowers").program
}

/// Registers that an iteration sets to what another register held: a shift.
fn shifts(program: &Program) -> usize {
    let mut gets: BTreeMap<u32, RegId> = BTreeMap::new();
    let mut shifts = 0;
    walk(&program.kernels[0].body, &mut |stmt| match stmt {
        Stmt::Let(value, Op::Get(reg)) => {
            gets.insert(value.0, *reg);
        }
        Stmt::Set(reg, value) if gets.get(&value.0).is_some_and(|from| from != reg) => shifts += 1,
        _ => {}
    });
    shifts
}

/// Choices and predicates of loads inside of loops.
fn guards_in_loops(program: &Program) -> usize {
    let mut guards = 0;
    walk(&program.kernels[0].body, &mut |stmt| {
        if let Stmt::For { body, .. } = stmt {
            walk(body, &mut |inner| match inner {
                Stmt::Let(_, Op::Choose { .. }) => guards += 1,
                Stmt::Let(_, Op::Load { from, .. }) if from.when != Cond::TRUE => guards += 1,
                _ => {}
            });
        }
    });
    guards
}

/// 8 outputs and 9 taps are 16 PEs, the lanes of one vector: one register for the sum that
/// migrates, and for the input that stays one value, loaded before the loop.
#[test]
fn sbm_has_one_register_for_each_variable_no_shifts_and_no_guards() {
    let program = kernel("conv1d/core.ure", "sbm", &[("C", 8), ("Q", 9)], &ROLLED);
    assert_eq!(program.kernels[0].regs.len(), 1, "{program}");
    assert_eq!(shifts(&program), 0, "{program}");
    assert_eq!(guards_in_loops(&program), 0, "{program}");
    insta::assert_snapshot!("sbm", program);
    // Unrolled, the registers are names.
    let program = kernel("conv1d/core.ure", "sbm", &[("C", 12), ("Q", 5)], &AVX512);
    assert_eq!(program.kernels[0].regs.len(), 0, "{program}");
    insta::assert_snapshot!("sbm_unrolled", program);
}

/// V[s·e + 1] of the paper, with the oldest value read before the newest is kept: s·e registers.
/// For s·e = 1 there is nothing to shift.
#[test]
fn registers_of_longer_delays_shift_and_those_of_one_step_do_not() {
    let queue = |delay: u32| {
        format!(
            "system queue(N) where N >= 4 {{
               input x[16]: i32;
               index i in 0..16, t in 0..N;
               var A: i32 = select(t < {delay}, x[i], A(i, t - {delay}) + 1);
               output z[16]: i32 = A at [i] when t == N - 1;
             }}
             mapping m of queue {{ lane = i; time = t; }}"
        )
    };
    let general = program(&queue(3), "m", &[], &ROLLED);
    assert_eq!(general.kernels[0].regs.len(), 3, "{general}");
    assert_eq!(shifts(&general), 2, "{general}");
    insta::assert_snapshot!("queue_of_three", general);
    let single = program(&queue(1), "m", &[], &ROLLED);
    assert_eq!(single.kernels[0].regs.len(), 1, "{single}");
    assert_eq!(shifts(&single), 0, "{single}");
    insta::assert_snapshot!("queue_of_one", single);
    // An older and a younger reader: s·e + 1 values would be kept, one less is enough.
    let coalesced = program(
        "system two(N) where N >= 4 {
           input x[16]: i32;
           index i in 0..16, t in 0..N;
           var A: i32 = select(t < 2, x[i], A(i, t - 1) + A(i, t - 2));
           output z[16]: i32 = A at [i] when t == N - 1;
         }
         mapping m of two { lane = i; time = t; }",
        "m",
        &[],
        &ROLLED,
    );
    assert_eq!(coalesced.kernels[0].regs.len(), 2, "{coalesced}");
    assert_eq!(shifts(&coalesced), 1, "{coalesced}");
    insta::assert_snapshot!("queue_of_two_coalesced", coalesced);
}

/// Code that is printed in snapshots, and compiled.
const PRINTED: &[(&str, &str, &str, Sizes)] = &[
    ("conv1d_sbm", "conv1d/core.ure", "sbm", &[]),
    ("conv1d_fbs", "conv1d/core.ure", "fbs", &[]),
    ("conv1d_taps", "conv1d/core.ure", "taps", &[("Q", 5)]),
    ("conv1d_table1", "conv1d/table1.ure", "sbm", &[("Q", 3)]),
    (
        "conv2d_rows",
        "conv2d/core.ure",
        "rows",
        &[("H", 3), ("Q", 3)],
    ),
    (
        "matmul_panel",
        "linear-algebra/matmul_core.ure",
        "panel",
        &[],
    ),
    (
        "matmul_hexagonal",
        "linear-algebra/matmul.ure",
        "hexagonal",
        &[],
    ),
    (
        "lu_rows_stream",
        "linear-algebra/lu.ure",
        "rows_stream",
        &[],
    ),
    ("edit_distance", "string/edit_distance.ure", "pe_per_a", &[]),
    (
        "edit_distance_batch",
        "string/edit_distance_batch.ure",
        "lanes",
        &[],
    ),
    (
        "smith_waterman_affine",
        "string/smith_waterman_affine.ure",
        "pe_per_a",
        &[],
    ),
    ("heat2d_wavefront", "stencil/heat2d.ure", "wavefront", &[]),
];

#[test]
fn generated_c_reads_well_and_compiles_without_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compiled = 0;
    for (name, file, mapping, sizes) in PRINTED {
        let program = kernel(file, mapping, sizes, &AVX512);
        let source = emit_c(&program, Simd::Avx512).expect("it prints").source;
        insta::assert_snapshot!(format!("{name}.c"), source);
        let path = folder.path().join(format!("{name}.c"));
        fs::write(&path, &source).expect("a file");
        for compiler in ["gcc", "clang"] {
            let output = Command::new(compiler)
                .args([
                    "-std=gnu11",
                    "-O1",
                    "-fwrapv",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                ])
                .args(["-Wno-psabi", "-c", "-o"])
                .arg(folder.path().join("kernel.o"))
                .arg(&path)
                .output()
                .unwrap_or_else(|e| panic!("{compiler}: {e}; `cargo xtask test` installs it"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}, {compiler}:\n{said}");
            compiled += 1;
        }
    }
    assert_eq!(compiled, 2 * PRINTED.len());
}

/// Designs of convolutions and of the matrix product for NVIDIA GPUs.
const CUDA: &[(&str, &str, &str, Sizes)] = &[
    ("conv1d_sbm", "conv1d/core.ure", "sbm", &[]),
    ("conv1d_taps", "conv1d/core.ure", "taps", &[("Q", 5)]),
    (
        "conv2d_rows",
        "conv2d/core.ure",
        "rows",
        &[("H", 3), ("Q", 3)],
    ),
    (
        "matmul_output_stationary",
        "linear-algebra/matmul.ure",
        "output_stationary",
        &[],
    ),
    (
        "matmul_panel",
        "linear-algebra/matmul_core.ure",
        "panel",
        &[],
    ),
];

#[test]
fn generated_cuda_reads_well() {
    for (name, file, mapping, sizes) in CUDA {
        let program = kernel(file, mapping, sizes, &Machine::cuda());
        let source = emit_cuda(&program).expect("it prints").source;
        // The prelude of every file is shown once.
        let own = source.split_once("typedef INDEX index_t;\n");
        let shown = match own {
            Some((_, own)) if *name != "conv1d_sbm" => own.trim_start(),
            _ => &source,
        };
        insta::assert_snapshot!(format!("{name}.cu"), shown);
    }
}
