//! The built binary, and files for it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The binary with an environment of its own; all tests share one cache of compiled kernels.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_systola"));
    command.args(args).current_dir(root());
    for name in ["NO_COLOR", "SYSTOLA_CC", "SYSTOLA_SIMD", "SYSTOLA_CACHE_MB"] {
        command.env_remove(name);
    }
    command.env("SYSTOLA_CACHE", temporary("kernels"));
    command
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A path in the folder of temporary test files.
pub fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the binary, checks the exit status, and returns both streams.
pub fn check(args: &[&str], status: i32) -> (String, String) {
    check_with(&[], args, status)
}

/// The same with additional environment variables.
pub fn check_with(variables: &[(&str, &str)], args: &[&str], status: i32) -> (String, String) {
    let output = command(args)
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs");
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(status), "{args:?}\n{out}\n{err}");
    (out, err)
}

/// A diagnostic in one line. Where it was wrapped depends on the length of the paths in it.
pub fn unwrapped(diagnostic: &str) -> String {
    let words = diagnostic.split_whitespace().filter(|word| *word != "│");
    words.collect::<Vec<_>>().join(" ")
}

/// Writes a file for one test.
pub fn file(name: &str, text: impl AsRef<[u8]>) -> String {
    let path = temporary(name);
    std::fs::write(&path, text).expect("the folder for tests can be written");
    path.display().to_string()
}

/// A .npy file of 32-bit elements.
pub fn npy(descr: &str, shape: &str, values: &[i32]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

pub const CORE: &str = "gallery/conv1d/core.ure";

pub const PROGRAM: &str = "\
system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: i32;
  input w[Q]: i32;
  index c in 0..C, q in 0..Q;
  var X: i32 = select(q == 0 || c == C - 1, x[c + q], X(c + 1, q - 1));
  var Z: i32 = select(q == 0, 0, Z(c, q - 1)) + X * w[q];
  output z[C]: i32 = Z at [c] when q == Q - 1;
}
mapping sbm of conv1d { lane = c + q; time = q; }
mapping crowded of conv1d { lane = q; time = q; }
mapping hasty of conv1d { lane = c; time = -q; }
program twice(N) where N >= 8 {
  input x[N]: i32;
  input w[3]: i32;
  first = conv1d(C = N - 2, Q = 3)(x = x, w = w);
  second = conv1d(C = N - 4, Q = 3)(x = first.z, w = w);
  output y = second.z;
}
";
