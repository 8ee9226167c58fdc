//! `cargo xtask bench` and `cargo xtask verify`: builds the program `systola-lab`, and runs it with
//! the same arguments.

use std::process::{Command, ExitCode};

use crate::build::{Profile, Program, build};

/// Benchmarks are built with the release profile. Returns the exit status of the program.
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
    // `None` if a signal terminated the program.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
