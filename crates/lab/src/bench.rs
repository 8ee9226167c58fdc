//! `systola-lab bench`: the time of Systola itself, and of the code that it generates.

use systola_cli::source::Outcome;

mod baselines;
mod check;
mod cpu;
pub mod cuda;
mod designs;
mod expected;
mod family;
mod limits;
mod opencl;
mod ours;
mod pin_cpu;
mod problem;
mod rate_probe;
mod reference;
mod report;
mod session;
pub mod stencils;
mod tools;

/// Measure Systola itself, and its generated code
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Check(check::Args),
    Cpu(cpu::Args),
    Cuda(cuda::Args),
    Stencils(stencils::Args),
    #[command(name = "opencl")]
    OpenCl(opencl::Args),
}

pub fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Check(args) => check::run(args),
        What::Cpu(args) => cpu::run(args),
        What::Cuda(args) => cuda::run(args),
        What::Stencils(args) => stencils::run(args),
        What::OpenCl(args) => opencl::run(args),
    }
}
