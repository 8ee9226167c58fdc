//! All codes as one page.

use std::fmt::Write;

use super::all;
use crate::diag::Kind;

/// All codes as one page in Markdown, `docs/errors.md`.
pub fn page() -> String {
    let mut text = String::from(
        "# Codes\n\n\
         Every diagnostic has a code, and a code never changes its meaning. `systola explain CODE` prints\n\
         what stands here. A code with E is a mistake in the program (exit status 1), one with L a known\n\
         limitation of this version (exit status 2).\n\n\
         This page is written by `cargo xtask errors` from `crates/ir/src/codes`.\n\n",
    );
    text.push_str("| code | meaning |\n|---|---|\n");
    for code in all() {
        let anchor = code.id.to_lowercase();
        let _ = writeln!(text, "| [{}](#{anchor}) | {} |", code.id, code.title);
    }
    for code in all() {
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
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == page(),
            "docs/errors.md is not what the codes say; run `cargo xtask errors`"
        );
    }

    #[test]
    fn every_code_is_unique_and_explained() {
        let mut seen = BTreeSet::new();
        for code in all() {
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
