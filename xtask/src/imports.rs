//! Checks the imports between the files of `lower` and of `back`: no cycles, and in `lower` no
//! imports of higher layers.
//!
//! An import is a `use crate::…`. A module whose files import each other by `super` counts as one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::root;

/// For each module, by its path, the modules that it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The layers from an array to kernels, the lowest first.
const LAYERS: [&str; 6] = ["facts", "storage", "nest", "emit", "passes", "lower_kernel"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn graph(name: &str) -> Graph {
    let source = root().join("crates").join(name).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let module = |path: &Path| {
        let inside = path.strip_prefix(&source).expect("inside");
        let text = inside.with_extension("").to_string_lossy().into_owned();
        text.replace('/', "::")
    };
    let modules: BTreeSet<String> = all.iter().map(|path| module(path)).collect();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file");
        let own = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut imported = imports(own, &modules);
        imported.remove(&module(path));
        (module(path), imported)
    };
    all.iter().map(read).collect()
}

/// The modules imported by `use crate::…`.
fn imports(text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in text.split("use crate::").skip(1) {
        let Some((path, _)) = part.split_once(';') else {
            continue;
        };
        let (base, names) = match path.split_once("::{") {
            Some((base, names)) => (base, names.trim_end_matches('}')),
            None => (path, ""),
        };
        let joined = names.split(',').map(|n| format!("{base}::{}", n.trim()));
        for path in joined.chain([base.to_string()]) {
            let mut parts: Vec<&str> = path.split("::").collect();
            while !parts.is_empty() && !modules.contains(&parts.join("::")) {
                parts.pop();
            }
            if !parts.is_empty() {
                found.insert(parts.join("::"));
            }
        }
    }
    found
}

/// An import cycle, if there is one.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    fn visit(
        at: &str,
        graph: &Graph,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|m| m == at) {
            return Some(way[start..].to_vec());
        }
        if !done.insert(at.to_string()) {
            return None;
        }
        way.push(at.to_string());
        for next in &graph[at] {
            if let Some(found) = visit(next, graph, way, done) {
                return Some(found);
            }
        }
        way.pop();
        None
    }
    let mut starts = graph.keys();
    starts.find_map(|start| visit(start, graph, &mut Vec::new(), &mut done))
}

#[test]
fn no_files_import_each_other() {
    for name in ["lower", "back"] {
        let graph = graph(name);
        assert!(graph.len() > 20, "{name}: {} files", graph.len());
        assert_eq!(cycle(&graph), None, "{name}");
    }
}

#[test]
fn lowering_imports_downwards_only() {
    let layer = |module: &str| {
        let first = module.split("::").next();
        LAYERS.iter().position(|l| Some(*l) == first)
    };
    let graph = graph("lower");
    let mut upwards = Vec::new();
    for (module, imported) in &graph {
        let Some(own) = layer(module) else { continue };
        let above = imported.iter().filter(|m| layer(m) > Some(own));
        upwards.extend(above.map(|m| format!("{module} imports {m}")));
    }
    assert_eq!(upwards, Vec::<String>::new());
    for name in LAYERS {
        assert!(graph.contains_key(name), "{name} is gone");
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |to: &[&str]| to.iter().map(ToString::to_string).collect();
    let mut graph = Graph::new();
    graph.insert("a".into(), edge(&["b"]));
    graph.insert("b".into(), edge(&["c"]));
    graph.insert("c".into(), edge(&[]));
    assert_eq!(cycle(&graph), None);
    graph.insert("c".into(), edge(&["b"]));
    assert_eq!(cycle(&graph), Some(vec!["b".into(), "c".into()]));
}
