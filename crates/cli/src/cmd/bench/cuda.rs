//! `systola bench cuda`: mappings compiled for a GPU beside its limits.
//!
//! Every mapping of a problem that is meant for GPUs is compiled, checked against sums in f64 and timed; the table
//! shows the fastest, or all of them. The limit is the longer of two times: to move what must be read and
//! written at the speed of a copy on the device, which is measured, and to multiply-add at the rate that
//! multiprocessors, lanes and clock allow.

mod problems;

use std::path::Path;

use systola::ir::Scalar;
use systola::ir::kernel::BufferKind;
use systola::rt::HostArray;
use systola::rt::cuda::{DeviceArray, Gpu};
use systola::rt::timing::Timing;
use systola::{CudaOptions, Fix, compile_cuda};

use super::family::Family;
use super::problem::{Problem, Scale};
use super::tools::{Progress, root};
use crate::runtime::fail_alone;
use crate::source::{Outcome, Status, read_text};
use crate::table::{Align, Table};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola bench cuda                    everything, in a few minutes
  systola bench cuda --only conv2d      2-D convolution alone
  systola bench cuda --all-mappings     a row for every mapping that was tried

Every result is checked before its time counts. Times are medians of warm runs, between
two events on the device: without compiling, and with all arrays on the GPU.";

/// Time mappings compiled for an NVIDIA GPU beside its limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these problems; can be given more than once
    #[arg(long, value_name = "PROBLEM")]
    only: Vec<Family>,
    /// A row for every mapping, not only for the fastest
    #[arg(long)]
    all_mappings: bool,
    /// Which GPU, by its number in `systola devices`
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Tiny problems, to try the command itself: the times mean nothing
    #[arg(long)]
    small: bool,
}

/// What a device can do at most.
struct Limits {
    /// Bytes read and written in a second.
    copy: f64,
    /// Operations in a second, a fused multiply-add counted as two.
    fma: f64,
}

struct Row {
    problem: String,
    mapping: String,
    outcome: Result<Measured, String>,
}

struct Measured {
    timing: Timing,
    registers: u32,
    spilled: u32,
    limit: f64,
    operations: f64,
    bytes: f64,
}

pub fn run(args: &Args) -> Outcome {
    let root = root()?;
    let gpu = Gpu::open(args.device).map_err(|e| fail_alone(&e))?;
    let scale = if args.small {
        Scale::Small
    } else {
        Scale::Full
    };
    let wanted = |family: &Family| args.only.is_empty() || args.only.contains(family);
    let list: Vec<_> = Family::ALL
        .into_iter()
        .filter(wanted)
        .flat_map(|family| problems::problems(family, scale))
        .collect();
    let mut progress = Progress::new(1 + list.len());
    progress.step("the limits of this GPU");
    let limits = limits(&gpu, scale).map_err(|e| fail_alone(&e))?;
    let mut rows = Vec::new();
    for case in list {
        progress.step(&case.name);
        let problem = (case.make)()?;
        let mut tried: Vec<Row> = case
            .mappings
            .iter()
            .map(|mapping| Row {
                problem: case.name.clone(),
                mapping: mapping.to_string(),
                outcome: time(&root, args.device, &problem, mapping, &limits),
            })
            .collect();
        if !args.all_mappings {
            tried.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
            tried.truncate(1);
        }
        rows.extend(tried);
    }
    progress.finish();
    let info = &gpu.info;
    term::print(format!(
        "{}, {} multiprocessors, CUDA {}.{}\ncopy  {:.2} TB/s (read + written)\nFMA   {:.1} TFLOP/s at {:.2} GHz\n\n{}",
        info.name,
        info.multiprocessors,
        info.driver.0,
        info.driver.1,
        limits.copy / 1e12,
        limits.fma / 1e12,
        f64::from(info.clock_khz) / 1e6,
        table(&rows)
    ));
    let failed = rows.iter().any(|r| r.outcome.is_err());
    Ok(if failed {
        Status::Limitation
    } else {
        Status::Done
    })
}

impl Row {
    fn seconds(&self) -> f64 {
        match &self.outcome {
            Ok(measured) => measured.timing.median(),
            Err(_) => f64::INFINITY,
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut align = vec![Align::Left, Align::Left];
    align.extend([Align::Right; 6]);
    let mut table = Table::new(0, align);
    table.header([
        "problem",
        "mapping",
        "limit ms",
        "ms",
        "of limit",
        "TFLOP/s",
        "GB/s",
        "registers",
    ]);
    for row in rows {
        match &row.outcome {
            Err(why) => table.row([&row.problem, &row.mapping, why]),
            Ok(m) => {
                let seconds = m.timing.median();
                let spilled = if m.spilled > 0 {
                    format!(" + {} B spilled", m.spilled)
                } else {
                    String::new()
                };
                table.row([
                    row.problem.clone(),
                    row.mapping.clone(),
                    format!("{:.3}", m.limit * 1e3),
                    format!("{:.3}", seconds * 1e3),
                    format!("{:.0} %", 100.0 * m.limit / seconds),
                    format!("{:.2}", m.operations / seconds / 1e12),
                    format!("{:.0}", m.bytes / seconds / 1e9),
                    format!("{}{spilled}", m.registers),
                ]);
            }
        }
    }
    table.render()
}

/// Copies larger than any cache, and what the clock allows.
fn limits(gpu: &std::sync::Arc<Gpu>, scale: Scale) -> Result<Limits, systola::rt::Error> {
    let elements = match scale {
        Scale::Full => 1 << 28,
        Scale::Small => 1 << 20,
    };
    let from = DeviceArray::from_view(gpu, &HostArray::zeros(Scalar::F32, &[elements])?.view())?;
    let mut to = DeviceArray::new(gpu, Scalar::F32, &[elements])?;
    let mut samples = Vec::new();
    for _ in 0..11 {
        samples.push(to.copy_from(&from)?);
    }
    let seconds = Timing { samples }.median();
    // A multiprocessor has 128 lanes of single precision since capability 8.6, and had 64 before.
    let lanes = if gpu.info.capability < (8, 6) {
        64.0
    } else {
        128.0
    };
    let clock = f64::from(gpu.info.clock_khz) * 1e3;
    Ok(Limits {
        copy: 2.0 * from.bytes() as f64 / seconds,
        fma: f64::from(gpu.info.multiprocessors) * lanes * 2.0 * clock,
    })
}

fn time(
    root: &Path,
    device: usize,
    problem: &Problem,
    mapping: &str,
    limits: &Limits,
) -> Result<Measured, String> {
    let path = root.join("gallery").join(problem.program);
    let text = read_text(&path).map_err(|_| format!("cannot read {}", path.display()))?;
    let module = systola::load(&text).map_err(|found| match found.first() {
        Some(diagnostic) => diagnostic.to_string(),
        None => "refused".to_string(),
    })?;
    let said = |e: systola::cpu::Error| e.to_string();
    let failed = |e: systola::rt::Error| e.to_string();
    let mut options = CudaOptions::from_env().map_err(said)?;
    options.device = device;
    options.fix = match problem.fix {
        [] => Fix::Nothing,
        names => Fix::Names(names.iter().map(ToString::to_string).collect()),
    };
    let compiled = compile_cuda(&module, mapping, &problem.sizes, &options).map_err(said)?;
    let gpu = compiled.loaded().gpu();
    let mut inputs = Vec::new();
    for input in &problem.inputs {
        let host = input.aligned().map_err(failed)?;
        let array = DeviceArray::from_view(gpu, &host.view()).map_err(failed)?;
        inputs.push((input.name, array));
    }
    let inputs: Vec<(&str, &DeviceArray)> = inputs.iter().map(|(n, a)| (*n, a)).collect();
    let output = compiled
        .program()
        .buffers
        .iter()
        .find(|b| b.name == problem.output && matches!(b.kind, BufferKind::Output { .. }));
    let ty = output
        .map(|b| b.ty)
        .ok_or("the program has no such output")?;
    let shape = &problem.expected.shape;
    let mut z = DeviceArray::new(gpu, ty, shape).map_err(failed)?;
    let once = |z: &mut DeviceArray| {
        let mut outputs = [(problem.output, z)];
        compiled
            .run_on_device(&problem.sizes, &inputs, &mut outputs)
            .map(|stats| stats.kernel_seconds)
            .map_err(said)
    };
    once(&mut z)?;
    let mut host = HostArray::zeros(ty, shape).map_err(failed)?;
    z.copy_to(&mut host.view_mut()).map_err(failed)?;
    let values = super::ours::floats(&host)?;
    if let Some(fault) = problem.expected.fault(shape, &values) {
        return Err(format!("wrong: {fault}"));
    }
    once(&mut z)?;
    let mut samples = Vec::new();
    for _ in 0..21 {
        samples.push(once(&mut z)?);
    }
    let resources = compiled.loaded().resources().map_err(failed)?;
    let bytes_time = problem.work.bytes / limits.copy;
    Ok(Measured {
        timing: Timing { samples },
        registers: resources.iter().map(|r| r.0).max().unwrap_or(0),
        spilled: resources.iter().map(|r| r.1).max().unwrap_or(0),
        limit: bytes_time.max(problem.work.operations / limits.fma),
        operations: problem.work.operations,
        bytes: problem.work.bytes,
    })
}
