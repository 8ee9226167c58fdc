//! Creates Python virtual environments below `target/`, for libraries from the package index.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python interpreter of an environment, given relative to the root. The environment is created
/// if it is missing.
pub fn environment(folder: &str) -> Result<PathBuf, String> {
    let environment = crate::root().join(folder);
    let python = environment.join("bin/python");
    if !python.is_file() {
        println!("making {folder}");
        let mut command = Command::new(system_python()?);
        command.args(["-m", "venv"]).arg(&environment);
        succeed(
            &mut command,
            "on Debian and Ubuntu it needs the package python3-venv",
        )?;
    }
    Ok(python)
}

pub fn install(python: &Path, packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    command.args(packages);
    succeed(
        &mut command,
        "is this machine connected? All packages come from an index",
    )
}

fn system_python() -> Result<PathBuf, String> {
    let works = |name: &&str| {
        let done = Command::new(name).arg("--version").output();
        done.is_ok_and(|done| done.status.success())
    };
    let found = ["python3", "python"].iter().find(|name| works(name));
    found.map(PathBuf::from).ok_or_else(|| {
        "there is no python3; it installs libraries for tests and benchmarks".to_string()
    })
}

/// Runs a command that prints its own errors; `hint` names a likely cause of a failure.
fn succeed(command: &mut Command, hint: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|e| format!("{program} does not run: {e}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{program} ended with {status}; {hint}"))
}
