//! The device that kernels run on: a target, its device, and the options of its compiler.

use systola_driver::{Fix, Machine};
use systola_ir::target::Target;
use systola_jit::CpuOptions;
#[cfg(feature = "cuda")]
use systola_jit::CudaOptions;
#[cfg(feature = "opencl")]
use systola_jit::OpenClOptions;
#[cfg(feature = "cuda")]
use systola_rt::cuda;
#[cfg(feature = "opencl")]
use systola_rt::opencl;
use systola_rt::{CacheOptions, RunOptions, calibration, simd};

use crate::calibrate::{self, Subject};
use crate::model::Device;
use crate::model::device::Number;
use crate::platform::Platform;

/// A target with its device.
#[derive(Clone, Debug)]
pub enum TargetDevice {
    Cpu(CpuOptions, RunOptions),
    #[cfg(feature = "cuda")]
    Cuda(CudaOptions, cuda::DeviceInfo),
    #[cfg(feature = "opencl")]
    OpenCl(OpenClOptions, opencl::DeviceInfo),
}

impl TargetDevice {
    #[cfg(feature = "cuda")]
    pub fn cuda(options: CudaOptions) -> Result<TargetDevice, systola_rt::Error> {
        let gpu = cuda::Gpu::open(options.device)?;
        Ok(TargetDevice::Cuda(options, gpu.info.clone()))
    }

    #[cfg(feature = "opencl")]
    pub fn opencl(options: OpenClOptions) -> Result<TargetDevice, systola_jit::cpu::Error> {
        let gpu = options.open()?;
        Ok(TargetDevice::OpenCl(options, gpu.info.clone()))
    }

    pub fn target(&self) -> Target {
        self.machine().target
    }

    /// A readable identity of the device: results of one device are not used for another.
    pub fn device(&self) -> String {
        match self {
            TargetDevice::Cpu(options, run) => {
                let mut text = calibration::cpu_name();
                if options.simd != simd::detect() {
                    text.push_str(&format!(", run with {}", options.simd.name()));
                }
                match threads_of(run) {
                    n if n == threads_of(&RunOptions::default()) => {}
                    1 => text.push_str(", run on 1 thread"),
                    n => text.push_str(&format!(", run on {n} threads")),
                }
                text
            }
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(_, info) => {
                let (name, arch) = (&info.name, info.arch());
                format!("{name}, {arch}, {} multiprocessors", info.multiprocessors)
            }
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, info) => {
                let lanes = options.machine(info).most_lanes;
                let links = match options.without_sub_groups {
                    true => ", no sub-groups",
                    false => "",
                };
                // The rest are the build options of an implementation.
                let platform: Vec<&str> = info.platform.split(',').take(2).collect();
                let platform = platform.join(",");
                format!("{}, {}, {lanes} lanes{links}", info.name, platform.trim())
            }
        }
    }

    /// The machine description for the lowering.
    pub fn machine(&self) -> Machine {
        match self {
            TargetDevice::Cpu(options, _) => options.machine(),
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(options, _) => options.machine(),
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, info) => options.machine(info),
        }
    }

    /// The device numbers for the model: measured by `systola devices --calibrate`, else defaults.
    pub fn model(&self) -> Device {
        let known = |subject: &Subject| calibrate::load(subject, self.cache()).device;
        let mut model = match self {
            TargetDevice::Cpu(..) => known(&Subject::Cpu),
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(_, info) => known(&Subject::Cuda(info.clone())),
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(_, info) if info.is_cpu => known(&Subject::Cpu),
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(..) => Device::Gpu(crate::model::Gpu::default()),
        };
        match (self, &mut model) {
            (TargetDevice::Cpu(options, run), Device::Cpu(cpu)) => {
                let machine = options.machine();
                cpu.threads = Number::reported(threads_of(run) as f64);
                cpu.vector_bytes = Number::reported(machine.vector_bytes.into());
                cpu.vector_registers = Number::reported(machine.registers as f64);
            }
            #[cfg(feature = "opencl")]
            (TargetDevice::OpenCl(_, info), Device::Cpu(cpu)) => {
                cpu.threads = Number::reported(info.compute_units.into());
            }
            #[cfg(feature = "opencl")]
            (TargetDevice::OpenCl(_, info), Device::Gpu(gpu)) => {
                gpu.sms = Number::reported(info.compute_units.into());
            }
            (TargetDevice::Cpu(..), Device::Gpu(_)) => {}
            #[cfg(feature = "cuda")]
            (TargetDevice::Cuda(..), _) => {}
        }
        model
    }

    pub fn fix(&self) -> &Fix {
        match self {
            TargetDevice::Cpu(options, _) => &options.fix,
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(options, _) => &options.fix,
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, _) => &options.fix,
        }
    }

    /// What a choice of mappings depends on.
    pub fn platform(&self) -> Platform {
        Platform {
            device: self.device(),
            machine: self.machine(),
            model: self.model(),
            fix: self.fix().clone(),
            cache: self.cache().cloned(),
        }
    }

    /// The same with these sizes as constants in kernels.
    #[must_use]
    pub fn with_fix(&self, fix: Fix) -> TargetDevice {
        let mut target_device = self.clone();
        match &mut target_device {
            TargetDevice::Cpu(options, _) => options.fix = fix,
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(options, _) => options.fix = fix,
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, _) => options.fix = fix,
        }
        target_device
    }

    /// The cache of compiled kernels and results.
    pub fn cache(&self) -> Option<&CacheOptions> {
        match self {
            TargetDevice::Cpu(options, _) => options.compile.cache.as_ref(),
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(options, _) => options.compile.cache.as_ref(),
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, _) => options.compile.cache.as_ref(),
        }
    }
}

fn threads_of(run: &RunOptions) -> usize {
    match run.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}
