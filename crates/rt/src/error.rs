//! Errors of compiling, loading and running.

use std::path::PathBuf;

use systola_ir::Scalar;
use systola_ir::kernel::bounds::Excess;
use systola_ir::kernel::{Program, RaisedFault};

/// Why code could not be compiled, loaded or run. Variants carry facts, from which the text is
/// made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no C compiler found (tried {}); install one or name it in SYSTOLA_CC", .tried.join(", "))]
    NoCompiler { tried: Vec<String> },
    #[error("the C compiler failed: {command}\n{stderr}")]
    CompilerFailed { command: String, stderr: String },
    #[error("the C compiler was not done after {seconds} s of CPU time and was stopped: {command}")]
    CompilerHung { command: String, seconds: f64 },
    #[error("there was no time left to compile it")]
    OutOfTime,
    #[error("the compiled library {} cannot be loaded: {reason}", .path.display())]
    LoadFailed { path: PathBuf, reason: String },
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the environment variable {name} is `{value}`; it must be {expected}")]
    BadVariable {
        name: &'static str,
        value: String,
        expected: &'static str,
    },
    #[error("this CPU has no {requested}; the widest it has is {has}")]
    NoSuchSimd {
        requested: &'static str,
        has: &'static str,
    },
    #[error("the source does not fit the program: {reason}")]
    SourceMismatch { reason: String },

    #[error("the program has {expected} sizes, {got} were given")]
    SizeCount { expected: usize, got: usize },
    #[error("the program was compiled for {name} = {fixed}, not {got}")]
    SizeMismatchFixed { name: String, fixed: i128, got: i64 },
    #[error("the sizes {sizes} do not satisfy {condition}")]
    SizesViolateContext { condition: String, sizes: String },

    #[error("input `{name}` is missing")]
    MissingInput { name: String },
    #[error("output `{name}` is missing")]
    MissingOutput { name: String },
    #[error("the program has no {role} `{name}`; it has {}", list(.known))]
    UnknownName {
        role: &'static str,
        name: String,
        known: Vec<String>,
    },
    #[error("`{name}` is given twice")]
    GivenTwice { name: String },
    #[error("the contents of `{name}` are stated by the program and cannot be given")]
    StatedByProgram { name: String },
    #[error("`{name}` must have shape {expected:?}, got {got:?}")]
    WrongShape {
        name: String,
        expected: Vec<usize>,
        got: Vec<usize>,
    },
    #[error("`{name}` must hold {expected}, got {got}")]
    WrongType {
        name: String,
        expected: Scalar,
        got: Scalar,
    },
    #[error("output `{output}` shares memory with `{other}`")]
    Aliasing { output: String, other: String },

    #[error("shape {shape:?} has {expected} elements, the data has {got}")]
    WrongLength {
        shape: Vec<usize>,
        expected: usize,
        got: usize,
    },
    #[error("byte {at} is {value}; a bool is 0 or 1")]
    BadBool { at: usize, value: u8 },
    #[error("{what} is too large for this machine")]
    Overflow { what: String },
    #[error(
        "{expression}{} can reach {} at {sizes}; {} is the most that compiled code can count with",
        in_kernel(.kernel), reach(*.bound), .limit
    )]
    IndexTooLarge {
        /// `None`: computed for a launch.
        kernel: Option<String>,
        expression: String,
        /// `None`: more than 2^127.
        bound: Option<i128>,
        limit: i128,
        sizes: String,
    },
    #[error("no memory for {what} ({bytes} bytes)")]
    OutOfMemory { what: String, bytes: usize },

    /// An equation has no value at a point; the contents of the outputs are meaningless.
    #[error("{0}")]
    Raised(Box<RaisedFault>),

    #[error("there is no NVIDIA GPU that can be used: {reason}")]
    NoDriver { reason: String },
    #[error(
        "the driver is for CUDA {}.{}; kernels that NVRTC {}.{} compiles need one for CUDA {}.{} at least",
        .driver.0, .driver.1, .nvrtc.0, .nvrtc.1, .least.0, .least.1
    )]
    DriverTooOld {
        driver: (u32, u32),
        nvrtc: (u32, u32),
        least: (u32, u32),
    },
    #[error("NVRTC, which compiles kernels for NVIDIA GPUs, is not installed (looked in {} and where the system looks)", .looked.join(", "))]
    NoNvrtc { looked: Vec<String> },
    #[error("NVRTC failed: {reason}\n{log}")]
    NvrtcFailed { reason: String, log: String },
    #[error("the GPU could not {action}: {reason}")]
    CudaFailed {
        action: &'static str,
        reason: String,
    },
    #[error("there is no OpenCL device that can be used: {reason}")]
    NoOpenCl { reason: String },
    #[error("the compiler of the OpenCL device failed (error {status})\n{log}")]
    OpenClBuild { status: i32, log: String },
    #[error("the OpenCL device could not {action}: {reason}")]
    OpenClFailed {
        action: &'static str,
        reason: String,
    },
    #[error(
        "{} {kind}{} `{wanted}`; there are {}",
        if *.matching == 0 { "no" } else { "more than one" },
        if *.matching == 0 { " is called" } else { " has in its name" },
        .all.join(", ")
    )]
    NoSuchDevice {
        kind: &'static str,
        wanted: String,
        /// The number of devices with it in their names.
        matching: usize,
        /// Every device, with its index.
        all: Vec<String>,
    },
    #[error("the OpenCL device was lost when it was to {action}")]
    DeviceLost { action: &'static str },
    #[error("no memory on the device for {what}: {bytes} bytes wanted, {free} free")]
    DeviceMemory {
        what: String,
        bytes: usize,
        free: u64,
    },
    #[error("a block of `{kernel}` needs {wanted} bytes of shared memory, this device has {most}")]
    SharedMemory {
        kernel: String,
        wanted: u64,
        most: u64,
    },
    #[error("the address {start:#x} of an array is not a multiple of 16")]
    Misaligned { start: u64 },
    #[error("`{name}` is on another device than the program")]
    OtherDevice { name: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_string();
    }
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

fn in_kernel(kernel: &Option<String>) -> String {
    kernel
        .as_ref()
        .map_or_else(String::new, |name| format!(" in kernel `{name}`"))
}

fn reach(bound: Option<i128>) -> String {
    bound.map_or_else(|| "more than 2^127".to_string(), |b| b.to_string())
}

impl Error {
    pub(crate) fn index_too_large(program: &Program, params: &[i128], excess: Excess) -> Error {
        let Excess {
            kernel,
            expression,
            bound,
            limit,
        } = excess;
        let sizes = program.params.iter().zip(params);
        let sizes: Vec<String> = sizes.map(|(p, v)| format!("{} = {v}", p.name)).collect();
        Error::IndexTooLarge {
            kernel,
            expression,
            bound,
            limit,
            sizes: sizes.join(", "),
        }
    }

    pub(crate) fn overflow(what: impl Into<String>) -> Error {
        Error::Overflow { what: what.into() }
    }
}
