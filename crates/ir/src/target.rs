//! The targets, and one description of the hardware behind each.
//!
//! Lowering, printers, model, runtime and command line read the same [`Machine`]. Each of its
//! numbers names its source: a manual, or a measurement and the command that repeats it.

use std::fmt;

/// What compiles and runs a program of kernels. Everything that depends on the target matches on
/// this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// C with vector types, for the CPU.
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

    /// The device that runs its programs, with an article.
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
    /// No vector instructions are assumed.
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

    /// Bytes of a vector register; 0 if there is none.
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

/// The capabilities of a target, as far as code generation depends on them. Its speed is described
/// by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub target: Target,
    /// Bytes of a vector: a warp has as many lanes as values of the widest type fit in it.
    pub vector_bytes: u32,
    pub most_lanes: u32,
    /// Registers of a lane; queues that need more than a few times as many are in memory.
    pub registers: usize,
    /// The largest number of values computed in straight-line code of one kernel, since compile
    /// time grows faster than the code.
    pub code_budget: usize,
    /// The capabilities of warps of threads. `None`: the lanes are a vector of one thread.
    pub threads: Option<Threads>,
    pub memory: GlobalMemory,
}

/// A machine whose blocks consist of warps of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The maximum number of warps of a block.
    pub warps: u32,
    /// The maximum number of bytes that a lane loads or stores at once.
    pub wide_bytes: u32,
    /// How elements are copied from global into shared memory.
    pub copies: Copies,
    /// Bytes of shared memory for a block. Shared arrays that do not fit are in global memory.
    pub block_memory: u64,
    /// Where shared arrays are placed whose size depends on the run.
    pub unsized_arrays: Unsized,
    /// How values move between lanes, and how lanes wait for each other.
    pub links: Links,
    /// What a multiprocessor divides among its blocks. `None`: the target does not say how many
    /// blocks should be resident.
    pub multiprocessor: Option<Multiprocessor>,
}

/// How the lanes of a warp exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// By shuffles. The lanes of a warp can synchronise without the rest of the block.
    Shuffles(WarpSizes),
    /// A warp is any number of neighbouring threads in a block. Values go through shared memory,
    /// and the whole block synchronises.
    SharedMemory {
        /// May barriers be in a branch that all threads of their block take? A compiler that makes
        /// one thread of a block splits it at its barriers, and some split branches incorrectly.
        waits_in_branches: bool,
    },
}

impl Links {
    /// The number of threads of a warp of `lanes` lanes; `None` where no warp has that many.
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

    /// Keeps the sizes that are powers of two.
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

    /// The smallest size that has a thread for each lane.
    pub fn for_lanes(self, lanes: u32) -> Option<u32> {
        self.iter().find(|size| *size >= lanes)
    }
}

/// The resources that the blocks on a multiprocessor share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// The number of schedulers. A warp stays with one of them.
    pub parts: u32,
    /// The number of 32-bit registers of all parts.
    pub registers: u32,
    pub thread_registers: u32,
    /// Registers are allocated to a thread in multiples of this number.
    pub register_unit: u32,
    pub threads: u32,
    pub blocks: u32,
}

/// How global memory is accessed, for prefetches and for stores that bypass the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalMemory {
    /// Bytes of a cache line, or of the unit in which a GPU loads for a warp.
    pub line: u32,
    /// An array of fewer bytes is likely to be cached.
    pub cached: u64,
    /// When prefetch instructions pay off. `None`: the target has none, or needs none.
    pub prefetch: Option<Prefetch>,
    /// Does it have stores that bypass the caches?
    pub streams: bool,
}

/// When data is prefetched, in operations of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// The number of operations that cover the latency of memory.
    pub distance: u32,
    /// The minimum number of operations per prefetched line: with fewer, the loads themselves keep
    /// the machine busy.
    pub work: u32,
    /// The maximum number of lines in flight.
    pub in_flight: u32,
    /// The minimum number of live words of a lane. With fewer, there are enough warps to hide the
    /// latency.
    pub pressure: u32,
    /// Blocks that look back prefetch the inputs of the block that is this many bytes of inputs
    /// ahead.
    pub ahead: u32,
}

/// Where a shared array is placed that may or may not fit into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsized {
    /// In shared memory; a launch fails where it does not fit.
    Block,
    Global,
}

/// What copies elements from global into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The lanes, by loads and stores.
    Plain,
    /// Asynchronous copies, if the mapping requests them.
    Asynchronous,
}

/// Lanes of a warp of an NVIDIA GPU, for every element type (CUDA programming guide).
const WARP: u32 = 32;

impl Machine {
    /// A CPU with these vector instructions.
    pub const fn cpu(simd: Simd) -> Machine {
        Machine {
            target: Target::Cpu,
            // Without vector units, the compiler still profits from short vectors.
            vector_bytes: if simd.bytes() > 16 { simd.bytes() } else { 16 },
            // Bytes of the widest vector.
            most_lanes: 64,
            registers: simd.registers(),
            code_budget: CODE_BUDGET,
            threads: None,
            memory: GlobalMemory {
                line: 64,
                // The share of the last-level cache of a server that a thread can expect.
                cached: 32 << 20,
                // Tuned with `bench cpu --only conv2d` and `bench stencils --target cpu` on a Xeon
                // with Golden Cove cores (bench/results/2026-11-16-cpu.md and -cpu-stencils.md).
                prefetch: Some(Prefetch {
                    distance: 2048,
                    work: 16,
                    in_flight: 32,
                    pressure: 0,
                    ahead: 0,
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
                // Tuned with `bench stencils` on an H200
                // (bench/results/2026-11-16-h200-stencils.md).
                prefetch: Some(Prefetch {
                    distance: 1200,
                    work: 96,
                    in_flight: u32::MAX,
                    pressure: 64,
                    // A quarter of what the registers of all blocks hold. Twice as much is as fast, four
                    // times as much slower, a quarter of it slower
                    // (bench/results/2026-11-19-h200-warps.md).
                    ahead: 5 << 20,
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
                    // The value of compute capability 9.0, the largest of all; a launch on a
                    // smaller device reports it.
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

    /// A device whose lanes are threads. Their number is fixed, also for the widest type.
    pub const fn threads(target: Target, lanes: u32, threads: Threads) -> Machine {
        Machine {
            target,
            vector_bytes: lanes * 8,
            most_lanes: lanes,
            // Queues may take eight times as many; a thread of a GPU has 255.
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

    /// The number of lanes for a widest element of this many bits.
    pub fn lanes(&self, bits: u32) -> u32 {
        (self.vector_bytes * 8 / bits.max(8)).clamp(1, self.most_lanes.max(1))
    }
}

/// gcc 12 takes 11 and 14 s with -O3, on one core of a Xeon with Golden Cove cores, for kernels of
/// 3,200 and 4,200 statements: `waves_cpu` of stencils/3d7pt.ure and 2d5pt.ure,
/// `systola emit --target c`. Much larger kernels would exceed the 20 s that a shipped mapping may
/// take.
const CODE_BUDGET: usize = 2500;
