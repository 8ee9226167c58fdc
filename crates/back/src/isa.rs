//! What a CPU offers to vectors, and how its compiler is called.

use systola_ir::Scalar;

/// An instruction set, by the width of its vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isa {
    pub name: &'static str,
    /// Bytes of a vector register; 0: nothing is assumed.
    pub vector_bytes: u32,
}

impl Isa {
    pub const AVX512: Isa = Isa {
        name: "avx512",
        vector_bytes: 64,
    };
    pub const AVX2: Isa = Isa {
        name: "avx2",
        vector_bytes: 32,
    };
    /// SSE2, Neon and what else has registers of 128 bits.
    pub const V128: Isa = Isa {
        name: "v128",
        vector_bytes: 16,
    };
    /// Any machine with a C compiler.
    pub const PORTABLE: Isa = Isa {
        name: "portable",
        vector_bytes: 0,
    };

    /// Elements of one vector register.
    pub fn lanes(&self, ty: Scalar) -> u32 {
        (self.vector_bytes * 8 / ty.bits()).max(1)
    }

    /// Arguments of `cc` for every machine. Signed arithmetic has to wrap; the rest are licences that the
    /// meaning of kernels grants.
    pub const MEANING: [&str; 6] = [
        "-std=gnu11",
        "-O3",
        "-fwrapv",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-ffp-contract=fast",
    ];

    /// Arguments of `cc` that turn the source into a shared library for this machine.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = Self::MEANING.to_vec();
        flags.extend(["-fPIC", "-shared"]);
        match self.vector_bytes {
            0 => {}
            64 => flags.extend(["-march=native", "-mprefer-vector-width=512"]),
            _ => flags.push("-march=native"),
        }
        flags
    }

    /// Arguments that follow the source file.
    pub fn libraries(&self) -> Vec<&'static str> {
        vec!["-lm"]
    }
}
