//! Kernels built by hand, and a C program that runs their printed code.

// Each test file uses only a part of this module.
#![allow(dead_code)]

pub mod build;
pub mod run;

use systola_ir::kernel::Program;

/// The program in the form that printers expect.
pub fn folded(program: &Program) -> Program {
    program.clone().folded().expect("small numbers")
}
