//! `systola gpu`: what has to be seen on a machine with a GPU.

use crate::source::Outcome;

mod sizes;
mod target;
mod verify;

/// Check what only a GPU or an OpenCL device can show
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Verify(verify::Args),
}

pub fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Verify(args) => verify::run(args),
    }
}
