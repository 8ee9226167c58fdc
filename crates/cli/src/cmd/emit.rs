//! `systola emit`: the code of a mapping.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use systola::device::device_source;
use systola::rt;
use systola::rt::cuda::{CudaCompileOptions, compile_only};
use systola::rt::device::Variant;
use systola::{CudaOptions, OpenClOptions};
use systola_driver::opencl::{Features, Links};
use systola_driver::{
    Lowered, Machine, Simd, Target, describe_c, describe_cuda, describe_opencl, emit_c,
    emit_c_host, emit_cuda, emit_cuda_host, emit_opencl, emit_opencl_host, opencl_machine,
};
use systola_explore::choose::Choice;
use systola_explore::platform::Platform;
use systola_explore::target_device::TargetDevice;
use systola_ir::Diagnostic;

use crate::choose::{Prefer, Say, Wanted, platform_of, select};
use crate::device::DeviceName;
use crate::files;
use crate::lowering::{LoweringArgs, Purpose, lower_checked, parse_lanes};
use crate::named::named;
use crate::runtime;
use crate::source::{Failure, Outcome, Sizes, Source, Status, given_sizes, parse_size};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola emit gallery/conv1d/core.ure --map sbm --target c
  systola emit gallery/conv1d/core.ure --map sbm --target c --set Q=5 --fix Q --simd avx2 -o sbm.c
  systola emit gallery/conv1d/core.ure --map sbm --target cuda
  systola emit gallery/conv1d/core.ure --map sbm --target cuda --arch sm_90 -o sbm.cu
  systola emit gallery/conv1d/core.ure --map sbm --target opencl --lanes 16
  systola emit gallery/conv1d/core.ure --map sbm --target cuda --with-host --set C=1000000 --set Q=5 -o x.cu

Every text begins with a comment that says how its kernels are launched. With --with-host it is a whole program: its head
says how it is compiled and run, and sizes that are given with --set are those that it takes unless told otherwise.

The code is for all sizes unless --fix makes some of them constants. Where no kernel for all sizes can be made, all
sizes must be given with --set.

Without --map the standard error says which mapping was chosen and why. What is chosen depends on the file, the options
and the machine alone: the same call prints the same code. Sizes that are not given are taken typical for the choice,
and remain parameters of the code.";

/// Print the code that a mapping is compiled from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The language of the code
    #[arg(long, value_parser = languages(), default_value = "c")]
    target: Target,
    /// The mapping, also one of the explorer's candidates. Without it, that of `systola run`: the
    /// best that `systola explore` found, or else the one that the model predicts to be the fastest
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Write the mapping that was chosen into the file, under this name
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// The system, if the file has several
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
    /// Lanes of a warp in OpenCL C; limited to what the device supports
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// On an OpenCL device, route links through local memory even where there are sub-groups
    #[arg(long)]
    no_sub_groups: bool,
    /// Print a whole program: the kernels, and a `main` that reads sizes and files, launches them,
    /// and writes what they computed
    #[arg(long)]
    with_host: bool,
    /// The output file; the standard output if not given
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
    if let (Target::Cuda | Target::OpenCl, Some(option)) =
        (args.target, args.lowering.names_machine())
    {
        return Err(Failure::new(format!(
            "{option} does not go with --target cuda or opencl"
        )));
    }
    let given = args.device.is_some() || args.lanes.is_some() || args.no_sub_groups;
    if given && args.target != Target::OpenCl {
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
    let platform = || -> Result<Platform, Failure> {
        let device = match (args.target, &device) {
            (Target::Cpu, _) => None,
            (Target::Cuda, _) => {
                let cuda = CudaOptions::from_env().map_err(|e| runtime::fail(&source, e))?;
                TargetDevice::cuda(cuda).ok()
            }
            (Target::OpenCl, Some(device)) => {
                let opencl = OpenClOptions {
                    compile: OpenClOptions::from_env()
                        .map_err(|e| runtime::fail(&source, e))?
                        .compile,
                    ..opencl.clone()
                };
                Some(TargetDevice::OpenCl(opencl, device.info.clone()))
            }
            (Target::OpenCl, None) => None,
        };
        Ok(match device {
            Some(device) => device.with_fix(options.fix.clone()).platform(),
            // Without the device: what the target is in general.
            None => platform_of(&machine, &options),
        })
    };
    let wanted = Wanted {
        map: args.map.as_deref(),
        system: args.system.as_deref(),
        sizes: &sizes,
        save: args.save.as_deref(),
        prefer: Prefer::Fastest,
        say: Say::Err,
    };
    let (system, Choice { mapping, fix, .. }) = select(&source, &wanted, platform)?;
    let lowered = lower_checked(&source, system, &mapping, &sizes, &fix, &machine)?;
    let text = Text {
        lowered: &lowered,
        sizes: &sizes,
        host: args.with_host,
    };
    let printed = match args.target {
        Target::Cpu => text.c(options.simd),
        Target::Cuda => text.cuda(),
        Target::OpenCl => text.opencl(&features),
    };
    let code = printed.map_err(|d| source.fail(&[d]))?;
    let mut resources = String::new();
    if let Some(arch) = &args.arch {
        let artifact = emit_cuda(&lowered.program).map_err(|d| source.fail(&[d]))?;
        let for_gpu = device_source(artifact);
        let fail = |error: rt::Error| runtime::fail(&source, error.into());
        let variant = match &lowered.sizes {
            Some(sizes) => Variant::at(&lowered.program, &for_gpu.kernels, sizes).map_err(fail)?,
            None => Variant::narrow(),
        };
        let options = CudaCompileOptions::default();
        let made = compile_only(&for_gpu.code, arch, &variant, &options).map_err(fail)?;
        for kernel in made.resources() {
            resources.push_str(&format!(
                "{} for {arch}: {} registers, {} bytes spilled, {} bytes of stack\n",
                kernel.kernel, kernel.registers, kernel.spilled, kernel.stack
            ));
        }
    }
    match &args.output {
        None => term::print(&code),
        Some(path) => {
            files::write(path, code.as_bytes())?;
            term::print(format!("written to {}\n", path.display()));
        }
    }
    term::eprint(resources);
    Ok(Status::Done)
}

/// A text to print.
struct Text<'a> {
    lowered: &'a Lowered,
    sizes: &'a Sizes,
    /// With a `main`?
    host: bool,
}

impl Text<'_> {
    fn c(&self, simd: Simd) -> Result<String, Diagnostic> {
        let program = &self.lowered.program;
        if self.host {
            return emit_c_host(program, simd, self.sizes);
        }
        let artifact = emit_c(program, simd)?;
        Ok(joined(describe_c(program, &artifact), &artifact.source))
    }

    fn cuda(&self) -> Result<String, Diagnostic> {
        let program = &self.lowered.program;
        if self.host {
            return emit_cuda_host(program, self.sizes);
        }
        let artifact = emit_cuda(program)?;
        Ok(joined(describe_cuda(program, &artifact), &artifact.source))
    }

    fn opencl(&self, features: &Features) -> Result<String, Diagnostic> {
        let program = &self.lowered.program;
        if self.host {
            return emit_opencl_host(program, features, self.sizes);
        }
        let artifact = emit_opencl(program, features)?;
        Ok(joined(
            describe_opencl(program, &artifact),
            &artifact.source,
        ))
    }
}

fn joined(notes: String, source: &str) -> String {
    format!("{notes}\n{source}")
}
