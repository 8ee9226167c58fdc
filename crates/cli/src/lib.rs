//! The command line of Systola: `systola help` shows what it can do.
//!
//! The public modules are shared with other programs of this workspace: files and sources, devices,
//! and output.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod choose;
mod cmd;
mod counts;
mod data;
pub mod device;
mod execute;
pub mod files;
mod frames;
mod job;
mod json;
pub mod lowering;
pub mod named;
pub mod program;
pub mod render;
pub mod runtime;
mod save;
pub mod source;
pub mod table;
pub mod term;

pub use systola_explore::target_device;

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
  systola fmt gallery/conv1d/core.ure                      format a program in place
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
    Fmt(cmd::fmt::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
    Lsp(cmd::lsp::Args),
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
        Command::Fmt(args) => cmd::fmt::run(&args),
        Command::Completions(args) => cmd::completions::run(&args, shown()),
        Command::Man(args) => cmd::man::run(&args, shown()),
        Command::Lsp(args) => cmd::lsp::run(&args),
        Command::Nvrtc(args) => cmd::nvrtc::run(&args),
        Command::Bench(_) => cmd::moved::run("bench", "bench"),
        Command::Verify(_) => cmd::moved::run("verify", "verify"),
        Command::Gpu(_) => cmd::moved::run("gpu verify", "verify"),
    }
}

/// The command line without its hidden commands.
fn shown() -> clap::Command {
    let whole = Cli::command();
    let shown = whole
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .cloned();
    let mut command = clap::Command::new("systola")
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .subcommands(shown)
        .args(whole.get_arguments().cloned());
    if let Some(about) = whole.get_about() {
        command = command.about(about.clone());
    }
    if let Some(about) = whole.get_long_about() {
        command = command.long_about(about.clone());
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Those that need a device are parsed only; the others run in `tests/help.rs`.
    #[test]
    fn examples_of_help_texts_are_parsed() {
        let cli = Cli::command();
        let mut texts = vec![EXAMPLES.to_string()];
        texts.extend(
            cli.get_subcommands()
                .filter_map(|c| c.get_after_help())
                .map(|t| t.to_string()),
        );
        let mut seen = 0;
        for line in texts.iter().flat_map(|text| text.lines()) {
            let Some(rest) = line.strip_prefix("  systola ") else {
                continue;
            };
            let end = rest.find(['|', '>']).unwrap_or(rest.len());
            let (shown, _) = rest[..end].split_once("  ").unwrap_or((&rest[..end], ""));
            let words = std::iter::once("systola").chain(shown.split_whitespace());
            if let Err(why) = Cli::try_parse_from(words) {
                panic!("{line}: {why}");
            }
            seen += 1;
        }
        assert!(seen >= 40, "{seen} examples");
    }
}
