//! The command line of Systola: `systola help` shows what it can do.
//!
//! The public modules are shared with other programs of this workspace: files and sources, devices,
//! and output.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod choose;
mod cmd;
mod counts;
pub mod device;
mod execute;
pub mod files;
mod job;
mod json;
pub mod lowering;
pub mod named;
pub mod program;
pub mod render;
pub mod runtime;
pub mod source;
pub mod table;
pub mod target_device;
pub mod term;
mod tuned;

use crate::source::Outcome;

const EXAMPLES: &str = "\
Examples:
  systola tour                                             a guided walk, half a minute
  systola check gallery/conv1d/core.ure                    is every mapping legal, and what array is it?
  systola check gallery/conv1d/core.ure --map sbm --set C=16 --set Q=5
  systola run gallery/conv1d/core.ure --target array --map sbm --verify
  systola run gallery/conv1d/core.ure --target cpu --map sbm --set C=1_000_000 --set Q=5
  systola emit gallery/conv1d/core.ure --map sbm           the C that it is compiled from
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5     the best mapping, found
  systola devices                                          the devices of this machine
  systola show gallery/conv1d/core.ure --map sbm -o sbm.svg
  systola explain E0501                                    what a code means, and how to fix it

Exit status: 0 legal or done, 1 a mistake in the program or the command, 2 a known limitation, or a
component that this machine lacks, 101 a bug of Systola.";

/// Recurrences and space-time mappings as software systolic arrays.
///
/// A program says what is computed (recurrence equations), a mapping says where and when. Systola
/// proves the mapping legal or shows two points on which it fails, builds the array, and compiles
/// it for this machine.
#[derive(Debug, Parser)]
#[command(name = "systola", version, after_help = EXAMPLES, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(cmd::check::Args),
    Run(cmd::run::Args),
    Show(cmd::show::Args),
    Dump(cmd::dump::Args),
    Emit(cmd::emit::Args),
    Tour(cmd::tour::Args),
    Explain(cmd::explain::Args),
    Devices(cmd::devices::Args),
    Explore(cmd::explore::Args),
    #[command(hide = true)]
    Nvrtc(cmd::nvrtc::Args),
    #[command(hide = true, disable_help_flag = true)]
    Bench(cmd::moved::Args),
    #[command(hide = true, disable_help_flag = true)]
    Verify(cmd::moved::Args),
    #[command(hide = true, disable_help_flag = true)]
    Gpu(cmd::moved::Args),
}

/// The binary `systola`.
pub fn main() -> ExitCode {
    program::main(|cli: Cli| run(cli.command))
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Show(args) => cmd::show::run(&args),
        Command::Dump(args) => cmd::dump::run(&args),
        Command::Emit(args) => cmd::emit::run(&args),
        Command::Tour(args) => cmd::tour::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Devices(args) => cmd::devices::run(&args),
        Command::Explore(args) => cmd::explore::run(&args),
        Command::Nvrtc(args) => cmd::nvrtc::run(&args),
        Command::Bench(_) => cmd::moved::run("bench", "bench"),
        Command::Verify(_) => cmd::moved::run("verify", "verify"),
        Command::Gpu(_) => cmd::moved::run("gpu verify", "verify"),
    }
}
