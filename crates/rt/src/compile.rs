//! From C to a loaded library: from the cache, or through the compiler.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{Cache, CacheOptions, hash_of};
use crate::compiler::Compiler;
use crate::deadline::Deadline;
use crate::error::Error;
use crate::library::Library;
use crate::precompiled::Precompiled;
use crate::process::Limits;
use crate::simd::cpu_features;
use crate::source::Source;

/// How code is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Compilers to try; the first that exists is used. Each is a name or path, optionally followed
    /// by arguments.
    pub compilers: Vec<String>,
    /// The limit of a compiler's CPU time, independent of the load of the machine.
    pub time_limit: Duration,
    /// The deadline at which every compiler is stopped.
    pub deadline: Option<Deadline>,
    /// `None`: nothing is cached.
    pub cache: Option<CacheOptions>,
}

impl CompileOptions {
    pub const TIME_LIMIT: Duration = Duration::from_secs(120);

    /// The usual compilers, and no cache; from the environment only the search path is read.
    pub fn new() -> CompileOptions {
        CompileOptions {
            compilers: ["cc", "gcc", "clang"].map(str::to_string).to_vec(),
            time_limit: Self::TIME_LIMIT,
            deadline: None,
            cache: None,
        }
    }

    /// Options from the environment: the compiler `SYSTOLA_CC` and no other, if that is set; else
    /// `CC` or the usual ones. For the cache see [`CacheOptions::from_env`].
    pub fn from_env() -> Result<CompileOptions, Error> {
        let mut options = CompileOptions::new();
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(compiler) = variable("SYSTOLA_CC") {
            options.compilers = vec![compiler];
        } else if let Some(compiler) = variable("CC") {
            options.compilers.insert(0, compiler);
        }
        options.cache = CacheOptions::from_env()?;
        Ok(options)
    }

    fn limits(&self) -> Limits<'_> {
        Limits {
            cpu_time: self.time_limit,
            deadline: self.deadline.as_ref(),
        }
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions::new()
    }
}

/// Where the loaded code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Cache,
    Compiler,
}

/// A note for the user about a successful compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The code was compiled but not cached.
    CacheUnusable { dir: PathBuf, reason: String },
    /// The compiler took longer than this and was run again with less optimisation.
    LessOptimised { limit: Duration },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::CacheUnusable { dir, reason } => write!(
                f,
                "compiled code is not kept, because the cache {} cannot be written: {reason}",
                dir.display()
            ),
            Note::LessOptimised { limit } => write!(
                f,
                "the kernel is compiled with {LESS}, because the compiler did not end within \
                 {} s of CPU time with more",
                limit.as_secs_f64()
            ),
        }
    }
}

pub(crate) struct Loaded {
    pub(crate) library: Library,
    pub(crate) origin: Origin,
    pub(crate) notes: Vec<Note>,
}

/// gcc 12 takes minutes for some unrolled loops with -O3 and seconds with this.
const LESS: &str = "-O1";
const SOURCE: &str = "kernel.c";
const LIBRARY: &str = "kernel.lib";

pub(crate) fn load(source: &Source, options: &CompileOptions) -> Result<Loaded, Error> {
    let limits = options.limits();
    let compiler = Compiler::find(&options.compilers, &limits)?;
    let build = Build {
        source,
        compiler,
        limits,
    };
    match &options.cache {
        Some(cache) => build.cached(cache),
        None => build.uncached(Vec::new()),
    }
}

/// Is there a compiler?
pub fn require_compiler(options: &CompileOptions) -> Result<(), Error> {
    Compiler::find(&options.compilers, &options.limits()).map(drop)
}

/// A library that is not loaded yet.
struct Built {
    library: PathBuf,
    note: Option<Note>,
}

struct Build<'a> {
    source: &'a Source,
    compiler: Compiler,
    limits: Limits<'a>,
}

impl Build<'_> {
    fn key(&self) -> String {
        let mut parts = vec![
            env!("CARGO_PKG_VERSION").as_bytes(),
            self.source.code.as_bytes(),
            self.compiler.identity.as_bytes(),
            cpu_features().as_bytes(),
        ];
        parts.extend(self.source.flags.iter().map(|flag| flag.as_bytes()));
        hash_of(&parts)
    }

    fn cached(&self, options: &CacheOptions) -> Result<Loaded, Error> {
        let (cache, key) = (Cache::new(options), self.key());
        let find = || {
            // A complete file that does not load has been removed meanwhile, or belongs to another
            // system: it is compiled again.
            let library = cache
                .find(&key)
                .and_then(|found| Library::open(&found.load_path()).ok())?;
            Some(Loaded {
                library,
                origin: Origin::Cache,
                notes: Vec::new(),
            })
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let unusable = |error: io::Error| Note::CacheUnusable {
            dir: options.dir.clone(),
            reason: error.to_string(),
        };
        let work = match cache.work_dir() {
            Ok(work) => work,
            Err(error) => return self.uncached(vec![unusable(error)]),
        };
        let _lock = cache.lock(&key, self.limits.patience());
        if let Some(found) = find() {
            return Ok(found);
        }
        let mut notes = Vec::new();
        let built = match self.build_with_headers(work.path(), &cache) {
            Ok(built) => {
                notes.extend(built.note);
                built.library
            }
            Err(Error::Io { source, .. }) => return self.uncached(vec![unusable(source)]),
            // Compilers fail on a full disk too, each with its own message.
            Err(error) => match probe(work.path()) {
                Ok(()) => return Err(error),
                Err(full) => return self.uncached(vec![unusable(full)]),
            },
        };
        let library = match cache.store(&key, &built) {
            Ok(stored) => match Library::open(&stored.load_path()) {
                Ok(library) => library,
                // A process with a smaller limit may have removed it in between.
                Err(_) if !stored.path.exists() => return self.uncached(Vec::new()),
                Err(error) => return Err(error),
            },
            Err(error) => {
                notes.push(unusable(error));
                Library::open(&built)?
            }
        };
        Ok(Loaded {
            library,
            origin: Origin::Compiler,
            notes,
        })
    }

    /// The library is loaded before the folder is removed; a loaded library stays loaded.
    fn uncached(&self, mut notes: Vec<Note>) -> Result<Loaded, Error> {
        let work = tempfile::tempdir().map_err(|source| Error::Io {
            action: "make a directory in",
            path: env::temp_dir(),
            source,
        })?;
        let built = self.build_in(work.path(), &self.source.flags)?;
        notes.extend(built.note);
        let library = Library::open(&built.library)?;
        Ok(Loaded {
            library,
            origin: Origin::Compiler,
            notes,
        })
    }

    /// With a precompiled header where it is of use.
    fn build_with_headers(&self, dir: &Path, cache: &Cache) -> Result<Built, Error> {
        let (code, flags) = (&self.source.code, &self.source.flags);
        let header = Precompiled::of(code, cache, &self.compiler, flags, &self.limits)
            .and_then(|header| Some((header.link_into(dir)?, header)));
        let Some((use_header, header)) = header else {
            return self.build_in(dir, flags);
        };
        match self.build_in(dir, &[&flags[..], &use_header].concat()) {
            Err(Error::CompilerFailed { .. }) => {
                let built = self.build_in(dir, flags)?;
                header.give_up();
                Ok(built)
            }
            result => result,
        }
    }

    /// Compiles with less optimisation if the compiler does not finish within half of its time.
    fn build_in(&self, dir: &Path, flags: &[String]) -> Result<Built, Error> {
        let path = dir.join(SOURCE);
        fs::write(&path, &self.source.code).map_err(|source| Error::Io {
            action: "write",
            path,
            source,
        })?;
        let build = |flags: &[String], cpu_time| {
            let limits = Limits {
                cpu_time,
                deadline: self.limits.deadline,
            };
            self.compiler.build(flags, dir, SOURCE, LIBRARY, &limits)
        };
        let level = flags.iter().rfind(|flag| flag.starts_with("-O"));
        let all = self.limits.cpu_time;
        let note = if level.is_none_or(|level| ["-O0", LESS].contains(&level.as_str())) {
            build(flags, all)?;
            None
        } else {
            match build(flags, all / 2) {
                Err(Error::CompilerHung { .. }) => {
                    build(&[flags, &[LESS.to_string()]].concat(), all / 2)?;
                    Some(Note::LessOptimised { limit: all / 2 })
                }
                result => result.map(|()| None)?,
            }
        };
        Ok(Built {
            library: dir.join(LIBRARY),
            note,
        })
    }
}

/// Can a file of the size of a library be written here?
fn probe(dir: &Path) -> io::Result<()> {
    let path = dir.join("probe");
    let mut file = File::create(&path)?;
    file.write_all(&[1; 1 << 20])?;
    file.sync_all()?;
    fs::remove_file(path)
}
