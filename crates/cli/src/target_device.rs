//! The device that kernels run on: a target, its device, and the options of its compiler.

use systola::rt::{self, CacheOptions, RunOptions, calibration, cuda, opencl, simd};
use systola::{CpuOptions, CudaOptions, OpenClOptions};
use systola_driver::{Fix, Machine};
use systola_explore::calibrate::{self, Subject};
use systola_explore::model::device::Number;
use systola_explore::model::{Device, Gpu};
use systola_ir::target::Target;

/// A target with its device.
#[derive(Clone, Debug)]
pub enum TargetDevice {
    Cpu(CpuOptions, RunOptions),
    Cuda(CudaOptions, cuda::DeviceInfo),
    OpenCl(OpenClOptions, opencl::DeviceInfo),
}

impl TargetDevice {
    pub fn cuda(options: CudaOptions) -> Result<TargetDevice, rt::Error> {
        let gpu = cuda::Gpu::open(options.device)?;
        Ok(TargetDevice::Cuda(options, gpu.info.clone()))
    }

    pub fn opencl(options: OpenClOptions) -> Result<TargetDevice, systola::cpu::Error> {
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
            TargetDevice::Cuda(_, info) => {
                let (name, arch) = (&info.name, info.arch());
                format!("{name}, {arch}, {} multiprocessors", info.multiprocessors)
            }
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
            TargetDevice::Cuda(options, _) => options.machine(),
            TargetDevice::OpenCl(options, info) => options.machine(info),
        }
    }

    /// The device numbers for the model: measured by `systola devices --calibrate`, else defaults.
    pub fn model(&self) -> Device {
        let known = |subject: &Subject| calibrate::load(subject, self.cache()).device;
        let mut model = match self {
            TargetDevice::Cpu(..) => known(&Subject::Cpu),
            TargetDevice::Cuda(_, info) => known(&Subject::Cuda(info.clone())),
            TargetDevice::OpenCl(_, info) if info.is_cpu => known(&Subject::Cpu),
            TargetDevice::OpenCl(..) => Device::Gpu(Gpu::default()),
        };
        match (self, &mut model) {
            (TargetDevice::Cpu(options, run), Device::Cpu(cpu)) => {
                let machine = options.machine();
                cpu.threads = Number::reported(threads_of(run) as f64);
                cpu.vector_bytes = Number::reported(machine.vector_bytes.into());
                cpu.vector_registers = Number::reported(machine.registers as f64);
            }
            (TargetDevice::OpenCl(_, info), Device::Cpu(cpu)) => {
                cpu.threads = Number::reported(info.compute_units.into());
            }
            (TargetDevice::OpenCl(_, info), Device::Gpu(gpu)) => {
                gpu.sms = Number::reported(info.compute_units.into());
            }
            (TargetDevice::Cuda(..), _) | (TargetDevice::Cpu(..), Device::Gpu(_)) => {}
        }
        model
    }

    pub fn fix(&self) -> &Fix {
        match self {
            TargetDevice::Cpu(options, _) => &options.fix,
            TargetDevice::Cuda(options, _) => &options.fix,
            TargetDevice::OpenCl(options, _) => &options.fix,
        }
    }

    /// The same with these sizes as constants in kernels.
    #[must_use]
    pub fn with_fix(&self, fix: Fix) -> TargetDevice {
        let mut target_device = self.clone();
        match &mut target_device {
            TargetDevice::Cpu(options, _) => options.fix = fix,
            TargetDevice::Cuda(options, _) => options.fix = fix,
            TargetDevice::OpenCl(options, _) => options.fix = fix,
        }
        target_device
    }

    /// The cache of compiled kernels and results.
    pub fn cache(&self) -> Option<&CacheOptions> {
        match self {
            TargetDevice::Cpu(options, _) => options.compile.cache.as_ref(),
            TargetDevice::Cuda(options, _) => options.compile.cache.as_ref(),
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
