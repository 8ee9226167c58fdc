//! Front ends of Systola: each ends in systems and mappings.

pub mod text;

pub use text::{parse_mapping, parse_module};
