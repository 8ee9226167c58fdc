//! What a device offers that decides how kernels are written for it.

use systola_ir::target::{Links, WarpSizes};

/// Capabilities of a device, not its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    pub links: Links,
    /// Whose shuffles, where there are some.
    pub functions: Functions,
    /// Are there atomics that acquire and release for all blocks of a launch?
    pub flags: bool,
    /// Is there arithmetic on f64?
    pub doubles: bool,
    /// The largest number of threads of a block.
    pub most_threads: u32,
    /// So many bytes of small inputs are handed over by value: more than none where a thread reads its arguments as fast as its
    /// registers.
    pub value_bytes: u64,
}

/// Whose shuffles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those of `cl_khr_subgroup_shuffle`; `relative`: and of `cl_khr_subgroup_shuffle_relative`.
    Khronos { relative: bool },
    /// Those of `cl_intel_subgroups`.
    Intel,
}

impl Features {
    /// What GPUs with sub-groups offer.
    pub fn usual() -> Features {
        Features {
            links: Links::Shuffles(WarpSizes::of(&[8, 16, 32])),
            functions: Functions::Khronos { relative: true },
            flags: true,
            doubles: true,
            most_threads: 1024,
            value_bytes: 0,
        }
    }
}
