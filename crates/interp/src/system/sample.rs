//! A sample of the outputs of a system, at sizes where all of them would take too long.
//!
//! Values are computed on demand, as in a whole run, but memoised in tables that grow on demand.
//! Corners of the domain come first, because they show boundary conditions.

use systola_ir::Diagnostic;
use systola_ir::system::System;

use super::output::element;
use super::{Arrays, Machine, Options, prepare};
use crate::code::Env;
use crate::inputs::Inputs;
use crate::params::too_large;
use crate::rounding::split;
use crate::tensor::split_mix;
use crate::value::Value;

/// One element of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub output: String,
    pub index: Vec<i128>,
    pub value: Value,
    /// The error bound of a float, see [`rounding`](crate::rounding).
    pub bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleOptions {
    /// Elements of each output, besides the corners.
    pub count: usize,
    pub seed: u64,
    /// The maximum number of computed values; a sample that needs more is refused as too large.
    pub most_values: u64,
}

/// Evaluates a sample of all outputs. A system with a `scan` has none: each of its values needs all
/// previous ones.
pub fn sample_system(
    system: &System,
    params: &[i128],
    inputs: &Arrays,
    options: &SampleOptions,
) -> Result<Vec<Sample>, Diagnostic> {
    let system = prepare(system, params)?;
    let inputs = Inputs::bind(&system, params, inputs)?;
    let env = Env {
        system: &system,
        params,
    };
    let values = Some(options.most_values);
    let errors = Some(vec![None; system.inputs.len()]);
    let mut machine = Machine::start(env, &inputs, &Options::default(), values, errors)?;
    if machine.equations.len() > system.vars.len() {
        return Err(too_large(system.span, "a `scan` is not sampled"));
    }
    let mut samples = Vec::new();
    let mut state = options.seed;
    for (n, output) in system.outputs.iter().enumerate() {
        for (w, write) in output.writes.iter().enumerate() {
            let domain = machine.write_domain(write)?;
            let index = machine.write_index(write)?;
            let code = machine.writes[n][w].clone();
            let mut points: Vec<Vec<i64>> = corners(system.around_write(write).dims.len())
                .filter_map(|corner| {
                    domain.choose(|d, lo, hi| if corner >> d & 1 == 0 { lo } else { hi })
                })
                .collect();
            points.extend((0..options.count).filter_map(|_| {
                domain.choose(|_, lo, hi| {
                    let extent = hi.abs_diff(lo).saturating_add(1);
                    lo.saturating_add_unsigned(split_mix(&mut state) % extent)
                })
            }));
            points.sort_unstable();
            points.dedup();
            for point in points {
                let (value, bound) = split(&machine.written(n, w, &code, &point)?);
                samples.push(Sample {
                    output: output.name.clone(),
                    index: element(&index, &point, write.span)?,
                    value,
                    bound,
                });
            }
        }
    }
    Ok(samples)
}

/// A bit for each dimension: its least or its greatest coordinate.
fn corners(rank: usize) -> std::ops::Range<u32> {
    0..1 << rank.min(6)
}
