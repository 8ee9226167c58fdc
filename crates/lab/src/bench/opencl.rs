//! `systola-lab bench opencl`: the problems of `systola-lab bench cuda` on an OpenCL device,
//! compared with CUDA where there is a GPU.
//!
//! A row is the mapping that is fastest with CUDA, compiled for both; without CUDA it is the
//! fastest of all. Results are checked and timed in the same way.

use std::path::Path;

use systola::rt::cuda::{self, Cuda};
use systola::rt::opencl::{Gpu, OpenCl};
use systola::rt::timing::Timing;
use systola::{OpenClCompiled, OpenClOptions, compile_opencl};
use systola_cli::device::DeviceName;
use systola_cli::runtime::fail_alone;
use systola_cli::source::{Failure, Outcome, Status};
use systola_cli::term::{self, Paint};

use super::cuda::case::{Case, Data, Group};
use super::cuda::measure::{self, Job, Kernel, OnDevice};
use super::cuda::table::{left, rate, right};
use super::cuda::{Choice, cases, chosen};
use super::tools::root;
use crate::arrays::Arrays;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench opencl                   2-D convolution with filters of 3, 5, 9 and 20
  cargo xtask bench opencl --device 1 --k 7  with one filter, on the second device
  cargo xtask bench opencl --only windows --only conv1d
  cargo xtask bench opencl --all-mappings    a row for every mapping that was tried";

/// Time mappings compiled for an OpenCL device, and for CUDA where there is a GPU
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// These problems; can be given more than once. Of 2-D convolution the filters of 3, 5, 9 and
    /// 20, unless --k gives others
    #[arg(long, value_name = "PROBLEMS", default_value = "conv2d")]
    only: Vec<Group>,
    #[command(flatten)]
    choice: Choice,
    /// Which OpenCL device, by its index in `systola devices` or a part of its name
    #[arg(long, value_name = "N|NAME", default_value_t)]
    device: DeviceName,
    /// Which GPU is timed with CUDA, likewise
    #[arg(long, value_name = "N|NAME", default_value_t)]
    cuda_device: DeviceName,
}

/// The filters of 2-D convolution that are timed by default.
const USUAL: [&str; 4] = ["3", "5", "9", "20"];

pub fn run(args: &Args) -> Outcome {
    let root = root()?;
    let gpu = args.device.opencl().and_then(Gpu::open);
    let gpu = gpu.map_err(|e| fail_alone(&e))?;
    let info = &gpu.info;
    let text = format!("{}, {}, driver {}\n", info.name, info.platform, info.driver);
    term::print(text);
    let beside = args.cuda_device.cuda().and_then(cuda::Gpu::open);
    let beside = beside.and_then(|gpu| cuda::nvrtc_version().map(|_| gpu.info.ordinal));
    let cuda = match beside {
        Ok(device) => Some(device),
        Err(error) => {
            term::print(format!("no CUDA beside it: {error}\n"));
            None
        }
    };
    let mut bench = Bench {
        args,
        device: info.ordinal,
        root: &root,
        cuda: cuda.map(|device| (device, OnDevice::new())),
        opencl: OnDevice::new(),
        arrays: Arrays::default(),
    };
    let mut status = Status::Done;
    for group in &args.only {
        status = bench.group(*group)?.max(status);
    }
    Ok(status)
}

struct Bench<'a> {
    args: &'a Args,
    /// Its index.
    device: usize,
    root: &'a Path,
    /// The index of the GPU to compare with; none where there is no CUDA.
    cuda: Option<(usize, OnDevice<Cuda>)>,
    opencl: OnDevice<OpenCl>,
    arrays: Arrays,
}

/// A mapping and its timing, or why it did not run.
type Tried = (String, Result<Timing, String>);

impl Bench<'_> {
    fn group(&mut self, group: Group) -> Outcome {
        let cases = cases(self.root, group, self.args.choice.small).map_err(Failure::new)?;
        let mut k = self.args.choice.k.clone();
        if k.is_empty() && group == Group::Conv2d && !self.args.choice.small {
            k = USUAL.map(String::from).to_vec();
        }
        let list =
            chosen(self.root, &cases.1, &k, &self.args.choice.mapping).map_err(Failure::new)?;
        term::print(self.header(group));
        let mut status = Status::Done;
        for (case, mappings) in list {
            status = self.case(case, mappings).max(status);
        }
        Ok(status)
    }

    fn case(&mut self, case: &Case, mut mappings: Vec<String>) -> Status {
        let data = (case.make)(&self.arrays);
        let mut beside = Vec::new();
        if let Some((device, here)) = &mut self.cuda {
            let (root, device) = (self.root, *device);
            let list = [(case, mappings.clone())];
            let kernels = measure::compile_all(&list, |job| measure::compile(root, device, job));
            beside = tried(kernels, |compiled| measure::time(&compiled, &data, here));
            if !self.args.choice.all_mappings {
                beside = fastest(beside);
                mappings = beside.iter().map(|(mapping, _)| mapping.clone()).collect();
            }
        }
        let mut rows = self.on_opencl(case, mappings, &data);
        if !self.args.choice.all_mappings {
            rows = fastest(rows);
        }
        let mut status = Status::Done;
        for (mapping, outcome) in &rows {
            let other = beside.iter().find(|(name, _)| name == mapping);
            let other = other.map(|(_, outcome)| outcome);
            term::print(row(case, mapping, outcome, other));
            if outcome.is_err() || other.is_some_and(Result::is_err) {
                status = Status::Limitation;
            }
        }
        status
    }

    fn on_opencl(&mut self, case: &Case, mappings: Vec<String>, data: &Data) -> Vec<Tried> {
        let (root, device) = (self.root, self.device);
        let kernels = measure::compile_all(&[(case, mappings)], |job| compile(root, device, job));
        let here = &mut self.opencl;
        tried(kernels, |compiled| measure::time(&compiled, data, here))
    }

    fn header(&self, group: Group) -> String {
        let mut line = left(["problem", "mapping"]);
        let beside: &[&str] = match self.cuda {
            Some(_) => &["CUDA ms", "of CUDA"],
            None => &[],
        };
        for name in ["ms", "rate", "GB/s"].iter().chain(beside) {
            line.push_str(&right(name));
        }
        let title = Paint::Bold.out(group.title());
        format!("\n{title}\n{}\n", Paint::Dim.out(line))
    }
}

fn compile(root: &Path, device: usize, job: Job<'_>) -> Result<OpenClCompiled, String> {
    let module = measure::load(root, job.program)?;
    let mut options = OpenClOptions::from_env().map_err(|e| e.to_string())?;
    options.device = device;
    options.fix = measure::fixed(job.fix);
    compile_opencl(&module, job.mapping, job.sizes, &options).map_err(|e| e.to_string())
}

/// The kernels of one case, timed.
fn tried<C>(
    kernels: Vec<Vec<Kernel<C>>>,
    mut time: impl FnMut(C) -> Result<Timing, String>,
) -> Vec<Tried> {
    let kernels = kernels.into_iter().flatten();
    kernels
        .map(|Kernel { mapping, compiled }| (mapping, compiled.and_then(&mut time)))
        .collect()
}

/// The fastest one. Refused or wrong ones are always reported.
fn fastest(mut tried: Vec<Tried>) -> Vec<Tried> {
    let seconds = |outcome: &Result<Timing, String>| outcome.as_ref().ok().map(Timing::median);
    let times = tried.iter().filter_map(|(_, outcome)| seconds(outcome));
    let best = times.fold(f64::INFINITY, f64::min);
    tried.retain(|(_, outcome)| seconds(outcome).is_none_or(|seconds| seconds == best));
    tried
}

fn row(
    case: &Case,
    mapping: &str,
    outcome: &Result<Timing, String>,
    cuda: Option<&Result<Timing, String>>,
) -> String {
    let mut line = left([&case.name, mapping]);
    match outcome {
        Err(why) => line.push_str(&format!("  {}", why.trim_end())),
        Ok(timing) => {
            let seconds = timing.median();
            let mut cells = vec![
                format!("{:.3}", seconds * 1e3),
                rate(&case.work, seconds),
                format!("{:.0}", case.work.bytes / seconds / 1e9),
            ];
            match cuda {
                Some(Ok(timing)) => {
                    let cuda = timing.median();
                    cells.push(format!("{:.3}", cuda * 1e3));
                    cells.push(format!("{:.2}x", cuda / seconds));
                }
                Some(Err(why)) => cells.push(format!("CUDA: {}", why.trim_end())),
                None => {}
            }
            for cell in cells {
                line.push_str(&right(&cell));
            }
        }
    }
    format!("{}\n", line.trim_end())
}
