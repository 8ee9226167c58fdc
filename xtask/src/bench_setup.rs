//! `cargo xtask bench-setup`: the libraries that `systola bench cpu` compares with, in a virtual environment.

use std::path::Path;
use std::process::Command;

use crate::python;

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
    let python = python::environment(ENVIRONMENT)?;
    if ready(&python) {
        println!("{ENVIRONMENT} has everything: {}", PACKAGES.join(", "));
    } else {
        println!("installing {}", PACKAGES.join(", "));
        python::install(&python, &PACKAGES)?;
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
