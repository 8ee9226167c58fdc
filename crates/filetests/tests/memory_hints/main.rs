//! Prefetches and streaming stores of the CPU's passes, in hand-built programs, down to the printed
//! C.

#[path = "../../../back/tests/printed/common/build.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod build;

mod blocks;
mod streams;

use systola_driver::emit_c;
use systola_ir::kernel::Program;
use systola_ir::target::{Machine, Simd};
use systola_lower::passes::{Context, run_all};

/// The C of a program after all passes.
fn source(program: &Program) -> String {
    let mut program = program.clone();
    let machine = Machine::cpu(Simd::Avx512);
    let cx = Context {
        machine: &machine,
        transfers: &[],
    };
    run_all(&mut program, &cx).unwrap();
    emit_c(&program, Simd::Avx512).unwrap().source
}
