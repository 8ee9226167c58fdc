//! Names and types resolved: from the surface syntax to systems, mappings and programs.

use std::collections::HashMap;

use systola_ir::codes::types;
use systola_ir::system::Module;
use systola_ir::{Diagnostic, Span};

use crate::suggest::suggest;
use crate::tree;

mod conv;
mod forms;
mod functions;
mod infer;
mod names;
mod program;
mod size;
mod stencil;
mod system;
mod table;
mod value;

/// How many mistakes are reported.
const MAX_ERRORS: usize = 64;

/// The mistake is recorded.
#[derive(Debug)]
struct Failed;

type Elaborated<T> = Result<T, Failed>;

#[derive(Default)]
struct Errors(Vec<Diagnostic>);

impl Errors {
    fn report(&mut self, error: Diagnostic) {
        if self.0.len() < MAX_ERRORS {
            self.0.push(error);
        }
    }

    fn fail<T>(&mut self, error: Diagnostic) -> Elaborated<T> {
        self.report(error);
        Err(Failed)
    }
}

pub fn elaborate_module(file: tree::Module) -> Result<Module, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    distinct_items(&file, &mut errors);
    let mut module = Module::default();
    for system in &file.systems {
        module
            .systems
            .push(system::elaborate_system(system, &mut errors));
    }
    for stencil in file.stencils {
        module
            .systems
            .push(stencil::elaborate_stencil(stencil, &mut errors));
    }
    for conv in file.convs {
        module.systems.push(conv::elaborate_conv(conv, &mut errors));
    }
    for item in file.mappings {
        if !module.systems.iter().any(|s| s.name == item.mapping.system) {
            errors.report(unknown_system(
                &item.mapping.system,
                item.system_span,
                &module,
            ));
        }
        module.mappings.push(item.mapping);
    }
    for program in &file.programs {
        if let Some(program) = program::elaborate_program(program, &module, &mut errors) {
            module.programs.push(program);
        }
    }
    if errors.0.is_empty() {
        Ok(module)
    } else {
        errors.0.sort_by_key(|e| e.span().start);
        Err(errors.0)
    }
}

/// Systems and programs share their names, since both can be run; mappings have their own.
fn distinct_items(file: &tree::Module, errors: &mut Errors) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let runnable = file.systems.iter().map(|s| &s.name);
    let runnable = runnable.chain(file.stencils.iter().map(|s| &s.name));
    let runnable = runnable.chain(file.convs.iter().map(|c| &c.name));
    for name in runnable.chain(file.programs.iter().map(|p| &p.name)) {
        if let Some(before) = seen.insert(&name.text, name.span) {
            errors.report(names::duplicate(&name.text, name.span, before));
        }
    }
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for item in &file.mappings {
        if let Some(before) = seen.insert(&item.mapping.name, item.name_span) {
            errors.report(names::duplicate(&item.mapping.name, item.name_span, before));
        }
    }
}

fn unknown_system(name: &str, span: Span, module: &Module) -> Diagnostic {
    let known: Vec<&str> = module.systems.iter().map(|s| s.name.as_str()).collect();
    let error = Diagnostic::new(
        &types::UNKNOWN_SYSTEM,
        span,
        format!("there is no system `{name}` in this file"),
    );
    match suggest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error.help(format!("declare it: `system {name}(…) {{ … }}`")),
        None => error.help(format!("there are: {}", shorten(&known))),
    }
}

/// A list of names that fits on a line.
fn shorten(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>();
    if names.len() > SHOWN {
        text.push(format!("… ({} in all)", names.len()));
    }
    text.join(", ")
}
