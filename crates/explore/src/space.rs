//! The mappings that are looked at.

use systola_ir::mapping::Mapping;

/// One mapping of the space, and the choices that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub mapping: Mapping,
    /// What was chosen, for tables and pictures: `("lanes", "c")`, `("registers", "8 r × 2 c")`.
    pub choices: Vec<(&'static str, String)>,
}
