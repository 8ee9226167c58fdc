//! A field, the weights of its neighbours, and what sweeps make of it in f64.

use super::super::cuda::arrays::{Array, Values, bits, on_all_threads};
use super::catalogue::Stencil;
use std::sync::Arc;

/// What a stencil works on.
pub struct Field {
    /// Planes, rows, columns; one plane in two dimensions.
    pub shape: [usize; 3],
    rank: usize,
    radius: usize,
    /// Between −1 and 1.
    pub start: Arc<Array>,
    /// Each neighbour and its weight.
    taps: Vec<([isize; 3], f32)>,
}

impl Field {
    pub fn new(stencil: &Stencil, shape: [usize; 3], start: Arc<Array>) -> Field {
        let offsets = stencil.offsets();
        // None is near 0, and all together are 1: what a sweep adds up is a mean, and sweeps neither grow nor vanish.
        let random = |n: usize| 0.1 + (bits(31, n) >> 40) as f64 / f64::from(1 << 24);
        let all: f64 = (0..offsets.len()).map(random).sum();
        let weight = |n: usize| (random(n) / all) as f32;
        let taps = offsets.into_iter().enumerate();
        Field {
            shape,
            rank: stencil.rank,
            radius: stencil.radius as usize,
            start,
            taps: taps.map(|(n, o)| (o, weight(n))).collect(),
        }
    }

    /// The same weights over another field of this shape.
    #[cfg(test)]
    pub fn of(&self, start: Arc<Array>) -> Field {
        Field {
            start,
            taps: self.taps.clone(),
            ..*self
        }
    }

    /// The weights in the shape that the program gives them.
    pub fn weights(&self, shape: &[usize]) -> Arc<Array> {
        let weights = self.taps.iter().map(|(_, weight)| *weight);
        Array::new(shape, Values::F32(weights.collect()))
    }

    pub fn cells(&self) -> usize {
        self.shape.iter().product()
    }

    /// Every cell after one sweep.
    pub fn swept(&self) -> Vec<f64> {
        let [planes, rows, columns] = self.shape;
        let mut after = vec![0.0; self.cells()];
        let radius = self.radius;
        let is_free = |at: usize, n: usize| at >= radius && at + radius < n;
        let mut lines: Vec<&mut [f64]> = after.chunks_mut(columns).collect();
        on_all_threads(&mut lines, |line, out| {
            let (z, y) = (line / rows, line % rows);
            self.start.add_scaled(line * columns, 1.0, out);
            let held = !is_free(y, rows) || (self.rank == 3 && !is_free(z, planes));
            if held || columns <= 2 * radius {
                return;
            }
            let free = &mut out[radius..columns - radius];
            free.fill(0.0);
            for ([dz, dy, dx], weight) in &self.taps {
                let away = (dz * rows as isize + dy) * columns as isize + dx;
                let from = (line * columns + radius) as isize + away;
                self.start
                    .add_scaled(from as usize, f64::from(*weight), free);
            }
        });
        after
    }
}

/// The same numbers in double precision.
pub fn doubled(array: &Array) -> Arc<Array> {
    let mut values = vec![0.0; array.shape.iter().product()];
    on_all_threads(&mut values, |n, value| *value = array.get(n));
    Array::new(&array.shape, Values::F64(values))
}

#[cfg(test)]
mod tests {
    use super::super::super::cuda::arrays::Arrays;
    use super::super::catalogue::STENCILS;
    use super::*;

    #[test]
    fn weights_are_a_mean_and_borders_are_held() {
        for stencil in STENCILS {
            let shape = if stencil.rank == 3 {
                [9, 8, 11]
            } else {
                [1, 15, 17]
            };
            let start = Arrays::default().f32(3, &shape);
            let field = Field::new(stencil, shape, start);
            let all: f32 = field.taps.iter().map(|(_, w)| w).sum();
            assert!((all - 1.0).abs() < 1e-6, "{} {all}", stencil.name);
            let after = field.swept();
            let [_, rows, columns] = shape;
            let at = |z: usize, y: usize, x: usize| (z * rows + y) * columns + x;
            // The middle, cell by cell, and a corner.
            let (z, y, x) = (shape[0] / 2, rows / 2, columns / 2);
            let mut sum = 0.0;
            for ([dz, dy, dx], weight) in &field.taps {
                let near = |at: usize, by: isize| (at as isize + by) as usize;
                let cell = at(near(z, *dz), near(y, *dy), near(x, *dx));
                sum += f64::from(*weight) * field.start.get(cell);
            }
            assert!((after[at(z, y, x)] - sum).abs() < 1e-12, "{}", stencil.name);
            assert_eq!(after[0], field.start.get(0));
        }
    }
}
