//! The report of `check` on a legal mapping, as plain data.

use systola_ir::array::Realisation;

pub mod sections;

/// The array in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub system: String,
    pub mapping: String,
    /// The sizes for which the verdict holds.
    pub scope: Scope,
    /// The taxonomy name by Jo, Kim and Park, one letter for each stream: `SBM`.
    pub name: String,
    pub streams: Vec<Stream>,
    /// At the given sizes, if all parameters are given.
    pub counts: Option<Counts>,
    pub links: Vec<LinkRow>,
    pub registers: Vec<RegisterRow>,
    /// Registers of one PE, if they do not depend on sizes that are not given.
    pub registers_per_pe: Option<i128>,
    pub coalesced_per_pe: Option<i128>,
    /// z as a function of the slot, one line for each coordinate.
    pub reverse: Vec<String>,
    /// Injections: which input is read where, one line each.
    pub injections: Vec<String>,
    /// Drains: which output is written where, one line each.
    pub drains: Vec<String>,
    /// Where values are kept that points read through memory, one line for each variable.
    pub kept: Vec<String>,
    pub transfers: Vec<String>,
    /// Where the kernel deviates from the mapping, one line each.
    pub notes: Vec<String>,
}

impl Report {
    /// `array SBM`, if the streams give it a name.
    pub fn array_name(&self) -> String {
        if self.name.is_empty() {
            "an array".to_string()
        } else {
            format!("array {}", self.name)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Proved for all parameters in the context.
    AllSizes,
    /// Decided at the given sizes only, and why.
    GivenSizes(String),
}

/// One operand or sum of the taxonomy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub name: String,
    /// B, F, S for inputs; A, M, S for sums; `-` for an input without reuse.
    pub letter: char,
    /// The directions of reuse, each with s·e and P·e.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    pub params: Vec<(String, i128)>,
    /// Points of the domain, without copies.
    pub points: i128,
    /// Points of the expanded domain; more than `points` where tiles overlap.
    pub expanded: i128,
    pub pes: i128,
    /// Ticks of the clock from the first to the last.
    pub steps: i128,
    /// Elements written.
    pub outputs: i128,
    /// Elements written per step.
    pub throughput: f64,
    /// Busy slots among all.
    pub utilisation: f64,
    /// Steps between two uses of a PE.
    pub period: Option<i128>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    pub source: String,
    pub sink: String,
    pub distance: String,
    pub displacement: String,
    pub delay: String,
    pub realisation: Realisation,
    /// The condition under which it delivers, if not everywhere.
    pub guard: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RegisterRow {
    pub name: String,
    /// Scalars in one value.
    pub scalars: usize,
    pub depth: String,
    pub coalesced: String,
}
