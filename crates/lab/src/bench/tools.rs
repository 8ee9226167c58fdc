//! The environment of measurements: the repository, a C compiler, a folder for files, a line of
//! progress.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use systola::rt::CompileOptions;
use systola_cli::runtime::fail_alone;
use systola_cli::source::Failure;
use systola_cli::term;
use tempfile::TempDir;

/// The root of the repository: this folder, or the nearest above it, that has the programs and the
/// baselines.
pub fn root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|e| Failure::new(format!("cannot find the current folder: {e}")))?;
    let is_root =
        |dir: &&Path| dir.join("bench/limits.c").is_file() && dir.join("gallery").is_dir();
    match here.ancestors().find(is_root) {
        Some(root) => Ok(root.to_path_buf()),
        None => Err(Failure::new("there is no bench/limits.c here or above")
            .help("run it in a checkout of the repository")),
    }
}

/// There is no GPU, or it cannot be used.
pub fn no_gpu(error: &systola::rt::Error) -> Failure {
    fail_alone(error)
        .help("`systola-lab bench cpu` times the CPU; `systola devices` lists what there is")
}

/// A temporary folder, removed when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub fn new() -> Result<Scratch, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("systola-bench-")
            .tempdir()
            .map_err(|e| cannot_write(&std::env::temp_dir(), &e))?;
        Ok(Scratch { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes an array for other programs.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).map_err(|e| cannot_write(&path, &e))
    }

    /// Removes the files of the last problem, which may be large.
    pub fn remove_arrays(&self) {
        let entries = std::fs::read_dir(self.path())
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            if entry.path().extension().is_some_and(|e| e == "npy") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// Compiles a C program for this machine with full optimisation, and with OpenMP if the compiler
/// supports it.
pub fn compile_c(source: &Path, program: &Path, more: &[String]) -> Result<(), String> {
    let options = CompileOptions::from_env().map_err(|e| e.to_string())?;
    let native = if cfg!(target_arch = "aarch64") {
        "-mcpu=native"
    } else {
        "-march=native"
    };
    let mut why = "there is no C compiler".to_string();
    for compiler in &options.compilers {
        for openmp in [Some("-fopenmp"), None] {
            let mut words = compiler.split_whitespace();
            let Some(name) = words.next() else { break };
            let done = Command::new(name)
                .args(words)
                .args(["-O3", native])
                .args(openmp)
                .arg("-o")
                .arg(program)
                .arg(source)
                .args(more)
                .args(["-lpthread", "-ldl", "-lm"])
                .output();
            match done {
                Ok(done) if done.status.success() => return Ok(()),
                Ok(done) => why = last_line(&done.stderr),
                Err(_) => break,
            }
        }
    }
    Err(format!("{} is not compiled: {why}", source.display()))
}

/// The last line of a program's standard error.
pub fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rfind(|l| !l.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_string()
}

/// One line of progress on the standard error; on a terminal each replaces the last.
#[derive(Debug)]
pub struct Progress {
    done: usize,
    total: usize,
    terminal: bool,
}

impl Progress {
    pub fn new(total: usize) -> Progress {
        Progress {
            done: 0,
            total,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    pub fn step(&mut self, what: &str) {
        self.say(what);
        self.done += 1;
    }

    fn say(&self, what: &str) {
        let (done, total) = (self.done, self.total);
        if self.terminal {
            const WIDTH: usize = 24;
            let full = (done * WIDTH).checked_div(total).unwrap_or(0);
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
            term::eprint(format!("\r\x1b[2K{bar} {done}/{total}  {what}"));
        } else {
            term::eprint(format!("{}/{total}  {what}\n", done + 1));
        }
    }

    pub fn finish(&self) {
        if self.terminal {
            term::eprint("\r\x1b[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_goes_away() {
        let scratch = Scratch::new().ok().unwrap();
        let path = scratch.path().to_path_buf();
        scratch.write("x.npy", b"1").ok().unwrap();
        scratch.write("tool", b"1").ok().unwrap();
        scratch.remove_arrays();
        assert!(!path.join("x.npy").exists() && path.join("tool").exists());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_last_complaint_is_shown() {
        assert_eq!(last_line(b"a\n  b: c \n\n"), "b: c");
        assert_eq!(last_line(b"\n"), "it said nothing");
    }

    #[test]
    fn errors_in_c_are_reported() {
        let scratch = Scratch::new().ok().unwrap();
        let source = scratch.path().join("wrong.c");
        std::fs::write(&source, "int main(void) { return undeclared; }").unwrap();
        let why = compile_c(&source, &scratch.path().join("wrong"), &[]).unwrap_err();
        assert!(why.contains("wrong.c is not compiled"), "{why}");
    }
}
