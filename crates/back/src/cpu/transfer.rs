//! Functions that move vectors between registers and memory.

use systola_ir::Scalar;

use super::lanes::{Vector, all_lanes};
use crate::error::Fault;
use crate::prelude::{File, Prelude};

/// A helper of `memory.h`. Those that end in `If` take the bits of the active lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    Load,
    LoadIf,
    Store,
    StoreIf,
    /// Elements at a fixed distance.
    Gather,
    GatherIf,
    Scatter,
    ScatterIf,
    /// Elements at arbitrary offsets.
    GatherAt,
    GatherAtIf,
    ScatterAt,
    ScatterAtIf,
    /// Elements at arbitrary offsets in an array that 32-bit indices reach.
    Lookup,
    /// The same in larger arrays.
    LookupFar,
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
            Transfer::Lookup => "lookup",
            Transfer::LookupFar => "lookup_far",
        }
    }

    /// The function for vectors of a type; adds it and everything it calls.
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
            Transfer::Lookup => {
                prelude.include("immintrin.h");
                let bits = vector.ty.bits();
                if bits == 32 {
                    Vector::new(Scalar::I32, vector.lanes).name(prelude)?;
                } else {
                    Vector::new(Scalar::U16, vector.lanes).name(prelude)?;
                    match narrow_letters(vector) {
                        None => section.push_str("_narrow_lanes"),
                        Some(more) => {
                            section.push_str("_narrow");
                            letters.extend(more);
                        }
                    }
                }
            }
            Transfer::LookupFar => {
                Transfer::GatherAt.function(prelude, vector)?;
            }
        }
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        vector.add_from(prelude, File::Memory, &name, &section, &letters)?;
        Ok(name)
    }

    /// Adds the general function with the gather or scatter instruction, and the other helpers it
    /// needs.
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
            | Transfer::ScatterAtIf
            | Transfer::Lookup
            | Transfer::LookupFar => return Ok(()),
        };
        if self != Transfer::GatherAt {
            Vector::new(Scalar::I64, vector.lanes).iota(prelude)?;
        }
        general.function(prelude, vector)?;
        Ok(())
    }
}

/// Are there gather instructions for elements of this width? They take eight lanes at a time.
fn has_gathers(vector: Vector) -> bool {
    vector.ty.bits() >= 32 && vector.lanes >= 8
}

/// How a lookup splits its indices into groups of sixteen and joins the elements.
fn narrow_letters(vector: Vector) -> Option<Vec<(char, String)>> {
    let bits = vector.ty.bits();
    let split = match vector.lanes {
        16 => "const __m256i part[1] = {(__m256i)at};",
        32 => {
            "const __m256i part[2] = {_mm512_castsi512_si256((__m512i)at), _mm512_extracti64x4_epi64((__m512i)at, 1)};"
        }
        64 => {
            "const union {\n        u16x64 v;\n        __m256i part[4];\n    } i = {.v = at};\n    const __m256i *part = i.part;"
        }
        _ => return None,
    };
    let (register, join) = match (bits, vector.lanes) {
        (8, 16) => ("__m128i", "r[0]"),
        (8, 32) => ("__m128i", "_mm256_set_m128i(r[1], r[0])"),
        (8, 64) => (
            "__m128i",
            "_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(r[1], r[0])), _mm256_set_m128i(r[3], r[2]), 1)",
        ),
        (16, 16) => ("__m256i", "r[0]"),
        (16, 32) => (
            "__m256i",
            "_mm512_inserti64x4(_mm512_castsi256_si512(r[0]), r[1], 1)",
        ),
        _ => return None,
    };
    Some(vec![
        ('S', split.to_string()),
        ('G', register.to_string()),
        ('J', join.to_string()),
        ('K', (vector.lanes / 16).to_string()),
        ('A', (bits / 8).to_string()),
        ('B', bits.ilog2().to_string()),
        ('C', (32 / bits - 1).to_string()),
        ('W', bits.to_string()),
    ])
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
