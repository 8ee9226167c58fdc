//! Where every name of a module is declared and used, for editors.
//!
//! [`Index::of`] walks the tree with the scoping rules of the elaborator: all names of an item are
//! distinct, iterators of sums, arguments of functions and `let`s are seen in their expression
//! only, and a mapping sees the names of its system. It reports nothing: the elaborator and the
//! checks of mappings tell of names that stand for nothing, which this index keeps as
//! [`unknown`](Index::unknown).

use systola_ir::Span;

use crate::tree::Module;

mod build;
mod expr;
mod item;
mod mapping;
mod program;

/// All names of a module.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub definitions: Vec<Definition>,
    /// In the order of the text, those of declarations too. None overlaps another.
    pub references: Vec<Reference>,
    /// Names that the language gives to mappings: the lanes of the target, coordinates.
    pub given: Vec<Unknown>,
    /// Names that nothing declares.
    pub unknown: Vec<Unknown>,
}

/// The position of a definition in [`Index::definitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionId(pub usize);

/// What a name stands for.
#[derive(Clone, Debug)]
pub struct Definition {
    pub kind: NameKind,
    pub name: String,
    /// The name in its declaration. Of a generated name: what it is generated from.
    pub span: Span,
    /// The whole declaration.
    pub extent: Span,
    /// The item that it belongs to; none for items.
    pub owner: Option<DefinitionId>,
    /// The text in which the name can be used.
    pub scope: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    System,
    Stencil,
    Conv,
    Mapping,
    Program,
    Parameter,
    Constant,
    Input,
    Table,
    Field,
    Filter,
    Function,
    /// Of a function.
    Argument,
    Iterator,
    /// Of a `reduce`. The iterators of one name in one system are one definition, since a mapping
    /// means all of them.
    SumIterator,
    Batch,
    Variable,
    Output,
    Let,
    Stage,
    /// An index that a mapping makes: of a tile, or a loop of the primitives of Table 1.
    TileIndex,
    /// A name that a stencil or a convolution gives to a part of the system that it becomes.
    Generated,
}

impl NameKind {
    /// The noun for it.
    pub fn describe(self) -> &'static str {
        match self {
            NameKind::System => "system",
            NameKind::Stencil => "stencil",
            NameKind::Conv => "convolution",
            NameKind::Mapping => "mapping",
            NameKind::Program => "program",
            NameKind::Parameter => "parameter",
            NameKind::Constant => "constant",
            NameKind::Input => "input",
            NameKind::Table => "table",
            NameKind::Field => "field",
            NameKind::Filter => "filter",
            NameKind::Function => "function",
            NameKind::Argument => "argument",
            NameKind::Iterator => "iterator",
            NameKind::SumIterator => "iterator of a sum",
            NameKind::Batch => "index of the batch",
            NameKind::Variable => "variable",
            NameKind::Output => "output",
            NameKind::Let => "local value",
            NameKind::Stage => "stage",
            NameKind::TileIndex => "tile index",
            NameKind::Generated => "generated name",
        }
    }

    /// Does it stand for a system, whatever the notation?
    pub fn is_system(self) -> bool {
        matches!(self, NameKind::System | NameKind::Stencil | NameKind::Conv)
    }

    /// Does it stand for an array that a system reads?
    pub fn is_array(self) -> bool {
        matches!(
            self,
            NameKind::Input | NameKind::Table | NameKind::Field | NameKind::Filter
        )
    }

    /// Is it seen in one expression only?
    pub fn is_local(self) -> bool {
        matches!(self, NameKind::Argument | NameKind::Let)
    }
}

/// A name where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub span: Span,
    pub definition: DefinitionId,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Declares,
    /// The left-hand side of an equation of a stencil.
    Writes,
    Reads,
}

/// A name without a declaration in the text.
#[derive(Clone, Debug)]
pub struct Unknown {
    pub name: String,
    pub span: Span,
}

impl Index {
    /// The names of a module.
    pub fn of(module: &Module) -> Index {
        build::build(module)
    }

    /// The name at a byte of the text, or just before it.
    pub fn at(&self, offset: usize) -> Option<&Reference> {
        let touches = |r: &&Reference| {
            let range = r.span.range();
            range.start <= offset && offset <= range.end
        };
        let before = |r: &Reference| (r.span.start as usize) <= offset;
        let end = self.references.partition_point(before);
        self.references[..end].last().filter(touches)
    }

    pub fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.0]
    }

    /// Everywhere the name stands, in the order of the text.
    pub fn references_to(&self, id: DefinitionId) -> impl Iterator<Item = &Reference> {
        self.references.iter().filter(move |r| r.definition == id)
    }

    /// The item whose text has this byte.
    pub fn item_at(&self, offset: usize) -> Option<DefinitionId> {
        let inside = |d: &Definition| {
            let range = d.extent.range();
            d.owner.is_none() && range.start <= offset && offset <= range.end
        };
        self.definitions.iter().position(inside).map(DefinitionId)
    }

    /// The system that a mapping maps.
    pub fn system_of(&self, mapping: DefinitionId) -> Option<DefinitionId> {
        let extent = self.definition(mapping).extent.range();
        let mut inside = (self.references.iter())
            .filter(|r| extent.contains(&(r.span.start as usize)))
            .map(|r| r.definition);
        inside.find(|id| self.definition(*id).kind.is_system())
    }

    /// The names that can be used at a byte of the text, those of other items among them.
    pub fn visible_at(&self, offset: usize) -> Vec<DefinitionId> {
        let item = self.item_at(offset);
        let system = item
            .filter(|id| self.definition(*id).kind == NameKind::Mapping)
            .and_then(|id| self.system_of(id));
        let sees = |d: &Definition| match d.owner {
            None => true,
            owner if owner == system && system.is_some() => !d.kind.is_local(),
            owner => {
                let scope = d.scope.range();
                owner == item && scope.start <= offset && offset <= scope.end
            }
        };
        let all = self.definitions.iter().enumerate();
        all.filter(|(_, d)| sees(d))
            .map(|(n, _)| DefinitionId(n))
            .collect()
    }
}
