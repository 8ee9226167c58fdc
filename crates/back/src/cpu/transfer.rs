//! Functions that move vectors between registers and memory.

use systola_ir::Scalar;

use super::lanes::{Vector, all_lanes};
use crate::error::Fault;
use crate::prelude::{File, Prelude};

impl Vector {
    /// A helper of `memory.h` for vectors of a type.
    fn memory_helper(&self, cx: &mut Context<'_>, what: &str, ty: Scalar) -> Result<String, Fault> {
        let vector = Vector::new(ty, self.lanes);
        let v = vector.name(cx.prelude)?;
        let name = format!("{what}_{v}");
        match what {
            "load" | "store" => {
                vector.memory_name(cx.prelude)?;
            }
            "load_if" => {
                self.memory_helper(cx, "load", ty)?;
                return self.masked_helper(cx, what, "mask_loadu", vector);
            }
            "store_if" => {
                self.memory_helper(cx, "store", ty)?;
                return self.masked_helper(cx, what, "mask_storeu", vector);
            }
            _ => return self.gather_helper(cx, what, vector),
        }
        vector.add_from(cx.prelude, File::Memory, &name, what, &[])?;
        Ok(name)
    }

    /// Accesses to elements that are not in a row, with instructions for them where elements are wide enough.
    fn gather_helper(
        &self,
        cx: &mut Context<'_>,
        what: &str,
        vector: Vector,
    ) -> Result<String, Fault> {
        let name = format!("{what}_{}", vector.name(cx.prelude)?);
        let offsets = Vector::new(Scalar::I64, self.lanes);
        offsets.name(cx.prelude)?;
        let bits = vector.ty.bits();
        let through = match what {
            "gather_at_if" | "scatter_at_if" => None,
            "gather_at" | "gather_if" => Some("gather_at_if"),
            "scatter_if" => Some("scatter_at_if"),
            _ => return self.plain_gather(cx, what, vector),
        };
        if bits < 32 || self.lanes < 8 {
            return self.plain_gather(cx, what, vector);
        }
        cx.prelude.include("immintrin.h");
        if let Some(through) = through {
            offsets.iota(cx.prelude)?;
            self.gather_helper(cx, through, vector)?;
        }
        let register = if bits == 32 { "__m256i" } else { "__m512i" };
        let letters = [
            ('G', register.to_string()),
            ('K', (self.lanes / 8).to_string()),
            ('A', (bits / 8).to_string()),
            ('B', bits.to_string()),
            ('I', all_lanes(self.lanes)),
        ];
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        let section = format!("{what}_wide");
        vector.add_from(cx.prelude, File::Memory, &name, &section, &letters)?;
        Ok(name)
    }

    fn plain_gather(
        &self,
        cx: &mut Context<'_>,
        what: &str,
        vector: Vector,
    ) -> Result<String, Fault> {
        let name = format!("{what}_{}", vector.name(cx.prelude)?);
        vector.add_from(cx.prelude, File::Memory, &name, what, &[])?;
        Ok(name)
    }

    /// `load_if` and `store_if`, with mask instructions where registers are large enough for them.
    fn masked_helper(
        &self,
        cx: &mut Context<'_>,
        what: &str,
        intrinsic: &str,
        vector: Vector,
    ) -> Result<String, Fault> {
        let name = format!("{what}_{}", vector.name(cx.prelude)?);
        let all = all_lanes(self.lanes);
        let Some(parts) = vector.parts() else {
            let letters = [('I', all.as_str())];
            let section = format!("{what}_lanes");
            vector.add_from(cx.prelude, File::Memory, &name, &section, &letters)?;
            return Ok(name);
        };
        cx.prelude.include("immintrin.h");
        let bits = vector.ty.bits();
        let mut letters = parts.letters(if bits >= 32 { "F" } else { "BW" });
        letters.push(('D', format!("{}_{intrinsic}_epi{bits}", parts.prefix)));
        letters.push(('I', all));
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        vector.add_from(cx.prelude, File::Memory, &name, what, &letters)?;
        Ok(name)
    }
}
