//! What the names of a system stand for; all are distinct.

use std::collections::HashMap;

use systola_ir::codes::types as codes;
use systola_ir::{ConstId, Diagnostic, DimId, FnId, InputId, LocalId, ParamId, Span, VarId};

use super::Lowered;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entity {
    Param(ParamId),
    Const(ConstId),
    Dim(DimId),
    /// The index of `batch`, which nothing may use.
    Batch,
    Var(VarId),
    Input(InputId),
    Fn(FnId),
    Output,
    Local(LocalId),
}

impl Entity {
    pub(crate) fn describe(self) -> &'static str {
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
        }
    }
}

#[derive(Default)]
pub(crate) struct Names(HashMap<String, Entity>);

impl Names {
    pub(crate) fn declare(&mut self, name: &str, entity: Entity) -> Lowered<()> {
        if !is_identifier(name) {
            return Err(Box::new(
                Diagnostic::new(
                    &codes::UNKNOWN_NAME,
                    Span::NONE,
                    format!("`{name}` is no name for {}", entity.describe()),
                )
                .help("a name is a letter or `_`, then letters, digits, `_` and `'`"),
            ));
        }
        if self.0.contains_key(name) {
            return Err(Box::new(
                Diagnostic::new(
                    &codes::DUPLICATE_NAME,
                    Span::NONE,
                    format!("`{name}` is already declared"),
                )
                .help("take another name; in a system all names are distinct"),
            ));
        }
        self.0.insert(name.to_string(), entity);
        Ok(())
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Entity> {
        self.0.get(name).copied()
    }

    pub(crate) fn unknown(&self, name: &str) -> Diagnostic {
        Diagnostic::new(
            &codes::UNKNOWN_NAME,
            Span::NONE,
            format!("nothing is called `{name}` here"),
        )
        .help("declare it as a parameter, iterator, input, variable or function")
    }
}

fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '\'')
}
