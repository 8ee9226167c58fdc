//! The stencils without a GPU: the interpreter of kernels runs what would be compiled for one.

use std::path::Path;
use std::sync::Arc;

use systola::Fix;

use super::super::cuda::arrays::{Array, Arrays, Values};
use super::super::cuda::measure::on_threads;
use super::super::cuda::tests::interpret_in;
use super::catalogue::{STENCILS, Stencil};
use super::field::{Field, doubled};
use super::{Precision, compare, data, of, shape_of_weights};

/// Every mapping of every stencil, one sweep and several.
#[test]
fn every_mapping_is_right() {
    let all: Vec<&'static Stencil> = STENCILS.iter().collect();
    let done = on_threads(&all, |stencil| check(stencil));
    for (stencil, done) in STENCILS.iter().zip(done) {
        assert_eq!(done, Some(Ok(())), "{}", stencil.name);
    }
}

fn check(stencil: &'static Stencil) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shape = match stencil.rank {
        3 => [7, 9, 40],
        _ => [1, 23, 70],
    };
    let own = &shape[3 - stencil.rank..];
    let field = Field::new(stencil, shape, Arrays::default().f32(9, own));
    for precision in [Precision::F32, Precision::F64] {
        for steps in [None, Some(6)] {
            let jobs = of(&root, stencil, precision, steps.is_some());
            let jobs = jobs.map_err(|failure| format!("{failure:?}"))?;
            if jobs.is_empty() {
                return Err(format!("{precision:?} {steps:?}: no mapping"));
            }
            let expected = Arc::new(after(&field, steps.unwrap_or(1)));
            for job in jobs {
                let weights = field.weights(&shape_of_weights(&job, stencil));
                let inputs = match precision {
                    Precision::F32 => [Arc::clone(&field.start), weights],
                    Precision::F64 => [doubled(&field.start), doubled(&weights)],
                };
                let data = data(&field, precision, steps, &inputs, Arc::clone(&expected));
                let (fix, trial) = (Fix::Nothing, &data.trials[0]);
                interpret_in(&job.module, &job.mapping, &fix, &data, trial)
                    .map_err(|why| format!("{}: {why}", job.mapping))?;
            }
        }
    }
    Ok(())
}

fn after(field: &Field, sweeps: u32) -> Vec<f64> {
    let mut now = field.swept();
    for _ in 1..sweeps {
        let start = Array::new(&field.start.shape, Values::F64(now));
        now = field.of(start).swept();
    }
    now
}

#[test]
fn a_difference_is_told_with_its_place() {
    let result = systola::rt::HostArray::from_slice(&[0.0f32, 1.0, 2.0, f32::NAN], &[2, 2]);
    let result = result.unwrap();
    let said = compare(&[0.0, 1.0, 2.0, 3.0], &result, 2, 1e-6);
    assert_eq!(
        said.as_deref(),
        Some("element 1 of line 1 is NaN instead of 3")
    );
    assert_eq!(compare(&[0.0, 1.0, 2.0], &result, 2, 1e-6), None);
}
