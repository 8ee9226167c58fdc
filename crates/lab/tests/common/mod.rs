//! The built binary, run in the root of the repository.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

pub const CORE: &str = "gallery/conv1d/core.ure";

/// A path in the folder of temporary test files.
pub fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs the binary, checks the exit status, and returns both streams. All tests share one cache of
/// compiled kernels.
pub fn check(args: &[&str], status: i32) -> (String, String) {
    check_with(&[], args, status)
}

/// The same with additional environment variables.
pub fn check_with(variables: &[(&str, &str)], args: &[&str], status: i32) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_systola-lab"));
    for name in ["NO_COLOR", "SYSTOLA_CC", "SYSTOLA_SIMD", "SYSTOLA_CACHE_MB"] {
        command.env_remove(name);
    }
    let output = command
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("SYSTOLA_CACHE", temporary("kernels"))
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{args:?}\n{out}\n{err}");
    (out, err)
}
