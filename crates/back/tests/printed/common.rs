//! Kernels built by hand, and a C program that runs their printed code.

pub mod build;
pub mod run;

use systola_ir::kernel::Program;

/// The program in the form that printers expect.
pub fn folded(program: &Program) -> Program {
    program.clone().folded().expect("small numbers")
}
