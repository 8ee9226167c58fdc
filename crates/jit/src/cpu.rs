//! Mappings compiled for the CPU of this machine.

use std::collections::BTreeMap;

use systola_driver::{
    C_FLAGS, Entry, Fix, Lowered, Machine, Simd, check_system, emit_c, lower, system_of,
};
use systola_ir::codes::mapping as codes;
use systola_ir::kernel::Program;
use systola_ir::system::Module;
use systola_ir::{Diagnostic, Poly, Span};
use systola_rt::timing::{Repeats, Timing};
use systola_rt::{
    CompileOptions, CpuProgram, RunOptions, ScratchPart, Source, Stats, View, ViewMut,
    require_compiler, simd,
};

/// Options of the compilation of a mapping.
#[derive(Clone, Debug)]
pub struct CpuOptions {
    pub simd: Simd,
    /// The sizes that become constants in the kernel.
    pub fix: Fix,
    pub effort: Effort,
    pub compile: CompileOptions,
}

/// The effort of the C compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// For kernels that run for long.
    #[default]
    Full,
    /// For kernels that run once.
    Little,
    /// For kernels that run once at small sizes. gcc 12 fails on some vectors of 64 bytes.
    Least,
}

impl CpuOptions {
    /// For this machine, without a cache.
    pub fn new() -> CpuOptions {
        CpuOptions {
            simd: simd::detect(),
            fix: Fix::Nothing,
            effort: Effort::Full,
            compile: CompileOptions::new(),
        }
    }

    /// For this machine, with the environment: `SYSTOLA_CC`, `SYSTOLA_SIMD`, `SYSTOLA_CACHE`.
    pub fn from_env() -> Result<CpuOptions, Error> {
        Ok(CpuOptions {
            simd: simd::from_env()?,
            fix: Fix::Nothing,
            effort: Effort::Full,
            compile: CompileOptions::from_env()?,
        })
    }

    /// Compiles as quickly as this machine can, for kernels that run once at small sizes: without
    /// optimisation by clang, which takes a third of gcc's time, or else with little.
    pub fn quick(mut self) -> CpuOptions {
        let clang = CompileOptions {
            compilers: vec!["clang".to_string()],
            ..self.compile.clone()
        };
        if require_compiler(&clang).is_ok() {
            self.compile = clang;
            self.effort = Effort::Least;
        } else {
            self.effort = Effort::Little;
        }
        self
    }

    /// The machine description of the CPU for the lowering.
    pub fn machine(&self) -> Machine {
        Machine::cpu(self.simd)
    }
}

impl Default for CpuOptions {
    fn default() -> Self {
        CpuOptions::new()
    }
}

/// Why a mapping is not compiled, or does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program, its mapping or its sizes.
    #[error("{}", list(.0))]
    Refused(Vec<Diagnostic>),
    /// The compiler, the memory, the arrays.
    #[error(transparent)]
    Runtime(#[from] systola_rt::Error),
}

fn list(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    all.join("; ")
}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Error::Refused(vec![diagnostic])
    }
}

/// A mapping as machine code. It can be run any number of times.
#[derive(Debug)]
pub struct Compiled {
    pub lowered: Lowered,
    /// The C it was compiled from.
    pub source: String,
    program: CpuProgram,
}

/// Compiles a mapping of a module. Where no kernel for all sizes can be made, it is made for the
/// given ones.
pub fn compile(
    module: &Module,
    mapping: &str,
    sizes: &[(&str, i64)],
    options: &CpuOptions,
) -> Result<Compiled, Error> {
    let lowered = lower_mapping(module, mapping, sizes, &options.fix, &options.machine())?;
    compile_lowered(lowered, options)
}

/// Checks a mapping of a module and its system, and lowers it for a machine.
pub(crate) fn lower_mapping(
    module: &Module,
    mapping: &str,
    sizes: &[(&str, i64)],
    fix: &Fix,
    machine: &Machine,
) -> Result<Lowered, Error> {
    let found = module.mappings.iter().find(|m| m.name == mapping);
    let Some(found) = found else {
        let names: Vec<&str> = module.mappings.iter().map(|m| m.name.as_str()).collect();
        return Err(Diagnostic::new(
            &codes::UNKNOWN_MAPPING,
            Span::NONE,
            format!("there is no mapping `{mapping}`"),
        )
        .help(format!("there are: {}", names.join(", ")))
        .into());
    };
    let sizes: BTreeMap<String, i128> = sizes
        .iter()
        .map(|(name, value)| ((*name).to_string(), i128::from(*value)))
        .collect();
    // The generated code relies on properties of a legal system, such as no reads outside of an
    // input.
    let wrong = check_system(system_of(module, found)?, &sizes);
    if !wrong.is_empty() {
        return Err(Error::Refused(wrong));
    }
    lower(module, found, &sizes, fix, machine).map_err(Error::Refused)
}

/// Compiles a program of kernels that was lowered for the machine of these options, from a system
/// that was checked.
pub fn compile_lowered(lowered: Lowered, options: &CpuOptions) -> Result<Compiled, Error> {
    let source = source_of(&lowered.program, options)?;
    compile_source(lowered, source, options)
}

/// The C of a program of kernels, and how to call it.
pub fn source_of(program: &Program, options: &CpuOptions) -> Result<Source, Error> {
    let artifact = emit_c(program, options.simd)?;
    Ok(Source {
        symbols: artifact.kernels.iter().map(|k| k.symbol.clone()).collect(),
        scratch: artifact.kernels.iter().map(scratch).collect(),
        code: artifact.source,
        flags: flags(options),
    })
}

/// Compiles the source of a program of kernels. The text may also contain other programs.
pub fn compile_source(
    lowered: Lowered,
    source: Source,
    options: &CpuOptions,
) -> Result<Compiled, Error> {
    let code = source.code.clone();
    let program = CpuProgram::compile(lowered.program.clone(), source, &options.compile)?;
    Ok(Compiled {
        lowered,
        source: code,
        program,
    })
}

/// The compiler flags: the optimisations that the semantics of kernels allow, and the machine.
fn flags(options: &CpuOptions) -> Vec<String> {
    let effort = match options.effort {
        Effort::Full => None,
        Effort::Little => Some("-O1".to_string()),
        Effort::Least => Some("-O0".to_string()),
    };
    let meaning = C_FLAGS.iter().map(|flag| (*flag).to_string());
    meaning
        .chain(simd::flags(options.simd))
        .chain(effort)
        .collect()
}

/// Shared arrays, each padded by the reach of a vector beyond it.
fn scratch(entry: &Entry) -> Vec<ScratchPart> {
    let beyond = || ScratchPart {
        extents: vec![Poly::constant(1)],
        bytes: ScratchPart::ALIGN,
    };
    entry
        .shared
        .iter()
        .flat_map(|array| {
            let array = ScratchPart {
                extents: array.extents.clone(),
                bytes: array.element_bytes,
            };
            [array, beyond()]
        })
        .collect()
}

/// The sizes in the order of a program's parameters.
pub(crate) fn ordered_sizes(program: &Program, sizes: &[(&str, i64)]) -> Result<Vec<i64>, Error> {
    let params = &program.params;
    let mut values = Vec::new();
    for param in params {
        let given = sizes.iter().find(|(name, _)| *name == param.name);
        let Some((_, value)) = given else {
            return Err(Diagnostic::new(
                &systola_ir::codes::run::MISSING_PARAM,
                Span::NONE,
                format!("the size `{}` is not given", param.name),
            )
            .into());
        };
        values.push(*value);
    }
    Ok(values)
}

impl Compiled {
    /// Runs it: sizes by name, every input without contents in the program, and every output.
    pub fn run(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        options: &RunOptions,
    ) -> Result<Stats, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self.program.run(&values, inputs, outputs, options)?)
    }

    /// The same several times; the seconds of each run in the kernels.
    pub fn time(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
        options: &RunOptions,
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self
            .program
            .time(&values, inputs, outputs, options, repeats)?)
    }

    pub fn program(&self) -> &Program {
        self.program.program()
    }

    /// The loaded library.
    pub fn loaded(&self) -> &CpuProgram {
        &self.program
    }
}
