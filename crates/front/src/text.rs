//! The text language: `.ure` files of systems, mappings and programs.
//!
//! [`parse_module`] reads a whole file, [`parse_mapping`] a single mapping. Both return every
//! mistake they find. Syntax comes first: names and types are looked at only once the text is
//! well formed, so that one missing bracket does not bury itself in unknown names.

mod lexer;
mod parser;
mod stack;

use systola_ir::Diagnostic;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use systola_surface::elaborate_module;

/// Reads a file of systems, mappings and programs.
pub fn parse_module(source: &str) -> Result<Module, Vec<Diagnostic>> {
    stack::with_room(|| elaborate_module(parser::parse_file(source)?))
}

/// Reads one `mapping … of … { … }`; whether its system exists is not asked.
pub fn parse_mapping(source: &str) -> Result<Mapping, Vec<Diagnostic>> {
    stack::with_room(|| parser::parse_single_mapping(source))
}
