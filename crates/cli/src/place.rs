//! Where kernels run: a target, its device, and how they are compiled for it.

use systola::rt::{self, CacheOptions, RunOptions, cuda, opencl, processor_name};
use systola::{CpuOptions, CudaOptions, OpenClOptions};
use systola_driver::{Fix, Machine};
use systola_explore::model::device::Number;
use systola_explore::model::{Cpu, Device, Gpu};

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
                let name = processor_name();
                let threads = match threads_of(run) {
                    1 => "1 thread".to_string(),
                    n => format!("{n} threads"),
                };
                format!("{name}, {}, {threads}", options.simd.name())
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
                format!("{}, {}, {lanes} lanes{links}", info.name, info.platform)
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

    /// What the model is to know.
    pub fn model(&self) -> Device {
        match self {
            Place::Cpu(_, run) => Device::Cpu(Cpu {
                threads: Number::reported(threads_of(run) as f64),
                vector_bytes: Number::reported(self.machine().vector_bytes.into()),
                vector_registers: Number::reported(self.machine().registers as f64),
                ..Cpu::default()
            }),
            Place::Cuda(_, info) => Device::Gpu(Gpu {
                sms: Number::reported(info.multiprocessors.into()),
                clock: Number::reported(f64::from(info.clock_khz) * 1e3),
                ..Gpu::default()
            }),
            Place::OpenCl(_, info) if info.is_cpu => Device::Cpu(Cpu {
                threads: Number::reported(info.compute_units.into()),
                ..Cpu::default()
            }),
            Place::OpenCl(_, info) => Device::Gpu(Gpu {
                sms: Number::reported(info.compute_units.into()),
                ..Gpu::default()
            }),
        }
    }

    pub fn fix(&self) -> &Fix {
        match self {
            Place::Cpu(options, _) => &options.fix,
            Place::Cuda(options, _) => &options.fix,
            Place::OpenCl(options, _) => &options.fix,
        }
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
