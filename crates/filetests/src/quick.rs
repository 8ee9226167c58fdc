//! How tests compile C: with little effort.

use systola::CpuOptions;
use systola::cpu::Effort;
use systola::rt::CacheOptions;

/// Options for this machine. Compiled code and precompiled headers are cached in the folder given
/// by `SYSTOLA_CACHE`; without that variable nothing is cached.
pub fn quick_cpu() -> CpuOptions {
    let mut options = CpuOptions::new();
    options.effort = Effort::Little;
    if std::env::var_os("SYSTOLA_CACHE").is_some() {
        options.compile.cache = CacheOptions::from_env().ok().flatten();
    }
    options
}
