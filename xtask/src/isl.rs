//! Sets up isl, which our integer sets are compared with, as a Python package that comes compiled.

use std::path::PathBuf;
use std::process::Command;

use crate::python;

/// Relative to the root of the repository.
const ENVIRONMENT: &str = "target/isl-venv";

const PACKAGE: &str = "islpy==2026.2.2";

/// A Python interpreter that has the package; it is installed if it is missing.
pub fn set_up() -> Result<PathBuf, String> {
    let python = python::environment(ENVIRONMENT)?;
    let works = || {
        let done = Command::new(&python).args(["-c", "import islpy"]).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !works() {
        python::install(&python, &[PACKAGE])?;
    }
    if works() {
        return Ok(python);
    }
    Err(format!(
        "{PACKAGE} is installed, but {} does not import it",
        python.display()
    ))
}
