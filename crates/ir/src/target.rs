//! What code is made for: the targets, and one description of the hardware behind each.
//!
//! Lowering, printers, model, runtime and command line read the same [`Machine`]. Each number of it says where it comes from: a
//! manual, or a measurement and the command that repeats it.

use std::fmt;

/// Who compiles and runs a program of kernels. Whatever depends on the target matches on this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// C with vector types, for the processor.
    Cpu,
    /// CUDA C++, for an NVIDIA GPU.
    Cuda,
    /// OpenCL C, for an OpenCL device.
    OpenCl,
}

impl Target {
    pub const ALL: [Target; 3] = [Target::Cpu, Target::Cuda, Target::OpenCl];

    pub const fn name(self) -> &'static str {
        match self {
            Target::Cpu => "cpu",
            Target::Cuda => "cuda",
            Target::OpenCl => "opencl",
        }
    }

    /// Where its programs run, with an article.
    pub const fn device(self) -> &'static str {
        match self {
            Target::Cpu => "this CPU",
            Target::Cuda => "an NVIDIA GPU",
            Target::OpenCl => "an OpenCL device",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A family of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// With the byte, word and short-vector extensions.
    Avx512,
    /// With fused multiply-add.
    Avx2,
    Sse,
    Neon,
    /// None is assumed.
    Portable,
}

impl Simd {
    pub const ALL: [Simd; 5] = [
        Simd::Avx512,
        Simd::Avx2,
        Simd::Sse,
        Simd::Neon,
        Simd::Portable,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Simd::Avx512 => "avx512",
            Simd::Avx2 => "avx2",
            Simd::Sse => "sse",
            Simd::Neon => "neon",
            Simd::Portable => "portable",
        }
    }

    /// Bytes of a vector register; 0: there is none.
    pub const fn bytes(self) -> u32 {
        match self {
            Simd::Avx512 => 64,
            Simd::Avx2 => 32,
            Simd::Sse | Simd::Neon => 16,
            Simd::Portable => 0,
        }
    }

    /// Vector registers that instructions can name (Intel's and Arm's manuals).
    pub const fn registers(self) -> usize {
        match self {
            Simd::Avx512 | Simd::Neon => 32,
            Simd::Avx2 | Simd::Sse | Simd::Portable => 16,
        }
    }
}

/// What a target offers, as far as code depends on it. How fast it is, the model knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub target: Target,
    /// Bytes of a vector: a warp has as many lanes as values of the widest type fit into it.
    pub vector_bytes: u32,
    pub most_lanes: u32,
    /// Registers of a lane; queues that need more than a few times that are in memory.
    pub registers: usize,
    /// The most values computed in straight-line code of one kernel, since compile time grows faster than the code.
    pub code_budget: usize,
    /// What warps of threads offer. None: the lanes are a vector of one thread.
    pub threads: Option<Threads>,
    pub memory: GlobalMemory,
}

/// A machine whose blocks are warps of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The most warps of a block.
    pub warps: u32,
    /// The most bytes that a lane loads or stores at once.
    pub wide_bytes: u32,
    /// Copies into shared memory go on beside the computation.
    pub copies: Copies,
    /// Bytes of shared memory for a block. Arrays of a block that do not fit are in global memory.
    pub block_memory: u64,
    /// Where arrays of a block are whose size depends on the run.
    pub unsized_arrays: Unsized,
    /// How values go from lane to lane, and how lanes wait for each other.
    pub links: Links,
    /// What a multiprocessor divides among its blocks. None: the target does not say how many it should hold.
    pub multiprocessor: Option<Multiprocessor>,
}

/// How the lanes of a warp are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// By shuffles. The lanes of a warp can wait for each other alone.
    Shuffles(WarpSizes),
    /// A warp is any number of neighbours in a block. Values go through shared memory, and the whole block waits.
    SharedMemory {
        /// May threads wait in a branch that all threads of their block take? A compiler that makes one thread of a block cuts it at
        /// its barriers, and some cut branches wrongly.
        waits_in_branches: bool,
    },
}

impl Links {
    /// Threads of a warp of this many lanes: none where no warp has that many.
    pub fn threads_of(self, lanes: u32) -> Option<u32> {
        match self {
            Links::Shuffles(sizes) => sizes.for_lanes(lanes),
            Links::SharedMemory { .. } => Some(lanes),
        }
    }
}

/// The numbers of threads that a warp can have, all powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpSizes(u32);

impl WarpSizes {
    pub const fn one(size: u32) -> WarpSizes {
        WarpSizes(size)
    }

    /// Of these sizes those that are powers of two.
    pub fn of(sizes: &[u32]) -> WarpSizes {
        let powers = sizes.iter().filter(|size| size.is_power_of_two());
        WarpSizes(powers.fold(0, |all, size| all | size))
    }

    /// In increasing order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS)
            .map(|n| 1 << n)
            .filter(move |size| self.0 & size != 0)
    }

    /// The smallest that has a thread for each lane.
    pub fn for_lanes(self, lanes: u32) -> Option<u32> {
        self.iter().find(|size| *size >= lanes)
    }
}

/// What the blocks on a multiprocessor share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Schedulers. A warp stays with one of them.
    pub parts: u32,
    /// Registers of 32 bits of all parts.
    pub registers: u32,
    pub thread_registers: u32,
    /// Registers are allocated to a thread by this many.
    pub register_unit: u32,
    pub threads: u32,
    pub blocks: u32,
}

/// The way to global memory, for prefetches and stores that bypass the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalMemory {
    /// Bytes of a cache line, or of what a GPU brings together for a warp.
    pub line: u32,
    /// An array of fewer bytes is likely to be in a cache.
    pub cached: u64,
    /// What a prefetch instruction must be worth. None: the target has none, or needs none.
    pub prefetch: Option<Prefetch>,
    /// Are there stores that bypass the caches?
    pub streams: bool,
}

/// When data is prefetched, in operations of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// Operations done while memory answers.
    pub distance: u32,
    /// Operations for a line that is brought, at least: with fewer the loads themselves keep the machine busy.
    pub work: u32,
    /// Lines that are under way at a time, at most.
    pub in_flight: u32,
    /// Live words of a lane from which on it is done. With fewer there are enough warps to hide the latency.
    pub pressure: u32,
}

/// Where an array of a block is that may or may not fit into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsized {
    /// In shared memory; a launch fails where it does not fit.
    Block,
    Global,
}

/// Who brings elements from global into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The lanes, by loads and stores.
    Plain,
    /// Engines of their own, if the mapping asks for them.
    Asynchronous,
}

/// Lanes of a warp of an NVIDIA GPU, of whatever type (CUDA programming guide).
const WARP: u32 = 32;

impl Machine {
    /// A processor with these vector instructions.
    pub const fn cpu(simd: Simd) -> Machine {
        Machine {
            target: Target::Cpu,
            // Without vector units the compiler still makes the best of short vectors.
            vector_bytes: if simd.bytes() > 16 { simd.bytes() } else { 16 },
            // Bytes of the widest vector.
            most_lanes: 64,
            registers: simd.registers(),
            code_budget: CODE_BUDGET,
            threads: None,
            memory: GlobalMemory {
                line: 64,
                // What a thread may hope to have of the last cache of a server.
                cached: 32 << 20,
                // Tuned with `bench cpu --only conv2d` and `bench stencils --target cpu` on a Xeon with Golden Cove cores
                // (bench/results/2026-11-16-cpu.md and -cpu-stencils.md).
                prefetch: Some(Prefetch {
                    distance: 2048,
                    work: 16,
                    in_flight: 32,
                    pressure: 0,
                }),
                streams: true,
            },
        }
    }

    /// An NVIDIA GPU.
    pub const fn cuda() -> Machine {
        Machine {
            target: Target::Cuda,
            memory: GlobalMemory {
                line: 128,
                cached: 0,
                // Tuned with `bench stencils` on an H200 (bench/results/2026-11-16-h200-stencils.md).
                prefetch: Some(Prefetch {
                    distance: 1200,
                    work: 96,
                    in_flight: u32::MAX,
                    pressure: 64,
                }),
                streams: false,
            },
            ..Machine::threads(
                Target::Cuda,
                WARP,
                Threads {
                    warps: 32,
                    wide_bytes: 16,
                    copies: Copies::Asynchronous,
                    // Of compute capability 9.0, the largest of all; a launch on a smaller one says so.
                    block_memory: 227 << 10,
                    unsized_arrays: Unsized::Block,
                    links: Links::Shuffles(WarpSizes::one(WARP)),
                    // Compute capability 9.0, CUDA programming guide.
                    multiprocessor: Some(Multiprocessor {
                        parts: 4,
                        registers: 64 << 10,
                        thread_registers: 256,
                        register_unit: 8,
                        threads: 2048,
                        blocks: 32,
                    }),
                },
            )
        }
    }

    /// A device whose lanes are threads, always this many, also of the widest type.
    pub const fn threads(target: Target, lanes: u32, threads: Threads) -> Machine {
        Machine {
            target,
            vector_bytes: lanes * 8,
            most_lanes: lanes,
            // Queues may take eight times that; a thread of a GPU has 255.
            registers: 24,
            code_budget: CODE_BUDGET,
            threads: Some(threads),
            memory: GlobalMemory {
                line: 128,
                cached: 0,
                prefetch: None,
                streams: false,
            },
        }
    }

    /// Lanes for a widest element of this many bits.
    pub fn lanes(&self, bits: u32) -> u32 {
        (self.vector_bytes * 8 / bits.max(8)).clamp(1, self.most_lanes.max(1))
    }
}

/// gcc 12 takes 11 and 14 s with -O3, on one core of a Xeon with Golden Cove cores, for kernels of 3,200 and 4,200 statements: `waves_cpu` of
/// stencils/3d7pt.ure and 2d5pt.ure, `systola emit --target c`. Much larger ones would take longer than the 20 s that a shipped mapping may.
const CODE_BUDGET: usize = 2500;
