//! What tree-sitter reads the words of programs as, for the tests of the TextMate grammar.

use std::path::Path;

use serde_json::{Value, json};
use tree_sitter::Node;

use crate::{language, nodes, parse, programs, root};

/// Prints a JSON array with an entry for each program of the repository: its path, and a list of
/// `[kind, start, end]` of its words, numbers, operators and comments. Columns are bytes.
pub fn print(target: &Path) -> Result<(), String> {
    let language = language(target)?;
    let mut entries = Vec::new();
    for folder in ["gallery", "stencils"] {
        for path in programs(&root().join(folder)) {
            let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
            let tree = parse(&language, &text)?;
            let leaves: Vec<Value> = nodes(&tree).into_iter().filter_map(leaf).collect();
            entries.push(json!({ "path": path.to_string_lossy(), "words": leaves }));
        }
    }
    println!("{}", Value::Array(entries));
    Ok(())
}

/// The kind of a node that is a word, a number, an operator or a comment.
fn leaf(node: Node<'_>) -> Option<Value> {
    let parent = node.parent();
    let kind = match node.kind() {
        "comment" => "comment",
        "number" => "number",
        "boolean" => "constant",
        "scalar_type" => "type",
        "level" | "law" | "boundary" | "primitive_name" | "builtin" | "store" => {
            // Those that contain their keyword are seen there.
            return None;
        }
        "identifier" => match parent.map(|p| p.kind()) {
            Some("call") if is_field(node, parent, "function") => "call",
            _ => "name",
        },
        _ if node.child_count() > 0 || node.is_named() => return None,
        word if word.starts_with(|c: char| c.is_ascii_alphabetic()) => match parent?.kind() {
            // Their parents are listed.
            "number" | "boolean" | "scalar_type" => return None,
            "builtin" | "call" => "builtin",
            _ => "keyword",
        },
        _ => "sign",
    };
    let range = node.byte_range();
    Some(json!([kind, range.start, range.end]))
}

fn is_field(node: Node<'_>, parent: Option<Node<'_>>, field: &str) -> bool {
    parent.and_then(|p| p.child_by_field_name(field)) == Some(node)
}
