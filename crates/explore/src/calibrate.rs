//! Calibration: the numbers of a device, measured by small kernels of its own language.
//!
//! Each micro-benchmark is a kernel that does one kind of work. It goes through the compiler and
//! the runtime of designs. The measured numbers are stored for each device, and [`load`] gives them
//! to the model; the others keep their defaults.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Buffer, BufferKind, Host, Kernel, Program, Size, Var, VarKind};
use systola_ir::system::Axis;
use systola_ir::{DimId, KernelId, ParamId, Scalar};
use systola_rt::CacheOptions;
use systola_rt::calibration::{self, Damaged, Numbers};
#[cfg(feature = "cuda")]
use systola_rt::cuda::DeviceInfo;

#[cfg(feature = "cuda")]
use crate::model::device::Gpu;
use crate::model::device::{Cpu, Device, Number, Source};

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

/// A device whose numbers can be measured.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The CPU of this machine.
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(DeviceInfo),
}

impl Subject {
    /// The key under which its numbers are stored.
    pub fn name(&self) -> String {
        match self {
            Subject::Cpu => calibration::cpu_name(),
            #[cfg(feature = "cuda")]
            Subject::Cuda(info) => format!(
                "{}, {} multiprocessors, {}",
                info.name,
                info.multiprocessors,
                info.arch()
            ),
        }
    }

    /// The numbers that are known without measuring.
    fn defaults(&self) -> Device {
        match self {
            Subject::Cpu => {
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                let bytes = systola_rt::simd::detect().bytes().max(16);
                let registers = if bytes >= 64 { 32.0 } else { 16.0 };
                Device::Cpu(Cpu {
                    threads: Number::reported(threads as f64),
                    vector_bytes: Number::reported(f64::from(bytes)),
                    vector_registers: Number::reported(registers),
                    ..Cpu::default()
                })
            }
            #[cfg(feature = "cuda")]
            Subject::Cuda(info) => Device::Gpu(Gpu {
                sms: Number::reported(f64::from(info.multiprocessors)),
                clock: Number::reported(f64::from(info.clock_khz) * 1e3),
                ..Gpu::default()
            }),
        }
    }
}

/// The numbers of a device for the model.
#[derive(Clone, Debug)]
pub struct Calibrated {
    pub device: Device,
    /// At least one number was measured.
    pub stored: bool,
    /// The stored numbers cannot be used; the defaults are taken.
    pub damaged: Option<Damaged>,
}

/// The stored numbers of a device, and defaults for the others.
pub fn load(subject: &Subject, cache: Option<&CacheOptions>) -> Calibrated {
    let found = cache.map_or(Ok(None), |cache| calibration::load(cache, &subject.name()));
    let mut device = subject.defaults();
    let (stored, damaged) = match found {
        Ok(Some(numbers)) => {
            device.set(&numbers, Source::Calibrated);
            (true, None)
        }
        Ok(None) => (false, None),
        Err(damaged) => (false, Some(damaged)),
    };
    Calibrated {
        device,
        stored,
        damaged,
    }
}

/// Measures a device. `progress` is called with the name of the next measurement.
pub fn measure(
    subject: &Subject,
    progress: &mut dyn FnMut(&str),
) -> Result<Numbers, systola_rt::Error> {
    match subject {
        Subject::Cpu => cpu::measure(progress),
        #[cfg(feature = "cuda")]
        Subject::Cuda(info) => cuda::measure(info, progress),
    }
}

/// The sizes of a program of micro-benchmarks, in order.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    which: usize,
    blocks: i64,
    /// The length of each of the two arrays.
    elements: i64,
    launches: i64,
}

impl Sizes {
    fn values(self) -> [i64; 4] {
        [self.which as i64, self.blocks, self.elements, self.launches]
    }
}

/// A program that launches one of its kernels; a size selects which. The kernels are hand-written.
fn program(kernels: &[&str], warps: u32, lanes: u32) -> Program {
    let param = |n: u32| Form::from(ParamId(n));
    let size = |name: &str| Size {
        name: name.to_string(),
        fixed: None,
    };
    let array = |name: &str, kind: BufferKind| Buffer {
        name: name.to_string(),
        ty: Scalar::F32,
        kind,
        axes: vec![Axis {
            lo: Form::zero(),
            hi: param(2),
        }],
    };
    let kernel = |name: &&str| Kernel {
        hints: Default::default(),
        name: (*name).to_string(),
        lanes,
        warps,
        vars: vec![Var {
            name: "block".to_string(),
            kind: VarKind::Block {
                lo: vec![Form::zero()],
                hi: vec![param(1)],
            },
        }],
        shared: Vec::new(),
        regs: Vec::new(),
        values: Vec::new(),
        body: Vec::new(),
    };
    let launch = |n: usize| Host::If {
        cond: Cond::cmp(Rel::Eq, param(0), n as i128),
        then: vec![Host::Launch {
            kernel: KernelId::from(n),
            args: Vec::new(),
        }],
        otherwise: Vec::new(),
    };
    Program {
        name: "calibration".to_string(),
        params: ["which", "blocks", "elements", "launches"]
            .map(size)
            .to_vec(),
        context: Vec::new(),
        buffers: vec![
            array("source", BufferKind::Input { data: None }),
            array("target", BufferKind::Output { fill: None }),
        ],
        kernels: kernels.iter().map(kernel).collect(),
        host_vars: vec!["launch".to_string()],
        body: vec![Host::For {
            var: DimId(0),
            lo: vec![Form::zero()],
            hi: vec![param(3)],
            body: (0..kernels.len()).map(launch).collect(),
        }],
    }
}
