//! NVRTC for tests without a GPU, and what runs on a machine with one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;

/// Below the root of the repository.
const ENVIRONMENT: &str = "target/nvrtc-venv";

/// The version of the toolkit whose machine code the drivers of our GPUs load.
const PACKAGE: &str = "nvidia-cuda-nvrtc==13.0.88";

/// Where results of machines with a GPU are kept.
const LOG: &str = "bench/results/gpu-verify.log";

/// The folder with NVRTC, which is installed where it is not there.
pub fn nvrtc() -> Result<PathBuf, String> {
    let python = python::environment(ENVIRONMENT)?;
    let environment = crate::root().join(ENVIRONMENT);
    if let Some(folder) = library_in(&environment) {
        return Ok(folder);
    }
    python::install(&python, &[PACKAGE])?;
    library_in(&environment).ok_or_else(|| {
        format!("{PACKAGE} is installed, but there is no libnvrtc below {ENVIRONMENT}")
    })
}

/// The folder in which the library lies, at any depth.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        name.is_some_and(|n| n.starts_with("libnvrtc.so."))
    };
    if entries.iter().any(is_library) {
        return Some(folder.to_path_buf());
    }
    let folders = entries
        .iter()
        .filter(|path| path.is_dir() && !path.is_symlink());
    folders.into_iter().find_map(|path| library_in(path))
}

/// Runs every mapping of the gallery on the GPU. The binary alone does the same, without cargo.
pub fn run() -> Result<(), String> {
    let status = Command::new(env!("CARGO"))
        .current_dir(crate::root())
        .args(["run", "--release", "-p", "systola-cli", "--"])
        .args(["gpu", "verify", "gallery", "--log", LOG])
        .status()
        .map_err(|e| e.to_string())?;
    if status.success() {
        return Ok(());
    }
    Err(format!("verification ended with {status}; see {LOG}"))
}
