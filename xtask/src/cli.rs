//! The command line, built.

use std::path::PathBuf;
use std::process::Command;

use crate::{root, target_folder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
}

/// Its path.
pub fn build(profile: Profile) -> Result<PathBuf, String> {
    let (flags, folder): (&[&str], _) = match profile {
        Profile::Debug => (&[], "debug"),
        Profile::Release => (&["--release"], "release"),
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "systola-cli"])
        .args(flags)
        .current_dir(root())
        .status()
        .map_err(|e| e.to_string())?;
    if !status.success() {
        return Err("the command line does not build".into());
    }
    Ok(target_folder()
        .join(folder)
        .join(format!("systola{}", std::env::consts::EXE_SUFFIX)))
}
