//! Precompiled headers.
//!
//! gcc 12 takes 0.3 s to read `immintrin.h`, longer than it takes to compile most kernels. A
//! process that compiles several kernels with the same flags has the header precompiled: this takes
//! 0.9 s once, 24 MB of the cache, and 0.04 s for each use; with clang 0.5 s, 5 MB and 0.01 s. A
//! precompiled header that does not fit the compiler's version or its flags is ignored by gcc and
//! refused by clang, which then compiles without it. So a kernel is the same with and without it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::cache::{Cache, hash_of};
use crate::compiler::Compiler;
use crate::process::Limits;
use crate::simd::cpu_features;

const HEADER: &str = "immintrin.h";
/// Precompiling the header takes as long as reading it this often.
const PAYS_AFTER: usize = 3;
/// A smaller cache is for kernels alone.
const LEAST_CACHE: u64 = 256 << 20;

/// The state of a header in this process.
enum State {
    /// The number of kernels that were compiled without it.
    Absent(usize),
    Present(PathBuf),
    Unusable,
}

static STATES: LazyLock<Mutex<HashMap<String, State>>> = LazyLock::new(Mutex::default);

/// The header for some flags.
pub(crate) struct Precompiled<'a> {
    cache: &'a Cache,
    compiler: &'a Compiler,
    flags: &'a [String],
    limits: &'a Limits<'a>,
    key: String,
}

impl<'a> Precompiled<'a> {
    /// `None`: the code does not include the header, or the cache is too small for it.
    pub(crate) fn of(
        code: &str,
        cache: &'a Cache,
        compiler: &'a Compiler,
        flags: &'a [String],
        limits: &'a Limits<'a>,
    ) -> Option<Precompiled<'a>> {
        let includes = code.contains(&format!("#include <{HEADER}>"));
        if !includes || cache.limit() < LEAST_CACHE {
            return None;
        }
        let mut parts = vec![
            HEADER.as_bytes(),
            compiler.identity.as_bytes(),
            cpu_features().as_bytes(),
        ];
        parts.extend(flags.iter().map(|flag| flag.as_bytes()));
        Some(Precompiled {
            cache,
            compiler,
            flags,
            limits,
            key: hash_of(&parts),
        })
    }

    /// Links it into the folder in which the compiler runs, and returns the flags that use it.
    /// `None` if there is none.
    pub(crate) fn link_into(&self, dir: &Path) -> Option<Vec<String>> {
        let path = self.find_or_make()?;
        let name = format!("{HEADER}.gch");
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(path, dir.join(&name));
        #[cfg(not(unix))]
        let linked = std::fs::hard_link(path, dir.join(&name));
        linked.ok()?;
        Some(match self.compiler.is_clang() {
            true => vec!["-include-pch".to_string(), name],
            // gcc looks for it beside the header.
            false => vec!["-I.".to_string()],
        })
    }

    /// Called when a kernel could only be compiled without it.
    pub(crate) fn give_up(&self) {
        self.set(State::Unusable);
    }

    fn find_or_make(&self) -> Option<PathBuf> {
        {
            let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
            match states.get_mut(&self.name()) {
                Some(State::Present(path)) if path.exists() => return Some(path.clone()),
                Some(State::Unusable) => return None,
                Some(State::Absent(compiled)) if *compiled < PAYS_AFTER => {
                    *compiled += 1;
                    return None;
                }
                Some(State::Absent(_) | State::Present(_)) => {}
                None => {
                    drop(states);
                    let found = self.cache.find(&self.key).map(|found| found.path);
                    self.set(match &found {
                        Some(path) => State::Present(path.clone()),
                        None => State::Absent(1),
                    });
                    return found;
                }
            }
        }
        let made = self.make();
        self.set(match &made {
            Some(path) => State::Present(path.clone()),
            None => State::Unusable,
        });
        made
    }

    fn make(&self) -> Option<PathBuf> {
        let _lock = self.cache.lock(&self.key, self.limits.patience());
        if let Some(found) = self.cache.find(&self.key) {
            return Some(found.path);
        }
        let work = self.cache.work_dir().ok()?;
        let output = "header.gch";
        self.compiler
            .precompile(self.flags, work.path(), HEADER, output, self.limits)
            .ok()?;
        let stored = self
            .cache
            .store(&self.key, &work.path().join(output))
            .ok()?;
        Some(stored.path)
    }

    fn set(&self, state: State) {
        let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(self.name(), state);
    }

    /// Each cache has its own precompiled header.
    fn name(&self) -> String {
        format!("{} {}", self.cache.dir().display(), self.key)
    }
}
