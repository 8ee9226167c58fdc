//! The frame of our programs around their commands: a large stack, a bug report on a panic, one
//! exit status.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::source::{Failure, Outcome, Status};
use crate::term;

/// The symbolic parts recurse with the depth of an expression; a deep one must not overflow the
/// stack.
const STACK: usize = 512 << 20;

/// Reads the arguments of this process and runs the command.
pub fn main<C: Parser + 'static>(run: fn(C) -> Outcome) -> ExitCode {
    term::init();
    std::panic::set_hook(Box::new(report_bug));
    let worker = std::thread::Builder::new()
        .name("systola".into())
        .stack_size(STACK)
        .spawn(move || status(std::env::args_os().collect(), run));
    let status = match worker.map(|handle| handle.join()) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => Status::Bug,
        // No memory for the stack: continue on this thread.
        Err(_) => status(std::env::args_os().collect(), run),
    };
    ExitCode::from(status.code())
}

fn status<C: Parser>(args: Vec<OsString>, run: fn(C) -> Outcome) -> Status {
    let command = match C::try_parse_from(args) {
        Ok(command) => command,
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
    match run(command) {
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

/// Prints that it is a bug of Systola, and what a report needs.
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
