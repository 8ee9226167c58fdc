//! The command line of Systola: `systola help` shows what it can do.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod choose;
mod cmd;
mod counts;
mod device;
mod execute;
mod files;
mod job;
mod json;
mod lowering;
mod picture;
mod place;
mod render;
mod runtime;
mod scene;
mod source;
mod svg;
mod table;
mod term;
mod tuned;

use crate::source::{Failure, Status};

/// Lowering makes and forgets many small forms and sets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  systola tour                                             a guided walk, half a minute
  systola check gallery/conv1d/core.ure                    is every mapping legal, and what array is it?
  systola check gallery/conv1d/core.ure --map sbm --set C=16 --set Q=5
  systola run gallery/conv1d/core.ure --target array --map sbm --verify
  systola run gallery/conv1d/core.ure --target cpu --map sbm --set C=1_000_000 --set Q=5
  systola emit gallery/conv1d/core.ure --map sbm           the C that it is compiled from
  systola explore gallery/conv1d/core.ure --set C=1_000_000 --set Q=5     the best mapping, found
  systola verify stencils --borders --target cpu           compiled code against loops, under every border
  systola devices                                          what kernels can be compiled for here
  systola show gallery/conv1d/core.ure --map sbm -o sbm.svg
  systola explain E0501                                    what a code means, and how to mend it

Exit status: 0 legal or done, 1 a mistake in the program or the command, 2 a known limitation, or a
component that this machine lacks, 101 a bug of Systola.";

/// Recurrences and space-time mappings as software systolic arrays.
///
/// A program says what is computed (recurrence equations), a mapping says where and when. Systola
/// proves the mapping legal or shows two points on which it fails, builds the array, and compiles it for
/// this machine.
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
    Bench(cmd::bench::Args),
    Devices(cmd::devices::Args),
    Verify(cmd::verify::Args),
    Gpu(cmd::gpu::Args),
    Explore(cmd::explore::Args),
    #[command(hide = true)]
    Nvrtc(cmd::nvrtc::Args),
}

/// The symbolic parts recurse with the depth of an expression; a deep one needs room, not a crash.
const STACK: usize = 512 << 20;

fn main() -> ExitCode {
    term::init();
    std::panic::set_hook(Box::new(report_bug));
    let worker = std::thread::Builder::new()
        .name("systola".into())
        .stack_size(STACK)
        .spawn(|| systola(std::env::args_os().collect()));
    let status = match worker.map(|handle| handle.join()) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => Status::Bug,
        // No room for the stack: try with what there is.
        Err(_) => systola(std::env::args_os().collect()),
    };
    ExitCode::from(status.code())
}

fn systola(args: Vec<OsString>) -> Status {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // The status of clap's own errors would be 2, which means a limitation here.
            let printed = error.print();
            return if error.use_stderr() {
                Status::Mistake
            } else {
                match printed {
                    Ok(()) => Status::Done,
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Status::Done,
                    Err(error) => term::cannot_print(&error),
                }
            };
        }
    };
    let outcome = match cli.command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Show(args) => cmd::show::run(&args),
        Command::Dump(args) => cmd::dump::run(&args),
        Command::Emit(args) => cmd::emit::run(&args),
        Command::Tour(args) => cmd::tour::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Devices(args) => cmd::devices::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::Gpu(args) => cmd::gpu::run(&args),
        Command::Explore(args) => cmd::explore::run(&args),
        Command::Nvrtc(args) => cmd::nvrtc::run(&args),
    };
    match outcome {
        Ok(status) => status,
        Err(Failure::Reported(status)) => status,
        Err(Failure::Outside {
            status,
            message,
            help,
        }) => {
            term::eprint(format!("{}: {message}\n", term::Paint::Red.err("error")));
            if let Some(help) = help {
                term::eprint(format!("  {}: {help}\n", term::Paint::Cyan.err("help")));
            }
            status
        }
    }
}

/// Says that it is our fault, and what a report needs.
fn report_bug(info: &std::panic::PanicHookInfo<'_>) {
    let command: Vec<String> = std::env::args().collect();
    term::eprint(format!(
        "\n{}: {info}\n\n\
         This is a bug of Systola, not of your program. Please report it at\n  \
         {}/issues\n\
         with the text above, the input file, and this command:\n  {}\n\
         Version {}.\n",
        term::Paint::Red.err("internal error"),
        env!("CARGO_PKG_REPOSITORY"),
        command.join(" "),
        env!("CARGO_PKG_VERSION"),
    ));
}
