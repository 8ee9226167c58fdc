//! `systola lsp`: the language server.

use std::io::IsTerminal;

use systola_lsp::{End, Options, serve_stdio};

use crate::source::{Outcome, Status};
use crate::term;

const NOTES: &str = "\
An editor starts this command and speaks the Language Server Protocol with it on the standard
input and output. docs/language-server.md shows how to set up VS Code, Neovim, Helix and Emacs.
The exit status is 0 after `shutdown` and `exit`, else 1.";

/// Serve an editor: diagnostics, hover, definitions, completion, formatting of .ure files
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Many editors say so; there is no other way
    #[arg(long, hide = true)]
    stdio: bool,
}

pub fn run(args: &Args) -> Outcome {
    let Args { stdio: _ } = args;
    if std::io::stdin().is_terminal() {
        term::eprint(
            "systola lsp waits for an editor on the standard input; see `systola help lsp`\n",
        );
    }
    match serve_stdio(Options::default()) {
        End::Shutdown => Ok(Status::Done),
        End::Abrupt => Ok(Status::Mistake),
    }
}
