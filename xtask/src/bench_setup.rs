//! `cargo xtask bench-setup`: the libraries that `systola bench cpu` compares with, in a virtual environment.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Below the root of the repository; `systola bench cpu` looks there.
const ENVIRONMENT: &str = "target/bench-venv";

/// NumPy brings OpenBLAS with it. Halide is held to the version whose schedules bench/peers/cpu/schedules.py has.
const PACKAGES: [&str; 6] = [
    "numpy",
    "scipy",
    "opencv-python-headless",
    "parasail",
    "rapidfuzz",
    "halide==21.0",
];

/// What the scripts of bench/peers/cpu import.
const MODULES: &str =
    "import numpy, scipy.ndimage, scipy.signal, cv2, rapidfuzz.process, parasail, halide";

pub fn run() -> Result<(), String> {
    let environment = crate::root().join(ENVIRONMENT);
    let python = environment.join("bin/python");
    if !python.is_file() {
        println!("making {ENVIRONMENT}");
        let mut command = Command::new(system_python()?);
        command.args(["-m", "venv"]).arg(&environment);
        succeed(
            &mut command,
            "on Debian and Ubuntu it needs the package python3-venv",
        )?;
    }
    if ready(&python) {
        println!("{ENVIRONMENT} has everything: {}", PACKAGES.join(", "));
    } else {
        println!("installing {}", PACKAGES.join(", "));
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--disable-pip-version-check"]);
        command.args(PACKAGES);
        succeed(
            &mut command,
            "is this machine connected? All of them come from a package index",
        )?;
        if !ready(&python) {
            return Err(format!(
                "the packages are installed, but not all can be imported; try\n  {} -c '{MODULES}'",
                python.display()
            ));
        }
    }
    println!("now run: cargo run --release -p systola-cli -- bench cpu");
    Ok(())
}

/// Can everything be imported, and is Halide the right one?
fn ready(python: &Path) -> bool {
    let version = "import importlib.metadata as m; assert m.version('halide').startswith('21.')";
    let done = Command::new(python)
        .args(["-c", &format!("{MODULES}\n{version}")])
        .output();
    done.is_ok_and(|done| done.status.success())
}

fn system_python() -> Result<PathBuf, String> {
    let works = |name: &&str| {
        let done = Command::new(name).arg("--version").output();
        done.is_ok_and(|done| done.status.success())
    };
    let found = ["python3", "python"].iter().find(|name| works(name));
    found
        .map(PathBuf::from)
        .ok_or_else(|| "there is no python3; the peers of the benchmarks need it".to_string())
}

/// Runs a command that speaks for itself; `hint` says what to look at when it fails.
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
