//! Builders of modules and programs.

use systola_ir::mapping::Name;
use systola_ir::system::{Module, Program, System};
use systola_ir::{Diagnostic, Scalar, Span};
use systola_surface::tree::{self, MappingItem, Origin, Source, Stage};
use systola_surface::{elaborate_module, elaborate_program};

use crate::builder::{Axis, SystemBuilder, array};
use crate::conv::ConvBuilder;
use crate::expr::{Expr, name};
use crate::mapping::MappingBuilder;
use crate::stencil::StencilBuilder;

/// A module: systems, their mappings, and programs of systems.
#[derive(Clone, Debug, Default)]
pub struct ModuleBuilder {
    tree: tree::Module,
    /// Errors in mappings.
    errors: Vec<Diagnostic>,
}

impl ModuleBuilder {
    pub fn new() -> Self {
        ModuleBuilder::default()
    }

    pub fn system(&mut self, system: SystemBuilder) -> &mut Self {
        self.tree.systems.push(system.tree());
        self
    }

    pub fn stencil(&mut self, stencil: StencilBuilder) -> &mut Self {
        self.tree.stencils.push(stencil.tree());
        self
    }

    pub fn conv(&mut self, conv: ConvBuilder) -> &mut Self {
        self.tree.convs.push(conv.0);
        self
    }

    pub fn mapping(&mut self, mapping: MappingBuilder) -> &mut Self {
        match mapping.build() {
            Ok(mapping) => self.tree.mappings.push(MappingItem {
                mapping,
                name_span: Span::NONE,
                system_span: Span::NONE,
            }),
            Err(found) => self.errors.extend(found),
        }
        self
    }

    pub fn program(&mut self, program: ProgramBuilder) -> &mut Self {
        self.tree.programs.push(program.0);
        self
    }

    /// The module, or all errors in it.
    pub fn build(&self) -> Result<Module, Vec<Diagnostic>> {
        let mut errors = self.errors.clone();
        match elaborate_module(self.tree.clone()) {
            Ok(module) if errors.is_empty() => Ok(module),
            Ok(_) => Err(errors),
            Err(found) => {
                errors.extend(found);
                Err(errors)
            }
        }
    }
}

/// A program under construction.
#[derive(Clone, Debug)]
pub struct ProgramBuilder(pub(crate) tree::Program);

/// An array of a program: one of its inputs, or an output of a stage.
#[derive(Clone, Debug)]
pub struct ArrayRef(Source);

impl ArrayRef {
    fn new(base: Name, output: Option<Name>) -> Self {
        ArrayRef(Source {
            base,
            output,
            span: Span::NONE,
        })
    }
}

/// A stage, whose outputs can be referred to.
#[derive(Clone, Debug)]
pub struct StageRef(Name);

impl StageRef {
    /// `first.z`.
    pub fn output(&self, text: &str) -> ArrayRef {
        ArrayRef::new(self.0.clone(), Some(Name::from(text)))
    }
}

impl From<&Expr> for ArrayRef {
    fn from(input: &Expr) -> Self {
        ArrayRef::new(input.to_name(), None)
    }
}

impl ProgramBuilder {
    #[track_caller]
    pub fn new(text: impl Into<String>) -> Self {
        ProgramBuilder(tree::Program::new(text.into(), Origin::caller()))
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.0.params.push(Name::from(text));
        name(text)
    }

    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.0.context.push(cond.into().0);
        self
    }

    #[track_caller]
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.0.inputs.push(array(text, ty, axes, Origin::caller()));
        name(text)
    }

    /// `first = conv1d(C = N - 2, Q = 3)(x = x, w = w);`
    #[track_caller]
    pub fn stage<'a, E: Into<Expr>, R: Into<ArrayRef>>(
        &mut self,
        text: &str,
        system: &str,
        args: impl IntoIterator<Item = (&'a str, E)>,
        inputs: impl IntoIterator<Item = (&'a str, R)>,
    ) -> StageRef {
        self.0.stages.push(Stage {
            name: Name::from(text),
            system: Name::from(system),
            args: (args.into_iter())
                .map(|(param, size)| (Name::from(param), size.into().0))
                .collect(),
            inputs: (inputs.into_iter())
                .map(|(input, source)| (Name::from(input), source.into().0))
                .collect(),
            origin: Origin::caller(),
        });
        StageRef(Name::from(text))
    }

    /// `output y = second.z;`
    pub fn output(&mut self, text: &str, source: impl Into<ArrayRef>) -> &mut Self {
        self.0.outputs.push((Name::from(text), source.into().0));
        self
    }

    /// Builds the program. Its systems are built already.
    pub fn build(&self, systems: &[System]) -> Result<Program, Vec<Diagnostic>> {
        elaborate_program(&self.0, systems)
    }
}
