//! One mapping of one problem: compiled, checked, timed.

use std::path::Path;
use std::sync::Arc;

use systola::device::DeviceCompiled;
use systola::ir::kernel::BufferKind;
use systola::rt::HostArray;
use systola::rt::cuda::Cuda;
use systola::rt::device::{DeviceArray, Driver, Gpu};
use systola::rt::timing::{Repeats, Timing, sample};
use systola::{CudaCompiled, CudaOptions, Fix, compile_cuda};
use systola_cli::files::read_text;

use super::case::{Case, Data, Mappings, Trial};
use crate::arrays::Array;
use crate::measure::enough_on_device;
use crate::threads::{available, each};

/// The compiled code of a mapping, or why there is none.
pub struct Kernel<C> {
    pub mapping: String,
    pub compiled: Result<C, String>,
}

/// A mapping to compile.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub program: &'static str,
    pub sizes: &'a [(&'static str, i64)],
    pub fix: &'static [&'static str],
    pub mapping: &'a str,
}

pub struct Measured {
    pub timing: Timing,
    pub registers: u32,
    /// Bytes of local memory.
    pub spilled: u32,
}

/// The mappings of a case, in the order in which they are tried.
pub fn mappings(root: &Path, case: &Case) -> Result<Vec<String>, String> {
    match case.mappings {
        Mappings::These(names) => Ok(names.iter().map(ToString::to_string).collect()),
        Mappings::Of { system, but } => {
            let module = load(root, case.program)?;
            let all = module.mappings.iter().filter(|m| m.system == system);
            let all = all.filter(|m| !but.contains(&m.name.as_str()));
            Ok(all.map(|m| m.name.clone()).collect())
        }
    }
}

/// Compiles all mappings of all cases on all threads.
pub fn compile_all<C: Send>(
    cases: &[(&Case, Vec<String>)],
    compile: impl Fn(Job<'_>) -> Result<C, String> + Sync,
) -> Vec<Vec<Kernel<C>>> {
    // The parts of a case that a thread needs: its closures are not `Sync`.
    let jobs: Vec<(usize, Job<'_>)> = cases
        .iter()
        .enumerate()
        .flat_map(|(n, (case, mappings))| {
            let job = move |mapping| Job {
                program: case.program,
                sizes: &case.sizes,
                fix: case.fix,
                mapping,
            };
            mappings.iter().map(move |mapping| (n, job(mapping)))
        })
        .collect();
    let done = each(&jobs, available(), |(_, job)| compile(*job));
    let mut kernels: Vec<Vec<Kernel<C>>> = cases.iter().map(|_| Vec::new()).collect();
    for ((case, job), compiled) in jobs.iter().zip(done) {
        kernels[*case].push(Kernel {
            mapping: job.mapping.to_string(),
            compiled,
        });
    }
    kernels
}

pub fn load(root: &Path, program: &str) -> Result<systola::ir::system::Module, String> {
    let path = root.join("gallery").join(program);
    let text = read_text(&path).map_err(|_| format!("cannot read {}", path.display()))?;
    systola::load(&text).map_err(|found| match found.diagnostics().first() {
        Some(diagnostic) => diagnostic.to_string(),
        None => "refused".to_string(),
    })
}

/// For a GPU.
pub fn compile(root: &Path, device: usize, job: Job<'_>) -> Result<CudaCompiled, String> {
    let module = load(root, job.program)?;
    let mut options = CudaOptions::from_env().map_err(|e| e.to_string())?;
    options.device = device;
    options.fix = fixed(job.fix);
    compile_cuda(&module, job.mapping, job.sizes, &options).map_err(|e| e.to_string())
}

pub fn fixed(names: &[&str]) -> Fix {
    match names {
        [] => Fix::Nothing,
        names => Fix::Names(names.iter().map(ToString::to_string).collect()),
    }
}

/// Inputs on the device; those shared with the next problem stay there.
pub struct OnDevice<D: Driver> {
    arrays: Vec<(Arc<Array>, DeviceArray<D>)>,
}

impl<D: Driver> OnDevice<D> {
    pub fn new() -> OnDevice<D> {
        OnDevice { arrays: Vec::new() }
    }

    pub fn put(&mut self, gpu: &Arc<Gpu<D>>, data: &Data) -> Result<(), String> {
        let wanted = |array: &Arc<Array>| data.inputs.iter().any(|(_, a)| Arc::ptr_eq(a, array));
        self.arrays.retain(|(array, _)| wanted(array));
        for (_, array) in &data.inputs {
            if self.find(array).is_none() {
                let view = array.view().map_err(|e| e.to_string())?;
                let copy = DeviceArray::from_view(gpu, &view).map_err(|e| e.to_string())?;
                self.arrays.push((Arc::clone(array), copy));
            }
        }
        Ok(())
    }

    fn find(&self, array: &Arc<Array>) -> Option<&DeviceArray<D>> {
        let found = self.arrays.iter().find(|(a, _)| Arc::ptr_eq(a, array));
        found.map(|(_, copy)| copy)
    }
}

/// Also returns the registers of its kernels.
pub fn measure(
    compiled: &CudaCompiled,
    data: &Data,
    here: &mut OnDevice<Cuda>,
) -> Result<Measured, String> {
    let timing = time(compiled, data, here)?;
    let resources = compiled.loaded().resources().map_err(|e| e.to_string())?;
    Ok(Measured {
        timing,
        registers: resources.iter().map(|r| r.0).max().unwrap_or(0),
        spilled: resources.iter().map(|r| r.1).max().unwrap_or(0),
    })
}

/// Runs every trial and checks it, then times the last.
pub fn time<D: Driver>(
    compiled: &DeviceCompiled<D>,
    data: &Data,
    here: &mut OnDevice<D>,
) -> Result<Timing, String> {
    here.put(compiled.gpu(), data)?;
    let mut inputs = Vec::new();
    for (name, array) in &data.inputs {
        let copy = here.find(array).ok_or("an input is not on the device")?;
        inputs.push((*name, copy));
    }
    let mut outputs = Vec::new();
    for trial in &data.trials {
        outputs = make_outputs(compiled, trial)?;
        run(compiled, trial, &inputs, &mut outputs)?;
        for (output, (_, array)) in trial.outputs.iter().zip(&outputs) {
            let mut host =
                HostArray::zeros(array.ty(), array.shape()).map_err(|e| e.to_string())?;
            let copied = array.copy_to(&mut host.view_mut());
            copied.map_err(|e| e.to_string())?;
            if let Some(fault) = (output.check)(&host) {
                return Err(format!("wrong: {}: {fault}", output.name));
            }
        }
    }
    let trial = data.trials.last().ok_or("nothing to run")?;
    let enough = enough_on_device(run(compiled, trial, &inputs, &mut outputs)?);
    let mut outputs = named(&mut outputs);
    sample(enough, |timed| {
        let repeats = Repeats { warm_up: 1, timed };
        let timing = compiled.time_on_device(&trial.sizes, &inputs, &mut outputs, repeats);
        Ok(timing.map_err(|e| e.to_string())?.samples)
    })
}

fn make_outputs<D: Driver>(
    compiled: &DeviceCompiled<D>,
    trial: &Trial,
) -> Result<Vec<(&'static str, DeviceArray<D>)>, String> {
    let buffers = &compiled.program().buffers;
    let mut made = Vec::new();
    for output in &trial.outputs {
        let is_it = |kind: &BufferKind| matches!(kind, BufferKind::Output { .. });
        let found = buffers
            .iter()
            .find(|b| b.name == output.name && is_it(&b.kind));
        let Some(buffer) = found else {
            return Err(format!("the program has no output `{}`", output.name));
        };
        let array = DeviceArray::new(compiled.gpu(), buffer.ty, &output.shape);
        made.push((output.name, array.map_err(|e| e.to_string())?));
    }
    Ok(made)
}

fn named<'a, D: Driver>(
    outputs: &'a mut [(&'static str, DeviceArray<D>)],
) -> Vec<(&'a str, &'a mut DeviceArray<D>)> {
    outputs.iter_mut().map(|(name, a)| (*name, a)).collect()
}

fn run<D: Driver>(
    compiled: &DeviceCompiled<D>,
    trial: &Trial,
    inputs: &[(&str, &DeviceArray<D>)],
    outputs: &mut [(&'static str, DeviceArray<D>)],
) -> Result<f64, String> {
    compiled
        .run_on_device(&trial.sizes, inputs, &mut named(outputs))
        .map(|stats| stats.kernel_seconds)
        .map_err(|e| e.to_string())
}
