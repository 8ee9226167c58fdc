//! Arrays, sizes and random numbers for the references.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// A dense array in row-major order, indexed by `a[[i, j]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {
    pub shape: Vec<usize>,
    pub data: Vec<T>,
}

impl<T: Clone> Tensor<T> {
    pub fn filled<const N: usize>(shape: [usize; N], value: T) -> Self {
        Tensor {
            shape: shape.to_vec(),
            data: vec![value; shape.iter().product()],
        }
    }

    /// The array whose element at each index is f(index).
    pub fn from_fn<const N: usize>(shape: [usize; N], mut f: impl FnMut([usize; N]) -> T) -> Self {
        let mut data = Vec::with_capacity(shape.iter().product());
        for flat in 0..shape.iter().product() {
            let mut index = [0; N];
            let mut rest = flat;
            for axis in (0..N).rev() {
                index[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            data.push(f(index));
        }
        Tensor {
            shape: shape.to_vec(),
            data,
        }
    }
}

impl<T> Tensor<T> {
    fn flat<const N: usize>(&self, index: [usize; N]) -> usize {
        assert_eq!(
            N,
            self.shape.len(),
            "{N} indices for shape {:?}",
            self.shape
        );
        index.iter().zip(&self.shape).fold(0, |flat, (i, extent)| {
            assert!(i < extent, "index {index:?} outside {:?}", self.shape);
            flat * extent + i
        })
    }
}

impl<T, const N: usize> Index<[usize; N]> for Tensor<T> {
    type Output = T;

    fn index(&self, index: [usize; N]) -> &T {
        &self.data[self.flat(index)]
    }
}

impl<T, const N: usize> IndexMut<[usize; N]> for Tensor<T> {
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        let flat = self.flat(index);
        &mut self.data[flat]
    }
}

/// An array of any of the language's element types: floats as f64, integers and bools as i64.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    Float(Tensor<f64>),
    Int(Tensor<i64>),
}

impl Array {
    pub fn shape(&self) -> &[usize] {
        match self {
            Array::Float(t) => &t.shape,
            Array::Int(t) => &t.shape,
        }
    }
}

impl From<Tensor<f64>> for Array {
    fn from(t: Tensor<f64>) -> Self {
        Array::Float(t)
    }
}

impl From<Tensor<i64>> for Array {
    fn from(t: Tensor<i64>) -> Self {
        Array::Int(t)
    }
}

/// Arrays by name: the inputs or the outputs of a system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrays(pub BTreeMap<String, Array>);

impl Arrays {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with(mut self, name: &str, array: impl Into<Array>) -> Self {
        self.0.insert(name.to_string(), array.into());
        self
    }

    pub fn floats(&self, name: &str) -> &Tensor<f64> {
        match &self.0[name] {
            Array::Float(t) => t,
            Array::Int(_) => panic!("`{name}` holds integers"),
        }
    }

    pub fn ints(&self, name: &str) -> &Tensor<i64> {
        match &self.0[name] {
            Array::Int(t) => t,
            Array::Float(_) => panic!("`{name}` holds floats"),
        }
    }
}

/// The parameters of a system, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Params(pub BTreeMap<String, i64>);

impl Params {
    /// `let [n, m] = p.get(["N", "M"]);`
    pub fn get<const N: usize>(&self, names: [&str; N]) -> [usize; N] {
        names.map(|name| {
            let value = self
                .0
                .get(name)
                .unwrap_or_else(|| panic!("no parameter {name}"));
            usize::try_from(*value).unwrap_or_else(|_| panic!("{name} = {value}"))
        })
    }
}

/// SplitMix64: the same numbers on every machine.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In lo..hi.
    pub fn int(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo) as u64) as i64
    }

    /// A multiple of 1/64 in -2..2. Products of two and sums of a thousand of them are exact in
    /// f32.
    pub fn float(&mut self) -> f64 {
        self.int(-128, 128) as f64 / 64.0
    }

    pub fn floats<const N: usize>(&mut self, shape: [usize; N]) -> Tensor<f64> {
        Tensor::from_fn(shape, |_| self.float())
    }

    pub fn ints<const N: usize>(&mut self, shape: [usize; N], lo: i64, hi: i64) -> Tensor<i64> {
        Tensor::from_fn(shape, |_| self.int(lo, hi))
    }
}
