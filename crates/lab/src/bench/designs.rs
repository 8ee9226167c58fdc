//! The designs of 1-D convolution compared: the same sums with different variables that stay, move
//! and are broadcast.

use std::path::Path;

use serde::Serialize;

use super::ours::Ours;
use super::pin_cpu::PinnedCpu;
use super::problem::{Scale, Work, conv1d};
use super::tools::Progress;

/// The stride-1 designs of gallery/conv1d/core.ure.
pub const DESIGNS: [&str; 6] = ["sbm", "fbs", "bsm", "fsm", "bfs", "ffs"];

const TAPS: usize = 5;

#[derive(Clone, Debug, Serialize)]
pub struct Design {
    pub mapping: &'static str,
    pub samples: usize,
    pub taps: usize,
    pub threads: usize,
    pub ms: Option<f64>,
    pub refused: Option<String>,
}

/// All with one thread on one CPU, the fastest first. `limits` is `bench/limits.c`, compiled.
pub fn measure(root: &Path, limits: &Path, scale: Scale, progress: &mut Progress) -> Vec<Design> {
    let samples = match scale {
        Scale::Full => 1 << 20,
        Scale::Small => 2000,
    };
    let multiply = Work {
        operations: 1.0,
        bytes: 0.0,
    };
    let pinned = PinnedCpu::take(limits, multiply, scale);
    let mut designs: Vec<Design> = DESIGNS
        .into_iter()
        .map(|mapping| {
            progress.step(&format!("the design {}", mapping.to_uppercase()));
            let problem = conv1d(String::new(), samples, TAPS, mapping);
            let timing = Ours::compile(root, &problem, scale).and_then(|mut ours| {
                pinned.as_ref().map_err(String::clone)?;
                ours.check(1)?;
                ours.time(1, scale, None)
            });
            Design {
                mapping,
                samples,
                taps: TAPS,
                threads: 1,
                ms: timing.as_ref().ok().map(|t| t.median() * 1e3),
                refused: timing.err(),
            }
        })
        .collect();
    let key = |design: &Design| design.ms.unwrap_or(f64::INFINITY);
    designs.sort_by(|a, b| key(a).total_cmp(&key(b)));
    designs
}
