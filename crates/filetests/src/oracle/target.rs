//! Where a program can run on this machine.

use std::fmt;

use systola::Simd;
use systola::rt::simd;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The system, printed and parsed again, in its interpreter.
    System,
    Array,
    Kernel,
    Cpu(Simd),
    /// CUDA C++, emulated on the CPU.
    Cuda,
    /// The device of this index.
    OpenCl(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::System => f.write_str("system"),
            Target::Array => f.write_str("array"),
            Target::Kernel => f.write_str("kernel"),
            Target::Cpu(simd) => write!(f, "cpu-{}", simd.name()),
            Target::Cuda => f.write_str("cuda"),
            Target::OpenCl(n) => write!(f, "opencl-{n}"),
        }
    }
}

/// All targets of this machine. OpenCL devices count where `SYSTOLA_OPENCL_DEVICES` gives their
/// number.
fn all() -> Vec<Target> {
    let mut list = vec![Target::System, Target::Array, Target::Kernel];
    let present = |simd: &Simd| simd::named(simd.name()).is_ok();
    list.extend(Simd::ALL.into_iter().filter(present).map(Target::Cpu));
    list.push(Target::Cuda);
    let wanted = std::env::var("SYSTOLA_OPENCL_DEVICES").ok();
    let wanted: usize = wanted.and_then(|n| n.parse().ok()).unwrap_or(0);
    list.extend((0..wanted).map(Target::OpenCl));
    list
}

/// The targets of these names, or all; `cpu` and `opencl` stand for all of their kind.
pub fn targets(names: &[String]) -> Result<Vec<Target>, String> {
    let there = all();
    if names.is_empty() {
        return Ok(there);
    }
    let mut list = Vec::new();
    for name in names {
        let before = list.len();
        for target in &there {
            let full = target.to_string();
            if full == *name || full.starts_with(&format!("{name}-")) {
                list.push(*target);
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
