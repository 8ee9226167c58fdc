//! The features of a device that decide how kernels are printed for it.

use systola_ir::target::{Links, WarpSizes};

/// The capabilities of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    pub links: Links,
    /// Which shuffle functions to use, where there are any.
    pub functions: Functions,
    /// Are there atomics with acquire and release semantics for all blocks of a launch?
    pub flags: bool,
    /// Are there atomics on 64 bits?
    pub wide_atomics: bool,
    /// Is there arithmetic on f64?
    pub doubles: bool,
    /// The largest number of threads of a block.
    pub most_threads: u32,
    /// The number of bytes of small inputs that are passed by value: more than zero where a thread
    /// reads its arguments as fast as its registers.
    pub value_bytes: u64,
}

/// Which shuffle functions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those of `cl_khr_subgroup_shuffle` and, if `relative`, of
    /// `cl_khr_subgroup_shuffle_relative`.
    Khronos { relative: bool },
    /// Those of `cl_intel_subgroups`.
    Intel,
}

impl Features {
    /// The features of GPUs with sub-groups.
    pub fn usual() -> Features {
        Features {
            links: Links::Shuffles(WarpSizes::of(&[8, 16, 32])),
            functions: Functions::Khronos { relative: true },
            flags: true,
            wide_atomics: true,
            doubles: true,
            most_threads: 1024,
            value_bytes: 0,
        }
    }
}
