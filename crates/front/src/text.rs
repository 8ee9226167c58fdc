//! The text language: `.ure` files of systems, mappings and programs.
//!
//! [`parse_module`] parses a whole file, [`parse_mapping`] a single mapping. Both return all
//! errors. Names and types are checked only if there is no syntax error, so that one missing
//! bracket does not cause a list of unknown names.

mod format;
mod lexer;
mod parser;
mod stack;

pub use format::format;
use systola_ir::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use systola_surface::{elaborate_module, tree};

/// Parses a file of systems, mappings and programs.
pub fn parse_module(source: &str) -> Result<Module, Vec<Diagnostic>> {
    stack::with_room(|| elaborate_module(parser::parse_file(source)?))
}

/// Parses a text without checking its meaning, for editors. The tree of a text with mistakes has
/// the parts that were read without one.
pub fn parse_tree(source: &str) -> (tree::Module, Vec<Diagnostic>) {
    stack::with_room(|| parser::parse_tree(source))
}

/// Parses one `mapping … of … { … }`, without checking that its system exists.
pub fn parse_mapping(source: &str) -> Result<Mapping, Vec<Diagnostic>> {
    stack::with_room(|| parser::parse_single_mapping(source))
}
