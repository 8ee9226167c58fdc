//! The C compiler of this system.

use std::collections::HashMap;
use std::env;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::process::{Limits, run_within};

/// A compiler that was found.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    /// Its arguments, as in `ccache gcc`.
    args: Vec<String>,
    /// Everything that distinguishes it from another compiler, or from an older version at the same
    /// path.
    pub(crate) identity: String,
}

impl Compiler {
    /// The first candidate that exists; each is a program and optional arguments, as in `CC`.
    pub(crate) fn find(candidates: &[String], limits: &Limits<'_>) -> Result<Compiler, Error> {
        for candidate in candidates {
            if let Some((program, args)) = resolve(candidate) {
                let identity = identify(&program, &args, limits)?;
                return Ok(Compiler {
                    program,
                    args,
                    identity,
                });
            }
        }
        Err(Error::NoCompiler {
            tried: candidates.to_vec(),
        })
    }

    /// Compiles `dir/source` into the shared library `dir/library`. Both names are relative, so
    /// that the result does not contain their path.
    pub(crate) fn build(
        &self,
        flags: &[String],
        dir: &Path,
        source: &str,
        library: &str,
        limits: &Limits<'_>,
    ) -> Result<(), Error> {
        let args = ["-shared", "-fPIC", "-o", library, source, "-lm"];
        self.make(flags, dir, &args, library, limits)
    }

    /// Precompiles a header of the system. The flags must be those of the library.
    pub(crate) fn precompile(
        &self,
        flags: &[String],
        dir: &Path,
        header: &str,
        output: &str,
        limits: &Limits<'_>,
    ) -> Result<(), Error> {
        let args = ["-fPIC", "-x", "c-header", "-o", output];
        if self.is_clang() {
            // clang looks for the file again at each use, gcc takes nothing but a file.
            let nothing = ["-include", header, "-"];
            return self.make(flags, dir, &[&args[..], &nothing].concat(), output, limits);
        }
        let source = "header.h";
        let path = dir.join(source);
        fs::write(&path, format!("#include <{header}>\n")).map_err(|source| Error::Io {
            action: "write",
            path,
            source,
        })?;
        self.make(flags, dir, &[&args[..], &[source]].concat(), output, limits)
    }

    pub(crate) fn is_clang(&self) -> bool {
        self.identity.contains("clang")
    }

    fn make(
        &self,
        flags: &[String],
        dir: &Path,
        args: &[&str],
        output: &str,
        limits: &Limits<'_>,
    ) -> Result<(), Error> {
        let mut command = self.command();
        command.current_dir(dir).args(flags).args(args);
        let said = spell(&command);
        let done = run_within(&command, limits)
            .map_err(|error| self.cannot_run(error))?
            .ok_or_else(|| stopped(&command, limits))?;
        if done.status.success() && dir.join(output).is_file() {
            return Ok(());
        }
        let mut stderr = done.stderr;
        if stderr.is_empty() {
            stderr = format!("it said nothing and ended with {}", done.status);
        }
        Err(Error::CompilerFailed {
            command: said,
            stderr,
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env("LC_ALL", "C");
        command
    }

    fn cannot_run(&self, source: io::Error) -> Error {
        Error::Io {
            action: "run the C compiler",
            path: self.program.clone(),
            source,
        }
    }
}

fn stopped(command: &Command, limits: &Limits<'_>) -> Error {
    if limits.is_over() {
        return Error::OutOfTime;
    }
    Error::CompilerHung {
        command: spell(command),
        seconds: limits.cpu_time.as_secs_f64(),
    }
}

fn spell(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    words.join(" ")
}

/// A path may contain spaces; otherwise the text after the first space is arguments.
fn resolve(candidate: &str) -> Option<(PathBuf, Vec<String>)> {
    if let Some(program) = locate(candidate) {
        return Some((program, Vec::new()));
    }
    let mut words = candidate.split_whitespace();
    let program = locate(words.next()?)?;
    Some((program, words.map(str::to_string).collect()))
}

fn locate(program: &str) -> Option<PathBuf> {
    if program.is_empty() {
        return None;
    }
    if program.contains(std::path::MAIN_SEPARATOR) || program.contains('/') {
        let path = std::path::absolute(program).ok()?;
        return is_executable(&path).then_some(path);
    }
    let name = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(&name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    let Ok(data) = fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    data.is_file() && may_run
}

/// Path, arguments, version, age and size. The version is queried once per process.
fn identify(program: &Path, args: &[String], limits: &Limits<'_>) -> Result<String, Error> {
    static KNOWN: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);
    let data = fs::metadata(program).map_err(|source| Error::Io {
        action: "look at the C compiler",
        path: program.to_path_buf(),
        source,
    })?;
    let file = format!(
        "{} {args:?} {} {}",
        program.display(),
        data.len(),
        modified(&data).as_nanos()
    );
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(identity) = known().get(&file) {
        return Ok(identity.clone());
    }
    let mut command = Command::new(program);
    command.args(args).arg("--version").env("LC_ALL", "C");
    let done = run_within(&command, limits)
        .map_err(|source| Error::Io {
            action: "run the C compiler",
            path: program.to_path_buf(),
            source,
        })?
        .ok_or_else(|| stopped(&command, limits))?;
    let version = done.stdout.lines().next().unwrap_or_default();
    let identity = format!("{file} {version}");
    known().insert(file, identity.clone());
    Ok(identity)
}

fn modified(data: &Metadata) -> Duration {
    let time = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LIMITS: Limits<'_> = Limits {
        cpu_time: Duration::from_secs(600),
        deadline: None,
    };

    #[test]
    fn programs_are_found_on_the_path_and_by_path() {
        assert!(resolve("sh").unwrap().0.is_absolute());
        assert_eq!(resolve("sh -e  -u").unwrap().1, ["-e", "-u"]);
        assert!(resolve("/bin/sh").is_some());
        assert!(resolve("/bin").is_none());
        assert!(resolve("no-such-compiler-here").is_none());
        assert!(resolve("").is_none());
    }

    #[test]
    fn without_a_compiler_the_candidates_are_named() {
        let candidates = ["no-such-cc".to_string(), "/no/such/cc".to_string()];
        match Compiler::find(&candidates, &LIMITS) {
            Err(Error::NoCompiler { tried }) => assert_eq!(tried, candidates),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn identity_holds_the_version() {
        let compiler = Compiler::find(&["sh".to_string(), "cc".to_string()], &LIMITS).unwrap();
        assert!(compiler.identity.contains("/sh"));
    }
}
