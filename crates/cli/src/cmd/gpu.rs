//! `systola gpu`: the older name of `systola verify`, as `systola gpu verify`.

use super::verify;
use crate::source::Outcome;

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
