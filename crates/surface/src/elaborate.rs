//! Elaboration: from the tree to systems, mappings and programs. Resolves names, infers types, and
//! rewrites stencils as systems.
//!
//! Elaboration continues after an error, so that all errors are found at once. An error points at
//! the source text. Without a text, it names the declaration that contains it and the location of
//! that declaration.

use std::collections::HashMap;

use systola_ir::codes::types;
use systola_ir::mapping::Name;
use systola_ir::system::{Module, Program, System};
use systola_ir::{Diagnostic, Span};

use crate::suggest::suggest;
use crate::tree;

mod conv;
mod errors;
mod forms;
mod functions;
mod infer;
pub mod mapping;
mod names;
mod program;
mod size;
mod stencil;
mod system;
mod table;
mod value;

pub(crate) use errors::{Elaborated, Errors, Failed};

/// Elaborates a whole module, such as a file.
pub fn elaborate_module(tree: tree::Module) -> Result<Module, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    distinct_items(&tree, &mut errors);
    let mut module = Module {
        hints: tree.hints,
        ..Module::default()
    };
    for item in &tree.systems {
        module.systems.push(system::elaborate(item, &mut errors));
    }
    for item in tree.stencils {
        module.systems.push(stencil::elaborate(item, &mut errors));
    }
    for item in tree.convs {
        module.systems.push(conv::elaborate(item, &mut errors));
    }
    for item in tree.mappings {
        if !module.systems.iter().any(|s| s.name == item.mapping.system) {
            errors.report(unknown_system(
                &item.mapping.system,
                item.system_span,
                &module.systems,
            ));
        }
        module.mappings.push(item.mapping);
    }
    for item in &tree.programs {
        let program = program::elaborate(item, &module.systems, &mut errors);
        module.programs.extend(program);
    }
    errors.finish(Some(module))
}

/// Elaborates a single system.
pub fn elaborate_system(tree: &tree::System) -> Result<System, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    let system = system::elaborate(tree, &mut errors);
    errors.finish(Some(system))
}

/// The system that computes a stencil.
pub fn elaborate_stencil(tree: tree::Stencil) -> Result<System, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    let system = stencil::elaborate(tree, &mut errors);
    errors.finish(Some(system))
}

/// The system that computes a convolution.
pub fn elaborate_conv(tree: tree::Conv) -> Result<System, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    let system = conv::elaborate(tree, &mut errors);
    errors.finish(Some(system))
}

/// Elaborates a program of systems that are elaborated already.
pub fn elaborate_program(
    tree: &tree::Program,
    systems: &[System],
) -> Result<Program, Vec<Diagnostic>> {
    let mut errors = Errors::default();
    let program = program::elaborate(tree, systems, &mut errors);
    errors.finish(program)
}

/// Systems and programs share a namespace, since both can be run; mappings have their own.
fn distinct_items(tree: &tree::Module, errors: &mut Errors) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let runnable = tree.systems.iter().map(|s| &s.name);
    let runnable = runnable.chain(tree.stencils.iter().map(|s| &s.name));
    let runnable = runnable.chain(tree.convs.iter().map(|c| &c.name));
    for name in runnable.chain(tree.programs.iter().map(|p| &p.name)) {
        if let Some(before) = seen.insert(&name.text, name.span) {
            errors.report(names::duplicate(&name.text, name.span, before));
        }
    }
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for item in &tree.mappings {
        let name = Name {
            text: item.mapping.name.clone(),
            span: item.name_span,
        };
        names::check_name(&name, "a mapping", errors);
        if let Some(before) = seen.insert(&item.mapping.name, item.name_span) {
            errors.report(names::duplicate(&item.mapping.name, item.name_span, before));
        }
    }
}

fn unknown_system(name: &str, span: Span, systems: &[System]) -> Diagnostic {
    let known: Vec<&str> = systems.iter().map(|s| s.name.as_str()).collect();
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

/// A list of names, shortened to fit on a line.
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
