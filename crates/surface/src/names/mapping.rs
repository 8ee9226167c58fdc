//! Names of mappings: those of the system, and the indices that tiles make.

use systola_ir::Span;
use systola_ir::mapping::{
    Directive, DirectiveKind, Name, NameCond, NameExpr, NameExprKind, PlaceLevel, StorePlace,
    SumStage, TimeLevel,
};

use super::build::{Builder, ItemNames};
use super::{DefinitionId, NameKind, Role};
use crate::tree::MappingItem;

/// What a mapping calls the lanes of the target.
const LANES: [&str; 2] = ["L", "lanes"];

impl Builder {
    pub fn mapping(&mut self, item: &MappingItem) {
        let mapping = &item.mapping;
        let name = Name {
            text: mapping.name.clone(),
            span: item.name_span,
        };
        let id = self.define(NameKind::Mapping, &name, mapping.span, None, mapping.span);
        let system = self.systems.get(&mapping.system).copied();
        match system {
            Some(system) => self.refer(item.system_span, system, Role::Reads),
            None => self.unknown(&mapping.system, item.system_span),
        }
        self.enter(id);
        self.indices(&mapping.directives);
        let mut walk = Walk {
            system: system.map(|id| (id, self.items.get(&id).cloned().unwrap_or_default())),
            builder: self,
        };
        walk.directives(&mapping.directives);
        self.leave();
    }

    /// The indices that a mapping makes; directives may use them before they are made.
    fn indices(&mut self, directives: &[Directive]) {
        for directive in directives {
            let made: Vec<&Name> = match &directive.kind {
                DirectiveKind::Tile { outer, inner, .. }
                | DirectiveKind::TileLoop { outer, inner, .. } => vec![outer, inner],
                DirectiveKind::SpaceTimeTransform { dst, .. } => dst.iter().collect(),
                DirectiveKind::Space { dims } => dims.iter().collect(),
                DirectiveKind::When { directives, .. } => {
                    self.indices(directives);
                    continue;
                }
                DirectiveKind::Place { .. }
                | DirectiveKind::Time { .. }
                | DirectiveKind::Align { .. }
                | DirectiveKind::Forward { .. }
                | DirectiveKind::Read { .. }
                | DirectiveKind::Sum { .. }
                | DirectiveKind::Broadcast { .. }
                | DirectiveKind::Store { .. }
                | DirectiveKind::Transfer(_)
                | DirectiveKind::Unroll { .. }
                | DirectiveKind::Check(_)
                | DirectiveKind::Reverse { .. }
                | DirectiveKind::Flags
                | DirectiveKind::LookBack
                | DirectiveKind::Func { .. }
                | DirectiveKind::MergeUres { .. }
                | DirectiveKind::Reorder { .. }
                | DirectiveKind::GpuBlocks { .. }
                | DirectiveKind::GpuThreads { .. }
                | DirectiveKind::In { .. } => continue,
            };
            for name in made {
                match self.scope.names.get(&name.text).copied() {
                    Some(id) => self.refer(name.span, id, Role::Declares),
                    None => {
                        self.declare(NameKind::TileIndex, name, directive.span);
                    }
                }
            }
        }
    }
}

struct Walk<'b> {
    builder: &'b mut Builder,
    system: Option<(DefinitionId, ItemNames)>,
}

impl Walk<'_> {
    fn directives(&mut self, directives: &[Directive]) {
        for directive in directives {
            self.directive(directive);
        }
    }

    fn directive(&mut self, directive: &Directive) {
        match &directive.kind {
            DirectiveKind::Tile {
                dim, size, overlap, ..
            } => {
                self.name(dim);
                self.form(size);
                if let Some((lo, hi)) = overlap {
                    self.form(lo);
                    self.form(hi);
                }
            }
            DirectiveKind::Place { forms, .. } | DirectiveKind::Time { forms, .. } => {
                self.forms(forms);
            }
            DirectiveKind::When { cond, directives } => {
                self.cond(cond);
                self.directives(directives);
            }
            DirectiveKind::Space { .. } => {}
            DirectiveKind::Align { var, dims, forms } => {
                self.name(var);
                let extent = directive.span;
                for dim in dims {
                    let kind = NameKind::Iterator;
                    self.builder.declare_local(kind, dim, dim.span, extent);
                }
                self.forms(forms);
                self.builder.locals.clear();
            }
            DirectiveKind::Forward { input, along } => {
                self.name(input);
                self.forms(along);
            }
            DirectiveKind::Read { input } => self.name(input),
            DirectiveKind::Store { var, place } => {
                self.name(var);
                match place {
                    StorePlace::Chosen => {}
                    StorePlace::In { array: _, index } => self.forms(index),
                    StorePlace::Modulo(moduli) => self.forms(moduli),
                }
            }
            DirectiveKind::Sum { var, stages } => {
                self.name(var);
                for stage in stages {
                    match stage {
                        SumStage::Along(list) => list.iter().for_each(|(name, _)| self.name(name)),
                        SumStage::Tree(list) => list.iter().for_each(|name| self.name(name)),
                    }
                }
            }
            DirectiveKind::Broadcast { var } => self.name(var),
            DirectiveKind::Transfer(transfer) => {
                self.name(&transfer.source);
                transfer.at.iter().for_each(|name| self.name(name));
            }
            DirectiveKind::Unroll { name, .. } => self.name(name),
            DirectiveKind::Check(_) | DirectiveKind::Flags | DirectiveKind::LookBack => {}
            DirectiveKind::Reverse { bindings } => {
                for (name, form) in bindings {
                    self.name(name);
                    self.form(form);
                }
            }
            DirectiveKind::Func { name, args, .. } => {
                self.name(name);
                self.names(args);
            }
            DirectiveKind::MergeUres { func, others } => {
                self.name(func);
                self.names(others);
            }
            DirectiveKind::TileLoop {
                func,
                loop_name,
                factor,
                ..
            } => {
                self.name(func);
                self.name(loop_name);
                self.form(factor);
            }
            DirectiveKind::Reorder { func, loops }
            | DirectiveKind::GpuBlocks { func, loops }
            | DirectiveKind::GpuThreads { func, loops } => {
                self.name(func);
                self.names(loops);
            }
            DirectiveKind::In {
                producer,
                consumer,
                compute_at,
                ..
            } => {
                self.name(producer);
                self.name(consumer);
                if let Some((func, at)) = compute_at {
                    self.name(func);
                    self.name(at);
                }
            }
            DirectiveKind::SpaceTimeTransform {
                func,
                src,
                matrix,
                reverse,
                ..
            } => {
                self.name(func);
                self.names(src);
                matrix.iter().for_each(|row| self.forms(row));
                reverse.iter().for_each(|forms| self.forms(forms));
            }
        }
    }

    fn names(&mut self, names: &[Name]) {
        names.iter().for_each(|name| self.name(name));
    }

    fn name(&mut self, name: &Name) {
        self.read(&name.text, name.span);
    }

    fn forms(&mut self, forms: &[NameExpr]) {
        forms.iter().for_each(|form| self.form(form));
    }

    fn form(&mut self, form: &NameExpr) {
        match &form.kind {
            NameExprKind::Int(_) => {}
            NameExprKind::Name(name) => self.read(name, form.span),
            NameExprKind::Neg(inner) => self.form(inner),
            NameExprKind::Binary(_, left, right) => {
                self.form(left);
                self.form(right);
            }
        }
    }

    fn cond(&mut self, cond: &NameCond) {
        match cond {
            NameCond::Cmp(_, left, right) => {
                self.form(left);
                self.form(right);
            }
            NameCond::And(parts) | NameCond::Or(parts) => {
                parts.iter().for_each(|part| self.cond(part));
            }
            NameCond::Not(inner) => self.cond(inner),
        }
    }

    /// A tile index, a name of the system, one that the language gives, or one that a stencil or a
    /// convolution generates.
    fn read(&mut self, name: &str, span: Span) {
        if let Some(id) = self.builder.find(name) {
            return self.builder.refer(span, id, Role::Reads);
        }
        let Some((system, names)) = &mut self.system else {
            return self.builder.unknown(name, span);
        };
        if let Some(id) = names.names.get(name).or_else(|| names.sums.get(name)) {
            return self.builder.refer(span, *id, Role::Reads);
        }
        if is_given(name) {
            let name = name.to_string();
            return self.builder.index.given.push(super::Unknown { name, span });
        }
        let owner = self.builder.index.definition(*system);
        if owner.kind == NameKind::System {
            return self.builder.unknown(name, span);
        }
        // Partial sums and the like are named for their variable.
        let stem: String = name
            .chars()
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        let stem = names.names.get(&stem);
        let from = stem.map_or(owner.span, |id| self.builder.index.definition(*id).span);
        let system = *system;
        self.builder.generated_elsewhere(system, name, span, from);
        if let Some(id) = (self.builder.items.get(&system)).and_then(|i| i.names.get(name)) {
            names.names.insert(name.to_string(), *id);
        }
    }
}

/// The lanes of the target, and coordinates: a level, and a number where it has several.
fn is_given(name: &str) -> bool {
    let level = name.trim_end_matches(|c: char| c.is_ascii_digit());
    LANES.contains(&name)
        || PlaceLevel::ALL.iter().any(|l| l.name() == level)
        || TimeLevel::ALL.iter().any(|l| l.name() == level)
}
