//! Mappings compiled for an NVIDIA GPU.
//!
//! ```no_run
//! use systola::rt::cuda::DeviceArray;
//! use systola::{CudaOptions, View, compile_cuda};
//! # fn main() -> Result<(), systola::cpu::Error> {
//! # let module = systola::load("").unwrap();
//! let sizes = [("C", 1 << 20), ("Q", 5)];
//! let kernel = compile_cuda(&module, "sbm", &sizes, &CudaOptions::from_env()?)?;
//! let (samples, weights) = (vec![1f32; (1 << 20) + 4], [0.2f32; 5]);
//! // Arrays that stay on the GPU between runs.
//! let gpu = kernel.loaded().gpu();
//! let x = DeviceArray::from_view(gpu, &View::from(&samples[..]))?;
//! let w = DeviceArray::from_view(gpu, &View::from(&weights[..]))?;
//! let mut z = DeviceArray::new(gpu, x.ty(), &[1 << 20])?;
//! let stats = kernel.run_on_device(&sizes, &[("x", &x), ("w", &w)], &mut [("z", &mut z)])?;
//! println!("{} s", stats.kernel_seconds);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use systola_driver::{
    Argument, DeviceArtifact, DeviceEntry, Fix, Lowered, Machine, cuda_machine, emit_cuda,
};
use systola_ir::kernel::Program;
use systola_ir::system::Module;
use systola_rt::cuda::{
    CudaArgument, CudaCompileOptions, CudaKernel, CudaProgram, CudaSource, DeviceArray, Gpu,
    SharedPart,
};
use systola_rt::{Stats, View, ViewMut};

use crate::cpu::{Error, lower_mapping, ordered_sizes};

/// How a mapping is compiled for a GPU.
#[derive(Clone, Debug, Default)]
pub struct CudaOptions {
    /// Which GPU, by its number.
    pub device: usize,
    /// Which sizes become numbers in the kernel.
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

    /// What the lowering is to know of the GPU.
    pub fn machine(&self) -> Machine {
        cuda_machine()
    }
}

/// A mapping as machine code of a GPU. It can be run any number of times.
#[derive(Debug)]
pub struct CudaCompiled {
    pub lowered: Lowered,
    /// The CUDA C++ it was compiled from.
    pub source: String,
    program: CudaProgram,
}

/// Compiles a mapping of a module for a GPU. Where no kernel for all sizes can be made, it is made for the given ones.
pub fn compile_cuda(
    module: &Module,
    mapping: &str,
    sizes: &[(&str, i64)],
    options: &CudaOptions,
) -> Result<CudaCompiled, Error> {
    let lowered = lower_mapping(module, mapping, sizes, &options.fix, &options.machine())?;
    compile_cuda_lowered(lowered, options)
}

/// Compiles a program of kernels that was lowered for the machine of these options, from a system that was checked.
pub fn compile_cuda_lowered(
    lowered: Lowered,
    options: &CudaOptions,
) -> Result<CudaCompiled, Error> {
    let artifact = emit_cuda(&lowered.program)?;
    let gpu = Gpu::open(options.device)?;
    let source = artifact.source.clone();
    let program = CudaProgram::compile(
        lowered.program.clone(),
        cuda_source(artifact),
        &gpu,
        &options.compile,
    )?;
    Ok(CudaCompiled {
        lowered,
        source,
        program,
    })
}

/// What the printer made, as the runtime takes it.
fn cuda_source(artifact: DeviceArtifact) -> CudaSource {
    let constants = artifact.constants.into_iter();
    CudaSource {
        code: artifact.source,
        kernels: artifact.kernels.into_iter().map(kernel).collect(),
        constants: constants.map(|c| (c.buffer.index(), c.symbol)).collect(),
    }
}

fn kernel(entry: DeviceEntry) -> CudaKernel {
    let arguments = entry.arguments.iter().map(|argument| match argument {
        Argument::Buffer(b) => CudaArgument::Buffer(b.index()),
        Argument::Size(n) => CudaArgument::Size(*n),
        Argument::Host(n) => CudaArgument::Host(*n),
    });
    let shared = entry.dynamic_shared.iter().map(|array| SharedPart {
        extents: array.extents.clone(),
        bytes: array.element_bytes,
    });
    CudaKernel {
        arguments: arguments.collect(),
        dynamic_shared: shared.collect(),
        symbol: entry.symbol,
        threads: entry.threads,
        static_shared: entry.static_shared,
    }
}

impl CudaCompiled {
    /// Runs it on arrays of the host: sizes by name, every input that the program does not state, and every output.
    pub fn run(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self.program.run(&values, inputs, outputs)?)
    }

    /// The same on arrays that are on the GPU and stay there.
    pub fn run_on_device(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, &DeviceArray)],
        outputs: &mut [(&str, &mut DeviceArray)],
    ) -> Result<Stats, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self.program.run_on_device(&values, inputs, outputs)?)
    }

    /// The same so many times in a row, without waiting on the host in between: the seconds of each run on the GPU.
    pub fn time_on_device(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, &DeviceArray)],
        outputs: &mut [(&str, &mut DeviceArray)],
        times: usize,
    ) -> Result<Vec<f64>, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self
            .program
            .time_on_device(&values, inputs, outputs, times)?)
    }

    pub fn program(&self) -> &Program {
        self.program.program()
    }

    /// The code on the GPU.
    pub fn loaded(&self) -> &CudaProgram {
        &self.program
    }

    pub fn gpu(&self) -> &Arc<Gpu> {
        self.program.gpu()
    }
}
