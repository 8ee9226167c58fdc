//! The text as `systola fmt` writes it.

use lsp_types::TextEdit;
use systola_ir::Span;

use crate::document::Document;
use crate::drift::Drift;

/// One edit of the part that changes, so that the cursor stays where it is outside of it. Nothing
/// where the text has mistakes: these are told already.
pub fn format(document: &Document) -> Option<Vec<TextEdit>> {
    let old: &str = &document.text;
    let new = systola_driver::format_file(&document.path(), old).ok()?;
    let drift = Drift::between(old, &new);
    if drift.prefix == drift.old_end && drift.prefix == drift.new_end {
        return Some(Vec::new());
    }
    let span = Span::new(drift.prefix, drift.old_end);
    Some(vec![TextEdit {
        range: document.lines.range(old, span),
        new_text: new[drift.prefix..drift.new_end].to_string(),
    }])
}
