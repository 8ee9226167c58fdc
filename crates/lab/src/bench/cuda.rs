//! `systola-lab bench cuda`: mappings compiled for a GPU, compared with its limits and with
//! libraries.
//!
//! The mappings of a problem are compiled, checked against sums in f64 and timed; the table shows
//! the fastest, or all of them, each row as soon as it is known. The limit is the longer of two
//! times: to move the compulsory bytes at the measured speed of a copy on the device, and to
//! multiply-add at the rate given by multiprocessors, lanes and clock.

mod alignment;
mod baselines;
pub mod case;
pub mod conv;
mod designs;
pub mod limits;
mod matmul;
pub mod measure;
mod plot;
pub mod sample;
mod startup;
mod stencil;
pub mod table;
mod windows;

use std::path::{Path, PathBuf};

use systola::CudaCompiled;
use systola::rt::cuda::{Cuda, Gpu};
use systola_cli::device::DeviceName;
use systola_cli::files;
use systola_cli::runtime::fail_alone;
use systola_cli::source::{Failure, Outcome, Status};
use systola_cli::term;

use self::alignment::Score;
use self::baselines::Baselines;
use self::case::{Case, Group};
use self::conv::Precision;
use self::limits::Limits;
use self::measure::{Kernel, Measured, OnDevice};
use self::plot::Plot;
use super::tools::{no_gpu, root};
use crate::arrays::Arrays;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench cuda                           everything, in a few minutes
  cargo xtask bench cuda --with-baselines          compared with the libraries of this machine
  cargo xtask bench cuda --only conv2d --k 3,9,20  2-D convolution with some filters
  cargo xtask bench cuda --only conv2d --with-baselines --plot conv2d.svg
  cargo xtask bench cuda --all-mappings            a row for every mapping that was tried

Every result is checked before its time counts: the first and last 40 rows, 200 random rows and the first and
last 40 columns against sums in f64; smaller results in full. Times are medians of 21 warm runs, of 7 or 3
where one takes long, between two events on the device: without compiling, and with all arrays on the GPU.";

/// The problems that are timed, on any device.
#[derive(Debug, clap::Args)]
pub struct Choice {
    /// Only filters of these sizes: 3 is 3 × 3 or 3 taps, 5x17 is 5 rows of 17
    #[arg(long, value_name = "K", value_delimiter = ',')]
    pub k: Vec<String>,
    /// Only mappings of this name; can be given more than once
    #[arg(long, value_name = "NAME")]
    pub mapping: Vec<String>,
    /// Print a row for every mapping, not only for the fastest
    #[arg(long)]
    pub all_mappings: bool,
    /// Tiny problems, to test the command itself: the times mean nothing
    #[arg(long)]
    pub small: bool,
}

/// Time mappings compiled for an NVIDIA GPU, and its limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these problems; can be given more than once
    #[arg(long, value_name = "PROBLEMS")]
    only: Vec<Group>,
    #[command(flatten)]
    choice: Choice,
    /// Run the scripts of bench/baselines/cuda with python3, and show how many times longer the
    /// libraries take
    #[arg(long)]
    with_baselines: bool,
    /// Read the output of the scripts from a file instead
    #[arg(long, value_name = "FILE", conflicts_with = "with_baselines")]
    baselines: Option<PathBuf>,
    /// Draw the times of 2-D convolutions by the size of the filter, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Which GPU, by its index in `systola devices` or a part of its name
    #[arg(long, value_name = "N|NAME", default_value_t)]
    device: DeviceName,
}

pub fn run(args: &Args) -> Outcome {
    let root = root()?;
    let mut baselines = Baselines::default();
    if let Some(path) = &args.baselines {
        baselines.read(path).map_err(Failure::new)?;
    }
    let gpu = args.device.cuda().and_then(Gpu::open);
    let gpu = gpu.map_err(|e| no_gpu(&e))?;
    let elements = if args.choice.small { 1 << 20 } else { 1 << 28 };
    let limits = Limits::measure(&gpu, elements).map_err(|e| fail_alone(&e))?;
    term::print(limits.describe(&gpu.info));
    let mut status = Status::Done;
    let mut bench = Bench {
        args,
        device: gpu.info.ordinal,
        root: &root,
        limits,
        baselines,
        arrays: Arrays::default(),
        here: OnDevice::new(),
        plot: Plot::new(Group::Conv2d),
    };
    for group in Group::ALL {
        if args.only.is_empty() || args.only.contains(&group) {
            status = bench.group(group)?.max(status);
            if group == Group::Startup {
                term::print(startup::measure(&root, gpu.info.ordinal)?);
            }
        }
    }
    if let Some(path) = &args.plot {
        let Some(chart) = bench.plot.draw(&gpu.info.name) else {
            return Err(Failure::new("no 2-D convolution was measured")
                .help("--plot goes with --only conv2d"));
        };
        files::write(path, chart.as_bytes())?;
        term::print(format!("\nthe chart is in {}\n", path.display()));
    }
    Ok(status)
}

struct Bench<'a> {
    args: &'a Args,
    /// Its index.
    device: usize,
    root: &'a Path,
    limits: Limits,
    baselines: Baselines,
    arrays: Arrays,
    here: OnDevice<Cuda>,
    plot: Plot,
}

impl Bench<'_> {
    /// Compiles, measures and prints the problems of a group.
    fn group(&mut self, group: Group) -> Outcome {
        let (size, cases) =
            cases(self.root, group, self.args.choice.small).map_err(Failure::new)?;
        let list = chosen(
            self.root,
            &cases,
            &self.args.choice.k,
            &self.args.choice.mapping,
        );
        let list = list.map_err(Failure::new)?;
        if list.is_empty() {
            return Ok(Status::Done);
        }
        if group == Group::Conv2d {
            self.plot.side = size;
        }
        let n: usize = list.iter().map(|(_, names)| names.len()).sum();
        term::eprint(format!("{}: compiling {n} mappings\n", group.title()));
        let (root, device) = (self.root, self.device);
        let kernels = measure::compile_all(&list, |job| measure::compile(root, device, job));
        if self.args.with_baselines {
            term::eprint(format!("{}: the baselines\n", group.title()));
            let cases: Vec<&Case> = list.iter().map(|(case, _)| *case).collect();
            self.baselines.measure(self.root, group, size, &cases);
        }
        term::print(table::header(group, &self.baselines));
        let mut status = Status::Done;
        let mut names = Vec::new();
        for ((case, _), kernels) in list.iter().zip(kernels) {
            status = self.case(group, case, kernels).max(status);
            names.push(case.name.clone());
        }
        for note in self.baselines.notes(group, &names) {
            term::print(format!("  {note}\n"));
        }
        Ok(status)
    }

    fn case(&mut self, group: Group, case: &Case, kernels: Vec<Kernel<CudaCompiled>>) -> Status {
        let data = (case.make)(&self.arrays);
        let mut tried: Vec<(String, Result<Measured, String>)> = Vec::new();
        for Kernel { mapping, compiled } in kernels {
            let outcome =
                compiled.and_then(|compiled| measure::measure(&compiled, &data, &mut self.here));
            tried.push((mapping, outcome));
        }
        let seconds = |outcome: &Result<Measured, String>| match outcome {
            Ok(measured) => measured.timing.median(),
            Err(_) => f64::INFINITY,
        };
        let best = tried.iter().map(|(_, o)| seconds(o));
        let best = best.fold(f64::INFINITY, f64::min);
        if group == Group::Conv2d && best.is_finite() {
            self.plot.add(case, best, &self.limits, &self.baselines);
        }
        // A refused or wrong one is always reported.
        let failed = tried.iter().any(|(_, outcome)| outcome.is_err());
        if !self.args.choice.all_mappings {
            tried.retain(|(_, outcome)| outcome.is_err() || seconds(outcome) == best);
        }
        for (mapping, outcome) in &tried {
            let row = table::row(group, case, mapping, outcome, &self.limits, &self.baselines);
            term::print(row);
        }
        if failed {
            Status::Limitation
        } else {
            Status::Done
        }
    }
}

/// The cases with one of these filters, each with its mappings of these names, or with all of them.
pub fn chosen<'c>(
    root: &Path,
    cases: &'c [Case],
    filters: &[String],
    names: &[String],
) -> Result<Vec<(&'c Case, Vec<String>)>, String> {
    let mut list = Vec::new();
    for case in cases {
        let fits = |filter: &String| fits(filter, case.baseline.as_deref());
        if !filters.is_empty() && !filters.iter().any(fits) {
            continue;
        }
        let mut mappings = measure::mappings(root, case)?;
        mappings.retain(|name| names.is_empty() || names.contains(name));
        if !mappings.is_empty() {
            list.push((case, mappings));
        }
    }
    Ok(list)
}

/// Is `3` or `5x17` this filter?
fn fits(k: &str, filter: Option<&str>) -> bool {
    filter.is_some_and(|filter| filter == k || filter == format!("{k}x{k}"))
}

/// The problems of a group, and the size that they have in common.
pub fn cases(root: &Path, group: Group, small: bool) -> Result<(usize, Vec<Case>), String> {
    let pick = |full, tiny| if small { tiny } else { full };
    Ok(match group {
        Group::Conv1d => {
            let n = pick(1 << 28, 1 << 14);
            let taps: &[usize] = if small { &[1, 5] } else { &[1, 5, 17, 64] };
            let cases = taps.iter().map(|taps| conv::conv1d(n, *taps));
            (n, cases.collect())
        }
        Group::Conv2d => {
            let n = pick(8192, 100);
            let mut filters: Vec<[usize; 2]> = (2..=pick(20, 3)).map(|k| [k, k]).collect();
            filters.extend([[1, 9], [9, 1]]);
            if !small {
                filters.push([5, 17]);
            }
            let cases = filters.into_iter();
            let cases = cases.map(|filter| conv::conv2d(n, filter, Precision::Single));
            (n, cases.collect())
        }
        Group::Conv2dF64 => {
            let n = pick(8192, 100);
            let filters: &[usize] = if small { &[3] } else { &[3, 5, 7, 9, 13, 20] };
            let cases = filters.iter();
            let cases = cases.map(|k| conv::conv2d(n, [*k, *k], Precision::Double));
            (n, cases.collect())
        }
        Group::Windows => {
            let n = pick(8192, 100);
            let cases = windows::WINDOWS.map(|window| windows::window(window, n));
            (n, cases.into())
        }
        Group::Stencil => {
            let (n, many) = (pick(8192, 150), pick(1000, 23));
            let cases = stencil::STENCILS.iter();
            let cases = cases.map(|stencil| stencil::sweeps(root, *stencil, n, 13, many));
            (n, cases.collect::<Result<_, _>>()?)
        }
        Group::Designs1d => {
            let n = pick(1 << 26, 1 << 12);
            let of = |q: usize| designs::LINES.map(|d| designs::design(d, n, [1, q]));
            (n, [2, 5].map(of).into_iter().flatten().collect())
        }
        Group::Designs2d => {
            let n = pick(4096, 60);
            let of = |k: usize| designs::IMAGES.map(|d| designs::design(d, n, [k, k]));
            (n, [2, 5].map(of).into_iter().flatten().collect())
        }
        Group::Startup => (0, Vec::new()),
        Group::Matmul => {
            let n = pick(4096, 100);
            (n, vec![matmul::matmul(n)])
        }
        Group::Alignment => {
            let (pairs, n) = (pick(1 << 16, 100), pick(256, 30));
            let cases = [Score::I16, Score::I32];
            let cases = cases.map(|score| alignment::smith_waterman(pairs, n, score));
            (pairs, cases.into())
        }
    })
}

#[cfg(test)]
pub mod tests;
