//! `systola run`: evaluate the equations, step the array, or run the kernel.

use std::path::PathBuf;

use systola::{CpuOptions, CudaOptions, OpenClOptions};
use systola_interp::Arrays;
use systola_ir::target::Target;

use crate::data::{self, DataFile, Format};
use crate::device::DeviceName;
use crate::execute::{Execution, Runner, runners};
use crate::files::Outputs;
use crate::frames::Frames;
use crate::job::{Job, Selection};
use crate::lowering::{LoweringArgs, Purpose, parse_lanes};
use crate::runtime;
use crate::save;
use crate::source::{Failure, Outcome, Sizes, Source, Status, given_sizes, parse_size};
use crate::table::{Align, Table};
use crate::term::{self, Paint};
use systola_interp::compare::{Expected, compare};

const EXAMPLES: &str = "\
Examples:
  systola run gallery/conv1d/core.ure --target system --set C=16 --set Q=5
  systola run gallery/conv1d/core.ure --target array --map sbm --set C=16 --set Q=5 --verify
  systola run gallery/conv1d/core.ure --target kernel --map sbm --set C=100 --set Q=5
  systola run gallery/conv1d/core.ure --target cpu --map sbm --set C=100_000 --set Q=5 --fix Q --verify
  systola run gallery/conv1d/core.ure --target cpu --map sbm --in x=x.npy --in w=w.npy --out z=z.npy
  systola run gallery/vision/sobel.ure --in x=photo.png --out z=edges.png
  systola run gallery/string/edit_distance.ure --in a=one.txt --in b=two.txt
  systola run stencils/heat.ure --target cpu --in u=start.png --set T=400 --frames 50 --out u=heat.gif
  systola run gallery/conv1d/core.ure --target cuda --map sbm --set C=100_000 --set Q=5 --fix Q --verify
  systola run stencils/gaussian.ure --target cuda --map down8_words --set N=2160 --set M=3840 --times 100
  systola run gallery/conv1d/core.ure --target opencl --device 1 --map sbm --set C=100_000 --set Q=5 --verify

The ending of a file is its format, or a prefix: npy: png: pnm: raw: text: numbers: csv: gif:, as in --in a=text:FILE.
A pixel is 0 to 1 as a float and the sample of the file as an integer; colours become grey for an input of two axes. A
.txt file is characters for an input of u8 with one axis, and numbers for others. docs/data.md shows all of it.

Inputs that are not given are random and reproducible: indices of a table lie in its axes, divisors are not zero, and
cells that are 0 or 1 start as 0 or 1. Sizes follow from the shapes of the given inputs where possible; the others are
chosen small, and printed.

Environment: SYSTOLA_CC the C compiler, SYSTOLA_SIMD the vector instructions, SYSTOLA_CACHE the folder of compiled
kernels, SYSTOLA_CACHE_MB its limit (0: no cache), SYSTOLA_NVRTC the folder with libnvrtc, SYSTOLA_OPENCL the
OpenCL library.";

/// Run a system, a mapping or a program on given or random inputs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The target
    #[arg(long = "target", value_name = "TARGET", value_parser = runners(), default_value = "system")]
    runner: Runner,
    /// The mapping; repeat it to choose one for each system of a program. Names of the explorer's
    /// candidates work too. Without it compiled targets take the best that `systola explore` found,
    /// or else the one that the model predicts to be the fastest; that choice is stored
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    /// Write the mapping that was chosen into the file, under this name
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    save: Option<String>,
    /// The system, if the file has several
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    system: Option<String>,
    /// Run a program of the file
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Give a parameter a value, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// Read an input from a file: .npy, .png, .pgm, .ppm, .raw, .txt or .csv; may be repeated
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = data::parse)]
    inputs: Vec<DataFile>,
    /// Seed of the random inputs
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Write an output to a file, in the same formats, or with --frames as .gif; may be repeated
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = data::parse)]
    outputs: Vec<DataFile>,
    /// Divide the steps into this many parts, and show the outputs after each in the .gif and .png
    /// files of --out
    #[arg(long, value_name = "N", conflicts_with = "times",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    frames: Option<u16>,
    /// Run the equations too, and compare: integers exactly, floats within the bounds of rounding
    /// errors
    #[arg(long)]
    verify: bool,
    /// Run compiled code this many more times, with arrays in place or on the device, and print the
    /// time of a run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    times: Option<u16>,
    /// Threads of the CPU; one for each core if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Which GPU or OpenCL device, by its index or a part of its name; `systola devices` lists them
    #[arg(long, value_name = "N|NAME")]
    device: Option<DeviceName>,
    /// Lanes of a warp on an OpenCL device, limited to what it supports; the best for the device if
    /// not given
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// On an OpenCL device, route links through local memory even where there are sub-groups
    #[arg(long)]
    no_sub_groups: bool,
    #[command(flatten)]
    lowering: LoweringArgs,
}

fn cuda_options(source: &Source, args: &Args) -> Result<CudaOptions, Failure> {
    let mut options = CudaOptions::from_env().map_err(|error| runtime::fail(source, error))?;
    options.fix = args.lowering.fix();
    if let Some(device) = &args.device {
        let found = device.cuda();
        options.device = found.map_err(|error| runtime::fail(source, error.into()))?;
    }
    Ok(options)
}

fn opencl_options(source: &Source, args: &Args) -> Result<OpenClOptions, Failure> {
    let mut options = OpenClOptions::from_env().map_err(|error| runtime::fail(source, error))?;
    options.fix = args.lowering.fix();
    if let Some(device) = &args.device {
        let found = device.opencl();
        options.device = found.map_err(|error| runtime::fail(source, error.into()))?;
    }
    options.lanes = args.lanes;
    options.without_sub_groups = args.no_sub_groups;
    Ok(options)
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let selection = Selection {
        program: args.program.as_deref(),
        system: args.system.as_deref(),
        maps: &args.maps,
    };
    let job = Job::select(&source, &selection)?;
    let mut sizes = given_sizes(&args.sizes)?;
    source.check_sizes(&sizes)?;
    check_options(args)?;
    if let Some(name) = &args.save {
        save::check_name(&source, name)?;
    }
    let outputs = job.check_outputs(&source, args.outputs.clone(), &sizes)?;
    let mut frames = match args.frames {
        Some(n) => Some(Frames::plan(&source, &job, &mut sizes, n.into(), &outputs)?),
        None => None,
    };
    let is_gif = |file: &&DataFile| file.format == Some(Format::Gif);
    if let (None, Some(file)) = (&frames, outputs.iter().find(is_gif)) {
        let message = format!("{} shows the frames of a run", file.path.display());
        return Err(Failure::new(message).help("add --frames N, or write a .png"));
    }
    let mut inputs = job.read_inputs(&source, &args.inputs, &mut sizes)?;
    args.lowering.check(&source)?;
    let mut execution = Execution {
        source: &source,
        runner: args.runner,
        maps: &args.maps,
        save: args.save.as_deref(),
        options: CpuOptions::new(),
        cuda: CudaOptions::new(),
        opencl: OpenClOptions::new(),
        lowering: &args.lowering,
        threads: args.threads.unwrap_or(0).into(),
        times: args.times.unwrap_or(0).into(),
    };
    match args.runner {
        Runner::System => {}
        Runner::Array | Runner::Kernel | Runner::On(Target::Cpu) => {
            execution.options = args.lowering.options(&source, Purpose::Run)?;
        }
        Runner::On(Target::Cuda) => execution.cuda = cuda_options(&source, args)?,
        Runner::On(Target::OpenCl) => execution.opencl = opencl_options(&source, args)?,
    }
    let params = job.choose_sizes(&sizes)?;
    let names = job.parameters().params.iter().map(|p| p.name.clone());
    let sizes: Sizes = names.zip(params.iter().copied()).collect();
    job.check_formats(&source, &outputs, &sizes)?;
    job.check_memory(&source, &params, &inputs)?;
    job.fill_inputs(&source, &params, &mut inputs, args.random)?;

    if let Some(frames) = &mut frames {
        frames.start(&source, &inputs)?;
    }
    let mut next = |outputs: &Arrays| match &mut frames {
        Some(frames) => frames.next(&source, outputs),
        None => Ok(None),
    };
    let ran = execution.run(&job, &params, &inputs, &mut next)?;
    print_outputs(&ran.outputs);
    write_outputs(&source, &ran.outputs, &outputs, frames.as_ref())?;
    for remark in &ran.remarks {
        let (first, rest) = remark.split_once('\n').unwrap_or((remark, ""));
        term::print(Paint::Dim.out(first) + "\n");
        if !rest.is_empty() {
            term::print(format!("{rest}\n"));
        }
    }
    if !args.verify {
        return Ok(Status::Done);
    }
    // The equations make all steps at once.
    let whole = frames.as_ref().map(|frames| frames.whole(&params));
    let expect = execution.expected(&job, &whole.unwrap_or(params), &inputs)?;
    Ok(verify(&source, &expect, &ran.outputs, frames.as_ref()))
}

/// All files appear, or none does.
fn write_outputs(
    source: &Source,
    outputs: &Arrays,
    files: &[DataFile],
    frames: Option<&Frames>,
) -> Result<(), Failure> {
    let mut staged = Outputs::default();
    let mut said = Vec::new();
    for file in files {
        if let Some(tensor) = outputs.get(&file.name) {
            let film = frames.and_then(|frames| frames.encode(file));
            let encoded = film.unwrap_or_else(|| file.encode(tensor));
            let (bytes, remarks) = encoded.map_err(|found| source.fail(&[found]))?;
            staged.add(&file.path, &bytes)?;
            said.extend(remarks);
        }
    }
    staged.commit()?;
    for file in files {
        let (name, path) = (&file.name, file.path.display());
        term::print(format!("{name} written to {path}\n"));
    }
    for remark in said {
        term::print(Paint::Dim.out(&remark) + "\n");
    }
    Ok(())
}

/// Options that the target ignores are a mistake.
fn check_options(args: &Args) -> Result<(), Failure> {
    let (threads, lowering) = match args.runner {
        Runner::System | Runner::Array => (args.threads.is_some(), args.lowering.is_given()),
        Runner::Kernel | Runner::On(Target::Cuda | Target::OpenCl) => {
            (args.threads.is_some(), false)
        }
        Runner::On(Target::Cpu) => (false, false),
    };
    let machine = match args.runner {
        Runner::System | Runner::Array | Runner::Kernel => None,
        Runner::On(Target::Cpu) => args
            .lowering
            .names_machine()
            .filter(|option| *option == "--machine"),
        Runner::On(Target::Cuda | Target::OpenCl) => args.lowering.names_machine(),
    };
    if let Some(option) = machine {
        return Err(Failure::new(format!(
            "{option} does not go with this target"
        )));
    }
    let has_devices = matches!(args.runner, Runner::On(Target::Cuda | Target::OpenCl));
    if args.device.is_some() && !has_devices {
        return Err(Failure::new("--device goes with --target cuda or opencl"));
    }
    if args.times.is_some() && !matches!(args.runner, Runner::On(_)) {
        return Err(Failure::new(
            "--times goes with --target cpu, cuda or opencl",
        ));
    }
    let given = args.lanes.is_some() || args.no_sub_groups;
    if given && args.runner != Runner::On(Target::OpenCl) {
        return Err(Failure::new(
            "--lanes and --no-sub-groups go with --target opencl",
        ));
    }
    if threads {
        return Err(Failure::new("--threads goes with --target cpu"));
    }
    if lowering {
        return Err(Failure::new(
            "--fix, --simd and --machine go with --target kernel, cpu, cuda or opencl",
        ));
    }
    Ok(())
}

fn verify(source: &Source, expect: &Expected, found: &Arrays, frames: Option<&Frames>) -> Status {
    let different = match frames {
        Some(_) => Status::Mistake,
        None => Status::Bug,
    };
    let mut status = Status::Done;
    for line in compare(expect, found) {
        let (word, line) = match line {
            Ok(line) => (Paint::Green.out("verified"), line),
            Err(line) => {
                status = different;
                (Paint::Red.out("DIFFERENT"), line)
            }
        };
        term::print(format!("{word} {line}\n"));
    }
    if let (Status::Mistake, Some(frames)) = (status, frames) {
        term::eprint(format!(
            "the frames are not all steps at once: its equations depend on {}, or on an input that no output becomes\n",
            frames.iterator()
        ));
    }
    if status == Status::Bug {
        term::eprint(format!(
            "What runs must give what the equations say. This is a bug of Systola, its compiler or its device; \
             please report it with {}.\n",
            source.path
        ));
    }
    status
}

/// Shape, type and the first values of each output.
pub fn print_outputs(outputs: &Arrays) {
    const SHOWN: usize = 8;
    for (name, tensor) in outputs {
        let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        term::print(format!(
            "{}[{}]: {}\n",
            Paint::Bold.out(name),
            shape.join(", "),
            tensor.ty()
        ));
        let columns = tensor.shape.last().copied().unwrap_or(1);
        let rows = tensor.data.len().checked_div(columns).unwrap_or(0);
        let mut table = Table::new(2, vec![Align::Right; SHOWN + 1]);
        for row in 0..rows.min(SHOWN) {
            let mut cells: Vec<String> = (0..columns.min(SHOWN))
                .filter_map(|column| tensor.data.get(row * columns + column))
                .map(|value| match value.as_float() {
                    Some(x) => format!("{x:.6}"),
                    None => value.to_string(),
                })
                .collect();
            if columns > SHOWN {
                cells.push("…".to_string());
            }
            table.row(cells);
        }
        if rows > SHOWN {
            table.row(["…"]);
        }
        term::print(table.render());
    }
}
