//! What a kernel is made from, and how: the program, the target, sizes and mappings.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use systola_driver::{Fix, Simd, Target, check_system, load_file};
use systola_explore::choose::on_large_stack;
use systola_explore::sizes::Sizes;
use systola_explore::space::is_name_of_a_candidate;
use systola_explore::target_device::TargetDevice;
use systola_ir::Diagnostic;
use systola_ir::codes::run as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use systola_jit::CpuOptions;
use systola_rt::{CacheOptions, RunOptions};

use super::sizes::{unknown_size, values_of};
use super::{Kernel, Settings, Work};
use crate::error::Error;

/// What a kernel is made from, and how. See [`Kernel::builder`].
#[derive(Clone, Debug, Default)]
pub struct KernelBuilder {
    origin: Origin,
    system: Option<String>,
    program: Option<String>,
    settings: Settings,
    target: Option<Target>,
    device: usize,
    threads: usize,
    simd: Option<Simd>,
    cache: Cache,
}

#[derive(Clone, Debug, Default)]
enum Origin {
    #[default]
    Nothing,
    Text(String),
    File(PathBuf),
    Module(Box<Module>),
}

#[derive(Clone, Debug, Default)]
enum Cache {
    /// As the environment says.
    #[default]
    Usual,
    Nowhere,
    In(PathBuf),
}

impl KernelBuilder {
    /// The program in the text language.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.origin = Origin::Text(text.into());
        self
    }

    /// The file with the program.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.origin = Origin::File(path.into());
        self
    }

    /// A program that was read or built with [`crate::dsl`].
    #[must_use]
    pub fn module(mut self, module: Module) -> Self {
        self.origin = Origin::Module(Box::new(module));
        self
    }

    /// Which system, where there are several.
    #[must_use]
    pub fn system(mut self, name: impl Into<String>) -> Self {
        self.system = Some(name.into());
        self
    }

    /// Which program of systems, where there are several.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = Some(name.into());
        self
    }

    /// A mapping by its name, instead of the best; one for each system of a program.
    #[must_use]
    pub fn mapping(mut self, name: impl Into<String>) -> Self {
        self.settings.mappings.push(name.into());
        self
    }

    /// Sizes of all calls. With all of them the kernel is compiled at once, else at the first call.
    #[must_use]
    pub fn sizes(mut self, sizes: &[(&str, i64)]) -> Self {
        let named = |(name, value): &(&str, i64)| ((*name).to_string(), i128::from(*value));
        self.settings.sizes.extend(sizes.iter().map(named));
        self
    }

    /// Sizes that become constants in the kernel, which makes short loops faster.
    #[must_use]
    pub fn fix(mut self, names: &[&str]) -> Self {
        let names = names.iter().map(|name| (*name).to_string());
        self.settings.fix = Fix::Names(names.collect());
        self
    }

    /// All sizes become constants: the kernel is compiled again for other sizes.
    #[must_use]
    pub fn fix_all(mut self) -> Self {
        self.settings.fix = Fix::Everything;
        self
    }

    /// Where it runs: this CPU if not given. GPUs are features of this crate.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Which GPU or OpenCL device, by its index; the first if not given.
    #[must_use]
    pub fn device(mut self, index: usize) -> Self {
        self.device = index;
        self
    }

    /// Threads of the CPU; one for each core if not given.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Vector instructions of the CPU; the best that it has if not given.
    #[must_use]
    pub fn simd(mut self, simd: Simd) -> Self {
        self.simd = Some(simd);
        self
    }

    /// The folder where compiled kernels and choices are kept, instead of that of the environment
    /// (`SYSTOLA_CACHE`).
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Cache::In(folder.into());
        self
    }

    /// Nothing is kept for the next process.
    #[must_use]
    pub fn without_cache(mut self) -> Self {
        self.cache = Cache::Nowhere;
        self
    }

    /// Reads and checks the program. Where all sizes are known, it is compiled too.
    pub fn build(self) -> Result<Kernel, Error> {
        let (name, text, module) = read(self.origin.clone())?;
        let in_text = |error: Error| error.in_text(&name, &text);
        let work = select(&module, self.system.as_deref(), self.program.as_deref())?;
        let target_device = self.target_device()?;
        let settings = self.settings;
        let kernel = Kernel {
            module,
            work,
            settings,
            target_device,
            ready: Mutex::default(),
            name: String::new(),
            text: String::new(),
        };
        kernel.check_names().map_err(in_text)?;
        for system in kernel.systems() {
            let found = on_large_stack(|| check_system(system, &Sizes::new()));
            let at_sizes = |d: &Diagnostic| d.kind() == systola_ir::diag::Kind::Limitation;
            // What can be decided only at given sizes is decided at the call.
            if !found.iter().all(at_sizes) {
                return Err(in_text(found.into()));
            }
        }
        let parameters = kernel.parameters();
        if parameters.missing(&kernel.settings.sizes).is_empty() {
            let values = values_of(parameters, &kernel.settings.sizes).map_err(in_text)?;
            kernel.prepare(&values).map_err(in_text)?;
        }
        Ok(Kernel {
            name,
            text,
            ..kernel
        })
    }

    fn target_device(&self) -> Result<TargetDevice, Error> {
        let fix = self.settings.fix.clone();
        match self.target.unwrap_or(Target::Cpu) {
            Target::Cpu => {
                let mut options = CpuOptions::from_env()?;
                options.fix = fix;
                self.set_cache(&mut options.compile.cache);
                if let Some(simd) = self.simd {
                    options.simd = systola_rt::simd::named(simd.name())?;
                }
                let threads = self.threads;
                Ok(TargetDevice::Cpu(options, RunOptions { threads }))
            }
            #[cfg(feature = "cuda")]
            Target::Cuda => {
                let mut options = systola_jit::CudaOptions::from_env()?;
                (options.fix, options.device) = (fix, self.device);
                self.set_cache(&mut options.compile.cache);
                Ok(TargetDevice::cuda(options)?)
            }
            #[cfg(feature = "opencl")]
            Target::OpenCl => {
                let mut options = systola_jit::OpenClOptions::from_env()?;
                (options.fix, options.device) = (fix, self.device);
                self.set_cache(&mut options.compile.cache);
                Ok(TargetDevice::opencl(options)?)
            }
            #[cfg(not(all(feature = "cuda", feature = "opencl")))]
            other => Err(not_built(other)),
        }
    }

    fn set_cache(&self, cache: &mut Option<CacheOptions>) {
        match &self.cache {
            Cache::Usual => {}
            Cache::Nowhere => *cache = None,
            Cache::In(folder) => *cache = Some(CacheOptions::new(folder)),
        }
    }
}

#[cfg(not(all(feature = "cuda", feature = "opencl")))]
fn not_built(target: Target) -> Error {
    let feature = target.name();
    Error::new(
        &codes::TARGET_NOT_BUILT,
        format!("this program was built without the target {feature}"),
        &format!("add the feature to Cargo.toml: systola = {{ …, features = [\"{feature}\"] }}"),
    )
}

/// The name of the file, its text, and the module.
fn read(origin: Origin) -> Result<(String, String, Module), Error> {
    let (name, text) = match origin {
        Origin::Nothing => {
            return Err(Error::new(
                &codes::NOT_SELECTED,
                "the kernel has no program",
                "give it one with .text(…), .file(…) or .module(…)",
            ));
        }
        Origin::Module(module) => return Ok((String::new(), String::new(), *module)),
        Origin::Text(text) => (String::new(), text),
        Origin::File(path) => {
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|error| Error::unreadable(&path, error))?;
            (path.display().to_string(), text)
        }
    };
    let module = on_large_stack(|| load_file(Path::new(&name), &text));
    let module = module.map_err(|found| Error::from(found).in_text(&name, &text))?;
    Ok((name, text, module))
}

/// The only system or program, or the one that is named.
fn select(module: &Module, system: Option<&str>, program: Option<&str>) -> Result<Work, Error> {
    let systems: Vec<&str> = module.systems.iter().map(|s| s.name.as_str()).collect();
    let programs: Vec<&str> = module.programs.iter().map(|p| p.name.as_str()).collect();
    let there_are = || {
        let calls = |method: &'static str, names: &[&str]| -> Vec<String> {
            let call = |name: &&str| format!(".{method}(\"{name}\")");
            names.iter().map(call).collect()
        };
        let all = [calls("system", &systems), calls("program", &programs)].concat();
        match all.is_empty() {
            true => "it has no system".to_string(),
            false => format!("choose one: {}", all.join(", ")),
        }
    };
    let find = |what: &str, name: &str, names: &[&str]| {
        names.iter().position(|n| *n == name).ok_or_else(|| {
            let message = format!("there is no {what} `{name}`");
            Error::new(&codes::NOT_SELECTED, message, &there_are())
        })
    };
    match (system, program) {
        (Some(_), Some(_)) => Err(Error::new(
            &codes::NOT_SELECTED,
            "both a system and a program are named",
            "leave out .system(…) or .program(…)",
        )),
        (Some(name), None) => Ok(Work::System(find("system", name, &systems)?)),
        (None, Some(name)) => Ok(Work::Program(find("program", name, &programs)?)),
        (None, None) => match (systems.len(), programs.len()) {
            (1, _) => Ok(Work::System(0)),
            (_, 1) => Ok(Work::Program(0)),
            (n, m) => {
                let message = format!("the text has {n} systems and {m} programs");
                Err(Error::new(&codes::NOT_SELECTED, message, &there_are()))
            }
        },
    }
}

impl Kernel {
    /// The names of sizes that were given must exist.
    fn check_names(&self) -> Result<(), Error> {
        let params = self.parameters().params;
        let known: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let fixed = match &self.settings.fix {
            Fix::Nothing | Fix::Everything => &[][..],
            Fix::Names(names) => names,
        };
        let of_systems = self.systems().into_iter().flat_map(|s| &s.params);
        let fixable: Vec<&str> = of_systems.map(|p| p.name.as_str()).collect();
        for name in self.settings.sizes.keys() {
            unknown_size(name, &known)?;
        }
        for name in fixed {
            unknown_size(name, &fixable)?;
        }
        for name in &self.settings.mappings {
            let is_own =
                |m: &Mapping| m.name == *name && self.systems().iter().any(|s| s.name == m.system);
            let is_known = self.module.mappings.iter().any(is_own) || is_name_of_a_candidate(name);
            if let Some(system) = self.systems().first().filter(|_| !is_known) {
                return Err(self.no_mapping(name, system));
            }
        }
        Ok(())
    }
}
