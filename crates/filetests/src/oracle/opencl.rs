//! Kernels on OpenCL devices.

use systola::Machine;
use systola::opencl::{OpenClCompiled, OpenClOptions, compile_opencl_lowered};

use super::batch::{Prepared, Ran};
use super::subject::Run;

pub(super) fn options(device: usize) -> OpenClOptions {
    let mut options = OpenClOptions::new();
    options.device = device;
    options
}

pub(super) fn machine(device: usize) -> Result<Machine, String> {
    let options = options(device);
    let gpu = options.open().map_err(|e| e.to_string())?;
    Ok(options.machine(&gpu.info))
}

pub(super) fn compile(job: &Prepared<'_>, device: usize) -> Result<OpenClCompiled, String> {
    compile_opencl_lowered(job.lowered.clone(), &options(device)).map_err(|e| e.to_string())
}

pub(super) fn run(compiled: &OpenClCompiled, run: &Run) -> Ran {
    match compiled.run_tensors(&run.params, &run.inputs) {
        Ok((outputs, _)) => Ran::Outputs(outputs),
        Err(error) => Ran::from_error(&error),
    }
}
