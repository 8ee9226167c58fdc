//! The examples of the help texts, run over a copy of the programs they name.
//!
//! Not run, but parsed by a test of the library and held against their files by `cli.rs`: the
//! examples for GPUs and OpenCL devices or NVRTC, and the tour, which takes half a minute and runs
//! in `cargo xtask test`. Explorations get a budget of two seconds.

use std::fs;
use std::path::{Path, PathBuf};

mod common;

use common::{check, command, npy, root, stderr, stdout, temporary};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else if path.extension().is_some_and(|e| e == "ure") {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// A folder with the programs, and inputs of the names that examples use.
fn folder() -> PathBuf {
    let folder = temporary("examples");
    let _ = fs::remove_dir_all(&folder);
    for name in ["gallery", "stencils"] {
        copy(&root().join(name), &folder.join(name));
    }
    let ones = |n: usize| vec![1.0f32.to_bits().cast_signed(); n];
    for (name, n) in [("x.npy", 20), ("w.npy", 5)] {
        let bytes = npy("<f4", &format!("({n},)"), &ones(n));
        fs::write(folder.join(name), bytes).expect("an input");
    }
    folder
}

/// The examples of a help text, without what is said beside them.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_broken = false;
    for line in help.lines() {
        let text = line.trim_start();
        let rest = match text.strip_prefix("systola ") {
            Some(_) if line.starts_with("  ") => {
                found.push(String::new());
                text
            }
            // The terminal is narrower than the example; what is said of it is further right.
            None if is_broken && !text.is_empty() && line.len() - text.len() <= 4 => text,
            _ => {
                is_broken = false;
                continue;
            }
        };
        // A break after the first words of what is said of it belongs to that.
        is_broken = !rest.contains("  ");
        let (shown, _) = rest.split_once("  ").unwrap_or((rest, ""));
        let last = found.last_mut().expect("an example");
        *last = format!("{last} {shown}").trim().to_string();
    }
    for example in &mut found {
        let end = example.find(['|', '>']).unwrap_or(example.len());
        example.truncate(end);
    }
    found
}

#[test]
fn examples_of_help_texts_run() {
    let folder = folder();
    // What a reader brings along.
    let data = root().join("gallery/data");
    std::fs::copy(data.join("spheres.png"), folder.join("photo.png")).unwrap();
    std::fs::copy(data.join("hot.png"), folder.join("start.png")).unwrap();
    for (name, text) in [("one.txt", "kitten"), ("two.txt", "sitting")] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let (mut n_run, mut n_parsed, mut wrong) = (0, 0, String::new());
    for name in ["", "check", "run", "show", "dump", "emit", "explore"] {
        let help = [name, "--help"];
        let (help, _) = check(&help[usize::from(name.is_empty())..], 0);
        for example in examples(&help) {
            let mut words: Vec<&str> = example.split_whitespace().skip(1).collect();
            // With an architecture the code is compiled, by a library of NVIDIA.
            let is_on_device = words.contains(&"--arch")
                || words[0] == "run"
                    && words
                        .windows(2)
                        .any(|w| w[0] == "--target" && ["cuda", "opencl"].contains(&w[1]));
            if is_on_device || words[0] == "tour" {
                n_parsed += 1;
                continue;
            }
            if words[0] == "explore" {
                if let Some(at) = words.iter().position(|word| *word == "--budget") {
                    words.drain(at..at + 2);
                }
                words.extend(["--budget", "2s"]);
            }
            let output = command(&words)
                .current_dir(&folder)
                .output()
                .expect("the binary runs");
            n_run += 1;
            // A slow machine finds nothing in so short a time: E0671 comes after all else was read.
            let ended = words[0] == "explore" && stderr(&output).contains("E0671");
            if !output.status.success() && !ended {
                wrong += &format!(
                    "{example}: {}\n{}{}\n",
                    output.status,
                    stdout(&output),
                    stderr(&output)
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(
        n_run >= 35 && n_parsed >= 4,
        "{n_run} run, {n_parsed} parsed"
    );
    let picture = fs::read_to_string(folder.join("matmul.svg")).expect("drawn by an example");
    assert!(picture.starts_with("<svg"));
}
