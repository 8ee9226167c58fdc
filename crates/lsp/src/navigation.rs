//! From a name to where it is declared and used.

use lsp_types::{DocumentHighlight, DocumentHighlightKind, GotoDefinitionResponse, Location};
use systola_ir::Span;
use systola_surface::names::{NameKind, Role};

use crate::document::Document;

/// The declaration of a name. A stencil's own names lead to what they are generated from.
pub fn definition(document: &mut Document, offset: usize) -> Option<GotoDefinitionResponse> {
    let found = document.name_at(offset)?;
    let (definition, reference) = (found.definition(), found.reference);
    let mut shown: Vec<Span> = match definition.kind {
        NameKind::Generated => found.drift.to_new(definition.span).into_iter().collect(),
        _ => (found.references())
            .filter(|(_, role)| *role == Role::Declares)
            .map(|(span, _)| span)
            .collect(),
    };
    // Each sum declares its iterator: in the system the nearest is meant, in a mapping all are.
    let item = (found.snapshot.index).item_at(reference.span.start as usize);
    if definition.kind == NameKind::SumIterator && item == definition.owner {
        let here = |span: &Span| (span.start as usize) <= offset;
        shown = shown.into_iter().rev().find(here).into_iter().collect();
    }
    let locations = shown.into_iter().map(|span| location(document, span));
    Some(GotoDefinitionResponse::Array(locations.collect()))
}

/// Everywhere a name stands.
pub fn references(
    document: &mut Document,
    offset: usize,
    with_declarations: bool,
) -> Option<Vec<Location>> {
    let found = document.name_at(offset)?;
    let wanted = found
        .references()
        .filter(|(_, role)| with_declarations || *role != Role::Declares);
    Some(wanted.map(|(span, _)| location(document, span)).collect())
}

/// The same, with reads distinguished from writes.
pub fn highlights(document: &mut Document, offset: usize) -> Option<Vec<DocumentHighlight>> {
    let found = document.name_at(offset)?;
    let highlight = |(span, role)| DocumentHighlight {
        range: document.lines.range(&document.text, span),
        kind: Some(match role {
            Role::Declares | Role::Writes => DocumentHighlightKind::WRITE,
            Role::Reads => DocumentHighlightKind::READ,
        }),
    };
    Some(found.references().map(highlight).collect())
}

fn location(document: &Document, span: Span) -> Location {
    Location {
        uri: document.uri.clone(),
        range: document.lines.range(&document.text, span),
    }
}
