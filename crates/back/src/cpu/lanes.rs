//! Vector types, and the helpers that make, select and move their lanes.

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

    /// The result type of comparisons of such vectors: every element is 0 or −1.
    pub fn mask(self) -> Vector {
        Vector::new(signed(self.ty.bits()), self.lanes)
    }

    pub fn bytes(self) -> u32 {
        self.ty.bits() / 8 * self.lanes
    }

    /// The name of the type, which is declared on first use.
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

    /// Adds a section of `vector.h` under a name, once. This function defines `$T`, `$V`, `$L`,
    /// `$M` and `$N`.
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

    /// The function that sets all lanes to one value.
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

    /// Forces a vector into a register, where there is one for it: a compiler that knows where a
    /// vector comes from may reload it for every use.
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

    /// The function that selects by a mask.
    pub fn select(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("select_{}", self.name(prelude)?);
        self.add(prelude, &name, "select", &[])?;
        Ok(name)
    }

    /// A permutation of lanes that is known at compile time. Common ones are named after what they
    /// do; others are numbered.
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
    pub fn lane_shift(self, prelude: &mut Prelude, by: u32) -> Result<String, Fault> {
        let name = format!("lane_shift{by}_{}", self.name(prelude)?);
        let indices = list((0..self.lanes).map(|l| l + self.lanes - by));
        let by = by.to_string();
        self.add(prelude, &name, "lane_shift", &[('F', &by), ('I', &indices)])?;
        Ok(name)
    }

    /// The function that permutes lanes by computed indices.
    pub fn pick(self, prelude: &mut Prelude) -> Result<String, Fault> {
        let name = format!("pick_{}", self.name(prelude)?);
        let last = (self.lanes - 1).to_string();
        self.add(prelude, &name, "pick", &[('K', &last)])?;
        Ok(name)
    }

    /// The function for the mask of the lanes less than a number.
    pub fn lane_below(self, prelude: &mut Prelude) -> Result<String, Fault> {
        self.iota(prelude)?;
        let name = format!("lane_below_{}", self.name(prelude)?);
        self.add(prelude, &name, "lane_below", &[])?;
        Ok(name)
    }

    /// The function for the mask of one lane.
    pub fn lane_at(self, prelude: &mut Prelude) -> Result<String, Fault> {
        self.iota(prelude)?;
        let name = format!("lane_at_{}", self.name(prelude)?);
        self.add(prelude, &name, "lane_at", &[])?;
        Ok(name)
    }

    /// The function that converts a mask to the bits of an integer.
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

    /// The function that tests whether a mask is set in any lane.
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

    /// The registers with mask instructions that hold the vector. `None` if it is smaller than all
    /// of them.
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
    /// The prefix of the intrinsics.
    pub prefix: &'static str,
    pub number: u32,
    /// The elements of each part.
    pub elements: u32,
    /// Are they the widest registers?
    pub whole: bool,
}

impl Parts {
    /// The letters `$C`, `$G`, `$K`, `$A`, `$B` of the prelude: the condition that the instructions
    /// exist, the register type, the number of registers, the elements of each, and the type of
    /// their masks.
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

/// The bits of all lanes.
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
