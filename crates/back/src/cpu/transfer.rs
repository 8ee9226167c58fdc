//! Functions that move vectors between registers and memory.

use systola_ir::Scalar;

use super::lanes::{Vector, all_lanes};
use crate::error::Fault;
use crate::prelude::{File, Prelude};

/// A helper of `memory.h`. Those that end in `If` take the bits of the lanes that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    Load,
    LoadIf,
    Store,
    StoreIf,
    /// Elements some distance apart.
    Gather,
    GatherIf,
    Scatter,
    ScatterIf,
    /// Elements anywhere.
    GatherAt,
    GatherAtIf,
    ScatterAt,
    ScatterAtIf,
}

impl Transfer {
    fn name(self) -> &'static str {
        match self {
            Transfer::Load => "load",
            Transfer::LoadIf => "load_if",
            Transfer::Store => "store",
            Transfer::StoreIf => "store_if",
            Transfer::Gather => "gather",
            Transfer::GatherIf => "gather_if",
            Transfer::Scatter => "scatter",
            Transfer::ScatterIf => "scatter_if",
            Transfer::GatherAt => "gather_at",
            Transfer::GatherAtIf => "gather_at_if",
            Transfer::ScatterAt => "scatter_at",
            Transfer::ScatterAtIf => "scatter_at_if",
        }
    }

    /// The function for vectors of a type, with all that it calls.
    pub fn function(self, prelude: &mut Prelude, vector: Vector) -> Result<String, Fault> {
        let name = format!("{}_{}", self.name(), vector.name(prelude)?);
        if prelude.has(&name) {
            return Ok(name);
        }
        let all = all_lanes(vector.lanes);
        let mut letters = vec![('I', all)];
        let mut section = self.name().to_string();
        match self {
            Transfer::Load | Transfer::Store => {
                vector.memory_name(prelude)?;
            }
            Transfer::LoadIf | Transfer::StoreIf => {
                let (whole, intrinsic) = match self {
                    Transfer::LoadIf => (Transfer::Load, "mask_loadu"),
                    _ => (Transfer::Store, "mask_storeu"),
                };
                whole.function(prelude, vector)?;
                match vector.parts() {
                    None => section.push_str("_lanes"),
                    Some(parts) => {
                        prelude.include("immintrin.h");
                        let bits = vector.ty.bits();
                        letters.extend(parts.letters(if bits >= 32 { "F" } else { "BW" }));
                        letters.push(('D', format!("{}_{intrinsic}_epi{bits}", parts.prefix)));
                    }
                }
            }
            Transfer::Gather | Transfer::Scatter | Transfer::ScatterAt => {
                Vector::new(Scalar::I64, vector.lanes).name(prelude)?;
            }
            Transfer::GatherIf
            | Transfer::ScatterIf
            | Transfer::GatherAt
            | Transfer::GatherAtIf
            | Transfer::ScatterAtIf => {
                Vector::new(Scalar::I64, vector.lanes).name(prelude)?;
                if has_gathers(vector) {
                    self.through(prelude, vector)?;
                    section.push_str("_wide");
                    letters.extend(gather_letters(vector));
                }
            }
        }
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        vector.add_from(prelude, File::Memory, &name, &section, &letters)?;
        Ok(name)
    }

    /// Adds the function that has the instruction in it, and what the way to it takes.
    fn through(self, prelude: &mut Prelude, vector: Vector) -> Result<(), Fault> {
        prelude.include("immintrin.h");
        let general = match self {
            Transfer::GatherIf | Transfer::GatherAt => Transfer::GatherAtIf,
            Transfer::ScatterIf => Transfer::ScatterAtIf,
            Transfer::Load
            | Transfer::LoadIf
            | Transfer::Store
            | Transfer::StoreIf
            | Transfer::Gather
            | Transfer::Scatter
            | Transfer::GatherAtIf
            | Transfer::ScatterAt
            | Transfer::ScatterAtIf => return Ok(()),
        };
        if self != Transfer::GatherAt {
            Vector::new(Scalar::I64, vector.lanes).iota(prelude)?;
        }
        general.function(prelude, vector)?;
        Ok(())
    }
}

/// Are there instructions for elements of this width? They take eight lanes at a time.
fn has_gathers(vector: Vector) -> bool {
    vector.ty.bits() >= 32 && vector.lanes >= 8
}

fn gather_letters(vector: Vector) -> [(char, String); 4] {
    let bits = vector.ty.bits();
    let register = if bits == 32 { "__m256i" } else { "__m512i" };
    [
        ('G', register.to_string()),
        ('K', (vector.lanes / 8).to_string()),
        ('A', (bits / 8).to_string()),
        ('B', bits.to_string()),
    ]
}
