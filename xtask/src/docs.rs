//! Tests that commands, links and folders in the documentation exist.

use std::path::{Path, PathBuf};

use crate::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The commands in fenced code blocks.
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

/// The names of the modules in a folder, without `.rs`.
fn modules(folder: &str) -> Vec<String> {
    std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .collect()
}

/// The targets of the links of a page: `concepts.md#names`. Code is not searched.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = outside_fences(text).collect();
    let prose = prose.join("\n");
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.contains(' '))
        .map(str::to_string)
        .collect()
}

/// The lines of a page that are not in fenced code blocks.
fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// The anchors of a page, as GitHub makes them from its headings: lower case, spaces as hyphens,
/// punctuation removed, and `-1`, `-2` after further headings of the same text. Anchors that are
/// written as `<a id="…">` count too.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut slugs: Vec<String> = Vec::new();
    for line in outside_fences(text) {
        let written = line.split("<a id=\"").skip(1);
        found.extend(written.filter_map(|rest| rest.split('"').next().map(str::to_string)));
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading);
        let before = slugs.iter().filter(|other| **other == slug).count();
        found.push(match before {
            0 => slug.clone(),
            n => format!("{slug}-{n}"),
        });
        slugs.push(slug);
    }
    found
}

fn slug(heading: &str) -> String {
    // Of a link in a heading only the text is shown.
    let mut shown = String::new();
    let mut rest = heading.trim();
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    shown
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut broken = Vec::new();
    let mut n_anchors = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap_or(Path::new("."));
        for target in links(&text) {
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor)),
                None => (target.as_str(), None),
            };
            let linked = if path.is_empty() {
                page.clone()
            } else {
                folder.join(path)
            };
            let is_page = linked.extension().is_some_and(|e| e == "md");
            let leads = match anchor {
                _ if !linked.exists() => false,
                Some(anchor) if is_page => {
                    n_anchors += 1;
                    let linked = std::fs::read_to_string(&linked).unwrap();
                    anchors(&linked).iter().any(|there| there == anchor)
                }
                Some(_) | None => true,
            };
            if !leads {
                broken.push(format!("{}: there is no {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(n_anchors > 100, "only {n_anchors} links have an anchor");
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# A b\n```text\n# no heading\n```\n## `show`, *drawn*\n## A b\n#none\n\
                ### See [the model](model.md)\n<a id=\"here\"></a>\n";
    let expected = ["a-b", "show-drawn", "a-b-1", "see-the-model", "here"];
    assert_eq!(anchors(page), expected);
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
