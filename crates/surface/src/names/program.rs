//! Names of programs: stages name parameters, inputs and outputs of their systems.

use systola_ir::Span;
use systola_ir::mapping::Name;

use super::build::{Builder, without_prime};
use super::{DefinitionId, NameKind, Role};
use crate::tree::{Program, Source, Stage};

impl Builder {
    pub fn program(&mut self, program: &Program, id: DefinitionId) {
        self.enter(id);
        self.head(&program.params);
        for input in &program.inputs {
            self.input(input);
        }
        for stage in &program.stages {
            self.declare(NameKind::Stage, &stage.name, stage.origin.span());
        }
        for (name, source) in &program.outputs {
            self.declare(NameKind::Output, name, name.span.to(source.span));
        }
        self.exprs(&program.context);
        program.inputs.iter().for_each(|i| self.array(i));
        for stage in &program.stages {
            self.stage(stage, &program.stages);
        }
        for (_, source) in &program.outputs {
            self.source(source, &program.stages);
        }
        self.leave();
    }

    fn stage(&mut self, stage: &Stage, stages: &[Stage]) {
        let system = self.systems.get(&stage.system.text).copied();
        match system {
            Some(id) => self.refer(stage.system.span, id, Role::Reads),
            None => self.unknown(&stage.system.text, stage.system.span),
        }
        for (name, value) in &stage.args {
            self.name_of_system(system, name, |kind| kind == NameKind::Parameter);
            self.expr(value);
        }
        for (name, source) in &stage.inputs {
            self.name_of_system(system, name, NameKind::is_array);
            self.source(source, stages);
        }
    }

    /// `x`, or `first.z`.
    fn source(&mut self, source: &Source, stages: &[Stage]) {
        self.read_name(&source.base);
        let Some(output) = &source.output else {
            return;
        };
        let stage = stages.iter().find(|s| s.name.text == source.base.text);
        let system = stage.and_then(|s| self.systems.get(&s.system.text).copied());
        self.name_of_system(system, output, |kind| kind == NameKind::Output);
    }

    fn name_of_system(
        &mut self,
        system: Option<DefinitionId>,
        name: &Name,
        fits: impl Fn(NameKind) -> bool,
    ) {
        let Some(system) = system else {
            return self.unknown(&name.text, name.span);
        };
        let find = |text: &str| {
            let names = &self.items.get(&system)?.names;
            names.get(text).copied()
        };
        let kind_of = |id: DefinitionId| self.index.definition(id).kind;
        if let Some(id) = find(&name.text).filter(|id| fits(kind_of(*id))) {
            return self.refer(name.span, id, Role::Reads);
        }
        // An output that a stencil has without saying so, `u'`, and that of a convolution, `z`.
        let field = name.text.strip_suffix('\'').and_then(find);
        let field = field.filter(|id| kind_of(*id) == NameKind::Field);
        if let Some(id) = field.filter(|_| fits(NameKind::Output)) {
            return self.refer(without_prime(name.span), id, Role::Reads);
        }
        if kind_of(system) == NameKind::Conv && name.text == "z" && fits(NameKind::Output) {
            let from = self.index.definition(system).span;
            return self.generated_elsewhere(system, &name.text, name.span, from);
        }
        self.unknown(&name.text, name.span);
    }

    /// A name that a stencil or a convolution generates, used outside of it.
    pub fn generated_elsewhere(
        &mut self,
        system: DefinitionId,
        name: &str,
        span: Span,
        from: Span,
    ) {
        let (owner, extent) = (self.owner, self.extent);
        self.owner = Some(system);
        self.extent = self.index.definition(system).extent;
        let id = self.generate(name, from);
        (self.owner, self.extent) = (owner, extent);
        if let Some(item) = self.items.get_mut(&system) {
            item.names.insert(name.to_string(), id);
        }
        self.refer(span, id, Role::Reads);
    }
}
