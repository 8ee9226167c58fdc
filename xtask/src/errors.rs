//! Generates `docs/errors.md` from the codes.

use std::fmt::Write;

use systola_ir::codes;
use systola_ir::diag::Kind;

use crate::root;

pub fn write() -> Result<(), String> {
    let path = root().join("docs/errors.md");
    std::fs::write(&path, page()).map_err(|e| format!("{}: {e}", path.display()))
}

/// The contents of `docs/errors.md`.
pub fn page() -> String {
    let mut text = String::from(
        "# Codes\n\n\
         Every diagnostic has a code, and a code never changes its meaning. `systola explain CODE` prints\n\
         what stands here. A code with E is a mistake in the program (exit status 1), one with L a known\n\
         limitation of this version (exit status 2).\n\n\
         This page is written by `cargo xtask errors` from `crates/ir/src/codes`.\n\n",
    );
    text.push_str("| code | meaning |\n|---|---|\n");
    for code in codes::all() {
        let anchor = code.id.to_lowercase();
        let _ = writeln!(text, "| [{}](#{anchor}) | {} |", code.id, code.title);
    }
    for code in codes::all() {
        let kind = match code.kind {
            Kind::Mistake => "",
            Kind::Limitation => "\n*Known limitation.*\n",
            Kind::Hint => "\n*Hint.*\n",
        };
        let _ = write!(
            text,
            "\n## {}\n\n**{}**\n{kind}\n{}\n",
            code.id,
            code.title,
            code.explain.trim()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_is_current() {
        let found = std::fs::read_to_string(root().join("docs/errors.md")).unwrap_or_default();
        assert!(
            found == page(),
            "docs/errors.md is not what the codes say; run `cargo xtask errors`"
        );
    }

    #[test]
    fn every_code_is_unique_and_explained() {
        let mut seen = BTreeSet::new();
        for code in codes::all() {
            assert!(seen.insert(code.id), "{} is there twice", code.id);
            assert!(code.explain.len() > 60, "{} is hardly explained", code.id);
            assert!(
                !code.title.ends_with('.'),
                "{}: a title is no sentence",
                code.id
            );
            let prefix = match code.kind {
                Kind::Mistake => 'E',
                Kind::Limitation => 'L',
                Kind::Hint => 'H',
            };
            assert!(
                code.id.starts_with(prefix),
                "{} is of another kind",
                code.id
            );
        }
    }
}
