//! Where kernels run: a target, its device, and how they are compiled for it.

use systola::rt::{self, CacheOptions, RunOptions, calibration, cuda, opencl, simd};
use systola::{CpuOptions, CudaOptions, OpenClOptions};
use systola_driver::{Fix, Machine};
use systola_explore::calibrate::{self, Subject};
use systola_explore::model::device::Number;
use systola_explore::model::{Device, Gpu};

/// A target with its device.
#[derive(Clone, Debug)]
pub enum Place {
    Cpu(CpuOptions, RunOptions),
    Cuda(CudaOptions, cuda::DeviceInfo),
    OpenCl(OpenClOptions, opencl::DeviceInfo),
}

impl Place {
    pub fn cuda(options: CudaOptions) -> Result<Place, rt::Error> {
        let gpu = cuda::Gpu::open(options.device)?;
        Ok(Place::Cuda(options, gpu.info.clone()))
    }

    pub fn opencl(options: OpenClOptions) -> Result<Place, systola::cpu::Error> {
        let gpu = options.open()?;
        Ok(Place::OpenCl(options, gpu.info.clone()))
    }

    /// As `--target` names it.
    pub fn target(&self) -> &'static str {
        match self {
            Place::Cpu(..) => "cpu",
            Place::Cuda(..) => "cuda",
            Place::OpenCl(..) => "opencl",
        }
    }

    /// For people, and all that tells it from other devices: what is found on one is not taken for another.
    pub fn device(&self) -> String {
        match self {
            Place::Cpu(options, run) => {
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
            Place::Cuda(_, info) => {
                let (name, arch) = (&info.name, info.arch());
                format!("{name}, {arch}, {} multiprocessors", info.multiprocessors)
            }
            Place::OpenCl(options, info) => {
                let lanes = options.machine(info).most_lanes;
                let links = match options.without_sub_groups {
                    true => ", no sub-groups",
                    false => "",
                };
                // What follows are the options that an implementation was built with.
                let platform: Vec<&str> = info.platform.split(',').take(2).collect();
                let platform = platform.join(",");
                format!("{}, {}, {lanes} lanes{links}", info.name, platform.trim())
            }
        }
    }

    /// What the lowering is to know.
    pub fn machine(&self) -> Machine {
        match self {
            Place::Cpu(options, _) => options.machine(),
            Place::Cuda(options, _) => options.machine(),
            Place::OpenCl(options, info) => options.machine(info),
        }
    }

    /// What the model is to know: measured by `systola devices --calibrate`, else defaults.
    pub fn model(&self) -> Device {
        let known = |subject: &Subject| calibrate::load(subject, self.cache()).device;
        let mut model = match self {
            Place::Cpu(..) => known(&Subject::Cpu),
            Place::Cuda(_, info) => known(&Subject::Cuda(info.clone())),
            Place::OpenCl(_, info) if info.is_cpu => known(&Subject::Cpu),
            Place::OpenCl(..) => Device::Gpu(Gpu::default()),
        };
        match (self, &mut model) {
            (Place::Cpu(options, run), Device::Cpu(cpu)) => {
                let machine = options.machine();
                cpu.threads = Number::reported(threads_of(run) as f64);
                cpu.vector_bytes = Number::reported(machine.vector_bytes.into());
                cpu.vector_registers = Number::reported(machine.registers as f64);
            }
            (Place::OpenCl(_, info), Device::Cpu(cpu)) => {
                cpu.threads = Number::reported(info.compute_units.into());
            }
            (Place::OpenCl(_, info), Device::Gpu(gpu)) => {
                gpu.sms = Number::reported(info.compute_units.into());
            }
            (Place::Cuda(..), _) | (Place::Cpu(..), Device::Gpu(_)) => {}
        }
        model
    }

    pub fn fix(&self) -> &Fix {
        match self {
            Place::Cpu(options, _) => &options.fix,
            Place::Cuda(options, _) => &options.fix,
            Place::OpenCl(options, _) => &options.fix,
        }
    }

    /// The same with these sizes as numbers in kernels.
    #[must_use]
    pub fn with_fix(&self, fix: Fix) -> Place {
        let mut place = self.clone();
        match &mut place {
            Place::Cpu(options, _) => options.fix = fix,
            Place::Cuda(options, _) => options.fix = fix,
            Place::OpenCl(options, _) => options.fix = fix,
        }
        place
    }

    /// Where compiled kernels are kept, and what is known of them.
    pub fn cache(&self) -> Option<&CacheOptions> {
        match self {
            Place::Cpu(options, _) => options.compile.cache.as_ref(),
            Place::Cuda(options, _) => options.compile.cache.as_ref(),
            Place::OpenCl(options, _) => options.compile.cache.as_ref(),
        }
    }
}

fn threads_of(run: &RunOptions) -> usize {
    match run.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}
