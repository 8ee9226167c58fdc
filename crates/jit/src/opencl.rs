//! Mappings compiled for an OpenCL device.

use std::sync::Arc;

use systola_driver::opencl::{Features, Functions, Links};
use systola_driver::{Fix, Lowered, Machine, emit_opencl, opencl_machine};
use systola_ir::system::Module;
use systola_ir::target::WarpSizes;
use systola_rt::opencl::{DeviceInfo, Gpu, OpenClCompileOptions, Shuffles};

use crate::cpu::{Error, lower_mapping};
use crate::device::DeviceCompiled;

/// Options of the compilation of a mapping for an OpenCL device.
#[derive(Clone, Debug, Default)]
pub struct OpenClOptions {
    /// Which device, by its index.
    pub device: usize,
    /// Lanes of a warp, a power of two. None: the default for the device.
    pub lanes: Option<u32>,
    /// Route links through local memory, even where there are shuffles.
    pub without_sub_groups: bool,
    /// Bytes of small inputs that kernels take by value. None: the default for the device.
    pub value_bytes: Option<u64>,
    /// The sizes that become constants in the kernel.
    pub fix: Fix,
    pub compile: OpenClCompileOptions,
}

/// The default lanes of a warp on a GPU and on a CPU.
const LANES_OF_GPUS: u32 = 32;
const LANES_OF_CPUS: u32 = 16;

impl OpenClOptions {
    /// The first device, without a cache.
    pub fn new() -> OpenClOptions {
        OpenClOptions::default()
    }

    /// The first device, with the cache that `SYSTOLA_CACHE` names.
    pub fn from_env() -> Result<OpenClOptions, Error> {
        Ok(OpenClOptions {
            compile: OpenClCompileOptions::from_env()?,
            ..OpenClOptions::default()
        })
    }

    pub fn open(&self) -> Result<Arc<Gpu>, Error> {
        Ok(Gpu::open(self.device)?)
    }

    /// The features of the device for the printer.
    pub fn features(&self, info: &DeviceInfo) -> Features {
        let shuffles = info.shuffles.as_ref().filter(|_| !self.without_sub_groups);
        let functions = match shuffles {
            Some((Shuffles::Khronos { relative }, _)) => Functions::Khronos {
                relative: *relative,
            },
            Some((Shuffles::Intel, _)) => Functions::Intel,
            None => Functions::Khronos { relative: false },
        };
        let links = match shuffles {
            Some((_, sizes)) => Links::Shuffles(WarpSizes::of(sizes)),
            None => Links::SharedMemory {
                waits_in_branches: !info.is_cpu,
            },
        };
        Features {
            links,
            functions,
            flags: info.flags,
            wide_atomics: info.wide_atomics,
            doubles: info.doubles,
            most_threads: info.most_threads,
            value_bytes: self.value_bytes.unwrap_or(info.constant_arguments),
        }
    }

    /// The machine description of the device for the lowering.
    pub fn machine(&self, info: &DeviceInfo) -> Machine {
        let wanted = self.lanes.unwrap_or(if info.is_cpu {
            LANES_OF_CPUS
        } else {
            LANES_OF_GPUS
        });
        opencl_machine(&self.features(info), wanted, info.local_memory)
    }
}

/// A mapping as machine code of an OpenCL device. It can be run any number of times.
pub type OpenClCompiled = DeviceCompiled<systola_rt::opencl::OpenCl>;

/// Compiles a mapping of a module for an OpenCL device. Where no kernel for all sizes can be made,
/// it is made for the given ones.
pub fn compile_opencl(
    module: &Module,
    mapping: &str,
    sizes: &[(&str, i64)],
    options: &OpenClOptions,
) -> Result<OpenClCompiled, Error> {
    let machine = options.machine(&options.open()?.info);
    let lowered = lower_mapping(module, mapping, sizes, &options.fix, &machine)?;
    compile_opencl_lowered(lowered, options)
}

/// Compiles a program of kernels that was lowered for the machine of these options, from a system
/// that was checked.
pub fn compile_opencl_lowered(
    lowered: Lowered,
    options: &OpenClOptions,
) -> Result<OpenClCompiled, Error> {
    let gpu = options.open()?;
    let artifact = emit_opencl(&lowered.program, &options.features(&gpu.info))?;
    DeviceCompiled::new(lowered, artifact, &gpu, &options.compile)
}
