//! `systola nvrtc`: compiles for another process of this program, which asks for it by itself.

use std::sync::Arc;

use systola::rt::cuda::{Compilers, serve};

use crate::source::{Outcome, Status};

/// Compile the CUDA C++ that comes in
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Outcome {
    // Whoever asked sees that it ended, and compiles by itself.
    let served = serve(std::io::stdin().lock(), std::io::stdout().lock());
    Ok(served.map_or(Status::Mistake, |()| Status::Done))
}

/// Processes of this program that compile; none where it does not know where it lies.
pub fn compilers() -> Option<Arc<Compilers>> {
    let own = std::env::current_exe().ok()?;
    Some(Arc::new(Compilers::new(own, &["nvrtc"])))
}
