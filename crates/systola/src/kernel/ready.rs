//! Systems that were compiled: the mapping is named or chosen, lowered, and compiled once.

use std::sync::Arc;

use systola_driver::{Lowered, check_system, fits, lower};
use systola_explore::choose::{Choice, Subject, on_large_stack};
use systola_explore::sizes::{Parameters, Sizes};
use systola_explore::target_device::TargetDevice;
use systola_ir::codes::mapping as mapping_codes;
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_jit::{Compiled, cpu::compile_lowered};
use systola_lower::report::Report;
use systola_rt::{RunOptions, Stats, View, ViewMut};

use super::sizes::stage_sizes;
use super::{Kernel, Work};
use crate::error::Error;

/// A system that was compiled.
pub(super) struct Ready {
    /// Its position in the module.
    pub(super) system: usize,
    pub(super) choice: Choice,
    pub(super) lowered: Facts,
    pub(super) code: Code,
}

/// What is known of a lowered mapping.
pub(super) struct Facts {
    pub(super) report: Report,
    /// The sizes that are constants, in order.
    pub(super) fixed: Vec<Option<i128>>,
}

pub(super) enum Code {
    Cpu(Compiled, RunOptions),
    #[cfg(feature = "cuda")]
    Cuda(systola_jit::CudaCompiled),
    #[cfg(feature = "opencl")]
    OpenCl(systola_jit::OpenClCompiled),
}

impl Code {
    pub(super) fn run(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        Ok(match self {
            Code::Cpu(code, options) => code.run(sizes, inputs, outputs, options)?,
            #[cfg(feature = "cuda")]
            Code::Cuda(code) => code.run(sizes, inputs, outputs)?,
            #[cfg(feature = "opencl")]
            Code::OpenCl(code) => code.run(sizes, inputs, outputs)?,
        })
    }

    pub(super) fn program(&self) -> &Program {
        match self {
            Code::Cpu(code, _) => code.program(),
            #[cfg(feature = "cuda")]
            Code::Cuda(code) => code.program(),
            #[cfg(feature = "opencl")]
            Code::OpenCl(code) => code.program(),
        }
    }

    pub(super) fn source(&self) -> &str {
        match self {
            Code::Cpu(code, _) => &code.source,
            #[cfg(feature = "cuda")]
            Code::Cuda(code) => &code.source,
            #[cfg(feature = "opencl")]
            Code::OpenCl(code) => &code.source,
        }
    }
}

impl Kernel {
    /// Compiles what a call at these sizes needs.
    pub(super) fn prepare(&self, values: &[i128]) -> Result<(), Error> {
        match self.work {
            Work::System(n) => {
                self.system_at(n, values)?;
            }
            Work::Program(n) => {
                for stage in &self.module.programs[n].stages {
                    self.system_at(stage.system, &stage_sizes(stage, values)?)?;
                }
            }
        }
        Ok(())
    }

    /// The code of a system that runs at these sizes.
    pub(super) fn system_at(&self, n: usize, values: &[i128]) -> Result<Arc<Ready>, Error> {
        let mut ready = self.ready();
        let system = &self.module.systems[n];
        let sizes = Parameters::from(system).named(values);
        let machine = self.target_device.machine();
        let runs_at = |ready: &Arc<Ready>| {
            let mut fixed = ready.lowered.fixed.iter().zip(values);
            ready.system == n
                && fixed.all(|(fixed, v)| fixed.is_none_or(|f| f == *v))
                && fits(ready.code.program(), &sizes, &machine)
        };
        if let Some(found) = ready.iter().find(|r| runs_at(r)) {
            return Ok(Arc::clone(found));
        }
        let (choice, lowered) = on_large_stack(|| -> Result<_, Error> {
            let choice = self.choose(system, &sizes)?;
            let found = check_system(system, &sizes);
            if !found.is_empty() {
                return Err(found.into());
            }
            let lowered = lower(&self.module, &choice.mapping, &sizes, &choice.fix, &machine)?;
            Ok((choice, lowered))
        })?;
        let facts = Facts {
            report: lowered.checked.report.clone(),
            fixed: lowered.program.params.iter().map(|p| p.fixed).collect(),
        };
        let made = Arc::new(Ready {
            system: n,
            choice,
            lowered: facts,
            code: self.compile(lowered)?,
        });
        ready.push(Arc::clone(&made));
        Ok(made)
    }

    /// The mapping that is named, else the best.
    pub(super) fn choose(&self, system: &System, sizes: &Sizes) -> Result<Choice, Error> {
        let platform = self.target_device.platform();
        let subject = Subject {
            module: &self.module,
            system,
            sizes,
            platform: &platform,
        };
        for name in &self.settings.mappings {
            let is_it = |m: &&Mapping| m.name == *name && m.system == system.name;
            if let Some(mapping) = self.module.mappings.iter().find(is_it) {
                return Ok(Choice::named(mapping.clone(), platform.fix.clone()));
            }
            if let Some(choice) = subject.named(name)? {
                return Ok(choice);
            }
        }
        // A program names mappings of some of its systems.
        let of_others = |name: &String| {
            let is_program = matches!(self.work, Work::Program(_));
            is_program && self.module.mappings.iter().any(|m| m.name == *name)
        };
        if let Some(name) = self.settings.mappings.iter().find(|n| !of_others(n)) {
            return Err(self.no_mapping(name, system));
        }
        Ok(subject.choose()?)
    }

    pub(super) fn no_mapping(&self, name: &str, system: &System) -> Error {
        let own = self.module.mappings.iter();
        let own = own.filter(|m| m.system == system.name);
        let names: Vec<&str> = own.map(|m| m.name.as_str()).collect();
        let help = match names.as_slice() {
            [] => "it has none; leave .mapping(…) out, and one is chosen".to_string(),
            names => format!("there are: {}", names.join(", ")),
        };
        Error::new(
            &mapping_codes::UNKNOWN_MAPPING,
            format!("`{}` has no mapping `{name}`", system.name),
            &help,
        )
    }

    pub(super) fn compile(&self, lowered: Lowered) -> Result<Code, Error> {
        Ok(match &self.target_device {
            TargetDevice::Cpu(options, run) => Code::Cpu(compile_lowered(lowered, options)?, *run),
            #[cfg(feature = "cuda")]
            TargetDevice::Cuda(options, _) => {
                Code::Cuda(systola_jit::cuda::compile_cuda_lowered(lowered, options)?)
            }
            #[cfg(feature = "opencl")]
            TargetDevice::OpenCl(options, _) => Code::OpenCl(
                systola_jit::opencl::compile_opencl_lowered(lowered, options)?,
            ),
        })
    }
}
