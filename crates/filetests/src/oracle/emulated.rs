//! CUDA C++ of many subjects in one emulated program.

use systola_driver::{DeviceArtifact, emit_cuda};
use systola_ir::kernel::Program;

use super::batch::{Prepared, Ran};
use super::subject::Run;
use crate::emulate::Emulated;

pub(super) fn compile(jobs: &[&Prepared<'_>]) -> Vec<Result<Emulated, String>> {
    let mut results: Vec<Option<Result<Emulated, String>>> = Vec::new();
    let mut texts: Vec<(usize, &Program, DeviceArtifact, bool)> = Vec::new();
    for (n, job) in jobs.iter().enumerate() {
        match emit_cuda(&job.lowered.program) {
            Ok(artifact) => {
                let narrow = (job.subject.seed + n as u64).is_multiple_of(2);
                texts.push((n, &job.lowered.program, artifact, narrow));
                results.push(None);
            }
            Err(error) => results.push(Some(Err(error.to_string()))),
        }
    }
    let all: Vec<(&Program, &DeviceArtifact, bool)> = texts
        .iter()
        .map(|(_, program, artifact, narrow)| (*program, artifact, *narrow))
        .collect();
    let compiled: Vec<Result<Emulated, String>> = match Emulated::compile_all(&all) {
        Ok(list) => list.into_iter().map(Ok).collect(),
        Err(_) => all
            .iter()
            .map(|(program, artifact, narrow)| {
                Emulated::compile(program, artifact, *narrow)
                    .map_err(|e| format!("{e}\n{}", artifact.source))
            })
            .collect(),
    };
    for ((n, ..), one) in texts.iter().zip(compiled) {
        results[*n] = Some(one);
    }
    results
        .into_iter()
        .map(|one| one.unwrap_or_else(|| Err("not compiled".into())))
        .collect()
}

pub(super) fn run(emulated: &Emulated, run: &Run) -> Ran {
    match emulated.try_run(&run.params, &run.inputs) {
        Ok(Ok(outputs)) => Ran::Outputs(outputs),
        Ok(Err(fault)) => Ran::raised(&fault),
        Err(error) => Ran::Error(error),
    }
}
