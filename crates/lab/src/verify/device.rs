//! The device of a verification, and code for it.

use systola::cpu::{self, Effort, Error, compile_lowered};
use systola::cuda::compile_cuda_lowered;
use systola::opencl::compile_opencl_lowered;
use systola::rt::cuda::{devices, nvrtc_version};
use systola::rt::{self, RunOptions, Stats, calibration};
use systola::{CpuOptions, CudaCompiled, CudaOptions, OpenClCompiled, OpenClOptions};
use systola_cli::device::DeviceName;
use systola_cli::runtime;
use systola_cli::source::Failure;
use systola_cli::target_device::TargetDevice;
use systola_driver::{Lowered, Target};
use systola_interp::Arrays;
use systola_ir::kernel::Program;

/// Code for a device.
pub enum Compiled {
    Cuda(CudaCompiled),
    OpenCl(OpenClCompiled),
    Cpu(Box<cpu::Compiled>),
}

/// The device and its description, or why there is none.
pub fn find(
    target: Target,
    named: &DeviceName,
    lanes: Option<u32>,
    no_sub_groups: bool,
) -> Result<(TargetDevice, String), Failure> {
    match target {
        Target::Cuda => {
            let all = devices().map_err(|e| runtime::fail_alone(&e))?;
            let (major, minor) = nvrtc_version().map_err(|e| runtime::fail_alone(&e))?;
            let number = named.cuda().map_err(|e| runtime::fail_alone(&e))?;
            let device = &all[number];
            let text = format!(
                "{}, {}, driver for CUDA {}.{}, NVRTC {major}.{minor}\n",
                device.name,
                device.arch(),
                device.driver.0,
                device.driver.1
            );
            let options = CudaOptions {
                device: number,
                ..CudaOptions::new()
            };
            Ok((TargetDevice::Cuda(options, device.clone()), text))
        }
        Target::OpenCl => {
            let number = named.opencl().map_err(|e| runtime::fail_alone(&e))?;
            let gpu = rt::opencl::Gpu::open(number).map_err(|e| runtime::fail_alone(&e))?;
            let options = OpenClOptions {
                device: number,
                lanes,
                without_sub_groups: no_sub_groups,
                ..OpenClOptions::new()
            };
            let lanes = options.machine(&gpu.info).most_lanes;
            let info = &gpu.info;
            let text = format!("{}, {}, warps of {lanes} lanes\n", info.name, info.platform);
            Ok((TargetDevice::OpenCl(options, info.clone()), text))
        }
        Target::Cpu => {
            let mut options = CpuOptions::from_env().map_err(|error| match error {
                Error::Runtime(error) => runtime::fail_alone(&error),
                Error::Refused(_) => Failure::new(error.to_string()),
            })?;
            rt::require_compiler(&options.compile).map_err(|e| runtime::fail_alone(&e))?;
            // Results matter, not times.
            options.effort = Effort::Little;
            let simd = options.simd.name();
            let text = format!("{}, vectors of {simd}\n", calibration::cpu_name());
            Ok((TargetDevice::Cpu(options, RunOptions::default()), text))
        }
    }
}

impl Compiled {
    pub fn of(lowered: Lowered, device: &TargetDevice) -> Result<Compiled, Error> {
        Ok(match device {
            TargetDevice::Cuda(options, _) => {
                Compiled::Cuda(compile_cuda_lowered(lowered, options)?)
            }
            TargetDevice::OpenCl(options, _) => {
                Compiled::OpenCl(compile_opencl_lowered(lowered, options)?)
            }
            TargetDevice::Cpu(options, _) => {
                Compiled::Cpu(Box::new(compile_lowered(lowered, options)?))
            }
        })
    }

    pub fn program(&self) -> &Program {
        match self {
            Compiled::Cuda(compiled) => compiled.program(),
            Compiled::OpenCl(compiled) => compiled.program(),
            Compiled::Cpu(compiled) => compiled.program(),
        }
    }

    pub fn run_tensors(&self, params: &[i128], inputs: &Arrays) -> Result<(Arrays, Stats), Error> {
        match self {
            Compiled::Cuda(compiled) => compiled.run_tensors(params, inputs),
            Compiled::OpenCl(compiled) => compiled.run_tensors(params, inputs),
            Compiled::Cpu(compiled) => compiled.run_tensors(params, inputs, &RunOptions::default()),
        }
    }

    /// The resources of each kernel, where they are known.
    pub fn resources(&self) -> String {
        match self {
            Compiled::Cuda(compiled) => {
                let resources = compiled.loaded().resources().unwrap_or_default();
                let resources: Vec<String> = resources
                    .iter()
                    .map(|(registers, local)| match local {
                        0 => registers.to_string(),
                        local => format!("{registers} + {local} bytes"),
                    })
                    .collect();
                format!(", registers {}", resources.join(", "))
            }
            Compiled::OpenCl(_) | Compiled::Cpu(_) => String::new(),
        }
    }
}
