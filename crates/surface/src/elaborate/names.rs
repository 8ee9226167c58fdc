//! The symbol table of a system. All names are distinct; there is no shadowing.

use std::cell::Cell;
use std::collections::HashMap;

use systola_ir::codes::{syntax, types};
use systola_ir::mapping::Name;
use systola_ir::{ConstId, Diagnostic, DimId, FnId, InputId, LocalId, ParamId, Span, UnOp, VarId};

use super::Errors;
use crate::suggest::suggest;
use crate::words::{is_identifier, is_reserved};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Param(ParamId),
    Const(ConstId),
    Dim(DimId),
    /// The iterator of `batch`, which no expression may use.
    Batch,
    Var(VarId),
    Input(InputId),
    Fn(FnId),
    Output,
    Local(LocalId),
    /// A stage of a program.
    Stage(usize),
}

impl Entity {
    pub fn describe(self) -> &'static str {
        match self {
            Entity::Param(_) => "a parameter",
            Entity::Const(_) => "a constant",
            Entity::Dim(_) => "an iterator",
            Entity::Batch => "the index of the batch",
            Entity::Var(_) => "a variable",
            Entity::Input(_) => "an array",
            Entity::Fn(_) => "a function",
            Entity::Output => "an output",
            Entity::Local(_) => "a local value",
            Entity::Stage(_) => "a stage",
        }
    }
}

#[derive(Default)]
pub struct Names {
    map: HashMap<String, (Entity, Span)>,
    /// The number of searches for a similar name.
    n_searches: Cell<usize>,
}

/// Users do not read more suggestions than this, and each search takes time.
const MAX_SEARCHES: usize = 100;

impl Names {
    /// Declares a name. If the name is taken, reports an error and returns false.
    pub fn declare(&mut self, name: &Name, entity: Entity, errors: &mut Errors) -> bool {
        // An invalid name is declared nevertheless, so that its uses cause no further errors.
        check_name(name, entity.describe(), errors);
        if let Some((_, before)) = self.map.get(&name.text) {
            errors.report(duplicate(&name.text, name.span, *before));
            return false;
        }
        self.map.insert(name.text.clone(), (entity, name.span));
        true
    }

    /// Declares a name that is known to be valid.
    pub fn assume(&mut self, name: &str, span: Span, entity: Entity) {
        self.map.entry(name.to_string()).or_insert((entity, span));
    }

    pub fn forget(&mut self, name: &str) {
        self.map.remove(name);
    }

    pub fn get(&self, name: &str) -> Option<Entity> {
        self.map.get(name).map(|(entity, _)| *entity)
    }

    /// The location of the declaration.
    pub fn span(&self, name: &str) -> Option<Span> {
        self.map.get(name).map(|(_, span)| *span)
    }

    pub fn unknown(&self, name: &str, span: Span) -> Diagnostic {
        let error = Diagnostic::new(
            &types::UNKNOWN_NAME,
            span,
            format!("nothing is called `{name}` here"),
        );
        if self.n_searches.replace(self.n_searches.get() + 1) >= MAX_SEARCHES {
            return error.help("declare it");
        }
        // Sorted, so that ties are broken deterministically.
        let mut known: Vec<&str> = self.map.keys().map(String::as_str).collect();
        known.sort_unstable();
        let builtin = ["select", "reduce", "scan", "min", "max", "pow"].into_iter();
        let builtin = builtin.chain(UnOp::FUNCTIONS.map(UnOp::name));
        match suggest(name, known.into_iter().chain(builtin)) {
            Some(near) => {
                let error = error.help(format!("did you mean `{near}`?"));
                match self.span(near) {
                    Some(span) => error.also(span, format!("`{near}` is declared here")),
                    None => error,
                }
            }
            None => error.help("declare it as a parameter, iterator, input, variable or function"),
        }
    }
}

/// Reports an error if the name is not valid in the text language.
pub fn check_name(name: &Name, what: &str, errors: &mut Errors) {
    let text = &name.text;
    let (code, message, help) = if is_reserved(text) {
        (
            &syntax::RESERVED_WORD,
            format!("`{text}` is a reserved word, and cannot name {what}"),
            format!("take another name, such as `{text}_`"),
        )
    } else if !is_identifier(text) {
        (
            &types::UNKNOWN_NAME,
            format!("`{text}` is no name for {what}"),
            "a name is a letter or `_`, then letters, digits, `_` and `'`".to_string(),
        )
    } else {
        return;
    };
    errors.report(Diagnostic::new(code, name.span, message).help(help));
}

pub fn duplicate(name: &str, span: Span, before: Span) -> Diagnostic {
    Diagnostic::new(
        &types::DUPLICATE_NAME,
        span,
        format!("`{name}` is already declared"),
    )
    .also(before, "first declared here")
    .help("take another name; in a system all names are distinct")
}
