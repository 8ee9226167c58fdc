//! Reproducible random inputs, made on all threads and cached while they are needed.

use std::cell::RefCell;
use std::sync::Arc;

use systola::View;
use systola_stencil::reference::{Boundary, Grid, Taps, sweep};

use crate::threads::fill;

/// Elements of an input in row-major order.
#[derive(Debug)]
pub struct Array {
    pub shape: Vec<usize>,
    pub values: Values,
}

#[derive(Debug)]
pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U8(Vec<u8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
}

impl Array {
    pub fn new(shape: &[usize], values: Values) -> Arc<Array> {
        let shape = shape.to_vec();
        Arc::new(Array { shape, values })
    }

    pub fn view(&self) -> Result<View<'_>, systola::rt::Error> {
        match &self.values {
            Values::F32(v) => View::new(v, &self.shape),
            Values::F64(v) => View::new(v, &self.shape),
            Values::U8(v) => View::new(v, &self.shape),
            Values::I16(v) => View::new(v, &self.shape),
            Values::I32(v) => View::new(v, &self.shape),
        }
    }

    pub fn get(&self, n: usize) -> f64 {
        match &self.values {
            Values::F32(v) => f64::from(v[n]),
            Values::F64(v) => v[n],
            Values::U8(v) => f64::from(v[n]),
            Values::I16(v) => f64::from(v[n]),
            Values::I32(v) => f64::from(v[n]),
        }
    }

    /// The result of one sweep of a stencil over it, in f64.
    pub fn sweep(&self, shape: &[usize], taps: &Taps, boundary: Boundary) -> Grid {
        match &self.values {
            Values::F32(v) => sweep(v, shape, taps, boundary),
            Values::F64(v) => sweep(v, shape, taps, boundary),
            Values::U8(v) => sweep(v, shape, taps, boundary),
            Values::I16(v) => sweep(v, shape, taps, boundary),
            Values::I32(v) => sweep(v, shape, taps, boundary),
        }
    }

    /// Elements `start..start + out.len()`, times a factor, added to `out`.
    pub fn add_scaled(&self, start: usize, factor: f64, out: &mut [f64]) {
        fn add<T: Copy + Into<f64>>(from: &[T], factor: f64, out: &mut [f64]) {
            for (out, x) in out.iter_mut().zip(from) {
                *out += factor * (*x).into();
            }
        }
        let all = start..start + out.len();
        match &self.values {
            Values::F32(v) => add(&v[all], factor, out),
            Values::F64(v) => add(&v[all], factor, out),
            Values::U8(v) => add(&v[all], factor, out),
            Values::I16(v) => add(&v[all], factor, out),
            Values::I32(v) => add(&v[all], factor, out),
        }
    }
}

/// The type and the number of the random numbers of an array.
type Key = (bool, u64, usize);

/// The large arrays of the last problems: the next one often needs the same.
#[derive(Default)]
pub struct Arrays {
    kept: RefCell<Vec<(Key, Arc<Array>)>>,
}

impl Arrays {
    pub fn f32(&self, seed: u64, shape: &[usize]) -> Arc<Array> {
        self.find(false, seed, shape, |n| Values::F32(floats(seed, n)))
    }

    pub fn f64(&self, seed: u64, shape: &[usize]) -> Arc<Array> {
        self.find(true, seed, shape, |n| Values::F64(doubles(seed, n)))
    }

    fn find(
        &self,
        double: bool,
        seed: u64,
        shape: &[usize],
        make: impl Fn(usize) -> Values,
    ) -> Arc<Array> {
        let n = shape.iter().product();
        let key = (double, seed, n);
        let mut kept = self.kept.borrow_mut();
        let found = kept
            .iter()
            .find(|(k, array)| *k == key && array.shape == shape);
        if let Some((_, array)) = found {
            return Arc::clone(array);
        }
        let array = Array::new(shape, make(n));
        if kept.len() == 4 {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&array)));
        array
    }
}

/// The n-th number of SplitMix64.
pub fn bits(seed: u64, n: usize) -> u64 {
    let state = seed.wrapping_add((n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Between −1 and 1, with 24 bits.
fn floats(seed: u64, n: usize) -> Vec<f32> {
    let step = 1.0 / (1 << 23) as f32;
    let mut values = vec![0.0; n];
    fill(&mut values, |n, value| {
        *value = (bits(seed, n) >> 40) as f32 * step - 1.0;
    });
    values
}

/// Between −1 and 1, with 53 bits.
fn doubles(seed: u64, n: usize) -> Vec<f64> {
    let step = 1.0 / (1u64 << 52) as f64;
    let mut values = vec![0.0; n];
    fill(&mut values, |n, value| {
        *value = (bits(seed, n) >> 11) as f64 * step - 1.0;
    });
    values
}

pub fn letters(seed: u64, n: usize, alphabet: u64) -> Vec<u8> {
    let mut values = vec![0; n];
    fill(&mut values, |n, value| {
        *value = ((bits(seed, n) >> 32) % alphabet) as u8;
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_depend_on_threads() {
        let values = floats(7, 10_001);
        let step = 1.0 / (1 << 23) as f32;
        for (n, value) in values.iter().enumerate() {
            assert_eq!(*value, (bits(7, n) >> 40) as f32 * step - 1.0);
            assert!((-1.0..1.0).contains(value));
        }
        let mean: f32 = values.iter().sum::<f32>() / 10_001.0;
        assert!(mean.abs() < 0.02, "{mean}");
    }

    #[test]
    fn an_array_is_made_once() {
        let arrays = Arrays::default();
        let first = arrays.f32(1, &[3, 4]);
        assert!(Arc::ptr_eq(&first, &arrays.f32(1, &[3, 4])));
        assert!(!Arc::ptr_eq(&first, &arrays.f32(1, &[4, 3])));
        assert!(!Arc::ptr_eq(&first, &arrays.f64(1, &[3, 4])));
    }
}
