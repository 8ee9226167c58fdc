//! Front ends of Systola: they read source texts as systems, mappings and programs.

pub mod text;

pub use text::{format, parse_mapping, parse_module, parse_tree};
