//! The compilers of whole programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use systola::{CpuOptions, OpenClOptions, rt};
use systola_cli::device::DeviceName;
use systola_cli::runtime;
use systola_cli::source::{Failure, Sizes};
use systola_driver::opencl::Features;
use systola_driver::{Machine, Simd, emit_c_host, emit_cuda_host, emit_opencl_host};
use systola_ir::Diagnostic;
use systola_ir::kernel::Program;
use systola_ir::target::Target;

/// The language of a program, and what it runs on.
pub enum Language {
    C(Simd),
    Cuda {
        device: String,
    },
    OpenCl {
        features: Features,
        machine: Box<Machine>,
        device: String,
    },
}

impl Language {
    pub fn of(target: Target, device: &DeviceName) -> Result<Language, Failure> {
        Ok(match target {
            Target::Cpu => {
                let options = CpuOptions::from_env().map_err(|e| Failure::new(e.to_string()))?;
                Language::C(options.simd)
            }
            // Its number is the program's business: compiling needs no GPU.
            Target::Cuda => Language::Cuda {
                device: device.to_string(),
            },
            Target::OpenCl => {
                let number = device.opencl().map_err(|e| runtime::fail_alone(&e))?;
                Language::opencl(number).map_err(|e| runtime::fail_alone(&e))?
            }
        })
    }

    /// For the OpenCL device of this number.
    pub fn opencl(number: usize) -> Result<Language, rt::Error> {
        let gpu = rt::opencl::Gpu::open(number)?;
        let options = OpenClOptions {
            device: number,
            ..OpenClOptions::new()
        };
        Ok(Language::OpenCl {
            features: options.features(&gpu.info),
            machine: Box::new(options.machine(&gpu.info)),
            device: number.to_string(),
        })
    }

    pub fn machine(&self) -> Machine {
        match self {
            Language::C(simd) => Machine::cpu(*simd),
            Language::Cuda { .. } => Machine::cuda(),
            Language::OpenCl { machine, .. } => (**machine).clone(),
        }
    }

    pub fn emit(&self, program: &Program) -> Result<String, Diagnostic> {
        let none = Sizes::new();
        match self {
            Language::C(simd) => emit_c_host(program, *simd, &none),
            Language::Cuda { .. } => emit_cuda_host(program, &none),
            Language::OpenCl { features, .. } => emit_opencl_host(program, features, &none),
        }
    }

    /// As programs are told it.
    pub fn device(&self) -> Option<&str> {
        match self {
            Language::C(_) => None,
            Language::Cuda { device } | Language::OpenCl { device, .. } => Some(device),
        }
    }

    pub fn extension(&self) -> &'static str {
        match self {
            Language::C(_) | Language::OpenCl { .. } => "c",
            Language::Cuda { .. } => "cu",
        }
    }
}

/// A compiler and its arguments.
pub struct Compiler {
    pub program: PathBuf,
    pub flags: Vec<String>,
    /// Behind the file.
    libraries: Vec<String>,
}

impl Compiler {
    /// With the arguments that the head of a program names, but little optimisation: results
    /// matter, not times.
    pub fn new(language: &Language) -> Result<Compiler, Failure> {
        let (program, flags, libraries): (&str, &[&str], &[&str]) = match language {
            Language::C(_) => (
                "cc",
                &["-std=gnu11", "-O1", "-march=native", "-fwrapv", "-fopenmp"],
                &["-lm"],
            ),
            Language::Cuda { .. } => ("nvcc", &["-O3"], &[]),
            Language::OpenCl { .. } => ("cc", &["-O1"], &["-lOpenCL", "-lm"]),
        };
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect();
        Ok(Compiler {
            program: PathBuf::from(program),
            flags: owned(flags),
            libraries: owned(libraries),
        })
    }

    /// Compiles a file; the messages where that fails. `link`: to a program that can be run.
    pub fn compile(&self, text: &Path, made: &Path, link: bool) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(&self.flags).arg(text).arg("-o").arg(made);
        if link {
            command.args(&self.libraries);
        } else {
            command.arg("-c");
        }
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", self.program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().take(40).collect();
        Err(format!(
            "{command:?}: {}\n{}",
            output.status,
            said.join("\n")
        ))
    }
}
