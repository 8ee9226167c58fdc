//! Time from the command to the first result: a separate process, with an empty cache of kernels
//! and with a filled one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use systola::rt::timing::Timing;
use systola_cli::source::Failure;

use super::super::tools::{Scratch, last_line};

const REPEATS: usize = 5;

/// Prints two lines.
pub fn measure(root: &Path, device: usize) -> Result<String, Failure> {
    let scratch = Scratch::new()?;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for n in 0..REPEATS {
        let cache = scratch.path().join(format!("cache-{n}"));
        cold.push(seconds(root, device, &cache)?);
        warm.push(seconds(root, device, &cache)?);
    }
    let median = |samples| Timing { samples }.median();
    Ok(format!(
        "\nfrom the command to the first result, 2-D convolution 5 × 5 of 1024²\nempty cache of kernels   {:.3} s\nfilled cache of kernels  {:.3} s\n",
        median(cold),
        median(warm)
    ))
}

fn seconds(root: &Path, device: usize, cache: &Path) -> Result<f64, Failure> {
    let device = device.to_string();
    let mut command = Command::new(command_line()?);
    command
        .arg("run")
        .arg(root.join("gallery/conv2d/same.ure"))
        .args(["--map", "quads", "--target", "cuda", "--device", &device])
        .args(["-p", "R=1024", "-p", "C=1024", "-p", "H=5", "-p", "Q=5"])
        .args(["--fix", "H,Q"])
        .env("SYSTOLA_CACHE", cache)
        .stdin(Stdio::null());
    let start = Instant::now();
    let done = command.output();
    let seconds = start.elapsed().as_secs_f64();
    let done = done.map_err(|e| Failure::new(e.to_string()))?;
    if done.status.success() {
        Ok(seconds)
    } else {
        let why = last_line(&done.stderr);
        Err(Failure::new(format!(
            "the first result did not come: {why}"
        )))
    }
}

/// The command line, in the folder of this program.
fn command_line() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::new(e.to_string()))?;
    let path = own.with_file_name(format!("systola{}", std::env::consts::EXE_SUFFIX));
    if path.is_file() {
        return Ok(path);
    }
    Err(
        Failure::new(format!("there is no {}, which is timed", path.display()))
            .help("`cargo xtask bench` builds it; elsewhere copy both programs into one folder"),
    )
}
