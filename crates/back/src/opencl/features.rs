//! What a device offers that decides how kernels are written for it.

/// Capabilities of a device, not its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    pub links: Links,
    /// May threads wait in a branch that all threads of their block take? A compiler that makes one thread of a block cuts it at
    /// its waits, and some cut branches wrongly.
    pub waits_in_branches: bool,
    /// Are there atomics that acquire and release for all blocks of a launch?
    pub flags: bool,
    /// Is there arithmetic on f64?
    pub doubles: bool,
    /// A block has at most so many threads.
    pub most_threads: u32,
    /// So many bytes of small inputs are handed over by value: more than none where a thread reads its arguments as fast as its
    /// registers.
    pub value_bytes: u64,
}

/// How values go from lane to lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// A warp is a sub-group, whose size a kernel can ask for; these are offered, in increasing order.
    SubGroups {
        functions: Functions,
        sizes: Vec<u32>,
    },
    /// A warp is any number of neighbours in a block. Values go through the memory of the block, and the whole block waits.
    Local,
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
            links: Links::SubGroups {
                functions: Functions::Khronos { relative: true },
                sizes: vec![8, 16, 32],
            },
            waits_in_branches: true,
            flags: true,
            doubles: true,
            most_threads: 1024,
            value_bytes: 0,
        }
    }

    /// Threads of a warp of so many lanes: none where no sub-group has so many.
    pub fn threads_of(&self, lanes: u32) -> Option<u32> {
        match &self.links {
            Links::SubGroups { sizes, .. } => sizes.iter().copied().find(|size| *size >= lanes),
            Links::Local => Some(lanes),
        }
    }
}
