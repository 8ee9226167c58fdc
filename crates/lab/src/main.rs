//! Benchmarks and verification campaigns: `cargo xtask bench` and `cargo xtask verify` build this
//! program and run it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use systola_cli::program;

mod arrays;
mod bench;
mod compare;
mod measure;
mod threads;
mod verify;

/// Lowering allocates and frees many small forms and sets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Benchmarks and verification campaigns of Systola
///
/// It needs the gallery, the stencils and the folder bench/ of the repository, but no cargo.
#[derive(Debug, Parser)]
#[command(name = "systola-lab", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Args),
    Verify(verify::Args),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| match cli.command {
        Command::Bench(args) => bench::run(&args),
        Command::Verify(args) => verify::run(&args),
    })
}
