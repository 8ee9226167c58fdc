//! Kernels built by hand, and a C program that runs what is printed of them.

// Each test file uses a part of this.
#![allow(dead_code)]

pub mod build;
pub mod run;

use systola_ir::kernel::Program;

/// The program as printers want it.
pub fn folded(program: &Program) -> Program {
    program.clone().folded().expect("small numbers")
}
