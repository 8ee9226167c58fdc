//! Where Systola's front ends and passes meet.
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

use front_ends::front_end_of;

pub use systola_back::cpu::FLAGS as C_FLAGS;
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
use systola_lower::passes::lanes_through_memory::LINK_BYTES;
use systola_lower::passes::spill;
use systola_lower::pipeline::{analyse, compile};
use systola_lower::report::Report;
use systola_lower::watch::{Watch, unwatched};

/// A legal mapping: the array, what it is in numbers, and the system as the mapping sees it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Written out: no sums, no forwarded inputs left to choose.
    pub localised: System,
    pub array: Array,
    pub report: Report,
}

/// Reads a text in the text language.
pub fn load(source: &str) -> Result<Module, Vec<Diagnostic>> {
    load_file(Path::new(""), source)
}

/// Reads the text of a file with the front end that its name asks for; the file itself is not touched.
pub fn load_file(path: &Path, source: &str) -> Result<Module, Vec<Diagnostic>> {
    (front_end_of(path).read)(source)
}

/// The system a mapping maps.
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

/// Checks a system for all sizes; what multiplies parameters is decided at given sizes.
pub fn check_system(system: &System, sizes: &BTreeMap<String, i128>) -> Vec<Diagnostic> {
    let sizes = match by_position(system, sizes) {
        Ok(sizes) => sizes,
        Err(error) => return vec![error],
    };
    let all: Option<Vec<i128>> = sizes.into_iter().collect();
    systola_lower::check_system::check_system(system, all.as_deref())
}

/// Checks a mapping of a system of the module, and builds its array. The system itself is taken to
/// be checked.
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

/// A legal mapping, and the program of kernels that runs it.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub checked: Checked,
    pub program: Program,
    /// Those of all parameters, where they were given.
    pub sizes: Option<Vec<i128>>,
}

/// Why a program is not printed. A number that does not fit into 64 bits does not fit at any size.
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

/// Prints the C of a program for processors with these vector instructions.
pub fn emit_c(program: &Program, simd: Simd) -> Result<Artifact, Diagnostic> {
    systola_back::cpu::emit(program, simd).map_err(not_printed)
}

/// Prints the CUDA C++ of a program that was lowered for [`Machine::cuda`].
pub fn emit_cuda(program: &Program) -> Result<DeviceArtifact, Diagnostic> {
    systola_back::cuda::emit(program).map_err(not_printed)
}

/// Prints the OpenCL C of a program that was lowered for [`opencl_machine`].
pub fn emit_opencl(program: &Program, features: &Features) -> Result<DeviceArtifact, Diagnostic> {
    systola_back::opencl::emit(program, features).map_err(not_printed)
}

/// Values computed in straight-line code where a compiler makes one thread of a block, which takes long.
const SHORT_CODE: usize = 400;

/// Warps of a block, at most.
const MOST_WARPS: u32 = 32;

/// What the lowering is to know of an OpenCL device: warps of so many lanes, as far as it has them, and so many bytes of memory of a
/// block.
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

/// Which sizes become numbers in a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fix {
    /// None that need not: one kernel for all sizes.
    #[default]
    Nothing,
    Everything,
    /// These parameters.
    Names(Vec<String>),
}

/// Lowers a mapping to a program of kernels for a machine. Where that can not be done for all sizes,
/// it is done for the given ones. A program for all sizes keeps arrays in the memory of blocks if they fit there at the
/// given sizes.
pub fn lower(
    module: &Module,
    mapping: &Mapping,
    sizes: &BTreeMap<String, i128>,
    fix: &Fix,
    machine: &Machine,
) -> Result<Lowered, Vec<Diagnostic>> {
    unwatched(|watch| lower_watched(module, mapping, sizes, fix, machine, watch))
}

/// The same; `watch` is told what is done, and may end it before the last pass.
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

/// Can the program run on this machine at these sizes, or are its arrays too large for the memory of a block? Lowered
/// for these sizes they are in global memory.
pub fn fits(program: &Program, sizes: &BTreeMap<String, i128>, machine: &Machine) -> bool {
    let names = program.params.iter().map(|p| &p.name);
    let sizes: Vec<Option<i128>> = names.map(|name| sizes.get(name).copied()).collect();
    let too_large = |threads| spill::fits(program, &sizes, threads) == Ok(false);
    !machine.threads.as_ref().is_some_and(too_large)
}

/// The sizes in the order of the system's parameters. Names that the system does not have are left
/// to other systems of the file; sizes outside of the context are refused.
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
