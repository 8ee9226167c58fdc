//! The documentation says what is there.

use std::path::{Path, PathBuf};

use crate::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The lines of fenced blocks that begin with a command.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            let line = line.trim().trim_start_matches("$ ");
            let programs = ["cargo ", "systola ", "systola-lab "];
            if programs.iter().any(|program| line.starts_with(program)) {
                found.push(line.split('#').next().unwrap_or(line).trim().to_string());
            }
        }
    }
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .iter()
        .map(|name| root().join(name))
        .chain([root().join("bench/README.md")])
        .collect();
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    pages.extend(
        docs.map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    pages.sort();
    pages
}

#[test]
fn the_readme_shows_the_two_commands_and_a_picture() {
    let readme = read("README.md");
    let commands = commands(&readme);
    for wanted in ["cargo run --release -- tour", "cargo xtask test"] {
        assert!(
            commands.iter().any(|c| c == wanted),
            "README.md lacks `{wanted}`"
        );
    }
    assert!(readme.contains("docs/img/conv1d-sbm.svg"));
}

#[test]
fn commands_in_the_documentation_exist() {
    let mut subcommands = modules("crates/cli/src/cmd");
    subcommands.retain(|name| name != "moved");
    subcommands.push("help".to_string());
    let of_xtask = crate::HELP.lines();
    let of_xtask = of_xtask.filter_map(|line| line.strip_prefix("cargo xtask "));
    let of_xtask: Vec<&str> = of_xtask.filter_map(|line| line.split(' ').next()).collect();
    let benchmarks = modules("crates/lab/src/bench");
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            let arguments = ["cargo xtask ", "systola-lab "]
                .iter()
                .find_map(|program| command.strip_prefix(program));
            if let Some(arguments) = arguments {
                let mut words = arguments.split_whitespace();
                let (sub, what) = (words.next().unwrap_or_default(), words.next());
                let is_benchmark = |what: &str| benchmarks.iter().any(|name| name == what);
                let exists =
                    of_xtask.contains(&sub) && (sub != "bench" || what.is_some_and(is_benchmark));
                assert!(exists, "{}: `{command}`: there is none", page.display());
                continue;
            }
            let after_dashes = command.split_once("-- ").map(|(_, rest)| rest);
            let Some(arguments) = command.strip_prefix("systola ").or(after_dashes) else {
                continue;
            };
            if command.starts_with("cargo clippy") {
                continue;
            }
            let sub = arguments.split_whitespace().next().unwrap_or_default();
            assert!(
                subcommands.iter().any(|s| s == sub),
                "{}: `{command}`: there is no `systola {sub}`",
                page.display()
            );
            for word in arguments
                .split_whitespace()
                .filter(|w| w.starts_with("gallery/"))
            {
                assert!(root().join(word).exists(), "{}: no {word}", page.display());
            }
        }
    }
}

/// The files of a folder of modules, without `.rs`.
fn modules(folder: &str) -> Vec<String> {
    std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap_or(Path::new("."));
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.contains(' ') {
                continue;
            }
            assert!(folder.join(path).exists(), "{}: no {path}", page.display());
        }
    }
}

#[test]
fn every_folder_of_the_code_map_exists() {
    for line in read("ARCHITECTURE.md").lines() {
        if let Some(path) = line
            .strip_prefix("- `crates/")
            .and_then(|l| l.split('`').next())
        {
            let path = root().join("crates").join(path);
            assert!(path.exists(), "ARCHITECTURE.md names {}", path.display());
        }
    }
}
