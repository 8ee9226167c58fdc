//! How tests compile C: most of it without optimisation by clang, in a third of the time that gcc
//! takes, and some of it as users do, by this machine's usual compiler.

use systola::CpuOptions;
use systola::cpu::Effort;
use systola::rt::CacheOptions;

/// The quickest compiler of this machine. Compiled code and precompiled headers are cached in the
/// folder given by `SYSTOLA_CACHE`; without that variable nothing is cached.
pub fn quick_cpu() -> CpuOptions {
    cached(CpuOptions::new()).quick()
}

/// The usual compiler, with little effort.
pub fn usual_cpu() -> CpuOptions {
    let mut options = cached(CpuOptions::new());
    options.effort = Effort::Little;
    options
}

fn cached(mut options: CpuOptions) -> CpuOptions {
    if std::env::var_os("SYSTOLA_CACHE").is_some() {
        options.compile.cache = CacheOptions::from_env().ok().flatten();
    }
    options
}
