//! What can run a program on this machine.

use std::fmt;

use systola::Simd;
use systola::rt::simd;
use systola_ir::target::Target;

/// An interpreter, or a compiled target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Runner {
    /// The system, printed and parsed again, in its interpreter.
    System,
    Array,
    Kernel,
    On(Device),
}

/// What runs compiled kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu(Simd),
    /// CUDA C++, emulated on the CPU.
    Cuda,
    /// The device of this index.
    OpenCl(usize),
}

impl Device {
    /// Those of a target. OpenCL devices count where `SYSTOLA_OPENCL_DEVICES` gives their number.
    fn all(target: Target) -> Vec<Device> {
        match target {
            Target::Cpu => {
                let present = |simd: &Simd| simd::named(simd.name()).is_ok();
                let present = Simd::ALL.into_iter().filter(present);
                present.map(Device::Cpu).collect()
            }
            Target::Cuda => vec![Device::Cuda],
            Target::OpenCl => {
                let wanted = std::env::var("SYSTOLA_OPENCL_DEVICES").ok();
                let wanted: usize = wanted.and_then(|n| n.parse().ok()).unwrap_or(0);
                (0..wanted).map(Device::OpenCl).collect()
            }
        }
    }
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Runner::System => f.write_str("system"),
            Runner::Array => f.write_str("array"),
            Runner::Kernel => f.write_str("kernel"),
            Runner::On(Device::Cpu(simd)) => write!(f, "{}-{}", Target::Cpu, simd.name()),
            Runner::On(Device::Cuda) => Target::Cuda.fmt(f),
            Runner::On(Device::OpenCl(n)) => write!(f, "{}-{n}", Target::OpenCl),
        }
    }
}

/// Those of these names, or all; the name of a target stands for all its devices.
pub fn runners(names: &[String]) -> Result<Vec<Runner>, String> {
    let compiled = Target::ALL.into_iter().flat_map(Device::all);
    let mut there = vec![Runner::System, Runner::Array, Runner::Kernel];
    there.extend(compiled.map(Runner::On));
    if names.is_empty() {
        return Ok(there);
    }
    let mut list = Vec::new();
    for name in names {
        let before = list.len();
        for runner in &there {
            let full = runner.to_string();
            if full == *name || full.starts_with(&format!("{name}-")) {
                list.push(*runner);
            }
        }
        if list.len() == before {
            let known: Vec<String> = there.iter().map(ToString::to_string).collect();
            return Err(format!(
                "there is no target `{name}` here; there are {}",
                known.join(", ")
            ));
        }
    }
    Ok(list)
}
