//! `systola nvrtc`: compiles for another process of this program, which starts it.

use std::sync::Arc;

use systola::rt::cuda::{Compilers, serve};

use crate::source::{Outcome, Status};

/// Compile CUDA C++ from the standard input
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Outcome {
    // The caller notices the end of this process, and compiles without it.
    let served = serve(std::io::stdin().lock(), std::io::stdout().lock());
    Ok(served.map_or(Status::Mistake, |()| Status::Done))
}

/// Processes of this program that compile; none if its own path is unknown.
pub fn compilers() -> Option<Arc<Compilers>> {
    let own = std::env::current_exe().ok()?;
    Some(Arc::new(Compilers::new(own, &["nvrtc"])))
}
