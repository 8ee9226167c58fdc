//! The compiler driver: connects the front ends, the lowering and the printers.
//!
//! ```
//! let module = systola_driver::load(
//!     "system prefix(N) where N >= 1 {
//!        input x[N]: i32;
//!        index i in 0..N;
//!        var S: i32 = select(i == 0, 0, S(i-1)) + x[i];
//!        output s[N]: i32 = S at [i] when true;
//!      }
//!      mapping one of prefix { time = i; }",
//! )
//! .unwrap();
//! let checked = systola_driver::check_mapping(&module, &module.mappings[0], &Default::default());
//! assert_eq!(checked.unwrap().report.registers_per_pe, Some(3));
//! ```

use std::collections::BTreeMap;
use std::path::Path;

pub mod front_ends;
pub mod sizes;

use front_ends::front_end_of;
use sizes::{Parameters, Sizes, Small};

pub use systola_back::cpu::FLAGS as C_FLAGS;
use systola_back::host;
pub use systola_back::opencl;
use systola_back::opencl::{Features, Links};
pub use systola_back::{Argument, Artifact, DeviceArtifact, DeviceEntry, Entry};
use systola_ir::array::Array;
use systola_ir::codes::{limits, mapping as mapping_codes, run};
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
pub use systola_ir::target::{Copies, Machine, Simd, Target, Threads, Unsized};
use systola_ir::{Diagnostic, Span};
pub use systola_lower::loops::loops;
use systola_lower::passes::lanes_through_memory::LINK_BYTES;
use systola_lower::passes::spill;
use systola_lower::pipeline::{analyse, compile};
use systola_lower::report::{Report, Scope};
use systola_lower::watch::{Watch, unwatched};

/// A legal mapping: its array, its report, and the localised system.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The system without `reduce` and `scan`, with every forwarded input in a variable of its own.
    pub localised: System,
    pub array: Array,
    pub report: Report,
}

/// Parses a program in the text language.
pub fn load(source: &str) -> Result<Module, Vec<Diagnostic>> {
    load_file(Path::new(""), source)
}

/// Parses the text of a file with the front end that its extension selects. The file itself is not
/// read.
pub fn load_file(path: &Path, source: &str) -> Result<Module, Vec<Diagnostic>> {
    (front_end_of(path).read)(source)
}

/// Formats the text of a file with the front end that its name asks for. The result has the same
/// tokens and comments; a text with mistakes of syntax is refused.
pub fn format_file(path: &Path, source: &str) -> Result<String, Vec<Diagnostic>> {
    (front_end_of(path).format)(source)
}

/// The system that a mapping is for.
pub fn system_of<'a>(module: &'a Module, mapping: &Mapping) -> Result<&'a System, Diagnostic> {
    module
        .systems
        .iter()
        .find(|s| s.name == mapping.system)
        .ok_or_else(|| {
            Diagnostic::new(
                &mapping_codes::UNKNOWN_MAPPING,
                mapping.span,
                format!("there is no system `{}`", mapping.system),
            )
        })
}

/// Checks a system for all sizes. Conditions with products of parameters are decided only if the
/// sizes are given.
pub fn check_system(system: &System, sizes: &BTreeMap<String, i128>) -> Vec<Diagnostic> {
    let sizes = match by_position(system, sizes) {
        Ok(sizes) => sizes,
        Err(error) => return vec![error],
    };
    let all: Option<Vec<i128>> = sizes.into_iter().collect();
    systola_lower::check_system::check_system(system, all.as_deref())
}

/// Checks a mapping of a system of the module, and builds its array. The system must have been
/// checked already.
pub fn check_mapping(
    module: &Module,
    mapping: &Mapping,
    sizes: &BTreeMap<String, i128>,
) -> Result<Checked, Vec<Diagnostic>> {
    let system = system_of(module, mapping).map_err(|d| vec![d])?;
    let sizes = by_position(system, sizes).map_err(|d| vec![d])?;
    let analysed = analyse(system, mapping, &sizes)?;
    Ok(Checked {
        localised: analysed.localised.system,
        array: analysed.array,
        report: analysed.report,
    })
}

/// Checks a mapping. If that is possible only at given sizes, and some are missing, checks it at
/// small sizes.
pub fn check_mapping_at_some_sizes(
    module: &Module,
    mapping: &Mapping,
    sizes: &Sizes,
) -> Result<Checked, Vec<Diagnostic>> {
    let found = check_mapping(module, mapping, sizes);
    let needs_sizes = |d: &Diagnostic| d.code == &limits::NEEDS_SIZES;
    let Err(refused) = &found else { return found };
    let system = system_of(module, mapping).ok();
    let Some(system) = system.filter(|_| refused.iter().all(needs_sizes)) else {
        return found;
    };
    let parameters = Parameters::from(system);
    for small in [Small::Equal, Small::Distinct] {
        let Some(taken) = parameters.with_small(sizes, small) else {
            continue;
        };
        let named = parameters.named(&taken);
        if let Ok(mut checked) = check_mapping(module, mapping, &named) {
            if let Scope::GivenSizes(why) = &mut checked.report.scope {
                let shown = parameters.show(&taken);
                why.push_str(&format!("; not all are given, taking {shown}"));
            }
            return Ok(checked);
        }
    }
    found
}

/// A legal mapping, and the program of kernels that executes it.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub checked: Checked,
    pub program: Program,
    /// The sizes of all parameters, if they were given.
    pub sizes: Option<Vec<i128>>,
}

/// Converts an error of a printer. A number that overflows 64 bits does so at every size.
fn not_printed(error: systola_back::Error) -> Diagnostic {
    let (code, help) = match error {
        systola_back::Error::Unsupported { .. } => (
            &limits::NOT_COMPILED,
            "the interpreters run it: --target kernel",
        ),
        systola_back::Error::Overflow { .. } => (
            &run::TOO_LARGE,
            "use smaller numbers in index expressions, guards and tiles",
        ),
    };
    Diagnostic::new(code, Span::NONE, error.to_string()).help(help)
}

/// Prints a program as C for CPUs with these vector instructions.
pub fn emit_c(program: &Program, simd: Simd) -> Result<Artifact, Diagnostic> {
    systola_back::cpu::emit(program, simd).map_err(not_printed)
}

/// Prints a program that was lowered for [`Machine::cuda`] as CUDA C++.
pub fn emit_cuda(program: &Program) -> Result<DeviceArtifact, Diagnostic> {
    systola_back::cuda::emit(program).map_err(not_printed)
}

/// Prints a program that was lowered for [`opencl_machine`] as OpenCL C.
pub fn emit_opencl(program: &Program, features: &Features) -> Result<DeviceArtifact, Diagnostic> {
    systola_back::opencl::emit(program, features).map_err(not_printed)
}

/// How the kernels of a printed text are launched, as a comment to put before it.
pub fn describe_c(program: &Program, artifact: &Artifact) -> String {
    host::notes::of_c(program, artifact)
}

/// The same of CUDA C++.
pub fn describe_cuda(program: &Program, artifact: &DeviceArtifact) -> String {
    host::notes::of_cuda(program, artifact)
}

/// The same of OpenCL C.
pub fn describe_opencl(program: &Program, artifact: &DeviceArtifact) -> String {
    host::notes::of_opencl(program, artifact)
}

/// Prints a whole program in C: kernels, launches and a `main`. `sizes`: values where its user
/// gives none.
pub fn emit_c_host(
    program: &Program,
    simd: Simd,
    sizes: &BTreeMap<String, i128>,
) -> Result<String, Diagnostic> {
    host::cpu::program(program, simd, &defaults(program, sizes)).map_err(not_printed)
}

/// The same in CUDA C++.
pub fn emit_cuda_host(
    program: &Program,
    sizes: &BTreeMap<String, i128>,
) -> Result<String, Diagnostic> {
    host::cuda::program(program, &defaults(program, sizes)).map_err(not_printed)
}

/// The same in C for OpenCL.
pub fn emit_opencl_host(
    program: &Program,
    features: &Features,
    sizes: &BTreeMap<String, i128>,
) -> Result<String, Diagnostic> {
    host::opencl::program(program, features, &defaults(program, sizes)).map_err(not_printed)
}

fn defaults(program: &Program, sizes: &BTreeMap<String, i128>) -> Vec<Option<i128>> {
    let params = program.params.iter();
    params.map(|p| sizes.get(&p.name).copied()).collect()
}

/// The code budget for OpenCL compilers that merge all threads of a block into one: they are slow
/// on long straight-line code.
const SHORT_CODE: usize = 400;

/// The maximum number of warps of a block.
const MOST_WARPS: u32 = 32;

/// The machine description of an OpenCL device. `lanes` is the preferred number of lanes of a warp;
/// the largest supported number up to it is used. `local_memory` is the size of local memory in
/// bytes.
pub fn opencl_machine(features: &Features, lanes: u32, local_memory: u64) -> Machine {
    let (lanes, slots) = match features.links {
        Links::Shuffles(sizes) => {
            let fits = sizes.iter().filter(|size| *size <= lanes);
            let least = sizes.iter().next().unwrap_or(1);
            (fits.max().unwrap_or(least), 0)
        }
        Links::SharedMemory { .. } => (lanes.min(features.most_threads), LINK_BYTES),
    };
    let machine = Machine::threads(
        Target::OpenCl,
        lanes,
        Threads {
            warps: (features.most_threads / lanes).clamp(1, MOST_WARPS),
            wide_bytes: 16,
            copies: Copies::Plain,
            block_memory: local_memory.saturating_sub(slots),
            unsized_arrays: Unsized::Block,
            links: features.links,
            multiprocessor: None,
        },
    );
    let code_budget = match features.links {
        Links::SharedMemory {
            waits_in_branches: false,
        } => SHORT_CODE,
        Links::SharedMemory { .. } | Links::Shuffles(_) => machine.code_budget,
    };
    Machine {
        code_budget,
        ..machine
    }
}

/// The sizes that become constants in a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fix {
    /// Only those that must be constants: one kernel for all sizes where that is possible.
    #[default]
    Nothing,
    Everything,
    /// The parameters with these names.
    Names(Vec<String>),
}

/// Lowers a mapping to a program of kernels for a machine. If no program for all sizes is possible,
/// the program is for the given sizes only. A program for all sizes keeps an array in shared memory
/// if the array fits there at the given sizes.
pub fn lower(
    module: &Module,
    mapping: &Mapping,
    sizes: &BTreeMap<String, i128>,
    fix: &Fix,
    machine: &Machine,
) -> Result<Lowered, Vec<Diagnostic>> {
    unwatched(|watch| lower_watched(module, mapping, sizes, fix, machine, watch))
}

/// The same. `watch` observes each step, and may stop the lowering before the last pass.
pub fn lower_watched(
    module: &Module,
    mapping: &Mapping,
    sizes: &BTreeMap<String, i128>,
    fix: &Fix,
    machine: &Machine,
    watch: &mut Watch<'_>,
) -> Result<Lowered, Vec<Diagnostic>> {
    let system = system_of(module, mapping).map_err(|d| vec![d])?;
    let sizes = by_position(system, sizes).map_err(|d| vec![d])?;
    let fixed: Vec<bool> = system
        .params
        .iter()
        .map(|p| match fix {
            Fix::Nothing => false,
            Fix::Everything => true,
            Fix::Names(names) => names.contains(&p.name),
        })
        .collect();
    let mut compiled = compile(system, mapping, &sizes, &fixed, machine, watch)?;
    if let Some(threads) = machine.threads
        && spill::fits(&compiled.program, &sizes, &threads) == Ok(false)
    {
        let mut roomy = machine.clone();
        roomy.threads = Some(Threads {
            unsized_arrays: Unsized::Global,
            ..threads
        });
        compiled = compile(system, mapping, &sizes, &fixed, &roomy, watch)?;
    }
    Ok(Lowered {
        checked: Checked {
            localised: compiled.analysed.localised.system,
            array: compiled.analysed.array,
            report: compiled.analysed.report,
        },
        program: compiled.program,
        sizes: sizes.into_iter().collect(),
    })
}

/// Whether the shared arrays of a program fit into the shared memory of this machine at these
/// sizes. If they do not fit, lowering the mapping again for these sizes puts them into global
/// memory.
pub fn fits(program: &Program, sizes: &BTreeMap<String, i128>, machine: &Machine) -> bool {
    let names = program.params.iter().map(|p| &p.name);
    let sizes: Vec<Option<i128>> = names.map(|name| sizes.get(name).copied()).collect();
    let too_large = |threads| spill::fits(program, &sizes, threads) == Ok(false);
    !machine.threads.as_ref().is_some_and(too_large)
}

/// The sizes in the order of the system's parameters. Names of other systems in the file are
/// ignored. Sizes that violate the context are refused.
fn by_position(
    system: &System,
    sizes: &BTreeMap<String, i128>,
) -> Result<Vec<Option<i128>>, Diagnostic> {
    let list: Vec<Option<i128>> = system
        .params
        .iter()
        .map(|p| sizes.get(&p.name).copied())
        .collect();
    if let Some(all) = list.iter().copied().collect::<Option<Vec<i128>>>() {
        for cond in &system.context {
            if cond.eval(&all, &[]) == Ok(false) {
                let names = system.param_names();
                return Err(Diagnostic::new(
                    &run::CONTEXT_VIOLATED,
                    Span::NONE,
                    format!(
                        "the sizes do not satisfy `{}` of `{}`",
                        cond.display(&names, &[]),
                        system.name
                    ),
                )
                .help("choose sizes that the `where` of the system allows"));
            }
        }
    }
    Ok(list)
}
