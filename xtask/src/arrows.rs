//! Checks the dependencies between crates in the manifests. `ARCHITECTURE.md` draws the same graph.

use std::collections::BTreeMap;
use std::path::Path;

use crate::root;

/// Each crate, and the crates of this workspace that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("affine", &[]),
    ("systola-allocator", &[]),
    ("systola-ir", &["affine"]),
    ("systola-interp", &["affine", "systola-ir"]),
    ("systola-stencil", &["affine", "systola-ir"]),
    (
        "systola-surface",
        &["affine", "systola-ir", "systola-stencil"],
    ),
    (
        "systola-front",
        &["affine", "systola-ir", "systola-surface"],
    ),
    (
        "systola-dsl",
        &["affine", "systola-ir", "systola-stencil", "systola-surface"],
    ),
    ("systola-lower", &["affine", "systola-ir"]),
    ("systola-back", &["affine", "systola-ir"]),
    ("systola-rt", &["affine", "systola-ir"]),
    ("systola-draw", &["systola-ir", "systola-lower"]),
    (
        "systola-driver",
        &[
            "affine",
            "systola-ir",
            "systola-front",
            "systola-dsl",
            "systola-lower",
            "systola-back",
        ],
    ),
    (
        "systola-lsp",
        &[
            "affine",
            "systola-ir",
            "systola-surface",
            "systola-front",
            "systola-lower",
            "systola-driver",
        ],
    ),
    (
        "systola-jit",
        &[
            "affine",
            "systola-ir",
            "systola-interp",
            "systola-rt",
            "systola-driver",
        ],
    ),
    (
        "systola-explore",
        &[
            "affine",
            "systola-ir",
            "systola-lower",
            "systola-interp",
            "systola-rt",
            "systola-driver",
            "systola-jit",
        ],
    ),
    (
        "systola",
        &[
            "affine",
            "systola-ir",
            "systola-dsl",
            "systola-lower",
            "systola-interp",
            "systola-rt",
            "systola-driver",
            "systola-jit",
            "systola-explore",
        ],
    ),
    (
        "systola-cli",
        &[
            "affine",
            "systola-allocator",
            "systola-ir",
            "systola-front",
            "systola-lower",
            "systola-interp",
            "systola-rt",
            "systola-driver",
            "systola",
            "systola-explore",
            "systola-draw",
            "systola-lsp",
        ],
    ),
    (
        "systola-lab",
        &[
            "affine",
            "systola-allocator",
            "systola-ir",
            "systola-stencil",
            "systola-lower",
            "systola-interp",
            "systola-rt",
            "systola-driver",
            "systola",
            "systola-explore",
            "systola-draw",
            "systola-cli",
        ],
    ),
    (
        "systola-filetests",
        &[
            "affine",
            "systola-allocator",
            "systola-ir",
            "systola-stencil",
            "systola-front",
            "systola-dsl",
            "systola-lower",
            "systola-interp",
            "systola-driver",
            "systola",
            "systola-explore",
        ],
    ),
    ("xtask", &["systola-ir"]),
];

/// The names in `[dependencies]`. Dependencies of tests are not restricted.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut section = String::new();
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_string();
            names.extend(section.strip_prefix("dependencies.").map(str::to_string));
        } else if section == "dependencies"
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
            && !line.starts_with('#')
        {
            names.push(name.trim().to_string());
        }
    }
    names
}

fn manifests() -> BTreeMap<String, String> {
    let mut folders: Vec<_> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.push(root().join("xtask"));
    let read = |folder: &Path| std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let name = |text: &str| {
        let line = text.lines().find(|l| l.starts_with("name = ")).unwrap();
        line.split('"').nth(1).unwrap().to_string()
    };
    folders
        .iter()
        .map(|folder| read(folder))
        .map(|text| (name(&text), text))
        .collect()
}

#[test]
fn arrows_hold() {
    let manifests = manifests();
    for (name, text) in &manifests {
        let allowed = ARROWS
            .iter()
            .find(|(krate, _)| krate == name)
            .unwrap_or_else(|| panic!("{name} has no arrows: add it here and to ARCHITECTURE.md"))
            .1;
        for dependency in dependencies(text) {
            if manifests.contains_key(&dependency) {
                assert!(
                    allowed.contains(&dependency.as_str()),
                    "{name} must not see {dependency}, see ARCHITECTURE.md"
                );
            }
        }
    }
}

#[test]
fn sections_are_distinguished() {
    let manifest = "[dependencies]\na.workspace = true\nb = \"1\"\n[dependencies.c]\n\
                    version = \"1\"\n[dev-dependencies]\nd = \"1\"\n";
    assert_eq!(dependencies(manifest), ["a", "b", "c"]);
}
