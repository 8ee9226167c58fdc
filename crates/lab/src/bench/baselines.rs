//! Baselines: programs in C, and libraries in a virtual environment of Python, that solve the same
//! problem.
//!
//! Each is a separate program. It reads the inputs from files, times itself, writes its result to a
//! file and prints a line of JSON; see bench/baselines/cpu.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use systola::interp::{Data, Tensor, npy};
use systola_cli::source::Failure;

use super::expected::Expected;
use super::family::Family;
use super::problem::{GAP_EXTEND, GAP_OPEN, Problem, Scale};
use super::tools::{Scratch, compile_c, last_line};

/// The available baselines.
#[derive(Debug, Default)]
pub struct Baselines {
    /// The folder of the scripts.
    scripts: PathBuf,
    /// The time for which each repeats its work.
    seconds: String,
    plain: Option<PathBuf>,
    python: Option<PathBuf>,
    /// The Python of Devito's own environment.
    devito: Option<PathBuf>,
    /// The driver and the library.
    parasail: Option<[PathBuf; 2]>,
    /// Errors, for the end of the table.
    pub notes: Vec<String>,
}

/// One baseline on one problem.
#[derive(Clone, Debug)]
pub struct Measured {
    pub baseline: String,
    /// The function that was measured.
    pub how: String,
    pub seconds: f64,
    pub threads: usize,
    /// The error of its result, if it is wrong.
    pub fault: Option<String>,
}

/// The output of a baseline.
#[derive(Debug, Deserialize)]
struct Line {
    baseline: String,
    how: String,
    seconds: f64,
    threads: usize,
    result: String,
}

impl Baselines {
    /// Finds installed baselines, and compiles those in C.
    pub fn find(root: &Path, scratch: &Scratch, scale: Scale) -> Baselines {
        let mut baselines = Baselines {
            scripts: root.join("bench/baselines/cpu"),
            seconds: scale.seconds().to_string(),
            ..Baselines::default()
        };
        let program = scratch.path().join("plain");
        match compile_c(&baselines.scripts.join("plain.c"), &program, &[]) {
            Ok(()) => baselines.plain = Some(program),
            Err(why) => baselines.notes.push(why),
        }
        let environment = root.join("target/bench-venv");
        let python = environment.join("bin/python");
        if python.is_file() {
            baselines.python = Some(python);
        }
        let devito = root.join("target/devito-venv/bin/python");
        if devito.is_file() {
            baselines.devito = Some(devito);
        }
        if let Some(package) = package(&environment, "parasail") {
            let program = scratch.path().join("parasail");
            let include = format!("-I{}", package.join("include").display());
            match compile_c(&baselines.scripts.join("parasail.c"), &program, &[include]) {
                Ok(()) => baselines.parasail = Some([program, package.join("libparasail.so")]),
                Err(why) => baselines.notes.push(why),
            }
        }
        baselines
    }

    /// Writes the inputs for the baselines.
    pub fn hand_over(problem: &Problem, scratch: &Scratch) -> Result<(), Failure> {
        scratch.remove_arrays();
        for input in &problem.inputs {
            scratch.write(&format!("{}.npy", input.name), &npy::write(&input.tensor()))?;
        }
        Ok(())
    }

    /// Runs all baselines of a problem whose inputs were written.
    pub fn measure(
        &mut self,
        problem: &Problem,
        scratch: &Scratch,
        threads: usize,
    ) -> Vec<Measured> {
        let mut measured = Vec::new();
        for mut command in self.commands(problem, scratch.path(), threads) {
            for line in self.lines(&mut command, problem, threads) {
                let fault = match result(&scratch.path().join(&line.result)) {
                    Ok(tensor) => fault(&problem.expected, &tensor),
                    Err(why) => Some(why),
                };
                measured.push(Measured {
                    baseline: line.baseline,
                    how: line.how,
                    seconds: line.seconds,
                    threads: line.threads,
                    fault,
                });
            }
        }
        measured
    }

    fn commands(&self, problem: &Problem, dir: &Path, threads: usize) -> Vec<Command> {
        let count = threads.to_string();
        let more = match problem.family {
            Family::SmithWaterman => vec![GAP_OPEN.to_string(), GAP_EXTEND.to_string()],
            Family::Stencil2d | Family::Stencil3d => vec![problem.steps().to_string()],
            Family::Conv1d
            | Family::Conv2d
            | Family::Matmul
            | Family::EditDistance
            | Family::Designs => Vec::new(),
        };
        let mut commands = Vec::new();
        if let Some(plain) = &self.plain {
            let mut command = Command::new(plain);
            command
                .arg(problem.family.file_name())
                .arg(dir)
                .arg(&count)
                .args(&more);
            commands.push(command);
        }
        let script = |python: &PathBuf, name: &str| {
            let mut command = Command::new(python);
            command
                .arg("-B")
                .arg(self.scripts.join(name))
                .arg(dir)
                .arg(&count)
                .args(&more);
            for library in ["HL", "OMP", "OPENBLAS", "MKL"] {
                command.env(format!("{library}_NUM_THREADS"), &count);
            }
            command
        };
        let own = format!("{}.py", problem.family.file_name());
        match problem.family {
            Family::SmithWaterman => {
                commands.extend(self.parasail.iter().map(|[program, library]| {
                    let mut command = Command::new(program);
                    command.arg(library).arg(dir).arg(&count).args(&more);
                    command
                }));
            }
            Family::Stencil2d | Family::Stencil3d => {
                commands.extend(self.python.iter().map(|python| script(python, &own)));
                let devito = self.devito.iter();
                commands.extend(devito.map(|python| script(python, "stencil_devito.py")));
            }
            Family::Conv1d
            | Family::Conv2d
            | Family::Matmul
            | Family::EditDistance
            | Family::Designs => {
                commands.extend(self.python.iter().map(|python| script(python, &own)));
            }
        }
        commands
    }

    /// The output of a program, including what it printed before it failed.
    fn lines(&mut self, command: &mut Command, problem: &Problem, threads: usize) -> Vec<Line> {
        let row = format!(
            "{}, {}, threads: {threads}",
            problem.family.title(),
            problem.name
        );
        let done = match command.env("BENCH_SECONDS", &self.seconds).output() {
            Ok(done) => done,
            Err(error) => {
                let program = command.get_program().to_string_lossy();
                self.notes
                    .push(format!("{row}: {program} does not run: {error}"));
                return Vec::new();
            }
        };
        if !done.status.success() {
            self.notes.push(format!(
                "{row}: a baseline failed: {}",
                last_line(&done.stderr)
            ));
        }
        let text = String::from_utf8_lossy(&done.stdout);
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

/// The path of a package in an environment.
fn package(environment: &Path, name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).ok()?;
    versions
        .flatten()
        .map(|version| version.path().join("site-packages").join(name))
        .find(|path| path.is_dir())
}

fn result(path: &Path) -> Result<Tensor, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("it left no result: {e}"))?;
    npy::read(&bytes, None).map_err(|e| format!("its result cannot be read: {e}"))
}

fn fault(expected: &Expected, tensor: &Tensor) -> Option<String> {
    let values: Vec<f64> = match &tensor.data {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::F64(v) => v.clone(),
        Data::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::Bool(_)
        | Data::I8(_)
        | Data::I16(_)
        | Data::I64(_)
        | Data::U8(_)
        | Data::U16(_)
        | Data::U32(_)
        | Data::U64(_)
        | Data::F16(_)
        | Data::BF16(_) => return Some("its result has another type".to_string()),
    };
    expected.fault(&tensor.shape, &values)
}
