//! Programs: stages that are connected by arrays of equal type and shape.

use std::collections::HashMap;

use systola_ir::codes::types;
use systola_ir::system::{Axis, InputKind, Program, Source, Stage, System};
use systola_ir::{Diagnostic, Form, InputId, ParamId, Scalar, Span};

use super::forms::{instantiate, listed};
use super::names::{Entity, check_name, duplicate};
use super::system::{self, Elaborator};
use super::{Elaborated, Errors, Failed, unknown_system};
use crate::suggest::suggest;
use crate::tree;

/// The type and the shape of an array, in the parameters of the program. A shape is `None` if it is
/// too complex to compare.
struct Shape {
    ty: Scalar,
    rank: usize,
    extents: Option<Vec<Form>>,
}

pub fn elaborate(tree: &tree::Program, systems: &[System], errors: &mut Errors) -> Option<Program> {
    let what = format!("the program `{}`", tree.name.text);
    errors.within(&what, tree.origin);
    check_name(&tree.name, "a program", errors);
    // The head of a program is elaborated like a system without equations.
    let mut elaborator = Elaborator::of_sizes(errors);
    for (n, name) in tree.params.iter().enumerate() {
        elaborator
            .names
            .declare(name, Entity::Param(ParamId::from(n)), elaborator.errors);
    }
    let context = elaborator.conds(&tree.context);
    let mut inputs = Vec::new();
    for (n, input) in tree.inputs.iter().enumerate() {
        elaborator.names.declare(
            &input.name,
            Entity::Input(InputId::from(n)),
            elaborator.errors,
        );
        inputs.push(elaborator.input(input));
    }
    for (n, stage) in tree.stages.iter().enumerate() {
        elaborator
            .names
            .declare(&stage.name, Entity::Stage(n), elaborator.errors);
    }
    let shapes = inputs
        .iter()
        .map(|input| Shape {
            ty: input.ty,
            rank: input.axes.len(),
            extents: Some(extents(&input.axes)),
        })
        .collect();
    let mut elaboration = Elaboration {
        tree,
        systems,
        elaborator,
        inputs: shapes,
        stages: Vec::new(),
    };
    let stages: Vec<_> = tree
        .stages
        .iter()
        .enumerate()
        .map(|(n, stage)| {
            let elaborated = elaboration.stage(n, stage);
            let instance = elaborated.as_ref().ok().map(|s| (s.system, s.args.clone()));
            elaboration.stages.push(instance);
            elaborated
        })
        .collect();
    let mut outputs = Vec::new();
    elaboration.elaborator.errors.within(&what, tree.origin);
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for input in &tree.inputs {
        seen.insert(&input.name.text, input.name.span);
    }
    for (name, source) in &tree.outputs {
        if let Some(before) = seen.insert(&name.text, name.span) {
            elaboration
                .elaborator
                .errors
                .report(duplicate(&name.text, name.span, before));
        }
        outputs.push(
            elaboration
                .source(source, tree.stages.len())
                .map(|(source, _)| (name.text.clone(), source)),
        );
    }
    elaboration.elaborator.errors.outside();
    Some(Program {
        name: tree.name.text.clone(),
        params: tree.params.iter().map(system::param).collect(),
        context,
        inputs,
        stages: stages.into_iter().collect::<Elaborated<_>>().ok()?,
        outputs: outputs.into_iter().collect::<Elaborated<_>>().ok()?,
        span: tree.origin.span(),
    })
}

struct Elaboration<'a, 'e> {
    tree: &'a tree::Program,
    systems: &'a [System],
    elaborator: Elaborator<'e>,
    inputs: Vec<Shape>,
    /// For each earlier stage, its system and arguments; `None` if elaborating it failed.
    stages: Vec<Option<(usize, Vec<Form>)>>,
}

impl Elaboration<'_, '_> {
    fn stage(&mut self, n: usize, stage: &tree::Stage) -> Elaborated<Stage> {
        let systems = self.systems;
        let what = format!("the stage `{}`", stage.name.text);
        self.elaborator.errors.within(&what, stage.origin);
        let Some((at, system)) = systems
            .iter()
            .enumerate()
            .find(|(_, s)| s.name == stage.system.text)
        else {
            let error = unknown_system(&stage.system.text, stage.system.span, systems);
            return self.elaborator.errors.fail(error);
        };
        let args = self.args(stage, system);
        let inputs = self.stage_inputs(n, stage, system, args.as_ref().ok());
        Ok(Stage {
            name: stage.name.text.clone(),
            system: at,
            args: args?,
            inputs: inputs?,
            span: stage.origin.span(),
        })
    }

    /// The argument for each parameter of the system, in declaration order.
    fn args(&mut self, stage: &tree::Stage, system: &System) -> Elaborated<Vec<Form>> {
        let mut args: Vec<Option<Form>> = vec![None; system.params.len()];
        let mut result = Ok(());
        for (name, value) in &stage.args {
            let form = self.elaborator.form(value);
            let slot = system.params.iter().position(|p| p.name == name.text);
            let known = system.param_names();
            match slot.and_then(|slot| args.get_mut(slot)) {
                Some(Some(_)) => {
                    self.param_error(
                        name.span,
                        format!("`{}` is given twice", name.text),
                        "give it once",
                    );
                    result = Err(Failed);
                }
                Some(empty) => match form {
                    Ok(form) => *empty = Some(form),
                    Err(Failed) => {
                        *empty = Some(Form::zero());
                        result = Err(Failed);
                    }
                },
                None => {
                    let help = match suggest(&name.text, known.iter().map(String::as_str)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("its parameters are {}", listed(&known)),
                    };
                    let message = format!(
                        "the system `{}` has no parameter `{}`",
                        system.name, name.text
                    );
                    self.param_error(name.span, message, &help);
                    result = Err(Failed);
                }
            }
        }
        let missing: Vec<String> = system
            .params
            .iter()
            .zip(&args)
            .filter(|(_, arg)| arg.is_none())
            .map(|(p, _)| p.name.clone())
            .collect();
        if let Some(first) = missing.first() {
            let message = format!(
                "the stage `{}` gives no value to {} of `{}`",
                stage.name.text,
                listed(&missing),
                system.name
            );
            self.param_error(stage.system.span, message, &format!("add `{first} = …`"));
            return Err(Failed);
        }
        result?;
        args.into_iter().collect::<Option<_>>().ok_or(Failed)
    }

    fn param_error(&mut self, span: Span, message: String, help: &str) {
        let error = Diagnostic::new(&types::STAGE_PARAMETERS, span, message);
        self.elaborator.errors.report(error.help(help));
    }

    fn input_error(&mut self, span: Span, message: String, help: &str) {
        let error = Diagnostic::new(&types::STAGE_INPUTS, span, message);
        self.elaborator.errors.report(error.help(help));
    }

    /// The source of each input without contents, in declaration order.
    fn stage_inputs(
        &mut self,
        n: usize,
        stage: &tree::Stage,
        system: &System,
        args: Option<&Vec<Form>>,
    ) -> Elaborated<Vec<(InputId, Source)>> {
        let mut sources: Vec<Option<Source>> = vec![None; system.inputs.len()];
        let mut result = Ok(());
        for (name, source) in &stage.inputs {
            let resolved = self.source(source, n);
            let Some(input) = system.find_input(&name.text) else {
                let known: Vec<String> = system.inputs.iter().map(|i| i.name.clone()).collect();
                let help = match suggest(&name.text, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its inputs are {}", listed(&known)),
                };
                let message = format!("the system `{}` has no input `{}`", system.name, name.text);
                self.input_error(name.span, message, &help);
                result = Err(Failed);
                continue;
            };
            if has_contents(system, input) {
                let message = format!("the table `{}` has its contents already", name.text);
                self.input_error(name.span, message, "leave it away");
                result = Err(Failed);
                continue;
            }
            let Some(slot) = sources.get_mut(input.index()) else {
                return Err(Failed);
            };
            if slot.is_some() {
                let message = format!("`{}` is given twice", name.text);
                self.input_error(name.span, message, "give it once");
                result = Err(Failed);
                continue;
            }
            match resolved {
                Ok((from, shape)) => {
                    *slot = Some(from);
                    if let (Some(shape), Some(args)) = (shape, args) {
                        let wanted = input_shape(system, input, args);
                        result = result.and(self.connect(name, source, &wanted, &shape));
                    }
                }
                Err(Failed) => {
                    *slot = Some(Source::Input(0));
                    result = Err(Failed);
                }
            }
        }
        let missing: Vec<String> = (0..system.inputs.len())
            .filter(|n| sources.get(*n) == Some(&None) && !has_contents(system, InputId::from(*n)))
            .filter_map(|n| system.inputs.get(n).map(|i| i.name.clone()))
            .collect();
        if let Some(first) = missing.first() {
            let message = format!(
                "the stage `{}` gives no array to {} of `{}`",
                stage.name.text,
                listed(&missing),
                system.name
            );
            self.input_error(stage.system.span, message, &format!("add `{first} = …`"));
            return Err(Failed);
        }
        result?;
        Ok(sources
            .into_iter()
            .enumerate()
            .filter_map(|(n, source)| Some((InputId::from(n), source?)))
            .collect())
    }

    /// The source of an array that stage `n` reads, with its shape if that is known.
    fn source(&mut self, source: &tree::Source, n: usize) -> Elaborated<(Source, Option<Shape>)> {
        let name = &source.base.text;
        match (self.elaborator.names.get(name), &source.output) {
            (Some(Entity::Input(input)), None) => {
                let shape = self.inputs.get(input.index()).map(Shape::copy);
                Ok((Source::Input(input.index()), shape))
            }
            (Some(Entity::Stage(stage)), Some(output)) => {
                self.stage_output(stage, n, output, source)
            }
            (Some(Entity::Stage(_)), None) => self.elaborator.errors.fail(
                Diagnostic::new(
                    &types::WRONG_KIND,
                    source.span,
                    format!("`{name}` is a stage, not an array"),
                )
                .help(format!("name one of its outputs: `{name}.z`")),
            ),
            (Some(entity), _) => self.elaborator.errors.fail(
                Diagnostic::new(
                    &types::WRONG_KIND,
                    source.span,
                    format!(
                        "`{name}` is {}, not an array of the program with this part",
                        entity.describe()
                    ),
                )
                .help("name an input of the program, or `stage.output`"),
            ),
            (None, _) => {
                let error = self.elaborator.names.unknown(name, source.base.span);
                self.elaborator.errors.fail(error)
            }
        }
    }

    fn stage_output(
        &mut self,
        stage: usize,
        reader: usize,
        output: &systola_ir::mapping::Name,
        source: &tree::Source,
    ) -> Elaborated<(Source, Option<Shape>)> {
        if stage >= reader {
            let error = Diagnostic::new(
                &types::STAGE_ORDER,
                source.span,
                if stage == reader {
                    format!("the stage `{}` reads its own output", source.base.text)
                } else {
                    format!("the stage `{}` runs only after this one", source.base.text)
                },
            );
            let error = match self.tree.stages.get(stage) {
                Some(later) => error.also(later.name.span, "declared here"),
                None => error,
            };
            return self.elaborator.errors.fail(
                error.help("stages run in the order they are written: read earlier ones only"),
            );
        }
        let system = self
            .tree
            .stages
            .get(stage)
            .and_then(|s| self.systems.iter().find(|y| y.name == s.system.text));
        // An unknown system is reported at the declaration of its stage.
        let Some(system) = system else {
            return Err(Failed);
        };
        let Some(n) = system.outputs.iter().position(|o| o.name == output.text) else {
            let known: Vec<String> = system.outputs.iter().map(|o| o.name.clone()).collect();
            let error = Diagnostic::new(
                &types::UNKNOWN_NAME,
                output.span,
                format!(
                    "the system `{}` has no output `{}`",
                    system.name, output.text
                ),
            );
            let help = match suggest(&output.text, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its outputs are {}", listed(&known)),
            };
            return self.elaborator.errors.fail(error.help(help));
        };
        let shape = match self.stages.get(stage) {
            Some(Some((_, args))) => Some(output_shape(system, n, args)),
            _ => None,
        };
        Ok((Source::Output { stage, output: n }, shape))
    }

    fn connect(
        &mut self,
        name: &systola_ir::mapping::Name,
        source: &tree::Source,
        wanted: &Shape,
        found: &Shape,
    ) -> Elaborated<()> {
        let shown = match &source.output {
            Some(output) => format!("{}.{}", source.base.text, output.text),
            None => source.base.text.clone(),
        };
        let params: Vec<String> = self.tree.params.iter().map(|p| p.text.clone()).collect();
        let (what, wanted, found) = if wanted.ty != found.ty {
            (
                "elements of type",
                wanted.ty.to_string(),
                found.ty.to_string(),
            )
        } else if wanted.rank != found.rank {
            (
                "this many axes:",
                wanted.rank.to_string(),
                found.rank.to_string(),
            )
        } else {
            let differs = wanted
                .extents
                .iter()
                .flatten()
                .zip(found.extents.iter().flatten())
                .find(|(a, b)| {
                    a.sub(b)
                        .as_constant()
                        .is_some_and(|difference| difference != 0)
                });
            match differs {
                Some((a, b)) => (
                    "an axis of length",
                    a.display(&params, &[]).to_string(),
                    b.display(&params, &[]).to_string(),
                ),
                None => return Ok(()),
            }
        };
        self.elaborator.errors.fail(
            Diagnostic::new(
                &types::ARRAY_MISMATCH,
                source.span,
                format!(
                    "the input `{}` wants {what} {wanted}, but `{shown}` has {found}",
                    name.text
                ),
            )
            .help("connect another array, or change the parameters of the stage"),
        )
    }
}

impl Shape {
    fn copy(&self) -> Shape {
        Shape {
            ty: self.ty,
            rank: self.rank,
            extents: self.extents.clone(),
        }
    }
}

fn has_contents(system: &System, input: InputId) -> bool {
    match system.inputs.get(input.index()).map(|i| &i.kind) {
        Some(InputKind::Table { data }) => data.is_some(),
        Some(InputKind::Array) | None => false,
    }
}

fn extents(axes: &[Axis]) -> Vec<Form> {
    axes.iter().map(|axis| axis.hi.sub(&axis.lo)).collect()
}

fn input_shape(system: &System, input: InputId, args: &[Form]) -> Shape {
    let Some(declared) = system.inputs.get(input.index()) else {
        return shape(system, Scalar::F32, &[], false, args);
    };
    let batched = system
        .batch
        .as_ref()
        .is_some_and(|batch| !batch.shared.contains(&input));
    shape(system, declared.ty, &declared.axes, batched, args)
}

fn output_shape(system: &System, output: usize, args: &[Form]) -> Shape {
    match system.outputs.get(output) {
        Some(output) => shape(
            system,
            output.ty,
            &output.axes,
            system.batch.is_some(),
            args,
        ),
        None => shape(system, Scalar::F32, &[], false, args),
    }
}

/// The shape of an array; if the system has a batch, with the axis of the batch in front.
fn shape(system: &System, ty: Scalar, axes: &[Axis], batched: bool, args: &[Form]) -> Shape {
    let batch = system
        .batch
        .as_ref()
        .filter(|_| batched)
        .map(|batch| batch.range.1.sub(&batch.range.0));
    let all: Vec<Form> = batch.into_iter().chain(extents(axes)).collect();
    Shape {
        ty,
        rank: all.len(),
        extents: all.iter().map(|form| instantiate(form, args)).collect(),
    }
}
