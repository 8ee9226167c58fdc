//! The state of a walk, and the order of items in it.

use std::collections::HashMap;

use systola_ir::Span;
use systola_ir::mapping::Name;

use super::{Definition, DefinitionId, Index, NameKind, Reference, Role, Unknown};
use crate::tree::Module;

/// First the names of all items, since these may come in any order; then what is in them; then
/// mappings and programs, which use the names of systems.
pub fn build(module: &Module) -> Index {
    let mut builder = Builder::default();
    let mut ids = Vec::new();
    for system in &module.systems {
        ids.push(builder.item(NameKind::System, &system.name, system.origin.span()));
    }
    for stencil in &module.stencils {
        ids.push(builder.item(NameKind::Stencil, &stencil.name, stencil.origin.span()));
    }
    for conv in &module.convs {
        ids.push(builder.item(NameKind::Conv, &conv.name, conv.origin.span()));
    }
    let mut ids = ids.into_iter();
    for (system, id) in module.systems.iter().zip(&mut ids) {
        builder.system(system, id);
    }
    for (stencil, id) in module.stencils.iter().zip(&mut ids) {
        builder.stencil(stencil, id);
    }
    for (conv, id) in module.convs.iter().zip(&mut ids) {
        builder.conv(conv, id);
    }
    for program in &module.programs {
        let id = builder.item(NameKind::Program, &program.name, program.origin.span());
        builder.program(program, id);
    }
    for item in &module.mappings {
        builder.mapping(item);
    }
    builder.finish()
}

/// The names of one item.
#[derive(Clone, Debug, Default)]
pub struct ItemNames {
    pub names: HashMap<String, DefinitionId>,
    /// Iterators of sums, which may be declared several times.
    pub sums: HashMap<String, DefinitionId>,
}

#[derive(Debug, Default)]
pub struct Builder {
    pub index: Index,
    /// Systems by name, the first of each name.
    pub systems: HashMap<String, DefinitionId>,
    /// What the items declare, by item.
    pub items: HashMap<DefinitionId, ItemNames>,
    /// The current item.
    pub owner: Option<DefinitionId>,
    pub extent: Span,
    /// Names of the current item.
    pub scope: ItemNames,
    /// Names that are seen in the current expression only, the innermost last.
    pub locals: Vec<(String, DefinitionId)>,
}

impl Builder {
    fn item(&mut self, kind: NameKind, name: &Name, extent: Span) -> DefinitionId {
        let id = self.define(kind, name, extent, None, extent);
        if kind.is_system() {
            self.systems.entry(name.text.clone()).or_insert(id);
        }
        id
    }

    /// Begins an item whose name is defined already.
    pub fn enter(&mut self, id: DefinitionId) {
        self.owner = Some(id);
        self.extent = self.index.definition(id).extent;
        self.scope = ItemNames::default();
        self.locals.clear();
    }

    /// Ends it; mappings and programs find its names.
    pub fn leave(&mut self) {
        let names = std::mem::take(&mut self.scope);
        if let Some(owner) = self.owner.take() {
            self.items.insert(owner, names);
        }
    }

    /// A definition, with the reference that its own name is.
    pub fn define(
        &mut self,
        kind: NameKind,
        name: &Name,
        extent: Span,
        owner: Option<DefinitionId>,
        scope: Span,
    ) -> DefinitionId {
        let id = DefinitionId(self.index.definitions.len());
        self.index.definitions.push(Definition {
            kind,
            name: name.text.clone(),
            span: name.span,
            extent,
            owner,
            scope,
        });
        self.refer(name.span, id, Role::Declares);
        id
    }

    /// A name of the current item; of two equal ones the first is meant.
    pub fn declare(&mut self, kind: NameKind, name: &Name, extent: Span) -> DefinitionId {
        let id = self.define(kind, name, extent, self.owner, self.extent);
        self.scope.names.entry(name.text.clone()).or_insert(id);
        id
    }

    /// A name that is seen in a part of the item only.
    pub fn declare_local(&mut self, kind: NameKind, name: &Name, extent: Span, scope: Span) {
        let id = self.define(kind, name, extent, self.owner, scope);
        self.locals.push((name.text.clone(), id));
    }

    /// Declares a name that the text does not have.
    pub fn generate(&mut self, name: &str, from: Span) -> DefinitionId {
        let id = DefinitionId(self.index.definitions.len());
        self.index.definitions.push(Definition {
            kind: NameKind::Generated,
            name: name.to_string(),
            span: from,
            extent: from,
            owner: self.owner,
            scope: self.extent,
        });
        id
    }

    pub fn find(&self, name: &str) -> Option<DefinitionId> {
        let local = self.locals.iter().rev().find(|(local, _)| local == name);
        local
            .map(|(_, id)| *id)
            .or_else(|| self.scope.names.get(name).copied())
    }

    pub fn read(&mut self, name: &str, span: Span) {
        match self.find(name) {
            Some(id) => self.refer(span, id, Role::Reads),
            None => self.read_next_value(name, span),
        }
    }

    pub fn read_name(&mut self, name: &Name) {
        self.read(&name.text, name.span);
    }

    /// `u'` in a stencil: the next value of the field `u`.
    fn read_next_value(&mut self, name: &str, span: Span) {
        let field = name.strip_suffix('\'').and_then(|field| self.find(field));
        match field.filter(|id| self.index.definition(*id).kind == NameKind::Field) {
            Some(id) => self.refer(without_prime(span), id, Role::Reads),
            None => self.unknown(name, span),
        }
    }

    pub fn unknown(&mut self, name: &str, span: Span) {
        let name = name.to_string();
        self.index.unknown.push(Unknown { name, span });
    }

    pub fn refer(&mut self, span: Span, definition: DefinitionId, role: Role) {
        if !span.is_none() {
            self.index.references.push(Reference {
                span,
                definition,
                role,
            });
        }
    }

    fn finish(mut self) -> Index {
        let references = &mut self.index.references;
        references.sort_by_key(|r| (r.span.start, r.span.end));
        // The function of chained calls of a mapping is in each of them.
        references.dedup_by_key(|r| (r.span.start, r.span.end));
        self.index
    }
}

/// The part of `u'` that is the name of the field.
pub fn without_prime(span: Span) -> Span {
    Span {
        end: span.end.saturating_sub(1).max(span.start),
        ..span
    }
}
