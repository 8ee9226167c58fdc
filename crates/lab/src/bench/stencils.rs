//! `systola-lab bench stencils`: the stencils of the literature, one sweep and many, compared with
//! the limits of a GPU and with published results; two of them on a CPU (`cpu.rs`).
//!
//! Programs and mappings are those of `stencils/`, with random weights given at run time. Every
//! cell is compared: after one sweep with sums in f64 on the host, after many with as many single
//! sweeps in f64 on the device, by a kernel that was verified before.

pub mod catalogue;
mod cpu;
mod field;
mod table;

use std::path::Path;
use std::sync::Arc;

use clap::builder::TypedValueParser;
use systola::ir::Scalar;
use systola::ir::system::Module;
use systola::rt::HostArray;
use systola::rt::cuda::{Cuda, DeviceArray, Gpu};
use systola::{CudaCompiled, CudaOptions, Target, compile_cuda};
use systola_cli::device::DeviceName;
use systola_cli::files::read_text;
use systola_cli::named::named;
use systola_cli::runtime::fail_alone;
use systola_cli::source::{Failure, Outcome, Status};
use systola_cli::term;

use self::catalogue::{STENCILS, Stencil};
use self::field::{Field, doubled};
use self::table::{StencilRow, Sweeps};
use super::cuda::case::{Data, Output, Sizes, Trial, Unit, Work};
use super::cuda::conv::tolerance;
use super::cuda::limits::Limits;
use super::cuda::measure::{Kernel, Measured, OnDevice, measure};
use super::cuda::sample::complete;
use super::tools::{no_gpu, root};
use crate::arrays::{Array, Arrays};
use crate::threads::{available, each};

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench stencils                              all of them, in a few minutes
  cargo xtask bench stencils --only 2d5pt --only 3d7pt    some
  cargo xtask bench stencils --type f64 --all-mappings    in double precision, a line for every mapping
  cargo xtask bench-setup                                 once: installs the baselines of the CPU
  cargo xtask bench stencils --target cpu                 2d5pt and 3d7pt on the CPU, in a quarter of an hour
  cargo xtask bench stencils --target cpu --no-baselines  only us and the limits of the machine

Rates are 10⁹ cells a second: for many sweeps, cells times sweeps. On a GPU times are medians of warm runs between
two events on the device; published results were measured on an H200, whatever the GPU here is.

On the CPU the baselines are plain C, OpenCV, SciPy, Devito and Halide, on the same fields and weights, and every
result is compared: with sums in f64 after one sweep, and with as many single sweeps in f64 after many. \"× copy\" is the
speed of the sweeps relative to as many copies of the field, at the rate measured alternately with ours; \"at best\" takes
the best rate of all. SciPy has no threads, and its time for many sweeps is a multiple of its time for one.";

/// Time the stencils of the literature, one sweep and many
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where they run
    #[arg(long, value_parser = targets(), default_value_t = Target::Cuda)]
    target: Target,
    /// Only this stencil; can be given more than once
    #[arg(long, value_name = "NAME", value_parser = names())]
    only: Vec<String>,
    /// Only with these elements
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    precisions: Vec<Precision>,
    /// The number of sweeps of many [default: 1000 on a GPU, 100 on the CPU]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Print a line for every mapping that was tried
    #[arg(long)]
    all_mappings: bool,
    /// Tiny fields, to test the command itself: the times mean nothing
    #[arg(long)]
    small: bool,
    /// Which GPU, by its index in `systola devices` or a part of its name
    #[arg(long, value_name = "N|NAME", default_value_t)]
    device: DeviceName,
    /// Do not run the baselines on the CPU
    #[arg(long)]
    no_baselines: bool,
    /// The number of CPU threads in rows with all threads [default: all hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Reads a target for which `stencils/` has mappings.
fn targets() -> impl TypedValueParser<Value = Target> {
    let about = [(Target::Cuda, "NVIDIA GPUs"), (Target::Cpu, "This CPU")];
    named(about.map(|(target, help)| (target.name(), help, target)))
}

/// The suffix of the names of mappings for CPUs.
pub const ON_CPU: &str = "_cpu";

fn names() -> clap::builder::PossibleValuesParser {
    STENCILS.iter().map(|s| s.name).collect::<Vec<_>>().into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    F32,
    F64,
}

impl Precision {
    pub fn scalar(self) -> Scalar {
        match self {
            Precision::F32 => Scalar::F32,
            Precision::F64 => Scalar::F64,
        }
    }

    fn bytes(self) -> f64 {
        match self {
            Precision::F32 => 4.0,
            Precision::F64 => 8.0,
        }
    }

    fn unit(self) -> Unit {
        match self {
            Precision::F32 => Unit::F32,
            Precision::F64 => Unit::F64,
        }
    }

    /// In 1000 sweeps of five points the rounding error of f32 was observed to stay below 2e-7, and
    /// one sweep more or less to differ by 3e-5. The error of f64 is 10⁹ times smaller.
    fn tolerance_of_many(self) -> f64 {
        match self {
            Precision::F32 => 2e-6,
            Precision::F64 => 1e-12,
        }
    }
}

pub fn run(args: &Args) -> Outcome {
    match args.target {
        Target::Cuda => on_gpu(args),
        Target::Cpu => cpu::run(args),
        Target::OpenCl => unreachable!("no value of --target"),
    }
}

fn on_gpu(args: &Args) -> Outcome {
    let root = root()?;
    let gpu = args.device.cuda().and_then(Gpu::open);
    let gpu = gpu.map_err(|e| no_gpu(&e))?;
    let elements = if args.small { 1 << 20 } else { 1 << 28 };
    let limits = Limits::measure(&gpu, elements).map_err(|e| fail_alone(&e))?;
    term::print(limits.describe(&gpu.info));
    let is_chosen = |s: &&Stencil| args.only.is_empty() || args.only.iter().any(|n| n == s.name);
    let mut jobs = Vec::new();
    for stencil in STENCILS.iter().filter(is_chosen) {
        // The comparison needs single sweeps of f64.
        for precision in [Precision::F64, Precision::F32] {
            for many in [false, true] {
                if many && !args.wants(precision) {
                    continue;
                }
                jobs.extend(of(&root, stencil, precision, many)?);
            }
        }
    }
    term::eprint(format!("compiling {} mappings\n", jobs.len()));
    let compiled = each(&jobs, available(), |job| job.compile(args));
    let mut done: Vec<(Job, Kernel<CudaCompiled>)> = Vec::new();
    for (job, compiled) in jobs.into_iter().zip(compiled) {
        let kernel = Kernel {
            mapping: job.mapping.clone(),
            compiled,
        };
        done.push((job, kernel));
    }
    let mut bench = Bench {
        args,
        limits,
        gpu,
        arrays: Arrays::default(),
        here: OnDevice::new(),
    };
    let mut status = Status::Done;
    term::print(table::header(args.steps()));
    for stencil in STENCILS.iter().filter(is_chosen) {
        let (its, rest) = done
            .into_iter()
            .partition(|(job, _)| job.stencil.name == stencil.name);
        done = rest;
        status = bench
            .stencil(stencil, its)
            .map_err(Failure::new)?
            .max(status);
    }
    Ok(status)
}

impl Args {
    fn steps(&self) -> u32 {
        self.steps.unwrap_or(match self.target {
            Target::Cpu => 100,
            Target::Cuda | Target::OpenCl => 1000,
        })
    }

    fn wants(&self, precision: Precision) -> bool {
        self.precisions.is_empty() || self.precisions.contains(&precision)
    }

    fn shape(&self, stencil: &Stencil) -> [usize; 3] {
        match (stencil.rank, self.small) {
            (3, false) if self.target == Target::Cpu => [384; 3],
            (3, false) => [512; 3],
            (3, true) => [40, 50, 70],
            (_, false) => [1, 8192, 8192],
            (_, true) => [1, 100, 150],
        }
    }
}

/// The names of sizes in the programs.
fn sizes([planes, rows, columns]: [usize; 3], rank: usize, steps: Option<u32>) -> Sizes {
    let mut sizes: Sizes = vec![("N", rows as i64), ("M", columns as i64)];
    if rank == 3 {
        sizes.insert(0, ("K", planes as i64));
    }
    sizes.extend(steps.map(|steps| ("T", i64::from(steps))));
    sizes
}

/// A mapping that is compiled.
struct Job {
    stencil: &'static Stencil,
    precision: Precision,
    many: bool,
    module: Arc<Module>,
    mapping: String,
}

/// The mappings of a stencil for GPUs. Those whose names end with 64 are for double precision.
fn of(
    root: &Path,
    stencil: &'static Stencil,
    precision: Precision,
    many: bool,
) -> Result<Vec<Job>, Failure> {
    let module = Arc::new(load(root, stencil, precision)?);
    let system = if many { "many" } else { "once" };
    let is_double = precision == Precision::F64;
    let fits = |name: &str| !name.ends_with(ON_CPU) && name.ends_with("64") == is_double;
    let all = module.mappings.iter();
    let names = all.filter(|m| m.system == system && fits(&m.name));
    Ok(names
        .map(|mapping| Job {
            stencil,
            precision,
            many,
            module: Arc::clone(&module),
            mapping: mapping.name.clone(),
        })
        .collect())
}

/// The program of a stencil, with fields of this type.
fn load(root: &Path, stencil: &Stencil, precision: Precision) -> Result<Module, Failure> {
    let path = root.join("stencils").join(format!("{}.ure", stencil.name));
    let text = with_type(&read_text(&path)?, precision.scalar());
    systola::load(&text).map_err(|found| {
        let first = found.diagnostics().first().map(ToString::to_string);
        Failure::new(format!("{}: {}", path.display(), first.unwrap_or_default()))
    })
}

/// The programs are written for f32.
pub fn with_type(text: &str, ty: Scalar) -> String {
    text.replace(": f32", &format!(": {ty}"))
}

impl Job {
    fn compile(&self, args: &Args) -> Result<CudaCompiled, String> {
        let mut options = CudaOptions::from_env().map_err(|e| e.to_string())?;
        options.device = args.device.cuda().map_err(|e| e.to_string())?;
        let steps = self.many.then_some(args.steps());
        let sizes = sizes(args.shape(self.stencil), self.stencil.rank, steps);
        compile_cuda(&self.module, &self.mapping, &sizes, &options).map_err(|e| e.to_string())
    }
}

struct Bench<'a> {
    args: &'a Args,
    limits: Limits,
    gpu: Arc<Gpu>,
    arrays: Arrays,
    here: OnDevice<Cuda>,
}

/// A mapping and its result.
type Tried = (String, Result<Measured, String>);

impl Bench<'_> {
    fn stencil(
        &mut self,
        stencil: &'static Stencil,
        kernels: Vec<(Job, Kernel<CudaCompiled>)>,
    ) -> Result<Status, String> {
        let shape = self.args.shape(stencil);
        let own = &shape[3 - stencil.rank..];
        let field = Field::new(stencil, shape, self.arrays.f32(9, own));
        let Some((job, _)) = kernels.first() else {
            return Err(format!("{} has no mappings", stencil.name));
        };
        let weights = field.weights(&shape_of_weights(job, stencil));
        let once: Arc<Vec<f64>> = Arc::new(field.swept());
        let mut many: Option<Result<Arc<Vec<f64>>, String>> = None;
        let mut status = Status::Done;
        let (double, single): (Vec<_>, Vec<_>) = kernels
            .into_iter()
            .partition(|(job, _)| job.precision == Precision::F64);
        let wide = [doubled(&field.start), doubled(&weights)];
        let narrow = [Arc::clone(&field.start), weights];
        let mut rows = Vec::new();
        for (precision, kernels, inputs) in [
            (Precision::F64, double, &wide),
            (Precision::F32, single, &narrow),
        ] {
            let mut row = StencilRow::new(stencil, precision);
            for (job, kernel) in kernels {
                let data = if job.many {
                    let expected = many
                        .clone()
                        .unwrap_or_else(|| Err("nothing to compare with".to_string()));
                    self.data(&field, job.precision, true, inputs, expected)
                } else {
                    self.data(&field, job.precision, false, inputs, Ok(Arc::clone(&once)))
                };
                let outcome = kernel.compiled.and_then(|compiled| {
                    let measured = measure(&compiled, &data?, &mut self.here)?;
                    if precision == Precision::F64 && !job.many && many.is_none() {
                        many = Some(self.repeated(&compiled, &field, &wide).map(Arc::new));
                    }
                    Ok(measured)
                });
                row.tried(job.many).push((kernel.mapping, outcome));
            }
            rows.push(row);
        }
        rows.reverse();
        for row in rows.iter().filter(|row| self.args.wants(row.precision)) {
            if row.failed() {
                status = Status::Limitation;
            }
            term::print(row.text(
                &self.work(&field, row),
                &self.limits,
                self.args.all_mappings,
            ));
        }
        Ok(status)
    }

    /// The work of one sweep and of many.
    fn work(&self, field: &Field, row: &StencilRow) -> [Sweeps; 2] {
        let bytes = row.precision.bytes();
        [1, self.args.steps()].map(|sweeps| {
            let cells = field.cells() as f64 * f64::from(sweeps);
            let taps = row.stencil.offsets().len() as f64;
            Sweeps {
                cells,
                work: Work {
                    operations: 2.0 * taps * cells,
                    unit: row.precision.unit(),
                    bytes: 2.0 * bytes * field.cells() as f64,
                    cells: None,
                },
            }
        })
    }

    fn data(
        &self,
        field: &Field,
        precision: Precision,
        many: bool,
        inputs: &[Arc<Array>; 2],
        expected: Result<Arc<Vec<f64>>, String>,
    ) -> Result<Data, String> {
        let steps = many.then_some(self.args.steps());
        Ok(data(field, precision, steps, inputs, expected?))
    }

    /// The field after many sweeps, one by one.
    fn repeated(
        &self,
        once: &CudaCompiled,
        field: &Field,
        [start, weights]: &[Arc<Array>; 2],
    ) -> Result<Vec<f64>, String> {
        let put = |array: &Array| {
            let view = array.view().map_err(|e| e.to_string())?;
            DeviceArray::from_view(&self.gpu, &view).map_err(|e| e.to_string())
        };
        let (mut now, weights) = (put(start)?, put(weights)?);
        let next = DeviceArray::new(&self.gpu, Scalar::F64, &start.shape);
        let mut next = next.map_err(|e| e.to_string())?;
        let sizes = sizes(field.shape, start.shape.len(), None);
        for _ in 0..self.args.steps() {
            let inputs = [("u", &now), ("w", &weights)];
            once.run_on_device(&sizes, &inputs, &mut [("u'", &mut next)])
                .map_err(|e| e.to_string())?;
            std::mem::swap(&mut now, &mut next);
        }
        let mut host = HostArray::zeros(Scalar::F64, &start.shape).map_err(|e| e.to_string())?;
        now.copy_to(&mut host.view_mut())
            .map_err(|e| e.to_string())?;
        let values = host.as_slice::<f64>().ok_or("the result is not of f64")?;
        Ok(values.to_vec())
    }
}

/// A run, and its expected result after one sweep or many.
fn data(
    field: &Field,
    precision: Precision,
    steps: Option<u32>,
    [start, weights]: &[Arc<Array>; 2],
    expected: Arc<Vec<f64>>,
) -> Data {
    let bound = match steps {
        None => tolerance(weights.shape.iter().product(), precision.unit()),
        Some(_) => precision.tolerance_of_many(),
    };
    Data {
        inputs: vec![("u", Arc::clone(start)), ("w", Arc::clone(weights))],
        trials: vec![Trial {
            sizes: sizes(field.shape, start.shape.len(), steps),
            outputs: vec![Output {
                name: "u'",
                shape: start.shape.clone(),
                check: complete(field.shape[2], expected, bound),
            }],
        }],
    }
}

/// A box has weights in its shape, other stencils have a list.
fn shape_of_weights(job: &Job, stencil: &Stencil) -> Vec<usize> {
    let inputs = job.module.systems.iter().flat_map(|s| &s.inputs);
    let axes = inputs.filter(|i| i.name == "w").map(|i| i.axes.len()).max();
    match axes {
        Some(axes) if axes > 1 => vec![2 * stencil.radius as usize + 1; axes],
        _ => vec![stencil.offsets().len()],
    }
}

#[cfg(test)]
mod tests;
