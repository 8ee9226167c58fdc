//! Programs: systems in sequence, with arrays between them.

use std::collections::HashSet;

use systola_ir::codes::types as codes;
use systola_ir::system::{Input, InputKind, Module, Program, Source, Stage, System};
use systola_ir::{Diagnostic, Form, InputId, Scalar, Span};

use crate::builder::{Axis, SystemBuilder};
use crate::expr::{Expr, name};
use crate::lower::lower_system;
use crate::mapping::MappingBuilder;

/// One file: systems, their mappings, and programs of them.
#[derive(Clone, Debug, Default)]
pub struct ModuleBuilder {
    systems: Vec<SystemBuilder>,
    mappings: Vec<MappingBuilder>,
    programs: Vec<ProgramBuilder>,
}

impl ModuleBuilder {
    pub fn new() -> Self {
        ModuleBuilder::default()
    }

    pub fn system(&mut self, system: SystemBuilder) -> &mut Self {
        self.systems.push(system);
        self
    }

    pub fn mapping(&mut self, mapping: MappingBuilder) -> &mut Self {
        self.mappings.push(mapping);
        self
    }

    pub fn program(&mut self, program: ProgramBuilder) -> &mut Self {
        self.programs.push(program);
        self
    }

    /// The module, or everything that is wrong in it.
    pub fn build(&self) -> Result<Module, Vec<Diagnostic>> {
        let mut module = Module::default();
        let mut errors = self.duplicates();
        for system in &self.systems {
            match system.build() {
                Ok(system) => module.systems.push(system),
                Err(found) => errors.extend(found),
            }
        }
        for mapping in &self.mappings {
            match mapping.build() {
                Ok(mapping) => {
                    if !self.systems.iter().any(|s| s.name == mapping.system) {
                        errors.push(unknown_system(&mapping.system));
                    }
                    module.mappings.push(mapping);
                }
                Err(found) => errors.extend(found),
            }
        }
        // A program can be told right from wrong only where its systems are right.
        if errors.is_empty() {
            for program in &self.programs {
                match program.build(&module.systems) {
                    Ok(program) => module.programs.push(program),
                    Err(found) => errors.extend(found),
                }
            }
        }
        if errors.is_empty() {
            Ok(module)
        } else {
            Err(errors)
        }
    }

    /// Systems and programs share their names, since both can be run; mappings have their own.
    fn duplicates(&self) -> Vec<Diagnostic> {
        let systems = self.systems.iter().map(|s| s.name.as_str());
        let runnable = systems.chain(self.programs.iter().map(|p| p.head.name.as_str()));
        let mut errors = repeated(runnable);
        errors.extend(repeated(self.mappings.iter().map(MappingBuilder::name)));
        errors
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let again = names.filter(|text| !seen.insert(*text));
    again.map(duplicate).collect()
}

fn duplicate(text: &str) -> Diagnostic {
    Diagnostic::new(
        &codes::DUPLICATE_NAME,
        Span::NONE,
        format!("`{text}` is already declared"),
    )
    .help("take another name")
}

fn unknown_system(text: &str) -> Diagnostic {
    Diagnostic::new(
        &codes::UNKNOWN_SYSTEM,
        Span::NONE,
        format!("there is no system `{text}` in this module"),
    )
    .help("add it with `ModuleBuilder::system`")
}

/// A program that is being written.
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    /// Name, parameters, context and inputs are those of a system.
    head: SystemBuilder,
    stages: Vec<StageDecl>,
    outputs: Vec<(String, ArrayRef)>,
}

#[derive(Clone, Debug)]
struct StageDecl {
    name: String,
    system: String,
    args: Vec<(String, Expr)>,
    inputs: Vec<(String, ArrayRef)>,
}

/// An array of a program: one of its inputs, or an output of a stage.
#[derive(Clone, Debug)]
pub struct ArrayRef {
    base: String,
    output: Option<String>,
}

/// A stage, whose outputs can be named.
#[derive(Clone, Debug)]
pub struct StageRef(String);

impl StageRef {
    /// `first.z`.
    pub fn output(&self, text: &str) -> ArrayRef {
        ArrayRef {
            base: self.0.clone(),
            output: Some(text.to_string()),
        }
    }
}

impl From<&Expr> for ArrayRef {
    fn from(input: &Expr) -> Self {
        ArrayRef {
            base: input.as_name().unwrap_or_default().to_string(),
            output: None,
        }
    }
}

impl ProgramBuilder {
    pub fn new(text: impl Into<String>) -> Self {
        ProgramBuilder {
            head: SystemBuilder::new(text),
            ..ProgramBuilder::default()
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.head.param(text)
    }

    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.head.context(cond);
        self
    }

    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> Expr {
        self.head.input(text, ty, axes)
    }

    /// `first = conv1d(C = N - 2, Q = 3)(x = x, w = w);`
    pub fn stage<'a, E: Into<Expr>, R: Into<ArrayRef>>(
        &mut self,
        text: &str,
        system: &str,
        args: impl IntoIterator<Item = (&'a str, E)>,
        inputs: impl IntoIterator<Item = (&'a str, R)>,
    ) -> StageRef {
        self.stages.push(StageDecl {
            name: text.to_string(),
            system: system.to_string(),
            args: args
                .into_iter()
                .map(|(n, e)| (n.to_string(), e.into()))
                .collect(),
            inputs: inputs
                .into_iter()
                .map(|(n, r)| (n.to_string(), r.into()))
                .collect(),
        });
        StageRef(text.to_string())
    }

    /// `output y = second.z;`
    pub fn output(&mut self, text: &str, source: impl Into<ArrayRef>) -> &mut Self {
        self.outputs.push((text.to_string(), source.into()));
        self
    }

    pub fn build(&self, systems: &[System]) -> Result<Program, Vec<Diagnostic>> {
        let head = lower_system(&self.head)?;
        let mut program = Program {
            name: head.name.clone(),
            params: head.params.clone(),
            context: head.context.clone(),
            inputs: head.inputs.clone(),
            stages: Vec::new(),
            outputs: Vec::new(),
            span: Span::NONE,
        };
        let inputs = || program.inputs.iter().map(|input| input.name.as_str());
        let stages = self.stages.iter().map(|stage| stage.name.as_str());
        let params = program.params.iter().map(|param| param.name.as_str());
        // Parameters and inputs were told apart with the head.
        let mut errors: Vec<Diagnostic> = repeated(params.chain(inputs()).chain(stages));
        errors.extend(repeated(
            inputs().chain(self.outputs.iter().map(|(text, _)| text.as_str())),
        ));
        for declared in &self.stages {
            match self.lower_stage(&program, systems, declared) {
                Ok(stage) => program.stages.push(stage),
                Err(found) => errors.extend(found),
            }
        }
        for (text, source) in &self.outputs {
            match self.resolve(&program, systems, source) {
                Ok(source) => program.outputs.push((text.clone(), source)),
                Err(error) => errors.push(*error),
            }
        }
        if errors.is_empty() {
            Ok(program)
        } else {
            Err(errors)
        }
    }

    fn lower_stage(
        &self,
        program: &Program,
        systems: &[System],
        declared: &StageDecl,
    ) -> Result<Stage, Vec<Diagnostic>> {
        let Some(position) = systems.iter().position(|s| s.name == declared.system) else {
            return Err(vec![unknown_system(&declared.system)]);
        };
        let system = &systems[position];
        let mut errors = Vec::new();
        for (text, _) in &declared.args {
            if !system.params.iter().any(|p| p.name == *text) {
                errors.push(unknown(&format!("parameter of `{}`", system.name), text));
            }
        }
        for (text, _) in &declared.inputs {
            if system.find_input(text).is_none() {
                errors.push(unknown(&format!("input of `{}`", system.name), text));
            }
        }
        let mut args: Vec<Form> = Vec::new();
        for param in &system.params {
            match declared.args.iter().find(|(text, _)| *text == param.name) {
                Some((_, expr)) => match self.size(expr) {
                    Ok(form) => args.push(form),
                    Err(found) => errors.extend(found),
                },
                None => errors.push(missing(&declared.name, "parameter", &param.name)),
            }
        }
        let mut inputs = Vec::new();
        for (n, input) in system.inputs.iter().enumerate() {
            if matches!(input.kind, InputKind::Table { data: Some(_) }) {
                continue;
            }
            match declared.inputs.iter().find(|(text, _)| *text == input.name) {
                Some((_, source)) => match self.resolve(program, systems, source) {
                    Ok(source) => {
                        errors.extend(unlike(program, systems, source, input));
                        inputs.push((InputId::from(n), source));
                    }
                    Err(error) => errors.push(*error),
                },
                None => errors.push(missing(&declared.name, "input", &input.name)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Stage {
            name: declared.name.clone(),
            system: position,
            args,
            inputs,
            span: Span::NONE,
        })
    }

    /// An expression in the parameters of the program.
    fn size(&self, expr: &Expr) -> Result<Form, Vec<Diagnostic>> {
        let mut probe = SystemBuilder::new("");
        probe.params.clone_from(&self.head.params);
        probe.index([name("_size").range(0, expr)]);
        let mut system = lower_system(&probe)?;
        Ok(system
            .dims
            .pop()
            .and_then(|dim| dim.range)
            .map_or(Form::zero(), |range| range.1))
    }

    fn resolve(
        &self,
        program: &Program,
        systems: &[System],
        source: &ArrayRef,
    ) -> Result<Source, Box<Diagnostic>> {
        let Some(output) = &source.output else {
            let found = program
                .inputs
                .iter()
                .position(|input| input.name == source.base);
            return found
                .map(Source::Input)
                .ok_or_else(|| Box::new(unknown("input of the program", &source.base)));
        };
        let stage = program
            .stages
            .iter()
            .position(|stage| stage.name == source.base)
            .ok_or_else(|| Box::new(unknown("earlier stage", &source.base)))?;
        let outputs = &systems[program.stages[stage].system].outputs;
        let output = outputs
            .iter()
            .position(|declared| declared.name == *output)
            .ok_or_else(|| Box::new(unknown(&format!("output of `{}`", source.base), output)))?;
        Ok(Source::Output { stage, output })
    }
}

/// Do the type and the number of axes of an array differ from what an input takes?
fn unlike(
    program: &Program,
    systems: &[System],
    source: Source,
    input: &Input,
) -> Option<Diagnostic> {
    let (ty, rank) = match source {
        Source::Input(n) => (program.inputs[n].ty, program.inputs[n].axes.len()),
        Source::Output { stage, output } => {
            let output = &systems[program.stages[stage].system].outputs[output];
            (output.ty, output.axes.len())
        }
    };
    if (ty, rank) == (input.ty, input.axes.len()) {
        return None;
    }
    let name = &input.name;
    let message = format!(
        "`{name}` takes {} axes of {}, but is given {rank} axes of {ty}",
        input.axes.len(),
        input.ty
    );
    Some(
        Diagnostic::new(&codes::ARRAY_MISMATCH, Span::NONE, message)
            .help("connect arrays of the same type and shape"),
    )
}

fn unknown(what: &str, text: &str) -> Diagnostic {
    Diagnostic::new(
        &codes::UNKNOWN_NAME,
        Span::NONE,
        format!("no {what} is called `{text}`"),
    )
    .help("check the spelling, and that it is declared before it is used")
}

fn missing(stage: &str, what: &str, text: &str) -> Diagnostic {
    Diagnostic::new(
        &codes::STAGE_INPUTS,
        Span::NONE,
        format!("the stage `{stage}` says nothing of the {what} `{text}`"),
    )
    .help(format!("give it: `(\"{text}\", …)`"))
}
