//! What a printer passes to a runtime: source text, and how its kernels are called.

use systola_ir::BufferId;
use systola_ir::form::{Cond, Poly};

/// Every shared array starts at a multiple of this number of bytes and is followed by as many bytes
/// of padding, so that a vector that begins inside it can be read whole.
pub const SHARED_ALIGN: u64 = 64;

/// The printed program.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    pub source: String,
    /// One for each kernel of the program, in order.
    pub kernels: Vec<Entry>,
}

/// A function of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub symbol: String,
    /// The shared arrays of one block, in order.
    pub shared: Vec<SharedArray>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SharedArray {
    pub extents: Vec<Poly>,
    pub element_bytes: u64,
}

impl Entry {
    /// Bytes of scratch memory that each thread needs at these sizes, which has one for every
    /// parameter. `None` if an extent is negative or the sum exceeds 64 bits.
    pub fn scratch_bytes(&self, sizes: &[i128]) -> Option<u64> {
        let mut total = 0u64;
        for array in &self.shared {
            let mut bytes = array.element_bytes;
            for extent in &array.extents {
                let extent = u64::try_from(extent.eval(sizes).ok()?).ok()?;
                bytes = bytes.checked_mul(extent)?;
            }
            let padded = bytes
                .checked_add(SHARED_ALIGN)?
                .checked_next_multiple_of(SHARED_ALIGN)?;
            total = total.checked_add(padded)?;
        }
        Some(total)
    }
}

/// The printed program in a language with threads: CUDA C++ or OpenCL C.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceArtifact {
    pub source: String,
    /// One for each kernel of the program, in order.
    pub kernels: Vec<DeviceEntry>,
    /// Inputs that the host copies into arrays in constant memory that the program declares. Inputs
    /// in constant memory that are kernel arguments are not listed.
    pub constants: Vec<Constant>,
}

/// A kernel of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceEntry {
    pub symbol: String,
    /// Threads of a block.
    pub threads: u32,
    /// 32-bit registers of a thread: the largest number that values of the kernel need at once.
    /// Addresses need further ones.
    pub registers: u32,
    pub arguments: Vec<Argument>,
    /// The arrays in the shared memory that the launch provides, each at a multiple of 16 bytes, in
    /// order.
    pub dynamic_shared: Vec<SharedArray>,
    /// Bytes of the shared arrays that the source declares.
    pub static_shared: u64,
    /// Conditions on sizes and blocks that select one of two paths.
    pub choices: Vec<Choice>,
}

/// A condition that holds for all blocks of many runs. Source that is compiled for such a run has
/// no other path.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The macro that is 1 where the condition is known to hold.
    pub symbol: String,
    /// Over the parameters, and the host and block variables of the kernel.
    pub cond: Cond,
}

/// An argument of a function, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(BufferId),
    /// The elements of a buffer.
    Value(BufferId),
    /// The value of a parameter.
    Size(usize),
    /// An argument of the launch.
    Host(usize),
    /// The shared memory that the launch provides.
    Shared,
}

/// An input in constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub buffer: BufferId,
    pub symbol: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::ParamId;

    #[test]
    fn scratch_is_padded_and_refuses_what_is_too_large() {
        let n = Poly::param(ParamId(0));
        let entry = Entry {
            symbol: "k".to_string(),
            shared: vec![
                SharedArray {
                    extents: vec![Poly::constant(3), n],
                    element_bytes: 4,
                },
                SharedArray {
                    extents: vec![],
                    element_bytes: 8,
                },
            ],
        };
        assert_eq!(entry.scratch_bytes(&[1]), Some(128 + 128));
        assert_eq!(entry.scratch_bytes(&[16]), Some(256 + 128));
        assert_eq!(entry.scratch_bytes(&[-1]), None);
        assert_eq!(entry.scratch_bytes(&[1 << 62]), None);
    }
}
