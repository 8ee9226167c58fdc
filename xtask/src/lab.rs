//! `cargo xtask bench` and `cargo xtask verify`: the program `systola-lab`, built and called with the same arguments.

use std::process::{Command, ExitCode};

use crate::build::{Profile, Program, build};

/// What is timed is built for release. Its exit status is ours.
pub fn run(args: &[&str]) -> Result<ExitCode, String> {
    let profile = match args.first() {
        Some(&"bench") => Profile::Release,
        _ => Profile::Debug,
    };
    let lab = build(Program::Lab, profile)?;
    let status = Command::new(&lab)
        .args(args)
        .status()
        .map_err(|e| format!("{}: {e}", lab.display()))?;
    // None where a signal ended it.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
