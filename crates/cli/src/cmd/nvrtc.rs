//! `systola nvrtc`: compiles for another process of this program, which starts it by itself.

use std::sync::Arc;

use systola::rt::cuda::{Compilers, serve};

use crate::source::{Outcome, Status};

/// Compile the CUDA C++ that comes in
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Outcome {
    // The caller sees that it ended, and compiles by itself.
    let served = serve(std::io::stdin().lock(), std::io::stdout().lock());
    Ok(served.map_or(Status::Mistake, |()| Status::Done))
}

/// Processes of this program that compile; none if its own path is unknown.
pub fn compilers() -> Option<Arc<Compilers>> {
    let own = std::env::current_exe().ok()?;
    Some(Arc::new(Compilers::new(own, &["nvrtc"])))
}
