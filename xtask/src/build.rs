//! Builds programs of the workspace.

use std::path::PathBuf;
use std::process::Command;

use crate::{root, target_folder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `systola`
    CommandLine,
    /// `systola-lab`, and the command line next to it, which it starts and times
    Lab,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
}

/// Builds a program, and returns its path.
pub fn build(program: Program, profile: Profile) -> Result<PathBuf, String> {
    let (packages, name): (&[&str], _) = match program {
        Program::CommandLine => (&["systola-cli"], "systola"),
        Program::Lab => (&["systola-lab", "systola-cli"], "systola-lab"),
    };
    let (flags, folder): (&[&str], _) = match profile {
        Profile::Debug => (&[], "debug"),
        Profile::Release => (&["--release"], "release"),
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .args(flags)
        .current_dir(root())
        .status()
        .map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("{name} does not build"));
    }
    Ok(target_folder()
        .join(folder)
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}
