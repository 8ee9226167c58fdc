//! The outline of a text.

use lsp_types::{DocumentSymbol, DocumentSymbolResponse, Location, SymbolInformation, SymbolKind};
use systola_ir::Span;
use systola_surface::names::{Definition, DefinitionId, NameKind};

use crate::document::Document;

/// Items, and what they declare below them; a flat list for clients that know no other.
pub fn symbols(document: &mut Document, nested: bool) -> DocumentSymbolResponse {
    // What could be read of a text with mistakes has no others' places in it.
    let Some((snapshot, drift)) = document.readings().into_iter().next() else {
        return DocumentSymbolResponse::Nested(Vec::new());
    };
    let definitions = &snapshot.index.definitions;
    let range = |span: Span| Some(document.lines.range(&document.text, drift.to_new(span)?));
    let shown = |d: &Definition| match d.kind {
        NameKind::Generated | NameKind::Argument | NameKind::Let | NameKind::SumIterator => false,
        _ => !d.span.is_none(),
    };
    let in_order = |owner: Option<DefinitionId>| {
        let all = definitions.iter().enumerate();
        let mut own: Vec<_> = all.filter(|(_, d)| d.owner == owner && shown(d)).collect();
        own.sort_by_key(|(_, d)| d.span.start);
        own
    };
    if !nested {
        let mut flat = Vec::new();
        for (n, item) in in_order(None) {
            let own = in_order(Some(DefinitionId(n)));
            let parts = own.into_iter().map(|(_, part)| (part, Some(&item.name)));
            for (part, container) in [(item, None)].into_iter().chain(parts) {
                let Some(range) = range(part.extent) else {
                    continue;
                };
                #[expect(deprecated, reason = "the protocol's own type has the field")]
                flat.push(SymbolInformation {
                    name: part.name.clone(),
                    kind: symbol_kind(part.kind),
                    tags: None,
                    deprecated: None,
                    location: Location {
                        uri: document.uri.clone(),
                        range,
                    },
                    container_name: container.cloned(),
                });
            }
        }
        return DocumentSymbolResponse::Flat(flat);
    }
    let symbol = |d: &Definition, children: Vec<DocumentSymbol>| {
        #[expect(deprecated, reason = "the protocol's own type has the field")]
        Some(DocumentSymbol {
            name: d.name.clone(),
            detail: Some(d.kind.describe().to_string()),
            kind: symbol_kind(d.kind),
            tags: None,
            deprecated: None,
            range: range(d.extent)?,
            selection_range: range(d.span)?,
            children: (!children.is_empty()).then_some(children),
        })
    };
    let items = in_order(None).into_iter().filter_map(|(n, item)| {
        let own = in_order(Some(DefinitionId(n))).into_iter();
        let children = own.filter_map(|(_, part)| symbol(part, Vec::new()));
        symbol(item, children.collect())
    });
    DocumentSymbolResponse::Nested(items.collect())
}

pub fn symbol_kind(kind: NameKind) -> SymbolKind {
    match kind {
        NameKind::System | NameKind::Stencil | NameKind::Conv => SymbolKind::CLASS,
        NameKind::Mapping => SymbolKind::INTERFACE,
        NameKind::Program => SymbolKind::MODULE,
        NameKind::Parameter | NameKind::Constant => SymbolKind::CONSTANT,
        NameKind::Input | NameKind::Table | NameKind::Field | NameKind::Filter => SymbolKind::ARRAY,
        NameKind::Function => SymbolKind::FUNCTION,
        NameKind::Iterator | NameKind::SumIterator | NameKind::Batch | NameKind::TileIndex => {
            SymbolKind::KEY
        }
        NameKind::Output => SymbolKind::PROPERTY,
        NameKind::Argument
        | NameKind::Variable
        | NameKind::Let
        | NameKind::Stage
        | NameKind::Generated => SymbolKind::VARIABLE,
    }
}
