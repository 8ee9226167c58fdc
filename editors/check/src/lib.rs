//! Generates the tree-sitter parser of .ure files, and loads it for tests. A tool of developers.

use std::path::{Path, PathBuf};

use tree_sitter::{Language, Node, Parser, Tree};
use tree_sitter_generate::{OptLevel, generate_parser_in_directory};
use tree_sitter_loader::{CompileConfig, Loader};

pub mod words;

/// The version of the format of parsers: the one that has reserved words.
const ABI: usize = 15;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder of the grammar.
pub fn grammar() -> PathBuf {
    root().join("editors/tree-sitter-systola")
}

/// Generates `src/` of the grammar below `folder`; Node.js evaluates `grammar.js`.
pub fn generate(folder: &Path) -> Result<(), String> {
    let mut told = Vec::new();
    generate_parser_in_directory(
        grammar(),
        Some(folder.join("src")),
        None::<PathBuf>,
        ABI,
        None,
        Some("node"),
        true,
        OptLevel::default(),
        &mut told,
    )
    .map_err(|e| format!("grammar.js: {e}"))?;
    match told.as_slice() {
        [] => Ok(()),
        told => Err(format!("grammar.js: {told:?}")),
    }
}

/// Compiles the generated parser with the C compiler to `target`, and loads it. Every process needs
/// a file of its own, since another may be writing it.
pub fn language(target: &Path) -> Result<Language, String> {
    let source = grammar().join("src");
    let name = format!("systola-grammar-{}.so", std::process::id());
    let library = target.join(name);
    let config = CompileConfig::new(&source, None, Some(library.clone()));
    let loader = Loader::with_parser_lib_path(target.to_path_buf());
    let language = loader
        .load_language_at_path(config)
        .map_err(|e| format!("{}: {e}", source.display()));
    // The process keeps what it has loaded.
    let _ = std::fs::remove_file(library);
    language
}

/// The tree of a text.
pub fn parse(language: &Language, text: &str) -> Result<Tree, String> {
    let mut parser = Parser::new();
    parser.set_language(language).map_err(|e| e.to_string())?;
    parser
        .parse(text, None)
        .ok_or_else(|| "no tree".to_string())
}

/// All nodes of a tree, those before their parts that contain them.
pub fn nodes(tree: &Tree) -> Vec<Node<'_>> {
    let mut waiting = vec![tree.root_node()];
    let mut found = Vec::new();
    while let Some(node) = waiting.pop() {
        found.push(node);
        let parts = (0..node.child_count()).rev();
        waiting.extend(parts.filter_map(|n| node.child(n)));
    }
    found
}

/// All .ure files in a folder, sorted.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        for path in entries.into_iter().flatten().flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ure") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
