//! A text that was read, with its names.

use std::sync::Arc;

use systola_front::parse_tree;
use systola_ir::{Diagnostic, Span};
use systola_surface::names::{Definition, DefinitionId, Index, NameKind};
use systola_surface::tree::Module;

/// A text with its tree and names.
#[derive(Debug)]
pub struct Snapshot {
    pub text: Arc<str>,
    pub tree: Module,
    pub index: Index,
    /// Mistakes of syntax; then the tree has only what was read without one.
    pub errors: Vec<Diagnostic>,
}

impl Snapshot {
    pub fn read(text: Arc<str>) -> Snapshot {
        let (tree, errors) = parse_tree(&text);
        Snapshot {
            index: Index::of(&tree),
            text,
            tree,
            errors,
        }
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// An item by its name.
    pub fn item(&self, name: &str, is_kind: impl Fn(NameKind) -> bool) -> Option<DefinitionId> {
        let fits = |d: &Definition| d.owner.is_none() && d.name == name && is_kind(d.kind);
        self.index
            .definitions
            .iter()
            .position(fits)
            .map(DefinitionId)
    }

    /// Where to show what concerns a whole item.
    pub fn name_span(&self, name: &str, is_kind: impl Fn(NameKind) -> bool) -> Span {
        let item = self.item(name, is_kind);
        item.map_or(Span::NONE, |id| self.index.definition(id).span)
    }
}
