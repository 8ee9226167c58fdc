//! What is handed to a runtime: source text, and how its kernels are called.

use systola_ir::BufferId;
use systola_ir::form::{Cond, Poly};

/// Every shared array starts at a multiple of this number of bytes, and as many follow it, so that a vector which
/// begins inside of it can be read whole.
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
    /// What the shared arrays of one block take, in order.
    pub shared: Vec<SharedArray>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SharedArray {
    pub extents: Vec<Poly>,
    pub element_bytes: u64,
}

impl Entry {
    /// Bytes of scratch memory that each thread needs at these sizes, one for every parameter. `None`: an
    /// extent is negative, or the sum leaves 64 bits.
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

/// The printed program in a language of threads: CUDA C++ or OpenCL C.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceArtifact {
    pub source: String,
    /// One for each kernel of the program, in order.
    pub kernels: Vec<DeviceEntry>,
    /// Inputs that the host puts into constant memory of the program's own. Those that kernels have as arguments are not
    /// among them.
    pub constants: Vec<Constant>,
}

/// A kernel of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceEntry {
    pub symbol: String,
    /// Of a block.
    pub threads: u32,
    /// Of a thread, of 32 bits: the most that values of the kernel need at a time. Addresses come on top.
    pub registers: u32,
    pub arguments: Vec<Argument>,
    /// What the launch has to bring of shared memory, each array at a multiple of 16 bytes, in order.
    pub dynamic_shared: Vec<SharedArray>,
    /// Bytes that are declared in the source.
    pub static_shared: u64,
    /// Conditions on sizes and blocks that choose between two paths.
    pub choices: Vec<Choice>,
}

/// A condition that holds for all blocks of many runs. A text that is compiled for such a run has no other path.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The macro that is 1 where it is known to hold.
    pub symbol: String,
    /// Of parameters, and of host and block variables of the kernel.
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
    /// The shared memory that the launch brings.
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
