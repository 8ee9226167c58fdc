//! Commands that moved to other programs.

use std::ffi::OsString;

use crate::source::{Failure, Outcome};

/// The arguments of the old command
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Prints the replacement of `systola OLD`.
pub fn run(old: &str, new: &str) -> Outcome {
    Err(Failure::new(format!(
        "`systola {old}` is now `cargo xtask {new}` in a checkout of the repository, or `systola-lab {new}` where there is no cargo"
    )))
}
