//! The output of a back end: the source of kernels, and how they are launched.

use systola_ir::Poly;
use systola_ir::form::Cond;

use crate::error::Error;
use crate::source::array_bytes;

/// The text of a program of kernels, in the language of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSource {
    pub code: String,
    /// One for each kernel of the program, in order.
    pub kernels: Vec<DeviceKernel>,
    /// Buffers in constant memory of the code, by index, with the symbol of the array.
    pub constants: Vec<(usize, String)>,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceKernel {
    pub symbol: String,
    /// Threads of a block.
    pub threads: u32,
    pub arguments: Vec<KernelArgument>,
    /// Dynamic shared memory of a launch.
    pub dynamic_shared: Vec<SharedPart>,
    /// Bytes of static shared memory.
    pub static_shared: u64,
    /// Conditions on sizes and blocks that choose between two paths, each with the macro that
    /// states that it holds for all blocks.
    pub choices: Vec<(String, Cond)>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelArgument {
    /// The address of a buffer, by index.
    Buffer(usize),
    /// The elements of a buffer, by index.
    Value(usize),
    /// A size, as an index.
    Size(usize),
    /// An argument of the launch, as an index.
    Host(usize),
    /// The dynamic shared memory of the launch.
    Shared,
}

/// An array in shared memory, at a multiple of [`SharedPart::ALIGN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPart {
    /// Extents in the parameters; a negative one counts as 0.
    pub extents: Vec<Poly>,
    /// Bytes of one element.
    pub bytes: u64,
}

impl SharedPart {
    pub const ALIGN: u64 = 16;

    fn size(&self, params: &[i128]) -> Option<u64> {
        array_bytes(&self.extents, self.bytes, params)?.checked_next_multiple_of(Self::ALIGN)
    }
}

impl DeviceKernel {
    /// Bytes of dynamic shared memory of a launch at these sizes.
    pub(crate) fn dynamic_bytes(&self, params: &[i128]) -> Result<u64, Error> {
        self.dynamic_shared
            .iter()
            .try_fold(0u64, |sum, part| sum.checked_add(part.size(params)?))
            .ok_or_else(|| Error::overflow("the shared memory of a block"))
    }
}

#[cfg(test)]
mod tests {
    use systola_ir::ParamId;

    use super::*;

    #[test]
    fn shared_arrays_start_at_multiples_of_16_bytes() {
        let part = |extent, bytes| SharedPart {
            extents: vec![extent],
            bytes,
        };
        let n = Poly::param(ParamId(0));
        let kernel = DeviceKernel {
            symbol: "k".to_string(),
            threads: 32,
            arguments: Vec::new(),
            dynamic_shared: vec![part(n.clone(), 4), part(Poly::constant(-3), 8), part(n, 1)],
            static_shared: 0,
            choices: Vec::new(),
        };
        assert_eq!(kernel.dynamic_bytes(&[5]).unwrap(), 32 + 16);
        assert!(kernel.dynamic_bytes(&[i128::from(u64::MAX)]).is_err());
    }
}
