//! `systola completions`: the completion script of a shell.

use clap::Command;
use clap_complete::Shell;

use crate::source::{Failure, Outcome, Status};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  source <(systola completions bash)      bash, for this session
  systola completions bash > ~/.local/share/bash-completion/completions/systola
  systola completions zsh > ~/.zfunc/_systola    zsh, with ~/.zfunc in $fpath
  systola completions fish > ~/.config/fish/completions/systola.fish
  systola completions powershell >> $PROFILE
  systola completions elvish >> ~/.config/elvish/rc.elv

The script completes commands and options; in bash, zsh and fish also values with names, such as
targets.";

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script for the commands that help shows.
pub fn run(args: &Args, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "systola", &mut script);
    let script = String::from_utf8(script)
        .map_err(|_| Failure::new("the script is not UTF-8 text").with_status(Status::Bug))?;
    term::print(script);
    Ok(Status::Done)
}
