//! A new name for something, wherever it stands.

use std::collections::HashMap;
use std::sync::Arc;

use lsp_server::ErrorCode;
use lsp_types::{PrepareRenameResponse, TextEdit, WorkspaceEdit};
use systola_surface::names::{Definition, DefinitionId, Index, NameKind, Role, Unknown};
use systola_surface::words::{is_identifier, is_reserved};

use crate::document::Document;
use crate::requests::Failure;
use crate::snapshot::Snapshot;

/// What would be renamed.
pub fn prepare(document: &mut Document, offset: usize) -> Result<PrepareRenameResponse, Failure> {
    let (index, found) = named(document, offset)?;
    let reference = index.index.at(offset).map(|r| r.span);
    let span = reference.unwrap_or(index.index.definition(found).span);
    Ok(PrepareRenameResponse::RangeWithPlaceholder {
        range: document.lines.range(&document.text, span),
        placeholder: index.index.definition(found).name.clone(),
    })
}

/// The edits. The name must be free wherever the old one can be used, and every other name must
/// keep its meaning.
pub fn rename(
    document: &mut Document,
    offset: usize,
    new_name: &str,
) -> Result<WorkspaceEdit, Failure> {
    let (snapshot, found) = named(document, offset)?;
    if !is_identifier(new_name) || is_reserved(new_name) {
        return Err(refused(format!(
            "`{new_name}` cannot be a name: write a letter or `_`, then letters, digits, `_` and \
             `'`, and no reserved word"
        )));
    }
    if let Some(taken) = conflict(&snapshot.index, found, new_name) {
        return Err(refused(format!(
            "`{new_name}` is taken: the {} of that name can be seen where this one can",
            taken.kind.describe()
        )));
    }
    // These say the lanes of the target wherever no parameter has the name.
    let is_lanes = ["L", "lanes"].contains(&new_name);
    let renamed = Snapshot::read(replaced(&snapshot, found, new_name).into());
    if is_lanes
        || !renamed.errors.is_empty()
        || Shape::of(&snapshot.index) != Shape::of(&renamed.index)
    {
        return Err(refused(format!(
            "`{new_name}` would change what other names mean"
        )));
    }
    let edits = snapshot
        .index
        .references_to(found)
        .map(|reference| TextEdit {
            range: document.lines.range(&document.text, reference.span),
            new_text: new_name.to_string(),
        });
    let edits = edits.collect();
    // Keys of a protocol type, made and read once.
    #[expect(clippy::mutable_key_type, reason = "the protocol has a map by URI")]
    let changes = HashMap::from([(document.uri.clone(), edits)]);
    Ok(WorkspaceEdit::new(changes))
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::RequestFailed, message)
}

/// The name at a place, if it may have another. The text has to be whole, since an edit of a part
/// of the uses would change its meaning.
fn named(document: &mut Document, offset: usize) -> Result<(Arc<Snapshot>, DefinitionId), Failure> {
    let snapshot = document.snapshot();
    if !snapshot.errors.is_empty() {
        return Err(refused("mend the mistakes of syntax first"));
    }
    let Some(reference) = snapshot.index.at(offset) else {
        return Err(refused("there is no name here"));
    };
    let found = reference.definition;
    if snapshot.index.definition(found).kind == NameKind::Generated {
        return Err(refused(
            "this name follows from the stencil or the convolution, and is not written in it",
        ));
    }
    Ok((snapshot, found))
}

/// The text with the new name.
fn replaced(snapshot: &Snapshot, renamed: DefinitionId, name: &str) -> String {
    let mut text = String::new();
    let mut end = 0;
    for reference in snapshot.index.references_to(renamed) {
        let range = reference.span.range();
        text.push_str(&snapshot.text[end..range.start]);
        text.push_str(name);
        end = range.end;
    }
    text.push_str(&snapshot.text[end..]);
    text
}

/// What the names of a text mean, apart from how they are written and where they stand. A name can
/// change its meaning without a conflict of declarations: an iterator `L` captures the lanes in
/// `tile c by 8*L`, and the variable `U` is generated from the name of the field `u`.
#[derive(PartialEq)]
struct Shape<'i> {
    references: Vec<Meaning>,
    given: Vec<&'i str>,
    unknown: Vec<&'i str>,
}

/// What one reference means.
#[derive(PartialEq)]
struct Meaning {
    kind: NameKind,
    role: Role,
    /// The position of the definition among those that are referred to. Others do not count: a
    /// field `u` generates a name and a field `U` none, which matters only where it is read.
    definition: usize,
    /// Of a generated name: that of the definition it is generated from.
    origin: Option<usize>,
}

impl<'i> Shape<'i> {
    fn of(index: &'i Index) -> Shape<'i> {
        let mut used: Vec<DefinitionId> = index.references.iter().map(|r| r.definition).collect();
        used.sort_unstable();
        used.dedup();
        let position = |id: DefinitionId| used.partition_point(|other| *other < id);
        let references = index.references.iter().map(|reference| {
            let definition = index.definition(reference.definition);
            let is_generated = definition.kind == NameKind::Generated;
            let origin = index.at(definition.span.range().start);
            Meaning {
                kind: definition.kind,
                role: reference.role,
                definition: position(reference.definition),
                origin: origin
                    .filter(|_| is_generated)
                    .map(|origin| position(origin.definition)),
            }
        });
        let names = |list: &'i [Unknown]| list.iter().map(|u| u.name.as_str()).collect();
        Shape {
            references: references.collect(),
            given: names(&index.given),
            unknown: names(&index.unknown),
        }
    }
}

/// What has the name already.
fn conflict<'i>(index: &'i Index, renamed: DefinitionId, name: &str) -> Option<&'i Definition> {
    let old = index.definition(renamed);
    let mappings_of = |system: Option<DefinitionId>| {
        let all = index.definitions.iter().enumerate();
        let mappings = all.filter(|(_, d)| d.kind == NameKind::Mapping);
        let mappings = mappings.map(|(n, _)| DefinitionId(n));
        mappings
            .filter(|id| index.system_of(*id) == system)
            .collect::<Vec<_>>()
    };
    // The items in which both names would be seen.
    let around: Vec<DefinitionId> = match old.owner {
        None => Vec::new(),
        Some(owner) => match index.definition(owner).kind {
            NameKind::Mapping => index.system_of(owner).into_iter().chain([owner]).collect(),
            _ => mappings_of(Some(owner))
                .into_iter()
                .chain([owner])
                .collect(),
        },
    };
    index.definitions.iter().find(|d| {
        d.name == name
            && match (old.owner, d.owner) {
                (None, None) => (old.kind == NameKind::Mapping) == (d.kind == NameKind::Mapping),
                (Some(_), Some(owner)) => around.contains(&owner),
                (None, Some(_)) | (Some(_), None) => false,
            }
    })
}
