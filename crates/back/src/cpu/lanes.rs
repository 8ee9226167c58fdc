//! Vector types and the helpers that make, choose and move their lanes.

use systola_ir::Scalar;

use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::{File, Prelude};
use crate::scalar::{c_type, signed};

/// A vector type: a number of elements of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    pub ty: Scalar,
    pub lanes: u32,
}

impl Vector {
    pub fn new(ty: Scalar, lanes: u32) -> Vector {
        Vector { ty, lanes }
    }

    /// What comparisons of such vectors give: every element 0 or −1.
    pub fn mask(self) -> Vector {
        Vector::new(signed(self.ty.bits()), self.lanes)
    }

    pub fn bytes(self) -> u32 {
        self.ty.bits() / 8 * self.lanes
    }

    /// The type's name, declared if it is not.
    pub fn name(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("{}x{}", self.ty, self.lanes);
        let (c, bytes) = (c_type(self.ty)?, self.bytes());
        prelude.add_type(&name, || {
            format!("typedef {c} {name} __attribute__((vector_size({bytes})));")
        });
        Ok(name)
    }

    /// The type of such vectors in memory, where they are aligned like their elements.
    pub fn memory_name(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("{}_mem", self.name(prelude)?);
        let (c, bytes, align) = (c_type(self.ty)?, self.bytes(), self.ty.bits() / 8);
        prelude.add_type(&name, || {
            format!("typedef {c} {name} __attribute__((vector_size({bytes}), aligned({align}), may_alias));")
        });
        Ok(name)
    }

    /// Adds a section of `vector.h` under a name, once. `$T`, `$V`, `$L`, `$M`, `$N` are known here.
    pub fn add(
        self,
        prelude: &mut Prelude,
        name: &str,
        section: &str,
        more: &[(char, &str)],
    ) -> Result<(), Fault> {
        self.add_from(prelude, File::Vector, name, section, more)
    }

    pub fn add_from(
        self,
        prelude: &mut Prelude,
        file: File,
        name: &str,
        section: &str,
        more: &[(char, &str)],
    ) -> Result<(), Fault> {
        let vector = self.name(prelude)?;
        let mask = if Prelude::says(file, section, 'M') {
            self.mask().name(prelude)?
        } else {
            String::new()
        };
        let lanes = self.lanes.to_string();
        let mut letters = vec![
            ('T', c_type(self.ty)?),
            ('V', vector.as_str()),
            ('M', mask.as_str()),
            ('L', lanes.as_str()),
            ('N', self.ty.name()),
        ];
        letters.extend_from_slice(more);
        prelude.add(name, file, section, &letters);
        Ok(())
    }

    /// All lanes the same.
    pub fn splat(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("splat_{}", self.name(prelude)?);
        self.add(prelude, &name, "splat", &[])?;
        Ok(name)
    }

    /// 0, 1, 2, …
    pub fn iota(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("iota_{}", self.name(prelude)?);
        let numbers = list(0..self.lanes);
        self.add(prelude, &name, "iota", &[('I', &numbers)])?;
        Ok(name)
    }

    /// A vector that stays in a register, where there is one for it: a compiler that knows where a vector comes from may
    /// load it again for every use.
    pub fn hold(self, prelude: &mut Prelude, e: Expr) -> Result<Expr, Fault> {
        let feature = match self.bytes() {
            16 => "__SSE2__",
            32 => "__AVX__",
            64 => "__AVX512F__",
            _ => return Ok(e),
        };
        let name = format!("hold_{}", self.name(prelude)?);
        self.add(prelude, &name, "hold", &[('C', feature)])?;
        Ok(Expr::call(&name, &[e]))
    }

    /// By a mask.
    pub fn select(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("select_{}", self.name(prelude)?);
        self.add(prelude, &name, "select", &[])?;
        Ok(name)
    }

    /// Lanes from places that are known here. Names after what they do are kept; others are numbered.
    pub fn permute(self, prelude: &mut Prelude, from: &[u32]) -> Result<String, Fault> {
        let reversed = from.iter().copied().eq((0..self.lanes).rev());
        let up = (1..self.lanes).find(|by| {
            let by = *by;
            let lanes = self.lanes;
            (0..lanes).all(|l| from[l as usize] == (l + by) % lanes)
        });
        let what = match up {
            _ if reversed => "reverse".to_string(),
            Some(by) => format!("rotate{by}"),
            None => format!("permute_{}", list(from.iter().copied()).replace(", ", "_")),
        };
        let name = format!("{what}_{}", self.name(prelude)?);
        let indices = list(from.iter().copied());
        self.add(prelude, &name, "permute", &[('F', &what), ('I', &indices)])?;
        Ok(name)
    }

    /// The top `by` lanes of one vector, then the rest of another.
    pub fn slide(self, prelude: &mut Prelude, by: u32) -> Result<String, Fault> {
        let name = format!("slide{by}_{}", self.name(prelude)?);
        let indices = list((0..self.lanes).map(|l| l + self.lanes - by));
        let by = by.to_string();
        self.add(prelude, &name, "slide", &[('F', &by), ('I', &indices)])?;
        Ok(name)
    }

    /// Lanes from places that are computed.
    pub fn pick(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("pick_{}", self.name(prelude)?);
        let last = (self.lanes - 1).to_string();
        self.add(prelude, &name, "pick", &[('K', &last)])?;
        Ok(name)
    }

    /// A mask of the lanes less than a number.
    pub fn lane_below(self, prelude: &mut Prelude) -> Result<String, Fault> {
        self.iota(prelude)?;
        let name = format!("lane_below_{}", self.name(prelude)?);
        self.add(prelude, &name, "lane_below", &[])?;
        Ok(name)
    }

    /// A mask of the lane with a number.
    pub fn lane_at(self, prelude: &mut Prelude) -> Result<String, Fault> {
        self.iota(prelude)?;
        let name = format!("lane_at_{}", self.name(prelude)?);
        self.add(prelude, &name, "lane_at", &[])?;
        Ok(name)
    }

    /// A mask as bits of an integer.
    pub fn lanes_where(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let vector = self.name(prelude)?;
        let name = format!("lanes{}_where_{vector}", self.lanes);
        match self.parts() {
            None => self.add(prelude, &name, "lanes_where_lanes", &[])?,
            Some(parts) => {
                prelude.include("immintrin.h");
                let bits = self.ty.bits();
                let letters = parts.letters(if bits >= 32 { "DQ" } else { "BW" });
                let intrinsic = format!("{}_movepi{bits}_mask", parts.prefix);
                let mut letters: Vec<(char, &str)> =
                    letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
                letters.push(('D', &intrinsic));
                self.add(prelude, &name, "lanes_where", &letters)?;
            }
        }
        Ok(name)
    }

    /// `min` or `max` of floats.
    pub fn add_extremum(self, prelude: &mut Prelude, name: &str, what: &str) -> Result<(), Fault> {
        let section = format!("{what}_float");
        let Some(parts) = self.parts() else {
            return self.add(prelude, name, &format!("{section}_lanes"), &[]);
        };
        prelude.include("immintrin.h");
        let (kind, suffix) = match self.ty {
            Scalar::F32 => ("", "ps"),
            _ => ("d", "pd"),
        };
        let register = format!("{}{kind}", parts.register.trim_end_matches('i'));
        let intrinsic = format!("{}_range_{suffix}", parts.prefix);
        let mut letters = parts.letters("DQ");
        letters.retain(|(letter, _)| !matches!(letter, 'G' | 'D'));
        letters.extend([('G', register), ('D', intrinsic)]);
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        self.add(prelude, name, &section, &letters)
    }

    /// Whether a mask is set in some lane.
    pub fn any(self, prelude: &mut Prelude) -> Result<String, Fault> {
        self.lanes_where(prelude)?;
        let name = format!("any_{}", self.name(prelude)?);
        let bits = self.ty.bits();
        let there = self.parts().map_or("0".to_string(), |parts| {
            let letters = parts.letters(if bits >= 32 { "DQ" } else { "BW" });
            letters
                .into_iter()
                .find(|(c, _)| *c == 'C')
                .map_or_else(String::new, |(_, s)| s)
        });
        self.add(prelude, &name, "any", &[('C', &there)])?;
        Ok(name)
    }

    /// How registers with mask instructions hold the vector. `None`: it is smaller than all of them.
    pub fn parts(self) -> Option<Parts> {
        let bytes = self.bytes().min(64);
        let (register, prefix) = match bytes {
            16 => ("__m128i", "_mm"),
            32 => ("__m256i", "_mm256"),
            64 => ("__m512i", "_mm512"),
            _ => return None,
        };
        Some(Parts {
            register,
            prefix,
            number: self.bytes() / bytes,
            elements: bytes * 8 / self.ty.bits(),
            whole: bytes == 64,
        })
    }
}

/// A vector in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub register: &'static str,
    /// Of intrinsics.
    pub prefix: &'static str,
    pub number: u32,
    /// Of each part.
    pub elements: u32,
    /// Are they the widest registers?
    pub whole: bool,
}

impl Parts {
    /// `$C`, `$G`, `$K`, `$A`, `$B` of the prelude: where it is there, registers, their number, elements, masks.
    pub fn letters(&self, extension: &str) -> Vec<(char, String)> {
        let mut there = format!("defined(__AVX512{extension}__)");
        if !self.whole {
            there.push_str(" && defined(__AVX512VL__)");
        }
        vec![
            ('C', there),
            ('G', self.register.to_string()),
            ('K', self.number.to_string()),
            ('A', self.elements.to_string()),
            ('B', format!("__mmask{}", self.elements.max(8))),
        ]
    }
}

/// All lanes on, as bits.
pub fn all_lanes(lanes: u32) -> String {
    format!("UINT64_C({:#x})", u64::MAX >> (64 - lanes))
}

/// The bits of lanes less than a number.
pub fn lanes_below(prelude: &mut Prelude, lanes: u32) -> String {
    let name = format!("lanes{lanes}_below");
    let letters = [('L', &*lanes.to_string()), ('A', &*all_lanes(lanes))];
    prelude.add(&name, File::Vector, "lanes_below", &letters);
    name
}

/// The bit of the lane with a number.
pub fn lanes_at(prelude: &mut Prelude, lanes: u32) -> String {
    let name = format!("lanes{lanes}_at");
    let letters = [('L', &*lanes.to_string())];
    prelude.add(&name, File::Vector, "lanes_at", &letters);
    name
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = numbers.map(|n| n.to_string()).collect();
    numbers.join(", ")
}
