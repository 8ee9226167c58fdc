//! The tree-sitter grammar: it reads what the compiler reads, and refuses what it refuses.

use std::path::{Path, PathBuf};

use systola_editors::{generate, grammar, language, nodes, parse, programs, root};
use tree_sitter::{Language, Query};

fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn grammar_language() -> Language {
    language(&target()).expect("a parser")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The first place where a text can not be read.
fn mistake(language: &Language, text: &str) -> Option<String> {
    let tree = parse(language, text).expect("a tree");
    let wrong = nodes(&tree)
        .into_iter()
        .find(|node| node.is_error() || node.is_missing())?;
    let (line, column) = (wrong.start_position().row, wrong.start_position().column);
    let text = wrong.utf8_text(text.as_bytes()).unwrap_or_default();
    Some(format!("{}:{}: `{text}`", line + 1, column + 1))
}

/// The fenced blocks of a page whose first line fits.
fn blocks(page: &str, fits: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut parts = page.split("```");
    parts.next();
    let inside = parts.step_by(2).filter_map(|block| block.split_once('\n'));
    inside
        .filter(|(info, _)| fits(info))
        .map(|(_, text)| text)
        .collect()
}

/// Whether the first line of a test program expects a mistake of syntax. The words of boundary
/// conditions are a part of the grammar.
fn is_refused(text: &str) -> bool {
    text.starts_with("//~ E01") || text.starts_with("//~ E0237")
}

/// Texts with gaps, which become programs when the gaps are filled.
const TEMPLATES: &str = "explore/examples/families";

#[test]
fn every_program_is_read() {
    let language = grammar_language();
    let mut wrong = Vec::new();
    let mut count = 0;
    for folder in ["gallery", "stencils", "crates"] {
        for path in programs(&root().join(folder)) {
            let text = read(&path);
            if is_refused(&text) || path.to_string_lossy().contains(TEMPLATES) {
                continue;
            }
            count += 1;
            wrong.extend(mistake(&language, &text).map(|m| format!("{}:{m}", path.display())));
        }
    }
    assert!(count > 300, "{count} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_of_the_documentation_is_read() {
    let language = grammar_language();
    let mut pages = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs")).expect("a folder") {
        pages.push(entry.expect("an entry").path());
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
    {
        let text = read(page);
        let fits = |info: &str| {
            info == "ure" || (info.starts_with("ure,error E02") && !info.contains("E0237"))
        };
        // The examples of mistakes of syntax.
        if page.ends_with("errors.md") {
            continue;
        }
        for block in blocks(&text, fits) {
            count += 1;
            wrong.extend(mistake(&language, block).map(|m| format!("{}: {m}", page.display())));
        }
    }
    assert!(count > 40, "{count} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs that only the compiler refuses: what is too large, values that no type holds, what may
/// not be repeated, and forms that are expressions here.
const READ: &[&str] = &[
    "directive_compute_at_alone",
    "large_chain",
    "large_index",
    "large_nesting",
    "large_polynomial",
    "large_sum",
    "large_tuple",
    "mapping_condition",
    "mapping_float",
    "number_infinite",
    "number_too_many_digits",
    "repeated_clause",
    "repeated_index",
    "stencil_boundary_of_an_input",
    "stencil_far_beyond",
    "stencil_sums_in_sums",
];

#[test]
fn mistakes_of_syntax_are_seen() {
    let language = grammar_language();
    let (mut read_anyway, mut count) = (Vec::new(), 0);
    for path in programs(&root().join("crates")) {
        let text = read(&path);
        if is_refused(&text) {
            count += 1;
            if mistake(&language, &text).is_none() {
                let name = path.file_stem().expect("a name").to_string_lossy();
                read_anyway.push(name.into_owned());
            }
        }
    }
    assert!(count > 50, "{count} programs");
    assert_eq!(read_anyway, READ);
}

/// `src/` is what `grammar.js` generates.
#[test]
fn the_parser_is_generated() {
    let folder = target().join("generated");
    generate(&folder).expect("a parser");
    let files = [
        "grammar.json",
        "node-types.json",
        "parser.c",
        "tree_sitter/alloc.h",
        "tree_sitter/array.h",
        "tree_sitter/parser.h",
    ];
    for file in files {
        let (old, new) = (
            grammar().join("src").join(file),
            folder.join("src").join(file),
        );
        assert!(
            read(&old) == read(&new),
            "{file} is old: run `cargo run --manifest-path editors/check/Cargo.toml generate`"
        );
    }
}

#[test]
fn queries_fit_the_grammar() {
    let language = grammar_language();
    let mut count = 0;
    for folder in ["queries", "helix"] {
        for entry in std::fs::read_dir(grammar().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if let Err(error) = Query::new(&language, &read(&path)) {
                panic!("{}: {error}", path.display());
            }
            count += 1;
        }
    }
    assert_eq!(
        count, 5,
        "highlights, folds and indents; two of them for Helix too"
    );
}

/// The trees of `test/corpus`, in the format of `tree-sitter test`. `SYSTOLA_BLESS=1` writes them.
#[test]
fn trees_of_the_corpus() {
    let language = grammar_language();
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let mut count = 0;
    for entry in std::fs::read_dir(grammar().join("test/corpus")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = read(&path);
        let (mut new, mut wrong) = (String::new(), Vec::new());
        let bar = "=".repeat(40);
        let line = format!("{bar}\n");
        let mut parts = text.split(&line);
        assert_eq!(parts.next(), Some(""), "{}", path.display());
        while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
            let (source, expect) = rest.split_once("\n---\n").unwrap_or((rest, ""));
            let tree = parse(&language, source).expect("a tree");
            let found = indented(&tree.root_node().to_sexp());
            if found != expect.trim() {
                wrong.push(format!("{}{found}\n", name));
            }
            let source = source.trim_matches('\n');
            new += &format!("{bar}\n{name}{bar}\n\n{source}\n\n---\n\n{found}\n\n");
            count += 1;
        }
        let new = format!("{}\n", new.trim_end());
        if bless {
            std::fs::write(&path, new).expect("a file that can be written");
        } else {
            assert!(wrong.is_empty(), "{}: {}", path.display(), wrong.join("\n"));
        }
    }
    assert!(count >= 10, "{count} trees");
}

/// A tree with one node on each line, as `tree-sitter test` prints it.
fn indented(tree: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for word in tree.split_inclusive(' ') {
        let word = word.trim_end();
        if word.is_empty() {
            continue;
        }
        let before = depth;
        depth += word.matches('(').count();
        depth = depth.saturating_sub(word.matches(')').count());
        let follows_field = text.ends_with(':');
        if follows_field {
            text += " ";
        } else if !text.is_empty() {
            text += "\n";
            text += &"  ".repeat(before);
        }
        text += word;
    }
    text
}

#[test]
fn blocks_are_found() {
    let page = "a\n```ure\nx\n```\nb\n```text\ny\n```\n```ure,error E0207\nz\n```\n";
    assert_eq!(blocks(page, |info| info == "ure"), ["x\n"]);
    assert_eq!(blocks(page, |info| info.starts_with("ure")), ["x\n", "z\n"]);
}
