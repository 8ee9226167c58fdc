//! Installs NVRTC for tests without a GPU, and runs verification and benchmarks on a machine with
//! one.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::build::{Profile, Program, build};
use crate::python;

/// Relative to the root of the repository.
const ENVIRONMENT: &str = "target/nvrtc-venv";

/// The CUDA version whose machine code the drivers of our GPUs can load.
const PACKAGE: &str = "nvidia-cuda-nvrtc==13.0.88";

/// The file that the output of a machine with a GPU is written to.
const LOG: &str = "bench/results/gpu.log";

const SANITIZERS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];

/// The folder of NVRTC, which is installed if it is missing.
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

/// The folder that contains the library, at any depth.
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

/// Verifies the gallery, with and without the sanitizers, and runs all benchmarks. The standard
/// output is saved. A failing command does not stop the others.
pub fn run() -> Result<(), String> {
    let binary = build(Program::Lab, Profile::Release)?;
    let path = crate::root().join(LOG);
    let mut log = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let failed: Vec<String> = commands(&binary)
        .iter()
        .filter_map(|command| record(command, &mut log).err())
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("{}; see {LOG}", failed.join("; ")))
}

/// The commands: verification, verification at small sizes under each sanitizer, benchmarks.
fn commands(lab: &Path) -> Vec<Vec<String>> {
    let lab = lab.display().to_string();
    let line = |words: &str| -> Vec<String> { words.split(' ').map(String::from).collect() };
    let own = |words: &str| [vec![lab.clone()], line(words)].concat();
    let mut all = vec![
        own("verify gallery"),
        own("verify stencils --boundaries --jobs 16 --patience 900"),
    ];
    for tool in SANITIZERS {
        let sanitizer = line(&format!(
            "compute-sanitizer --tool {tool} --error-exitcode 9"
        ));
        let small = own("verify gallery --most-points 2000");
        all.push([sanitizer, small].concat());
    }
    all.push(own("bench cuda --with-baselines"));
    all.push(own("bench stencils"));
    all
}

/// Runs a command, and copies its output to the terminal and to a file.
fn record(command: &[String], log: &mut impl Write) -> Result<(), String> {
    let line = command.join(" ");
    let cannot = |e: std::io::Error| format!("`{line}`: {e}");
    let mut say = |text: &str| {
        println!("{text}");
        writeln!(log, "{text}").map_err(cannot)
    };
    say(&format!("$ {line}"))?;
    let child = Command::new(&command[0])
        .current_dir(crate::root())
        .args(&command[1..])
        .stdout(Stdio::piped())
        .spawn();
    let ended = child.and_then(|mut child| {
        if let Some(output) = child.stdout.take() {
            for text in BufReader::new(output).lines() {
                say(&text?).map_err(std::io::Error::other)?;
            }
        }
        child.wait()
    });
    let fault = match ended {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("`{line}` ended with {status}"),
        Err(error) => cannot(error),
    };
    say(&fault)?;
    Err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gallery_is_verified_below_every_sanitizer_and_everything_is_timed() {
        let all: Vec<String> = (commands(Path::new("systola-lab")).iter())
            .map(|command| command.join(" "))
            .collect();
        assert_eq!(all[0], "systola-lab verify gallery");
        assert!(all[1].starts_with("systola-lab verify stencils --boundaries"));
        for tool in SANITIZERS {
            let below = format!("compute-sanitizer --tool {tool} ");
            let is_it =
                |c: &&String| c.starts_with(&below) && c.contains("systola-lab verify gallery");
            assert_eq!(all.iter().filter(is_it).count(), 1, "{tool}");
        }
        assert!(all.iter().any(|c| c.starts_with("systola-lab bench cuda")));
        assert!(all.iter().any(|c| c == "systola-lab bench stencils"));
    }

    #[test]
    fn what_a_command_prints_and_how_it_fails_is_kept() {
        let command = |text: &str| ["sh", "-c", text].map(String::from).to_vec();
        let mut log = Vec::new();
        assert_eq!(record(&command("echo one; echo two"), &mut log), Ok(()));
        let fault = record(&command("echo three; exit 3"), &mut log).unwrap_err();
        assert!(fault.contains("3"), "{fault}");
        let missing = record(&["no-such-program".to_string()], &mut log).unwrap_err();
        let log = String::from_utf8(log).unwrap();
        for text in ["one\ntwo\n", "three\n", &fault, &missing] {
            assert!(log.contains(text), "{text} is not in {log}");
        }
    }
}
