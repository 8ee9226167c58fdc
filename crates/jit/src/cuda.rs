//! Mappings compiled for an NVIDIA GPU.

use systola_driver::{Fix, Lowered, Machine, emit_cuda};
use systola_ir::system::Module;
use systola_rt::cuda::{CudaCompileOptions, Gpu};

use crate::cpu::{Error, lower_mapping};
use crate::device::DeviceCompiled;

/// Options of the compilation of a mapping for a GPU.
#[derive(Clone, Debug, Default)]
pub struct CudaOptions {
    /// Which GPU, by its index.
    pub device: usize,
    /// The sizes that become constants in the kernel.
    pub fix: Fix,
    pub compile: CudaCompileOptions,
}

impl CudaOptions {
    /// The first GPU, without a cache.
    pub fn new() -> CudaOptions {
        CudaOptions::default()
    }

    /// The first GPU, with the cache that `SYSTOLA_CACHE` names.
    pub fn from_env() -> Result<CudaOptions, Error> {
        Ok(CudaOptions {
            compile: CudaCompileOptions::from_env()?,
            ..CudaOptions::default()
        })
    }

    /// The machine description of the GPU for the lowering.
    pub fn machine(&self) -> Machine {
        Machine::cuda()
    }
}

/// A mapping as machine code of a GPU. It can be run any number of times.
pub type CudaCompiled = DeviceCompiled<systola_rt::cuda::Cuda>;

/// Compiles a mapping of a module for a GPU. Where no kernel for all sizes can be made, it is made
/// for the given ones.
pub fn compile_cuda(
    module: &Module,
    mapping: &str,
    sizes: &[(&str, i64)],
    options: &CudaOptions,
) -> Result<CudaCompiled, Error> {
    let lowered = lower_mapping(module, mapping, sizes, &options.fix, &options.machine())?;
    compile_cuda_lowered(lowered, options)
}

/// Compiles a program of kernels that was lowered for the machine of these options, from a system
/// that was checked.
pub fn compile_cuda_lowered(
    lowered: Lowered,
    options: &CudaOptions,
) -> Result<CudaCompiled, Error> {
    let artifact = emit_cuda(&lowered.program)?;
    let gpu = Gpu::open(options.device)?;
    DeviceCompiled::new(lowered, artifact, &gpu, &options.compile)
}
