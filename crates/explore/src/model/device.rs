//! The numbers of a device, each with where it comes from.
//!
//! A number is measured by `systola devices --calibrate`, or it is a default taken from a
//! publication or an earlier measurement. The defaults are those of a CPU with AVX-512 (Intel's
//! Golden Cove) and of an NVIDIA H200.

use std::fmt;

use systola_ir::target::{Machine, Simd};

/// The source of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Measured on this device.
    Calibrated,
    /// Reported by the device or the system.
    Reported,
    /// From a publication or another machine.
    Default(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Calibrated => f.write_str("calibrated"),
            Source::Reported => f.write_str("reported by the device"),
            Source::Default(source) => write!(f, "default: {source}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    pub value: f64,
    pub source: Source,
}

/// A number with its name, for tables and files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    pub name: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub number: Number,
}

macro_rules! device {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $value:expr, $unit:literal, $meaning:literal, $source:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: Number,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($field: Number { value: $value, source: Source::Default($source) },)*
                }
            }
        }

        impl $name {
            /// All numbers, in order.
            pub fn entries(&self) -> Vec<Entry> {
                vec![$(Entry {
                    name: stringify!($field),
                    unit: $unit,
                    meaning: $meaning,
                    number: self.$field,
                },)*]
            }

            /// The number of a name.
            pub fn number_mut(&mut self, name: &str) -> Option<&mut Number> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

/// What code depends on, of the CPU whose rates these are.
const CPU: Machine = Machine::cpu(Simd::Avx512);

const INTEL: &str = "Golden Cove, Intel's optimization manual and uops.info";
const EMR: &str = "measured on a Xeon with Golden Cove cores, 2 of its threads";
const CLX: &str = "measured on a Xeon with Cascade Lake cores, one thread";
const NVIDIA: &str = "compute capability 9.0, CUDA programming guide";
const H200: &str = "measured on an H200, CUDA 13.0";
const HOPPER: &str = "published micro-benchmarks of Hopper";

device! {
    /// A CPU with vectors.
    Cpu {
        threads = 1.0, "", "threads that run at once", "one, unless set";
        vector_bytes = f64::from(CPU.vector_bytes), "B", "a vector", INTEL;
        vector_registers = CPU.registers as f64, "", "vector registers", INTEL;
        clock = 3.0e9, "Hz", "clock rate under multiply-adds", EMR;
        fma = 2.0, "/cycle", "multiply-adds of vectors; other operations share their ports", INTEL;
        moves = 1.0, "/cycle", "shuffles of vectors", INTEL;
        loads = 2.0, "/cycle", "vector loads from L1", INTEL;
        split_load = 1.0, "loads", "additional cost of a load that crosses a line", INTEL;
        stores = 1.0, "/cycle", "vector stores to L1", INTEL;
        split_store = 4.0, "stores", "additional cost of a store that crosses a line", EMR;
        gather = 0.35, "/cycle", "elements loaded or stored one by one", EMR;
        issue = 6.0, "/cycle", "instructions issued", INTEL;
        decode = 4.0, "/cycle", "instructions decoded, where the code exceeds the µop cache", INTEL;
        decoded = 4096.0, "", "instructions in the µop cache", INTEL;
        window = 512.0, "", "entries of the reorder buffer", INTEL;
        divide = 16.0, "cycles", "a vector division", INTEL;
        call = 8.0, "cycles", "a function of one element", EMR;
        fma_latency = 4.0, "cycles", "until a multiply-add can be used", INTEL;
        alu_latency = 1.0, "cycles", "until an operation on integers can be used", INTEL;
        move_latency = 3.0, "cycles", "until a moved vector can be used", INTEL;
        load_latency = 7.0, "cycles", "until a vector from L1 can be used", INTEL;
        forward_latency = 5.0, "cycles", "store-to-load forwarding", INTEL;
        l1_bytes = 49152.0, "B", "L1", INTEL;
        l1_ways = 12.0, "", "associativity of L1", INTEL;
        l2_bytes = 2097152.0, "B", "L2", INTEL;
        l2_ways = 16.0, "", "associativity of L2", INTEL;
        l3_bytes = CPU.memory.cached as f64, "B", "share of L3 to expect", "the size from which stores are non-temporal";
        pages = 96.0, "", "TLB entries", INTEL;
        page = 7.0, "cycles", "a TLB miss", INTEL;
        l2_bandwidth = 100.0e9, "B/s", "from L2 into L1, one thread", EMR;
        l3_bandwidth = 20.0e9, "B/s", "from L3, one thread", EMR;
        copy_one = 17.0e9, "B/s", "read and written in memory, one thread", EMR;
        copy_all = 30.0e9, "B/s", "read and written in memory, all threads", EMR;
        run = 175.0e-9, "s", "until memory delivers where contiguous reads begin anew", CLX;
        page_start = 25.0e-9, "s", "until memory delivers where contiguous reads go on in the next page", CLX;
        launch = 5.0e-6, "s", "from one launch on all threads to the next", EMR;
        block = 1.5e-9, "s", "from one block to the next", EMR;
        look_back = 0.7e-6, "s", "a block that looks back over blocks of other threads", EMR;
        publication = 250.0e-9, "s", "a block that looks back over blocks of the same thread", CLX;
    }
}

device! {
    /// A GPU whose lanes are threads.
    Gpu {
        sms = 132.0, "", "multiprocessors", H200;
        clock = 1.98e9, "Hz", "clock rate of a multiprocessor", H200;
        issue = 4.0, "/cycle", "warp instructions issued by a multiprocessor", NVIDIA;
        fma = 4.0, "/cycle", "multiply-adds of warps, f32", NVIDIA;
        double = 2.0, "/cycle", "the same, f64", NVIDIA;
        alu = 2.0, "/cycle", "minima, comparisons, choices and logic of warps", NVIDIA;
        special = 0.5, "/cycle", "quotients and functions of warps, each of several instructions", NVIDIA;
        shuffles = 1.0, "/cycle", "shuffles of warps", H200;
        wavefronts = 1.0, "/cycle", "wavefronts of shared memory and L1, 128 bytes each; shuffles share this path", NVIDIA;
        l2_bandwidth = 7.9e12, "B/s", "from L2", H200;
        dram_bandwidth = 4.28e12, "B/s", "read and written in memory", H200;
        fma_latency = 4.0, "cycles", "until a multiply-add can be used", HOPPER;
        shuffle_latency = 24.0, "cycles", "until a shuffled word can be used", HOPPER;
        shared_latency = 29.0, "cycles", "until a word of shared memory can be used", HOPPER;
        l1_latency = 33.0, "cycles", "until a word from L1 can be used", HOPPER;
        l2_latency = 262.0, "cycles", "until a word from L2 can be used", HOPPER;
        dram_latency = 660.0, "cycles", "until a word from DRAM can be used", HOPPER;
        barrier = 30.0, "cycles", "a barrier of a block", HOPPER;
        flag = 1400.0, "cycles", "until a flag of another block is seen", HOPPER;
        look_back = 0.35e-9, "s", "a warp that looks back over blocks", H200;
        publication = 11.0e-12, "s", "a part of a sum that a block publishes", H200;
        launch = 2.2e-6, "s", "from one launch to the next", H200;
        dispatch = 1.66e9, "blocks/s", "blocks launched on the whole device", H200;
        thread_registers = 255.0, "", "registers of a thread", NVIDIA;
        warps = 64.0, "", "warps of a multiprocessor", NVIDIA;
        blocks = 32.0, "", "blocks of a multiprocessor", NVIDIA;
        shared_bytes = 233472.0, "B", "shared memory of a multiprocessor", NVIDIA;
        l1_bytes = 262144.0, "B", "shared memory and L1 together", NVIDIA;
        l2_bytes = 52428800.0, "B", "L2", H200;
        instruction_bytes = 28672.0, "B", "code that fits into the instruction cache", H200;
    }
}

/// The device that a program runs on.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a program has a few of them, and reads their numbers by name"
)]
pub enum Device {
    Cpu(Cpu),
    Gpu(Gpu),
}

impl Device {
    pub fn entries(&self) -> Vec<Entry> {
        match self {
            Device::Cpu(cpu) => cpu.entries(),
            Device::Gpu(gpu) => gpu.entries(),
        }
    }

    /// Replaces numbers by name. Names that the device does not have are ignored.
    pub fn set(&mut self, numbers: &[(String, f64)], source: Source) {
        for (name, value) in numbers {
            let number = match self {
                Device::Cpu(cpu) => cpu.number_mut(name),
                Device::Gpu(gpu) => gpu.number_mut(name),
            };
            if let Some(number) = number
                && value.is_finite()
                && *value > 0.0
            {
                *number = Number {
                    value: *value,
                    source,
                };
            }
        }
    }
}

impl Number {
    pub fn reported(value: f64) -> Number {
        Number {
            value,
            source: Source::Reported,
        }
    }
}
