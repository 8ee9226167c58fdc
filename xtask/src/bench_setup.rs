//! `cargo xtask bench-setup`: installs the baselines of `cargo xtask bench cpu` and `cargo xtask
//! bench stencils --target cpu` in virtual environments.

use std::path::Path;
use std::process::Command;

use crate::python;

/// Relative to the root of the repository; `systola-lab bench cpu` looks there.
const ENVIRONMENT: &str = "target/bench-venv";

/// NumPy includes OpenBLAS. Halide is pinned to the version that the schedules in
/// bench/baselines/cpu/schedules.py are from.
const PACKAGES: [&str; 6] = [
    "numpy",
    "scipy",
    "opencv-python-headless",
    "parasail",
    "rapidfuzz",
    "halide==21.0",
];

/// The modules that the scripts of bench/baselines/cpu import.
const MODULES: &str =
    "import numpy, scipy.ndimage, scipy.signal, cv2, rapidfuzz.process, parasail, halide";

/// Devito pins its own versions of NumPy and other packages.
const DEVITO_ENVIRONMENT: &str = "target/devito-venv";
const DEVITO: [&str; 1] = ["devito==4.8.20"];

pub fn run() -> Result<(), String> {
    // The pinned version of Halide must be installed.
    let version = "import importlib.metadata as m; assert m.version('halide').startswith('21.')";
    fill(ENVIRONMENT, &PACKAGES, &format!("{MODULES}\n{version}"))?;
    fill(DEVITO_ENVIRONMENT, &DEVITO, "import devito")?;
    println!("now run: cargo xtask bench cpu");
    println!("     or: cargo xtask bench stencils --target cpu");
    Ok(())
}

/// Installs the packages, unless `program` already runs.
fn fill(environment: &str, packages: &[&str], program: &str) -> Result<(), String> {
    let python = python::environment(environment)?;
    let list = packages.join(", ");
    if runs(&python, program) {
        println!("{environment} has everything: {list}");
        return Ok(());
    }
    println!("installing {list}");
    python::install(&python, packages)?;
    if runs(&python, program) {
        return Ok(());
    }
    Err(format!(
        "the packages are installed, but not all can be imported; try\n  {} -c \"{program}\"",
        python.display()
    ))
}

fn runs(python: &Path, program: &str) -> bool {
    let done = Command::new(python).args(["-c", program]).output();
    done.is_ok_and(|done| done.status.success())
}
