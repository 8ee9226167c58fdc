//! Options of the lowering, from the command line and the environment.

use clap::builder::TypedValueParser;
use systola::Simd;
use systola::cpu::{self, CpuOptions};
use systola::rt::simd;
use systola_driver::{Fix, Lowered, Machine, check_system};
use systola_ir::mapping::Mapping;
use systola_ir::system::System;
use systola_ir::target::Target;
use systola_lower::report::Scope;
use systola_lower::watch::{Watch, unwatched};

use crate::named::named;
use crate::runtime;
use crate::source::{Failure, Sizes, Source};

/// The common options of `run`, `emit` and `dump`.
#[derive(Debug, clap::Args)]
pub struct LoweringArgs {
    /// Sizes that become constants in the kernel, or `all`: it is then for these sizes only
    #[arg(long, value_name = "P,Q", value_delimiter = ',')]
    fix: Vec<String>,
    /// Vector instructions: avx512, avx2, sse, neon or portable; the best of this machine if not
    /// given
    #[arg(long, value_name = "NAME", value_parser = parse_simd)]
    simd: Option<Simd>,
    /// The machine of interpreted and dumped kernels
    #[arg(long, value_parser = machines(), value_name = "NAME")]
    machine: Option<Target>,
}

/// Reads a target whose machine is known without opening a device.
fn machines() -> impl TypedValueParser<Value = Target> {
    let about = [
        (Target::Cpu, "This CPU, with its vector instructions"),
        (Target::Cuda, "An NVIDIA GPU: warps of 32 lanes"),
    ];
    named(about.map(|(target, help)| (target.name(), help, target)))
}

/// Lanes of a warp.
pub fn parse_lanes(text: &str) -> Result<u32, String> {
    let lanes = text.parse().ok();
    let lanes = lanes.filter(|n: &u32| n.is_power_of_two() && *n <= 64);
    lanes.ok_or_else(|| "a power of two up to 64 is needed".to_string())
}

fn parse_simd(name: &str) -> Result<Simd, String> {
    let known = Simd::ALL.into_iter().find(|s| s.name() == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = Simd::ALL.iter().map(|s| s.name()).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Whether the code will run on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It will: the CPU must have the vector instructions.
    Run,
    Print,
}

impl LoweringArgs {
    pub fn is_given(&self) -> bool {
        !self.fix.is_empty() || self.simd.is_some() || self.machine.is_some()
    }

    /// The option that names a machine, if one is given.
    pub fn names_machine(&self) -> Option<&'static str> {
        match (self.simd, self.machine) {
            (Some(_), _) => Some("--simd"),
            (None, Some(_)) => Some("--machine"),
            (None, None) => None,
        }
    }

    /// The machine of kernels that are not compiled.
    pub fn machine(&self, options: &CpuOptions) -> (Machine, &'static str) {
        match self.machine.unwrap_or(Target::Cpu) {
            Target::Cpu => (options.machine(), options.simd.name()),
            Target::Cuda => (Machine::cuda(), Target::Cuda.name()),
            Target::OpenCl => unreachable!("no value of --machine"),
        }
    }

    pub fn fix(&self) -> Fix {
        match self.fix.as_slice() {
            [] => Fix::Nothing,
            [all] if all == "all" => Fix::Everything,
            names => Fix::Names(names.to_vec()),
        }
    }

    /// Checks that every fixed name is a parameter of a system of the file.
    pub fn check(&self, source: &Source) -> Result<(), Failure> {
        let Fix::Names(names) = self.fix() else {
            return Ok(());
        };
        let all = source.module.systems.iter().flat_map(|s| &s.params);
        let mut known: Vec<&str> = all.map(|p| p.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format!(
                "--fix: {} has no parameter `{name}`",
                source.path
            ))
            .help(format!("its parameters: {}; or `all`", known.join(", ")))),
        }
    }

    /// For this machine and environment.
    pub fn options(&self, source: &Source, purpose: Purpose) -> Result<CpuOptions, Failure> {
        let options = || -> Result<CpuOptions, cpu::Error> {
            let mut options = CpuOptions::from_env()?;
            options.fix = self.fix();
            if let Some(simd) = self.simd {
                options.simd = match purpose {
                    Purpose::Run => simd::named(simd.name())?,
                    Purpose::Print => simd,
                };
            }
            Ok(options)
        };
        options().map_err(|error| runtime::fail(source, error))
    }
}

/// Checks a system and lowers a mapping of it. Kernels rely on the checks for their memory
/// accesses, so an unchecked system is never lowered.
pub fn lower_checked(
    source: &Source,
    system: &System,
    mapping: &Mapping,
    sizes: &Sizes,
    fix: &Fix,
    machine: &Machine,
) -> Result<Lowered, Failure> {
    unwatched(|watch| lower_watched(source, system, mapping, sizes, fix, machine, watch))
}

/// The same; `watch` observes each step, and may stop before the last pass.
pub fn lower_watched(
    source: &Source,
    system: &System,
    mapping: &Mapping,
    sizes: &Sizes,
    fix: &Fix,
    machine: &Machine,
    watch: &mut Watch<'_>,
) -> Result<Lowered, Failure> {
    let open = |name: &&String| !sizes.contains_key(*name);
    let fixed: Vec<&String> = match fix {
        Fix::Nothing => Vec::new(),
        Fix::Everything => system.params.iter().map(|p| &p.name).collect(),
        Fix::Names(names) => {
            let own = |name: &&String| system.params.iter().any(|p| p.name == **name);
            names.iter().filter(own).collect()
        }
    };
    if let Some(name) = fixed.into_iter().find(open) {
        return Err(Failure::new(format!("--fix: the size {name} is not given"))
            .help(format!("give it: --set {name}=…")));
    }
    let found = check_system(system, sizes);
    if !found.is_empty() {
        return Err(source.fail(&found));
    }
    systola_driver::lower_watched(&source.module, mapping, sizes, fix, machine, watch)
        .map_err(|found| source.fail(&found))
}

/// The sizes that the kernel supports, and why not all.
pub fn scope_text(lowered: &Lowered) -> String {
    let params = &lowered.program.params;
    let fixed: Vec<String> = params
        .iter()
        .filter_map(|p| p.fixed.map(|value| format!("{} = {value}", p.name)))
        .collect();
    match &lowered.checked.report.scope {
        Scope::GivenSizes(why) => format!("for {} only: {why}", fixed.join(", ")),
        Scope::AllSizes if fixed.is_empty() => "for all sizes".to_string(),
        Scope::AllSizes if fixed.len() == params.len() => {
            format!("for {} only, which are fixed", fixed.join(", "))
        }
        Scope::AllSizes => format!("for all sizes with {} fixed", fixed.join(", ")),
    }
}
