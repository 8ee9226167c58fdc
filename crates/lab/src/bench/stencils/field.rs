//! A field, the weights of its neighbours, and reference sweeps in f64.

use std::sync::Arc;

use systola_stencil::reference::Boundary;

use super::catalogue::Stencil;
use crate::arrays::{Array, Values, bits};
use crate::threads::fill;

/// The input of a stencil.
pub struct Field {
    /// Planes, rows, columns; one plane in two dimensions.
    pub shape: [usize; 3],
    /// Between −1 and 1.
    pub start: Arc<Array>,
    /// Each neighbour and its weight.
    pub taps: Vec<(Vec<i64>, f64)>,
}

impl Field {
    pub fn new(stencil: &Stencil, shape: [usize; 3], start: Arc<Array>) -> Field {
        let offsets = stencil.offsets();
        // No weight is near 0, and they sum to 1: a sweep computes a mean, so values neither grow
        // nor vanish.
        let random = |n: usize| 0.1 + (bits(31, n) >> 40) as f64 / f64::from(1 << 24);
        let all: f64 = (0..offsets.len()).map(random).sum();
        let weight = |n: usize| f64::from((random(n) / all) as f32);
        let taps = offsets.into_iter().enumerate();
        Field {
            shape,
            start,
            taps: taps.map(|(n, o)| (o.to_vec(), weight(n))).collect(),
        }
    }

    /// The weights in the shape of the program's input.
    pub fn weights(&self, shape: &[usize]) -> Arc<Array> {
        let weights = self.taps.iter().map(|(_, weight)| *weight as f32);
        Array::new(shape, Values::F32(weights.collect()))
    }

    pub fn cells(&self) -> usize {
        self.shape.iter().product()
    }

    /// Every cell after one sweep.
    pub fn swept(&self) -> Vec<f64> {
        let swept = self.start.sweep(&self.shape, &self.taps, Boundary::Fixed);
        swept.data
    }
}

/// The same numbers in double precision.
pub fn doubled(array: &Array) -> Arc<Array> {
    let mut values = vec![0.0; array.shape.iter().product()];
    fill(&mut values, |n, value| *value = array.get(n));
    Array::new(&array.shape, Values::F64(values))
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::STENCILS;
    use super::*;
    use crate::arrays::Arrays;

    #[test]
    fn weights_are_a_mean_and_the_boundary_is_fixed() {
        for stencil in STENCILS {
            let shape = if stencil.rank == 3 {
                [9, 8, 11]
            } else {
                [1, 15, 17]
            };
            let start = Arrays::default().f32(3, &shape);
            let field = Field::new(stencil, shape, start);
            let all: f64 = field.taps.iter().map(|(_, w)| w).sum();
            assert!((all - 1.0).abs() < 1e-6, "{} {all}", stencil.name);
            let after = field.swept();
            let [z, y, x] = shape.map(|n| n / 2);
            let middle = (z * shape[1] + y) * shape[2] + x;
            assert_eq!(after[0], field.start.get(0));
            assert_ne!(after[middle], field.start.get(middle), "{}", stencil.name);
        }
    }
}
