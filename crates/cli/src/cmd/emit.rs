//! `systola emit`: the code of a mapping.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use systola::OpenClOptions;
use systola::device::device_source;
use systola::rt::cuda::{CudaCompileOptions, compile_only};
use systola::rt::device::Variant;
use systola_driver::opencl::{Features, Links};
use systola_driver::{Machine, Target, emit_c, emit_cuda, emit_opencl, opencl_machine};

use crate::device::DeviceName;
use crate::files;
use crate::lowering::{LoweringArgs, Purpose, lower_checked, parse_lanes};
use crate::named::named;
use crate::runtime;
use crate::source::{Failure, Outcome, Source, Status, given_sizes, parse_size};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola emit gallery/conv1d/core.ure --map sbm --target c
  systola emit gallery/conv1d/core.ure --map sbm --target c --set Q=5 --fix Q --simd avx2 -o sbm.c
  systola emit gallery/conv1d/core.ure --map sbm --target cuda
  systola emit gallery/conv1d/core.ure --map sbm --target cuda --arch sm_90 -o sbm.cu
  systola emit gallery/conv1d/core.ure --map sbm --target opencl --lanes 16

The code is for all sizes unless --fix makes some of them constants. Where no kernel for all sizes can be made, all
sizes must be given with --set.";

/// Print the code that a mapping is compiled from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The language of the code
    #[arg(long, value_parser = languages(), default_value = "c")]
    target: Target,
    /// The mapping; the first of the file if not given
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Of which system, where a file has several
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Give a parameter a value, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    #[command(flatten)]
    lowering: LoweringArgs,
    /// Compile CUDA C++ for this architecture too, for the sizes if all are given, and print the
    /// resources of each kernel; needs NVRTC but no GPU
    #[arg(long, value_name = "sm_NN")]
    arch: Option<String>,
    /// Print OpenCL C for this device, by its index or a part of its name; `systola devices` lists
    /// them
    #[arg(long, value_name = "N|NAME")]
    device: Option<DeviceName>,
    /// Lanes of a warp in OpenCL C, as far as the device has them
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// On an OpenCL device, route links through local memory even where there are sub-groups
    #[arg(long)]
    no_sub_groups: bool,
    /// Where to write it; the standard output if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads a target by the name of its language.
fn languages() -> impl TypedValueParser<Value = Target> {
    named(Target::ALL.map(|target| {
        let (name, help) = match target {
            Target::Cpu => ("c", "C with the vector extensions of gcc and clang"),
            Target::Cuda => (target.name(), "CUDA C++ for NVIDIA GPUs"),
            Target::OpenCl => (
                target.name(),
                "OpenCL C, for devices with sub-groups, or for one of this machine",
            ),
        };
        (name, help, target)
    }))
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let sizes = given_sizes(&args.sizes)?;
    source.check_sizes(&sizes)?;
    args.lowering.check(&source)?;
    let mapping = source.mapping(args.map.as_deref(), args.system.as_deref())?;
    let system = source.system(Some(&mapping.system))?;
    if let (Target::Cuda | Target::OpenCl, Some(option)) =
        (args.target, args.lowering.names_machine())
    {
        return Err(Failure::new(format!(
            "{option} does not go with --target cuda or opencl"
        )));
    }
    let asked = args.device.is_some() || args.lanes.is_some() || args.no_sub_groups;
    if asked && args.target != Target::OpenCl {
        return Err(Failure::new(
            "--device, --lanes and --no-sub-groups go with --target opencl",
        ));
    }
    if args.arch.is_some() && args.target != Target::Cuda {
        return Err(Failure::new("--arch goes with --target cuda"));
    }
    let options = args.lowering.options(&source, Purpose::Print)?;
    let number = args.device.as_ref().map_or(Ok(0), DeviceName::opencl);
    let opencl = OpenClOptions {
        device: number.map_err(|e| runtime::fail(&source, e.into()))?,
        lanes: args.lanes,
        without_sub_groups: args.no_sub_groups,
        ..OpenClOptions::new()
    };
    let device = match &args.device {
        Some(_) => Some(opencl.open().map_err(|e| runtime::fail(&source, e))?),
        None => None,
    };
    let (features, opencl_lanes) = match &device {
        Some(device) => (opencl.features(&device.info), opencl.machine(&device.info)),
        None => {
            let mut usual = Features::usual();
            if args.no_sub_groups {
                usual.links = Links::SharedMemory {
                    waits_in_branches: true,
                };
            }
            let machine = opencl_machine(&usual, args.lanes.unwrap_or(32), 32 << 10);
            (usual, machine)
        }
    };
    let machine = match args.target {
        Target::Cpu => options.machine(),
        Target::Cuda => Machine::cuda(),
        Target::OpenCl => opencl_lanes,
    };
    let lowered = lower_checked(&source, system, mapping, &sizes, &options.fix, &machine)?;
    let mut for_gpu = None;
    let code = match args.target {
        Target::Cpu => {
            emit_c(&lowered.program, options.simd)
                .map_err(|d| source.fail(&[d]))?
                .source
        }
        Target::Cuda => {
            let artifact = emit_cuda(&lowered.program).map_err(|d| source.fail(&[d]))?;
            let code = artifact.source.clone();
            for_gpu = Some(device_source(artifact));
            code
        }
        Target::OpenCl => {
            emit_opencl(&lowered.program, &features)
                .map_err(|d| source.fail(&[d]))?
                .source
        }
    };
    match &args.output {
        None => term::print(&code),
        Some(path) => {
            files::write(path, code.as_bytes())?;
            term::print(format!("written to {}\n", path.display()));
        }
    }
    if let (Some(arch), Some(for_gpu)) = (&args.arch, for_gpu) {
        let fail = |error| source.fail(&[runtime::diagnostic(&error)]);
        let variant = match &lowered.sizes {
            Some(sizes) => Variant::at(&lowered.program, &for_gpu.kernels, sizes).map_err(fail)?,
            None => Variant::narrow(),
        };
        let options = CudaCompileOptions::default();
        let made = compile_only(&for_gpu.code, arch, &variant, &options).map_err(fail)?;
        for kernel in made.resources() {
            term::eprint(format!(
                "{} for {arch}: {} registers, {} bytes spilled, {} bytes of stack\n",
                kernel.kernel, kernel.registers, kernel.spilled, kernel.stack
            ));
        }
    }
    Ok(Status::Done)
}
