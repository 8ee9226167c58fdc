//! The stencils without a GPU: the kernel interpreter runs the code that would be compiled for one.

use std::path::Path;
use std::sync::Arc;

use systola::Fix;
use systola_stencil::reference::{Boundary, Grid};

use super::super::cuda::tests::interpret_in;
use super::catalogue::{STENCILS, Stencil};
use super::field::{Field, doubled};
use super::{Precision, data, of, shape_of_weights};
use crate::arrays::Arrays;
use crate::threads::{available, each};

/// Every mapping of every stencil, one sweep and several.
#[test]
fn every_mapping_is_right() {
    let all: Vec<&'static Stencil> = STENCILS.iter().collect();
    let done = each(&all, available(), |stencil| check(stencil));
    for (stencil, done) in STENCILS.iter().zip(done) {
        assert_eq!(done, Ok(()), "{}", stencil.name);
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
            let expected = Arc::new(after(&field, steps.unwrap_or(1) as usize));
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

fn after(field: &Field, sweeps: usize) -> Vec<f64> {
    let once = Grid {
        shape: field.shape.to_vec(),
        data: field.swept(),
    };
    let all = once.sweeps(&field.taps, Boundary::Fixed, sweeps - 1);
    all.data
}
