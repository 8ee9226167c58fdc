//! Kernels as machine code of this CPU, those of many subjects in one library.

use systola::cpu::{Compiled, CpuOptions, compile_source, source_of};
use systola::rt::Source;
use systola::rt::cache::CacheOptions;
use systola::{Machine, RunOptions, Simd};

use crate::{quick_cpu, usual_cpu};

use super::batch::{Prepared, Ran};
use super::subject::Run;
use super::unit::join;

/// How kernels are compiled here: those for all of this machine's lanes as users do.
pub(super) fn options(simd: Simd) -> CpuOptions {
    let widest = simd == CpuOptions::new().simd;
    let mut options = if widest { usual_cpu() } else { quick_cpu() };
    options.simd = simd;
    options
}

/// A small budget of code keeps the compilers quick.
pub(super) fn machine(simd: Simd, seed: u64) -> Machine {
    let mut machine = options(simd).machine();
    if !seed.is_multiple_of(8) {
        machine.code_budget = 200;
    }
    // Arrays of draws are small. With caches of size 0 they are prefetched and stored like large
    // ones.
    if seed.is_multiple_of(2) {
        machine.memory.cached = 1;
        if let Some(prefetch) = &mut machine.memory.prefetch {
            prefetch.work = 0;
        }
    }
    machine
}

/// Compiles all kernels together. If that fails, compiles them one by one, to find the wrong one.
pub(super) fn compile(jobs: &[&Prepared<'_>], simd: Simd) -> Vec<Result<Compiled, String>> {
    let mut options = options(simd);
    let sources: Vec<Result<Source, String>> = jobs
        .iter()
        .map(|job| source_of(&job.lowered.program, &options).map_err(|e| e.to_string()))
        .collect();
    let texts: Vec<&str> = sources.iter().flatten().map(|s| s.code.as_str()).collect();
    let joined = join(&texts);
    // All but the first compilation find the common text in the cache.
    let Ok(folder) = tempfile::tempdir() else {
        return jobs.iter().map(|_| Err("no folder".into())).collect();
    };
    let cache = &mut options.compile.cache;
    cache.get_or_insert_with(|| CacheOptions::new(folder.path()));
    let mut renamed = joined.renamed.iter();
    let mut together = true;
    let mut compiled = Vec::new();
    for (job, source) in jobs.iter().zip(sources) {
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                compiled.push(Err(error));
                continue;
            }
        };
        let names = renamed.next();
        let mut whole = source.clone();
        whole.code.clone_from(&joined.code);
        for symbol in &mut whole.symbols {
            if let Some(name) = names.and_then(|names| names.get(symbol)) {
                symbol.clone_from(name);
            }
        }
        let lowered = || job.lowered.clone();
        if together {
            match compile_source(lowered(), whole, &options) {
                Ok(one) => {
                    compiled.push(Ok(one));
                    continue;
                }
                Err(_) => together = false,
            }
        }
        let alone = compile_source(lowered(), source, &options);
        compiled.push(alone.map_err(|e| e.to_string()));
    }
    compiled
}

pub(super) fn run(compiled: &Compiled, run: &Run, n: u64) -> Ran {
    let threads = 1 + (n % 3) as usize;
    match compiled.run_tensors(&run.params, &run.inputs, &RunOptions { threads }) {
        Ok((outputs, _)) => Ran::Outputs(outputs),
        Err(error) => Ran::from_error(&error),
    }
}
