//! Dense arrays of one element type, row-major, whose axes may start anywhere.

use half::{bf16, f16};
use systola_ir::form::Overflow;
use systola_ir::system::Axis;
use systola_ir::{Literal, Scalar};

use crate::value::{Value, literal};

/// Elements in a plain vector of their own type.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Runs the same expression on the vector of whatever type it has.
macro_rules! on_vec {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::Bool($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::U8($v) => $body,
            Data::U16($v) => $body,
            Data::U32($v) => $body,
            Data::U64($v) => $body,
            Data::F16($v) => $body,
            Data::BF16($v) => $body,
            Data::F32($v) => $body,
            Data::F64($v) => $body,
        }
    };
}

macro_rules! conversions {
    ($($variant:ident $t:ty),*) => {
        $(
            impl From<Vec<$t>> for Data {
                fn from(elements: Vec<$t>) -> Self {
                    Data::$variant(elements)
                }
            }
            impl From<$t> for Value {
                fn from(element: $t) -> Self {
                    Value::$variant(element)
                }
            }
        )*

        impl Data {
            pub fn ty(&self) -> Scalar {
                match self {
                    $(Data::$variant(_) => Scalar::$variant,)*
                }
            }

            /// `n` copies of one value.
            pub fn filled(ty: Scalar, n: usize, value: &Value) -> Data {
                match ty {
                    $(Scalar::$variant => {
                        let element = match value {
                            Value::$variant(x) => *x,
                            _ => <$t>::default(),
                        };
                        Data::$variant(vec![element; n])
                    })*
                }
            }

            /// The element at a position in row-major order.
            pub fn get(&self, position: usize) -> Option<Value> {
                match self {
                    $(Data::$variant(v) => v.get(position).map(|x| Value::$variant(*x)),)*
                }
            }

            /// False where the position does not exist or the type is another one.
            pub fn set(&mut self, position: usize, value: &Value) -> bool {
                match (self, value) {
                    $((Data::$variant(v), Value::$variant(x)) => match v.get_mut(position) {
                        Some(element) => {
                            *element = *x;
                            true
                        }
                        None => false,
                    },)*
                    _ => false,
                }
            }
        }
    };
}
conversions! {
    Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
    F16 f16, BF16 bf16, F32 f32, F64 f64
}

impl Data {
    /// Truncates, or appends zeros.
    pub(crate) fn resize(&mut self, n: usize) {
        on_vec!(self, v => v.resize(n, Default::default()));
    }

    pub fn len(&self) -> usize {
        on_vec!(self, v => v.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An array: element `lo` is the first in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The lower bound of each axis.
    pub lo: Vec<i128>,
    /// The number of elements of each axis; their product is `data.len()`.
    pub shape: Vec<usize>,
    pub data: Data,
}

/// Why an array cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    #[error("the shape has {expect} elements, {found} were given")]
    Length { expect: usize, found: usize },
    #[error("the array has more elements than memory can address")]
    TooLarge,
    #[error("there is no memory for its {0} bytes")]
    NoMemory(u64),
}

/// Checks that this many bytes can be allocated. Called before large arrays are made, since a
/// failing allocation aborts the process.
pub fn check_room(bytes: u64) -> Result<(), TensorError> {
    let room =
        usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    room.then_some(()).ok_or(TensorError::NoMemory(bytes))
}

/// The bytes of `n` elements.
pub fn data_bytes(ty: Scalar, n: usize) -> u64 {
    (n as u64).saturating_mul(u64::from(ty.bits().div_ceil(8)))
}

impl From<Overflow> for TensorError {
    fn from(_: Overflow) -> Self {
        TensorError::TooLarge
    }
}

/// The number of elements of a shape.
pub fn n_elements(shape: &[usize]) -> Option<usize> {
    let n = shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s))?;
    // Elements of eight bytes must fit into the address space too.
    (n <= isize::MAX as usize / 8).then_some(n)
}

/// The lower bounds and extents of axes at concrete parameters; a negative extent is none.
pub fn extents(axes: &[Axis], params: &[i128]) -> Result<(Vec<i128>, Vec<usize>), TensorError> {
    let (mut lo, mut shape) = (Vec::new(), Vec::new());
    for axis in axes {
        let (first, end) = (axis.lo.eval(params, &[])?, axis.hi.eval(params, &[])?);
        let extent = end.checked_sub(first).ok_or(TensorError::TooLarge)?.max(0);
        lo.push(first);
        shape.push(usize::try_from(extent).map_err(|_| TensorError::TooLarge)?);
    }
    n_elements(&shape).ok_or(TensorError::TooLarge)?;
    Ok((lo, shape))
}

impl Tensor {
    /// An array whose axes start at zero.
    pub fn new(shape: Vec<usize>, data: impl Into<Data>) -> Result<Tensor, TensorError> {
        let data = data.into();
        let expect = n_elements(&shape).ok_or(TensorError::TooLarge)?;
        let found = data.len();
        if expect != found {
            return Err(TensorError::Length { expect, found });
        }
        let lo = vec![0; shape.len()];
        Ok(Tensor { lo, shape, data })
    }

    /// One axis from zero.
    pub fn vector(data: impl Into<Data>) -> Tensor {
        let data = data.into();
        Tensor {
            lo: vec![0],
            shape: vec![data.len()],
            data,
        }
    }

    /// The array of a declaration at concrete parameters, every element the same.
    pub fn filled(
        ty: Scalar,
        axes: &[Axis],
        params: &[i128],
        value: &Value,
    ) -> Result<Tensor, TensorError> {
        let (lo, shape) = extents(axes, params)?;
        let n = n_elements(&shape).ok_or(TensorError::TooLarge)?;
        check_room(data_bytes(ty, n))?;
        Ok(Tensor {
            lo,
            shape,
            data: Data::filled(ty, n, value),
        })
    }

    /// Like [`Tensor::filled`], all zeros.
    pub fn zeros(ty: Scalar, axes: &[Axis], params: &[i128]) -> Result<Tensor, TensorError> {
        Tensor::filled(ty, axes, params, &Value::zero(ty))
    }

    /// The array of a declaration with reproducible contents: floats in −1..1 (multiples of 2^-8
    /// for the narrow types), integers in −9..=9, or 0..=9 without a sign.
    pub fn random(
        ty: Scalar,
        axes: &[Axis],
        params: &[i128],
        seed: u64,
    ) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(ty, axes, params)?;
        let mut state = seed;
        // There may be many millions of these.
        match &mut tensor.data {
            Data::F32(v) => {
                v.fill_with(|| {
                    ((split_mix(&mut state) >> 40) as f64 / (1 << 23) as f64 - 1.0) as f32
                });
                return Ok(tensor);
            }
            Data::F64(v) => {
                v.fill_with(|| (split_mix(&mut state) >> 11) as f64 / (1u64 << 52) as f64 - 1.0);
                return Ok(tensor);
            }
            Data::Bool(_)
            | Data::I8(_)
            | Data::I16(_)
            | Data::I32(_)
            | Data::I64(_)
            | Data::U8(_)
            | Data::U16(_)
            | Data::U32(_)
            | Data::U64(_)
            | Data::F16(_)
            | Data::BF16(_) => {}
        }
        for position in 0..tensor.data.len() {
            let bits = split_mix(&mut state);
            let value = match ty {
                Scalar::Bool => Literal::Bool(bits >> 63 == 1),
                Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                    Literal::Int(i128::from(bits >> 32) % 19 - 9)
                }
                Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
                    Literal::Int(i128::from(bits >> 32) % 10)
                }
                Scalar::F16 | Scalar::BF16 => Literal::Float((bits >> 56) as f64 / 128.0 - 1.0),
                Scalar::F32 | Scalar::F64 => unreachable!("filled above"),
            };
            tensor.data.set(position, &literal(ty, value));
        }
        Ok(tensor)
    }

    pub fn ty(&self) -> Scalar {
        self.data.ty()
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The same elements, with other lower bounds of the axes.
    #[must_use]
    pub fn starting_at(mut self, lo: Vec<i128>) -> Tensor {
        debug_assert_eq!(lo.len(), self.shape.len());
        self.lo = lo;
        self
    }

    /// The position of an element in row-major order; `None` outside the axes.
    pub fn position(&self, index: &[i128]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        let mut position = 0;
        for ((i, lo), extent) in index.iter().zip(&self.lo).zip(&self.shape) {
            let offset = usize::try_from(i.checked_sub(*lo)?).ok()?;
            if offset >= *extent {
                return None;
            }
            position = position * extent + offset;
        }
        Some(position)
    }

    /// The index of the element at a position.
    pub fn index_of(&self, mut position: usize) -> Vec<i128> {
        let mut index = self.lo.clone();
        for (i, extent) in index.iter_mut().zip(&self.shape).rev() {
            let extent = (*extent).max(1);
            *i += (position % extent) as i128;
            position /= extent;
        }
        index
    }

    pub fn get(&self, index: &[i128]) -> Option<Value> {
        self.data.get(self.position(index)?)
    }

    /// False outside the axes, or for a value of another type.
    pub fn set(&mut self, index: &[i128], value: &Value) -> bool {
        match self.position(index) {
            Some(position) => self.data.set(position, value),
            None => false,
        }
    }

    /// The first element where two arrays differ by more than `tolerance` times the larger of 1 and
    /// both magnitudes. NaN equals NaN; integers and bools must be equal; where axes start does
    /// not matter.
    pub fn first_difference(&self, other: &Tensor, tolerance: f64) -> Option<Difference> {
        if self.shape != other.shape || self.ty() != other.ty() {
            return Some(Difference::Kind);
        }
        (0..self.data.len()).find_map(|position| {
            let (left, right) = (self.data.get(position)?, other.data.get(position)?);
            (!is_close(&left, &right, tolerance)).then(|| Difference::Element {
                index: self.index_of(position),
                left,
                right,
            })
        })
    }
}

/// How two arrays differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// In shape or element type.
    Kind,
    Element {
        index: Vec<i128>,
        left: Value,
        right: Value,
    },
}

/// Are two scalars equal up to `tolerance` · max(1, |a|, |b|)?
pub fn is_close(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => {
            (x.is_nan() && y.is_nan())
                || x == y
                || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0)
        }
        _ => a == b,
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::{Form, ParamId};

    fn axes() -> Vec<Axis> {
        let n = Form::from(ParamId(0));
        vec![
            Axis {
                lo: Form::from(-1),
                hi: n.plus(1),
            },
            Axis {
                lo: Form::from(2),
                hi: n.plus(2),
            },
        ]
    }

    #[test]
    fn axes_start_anywhere() {
        let mut tensor = Tensor::zeros(Scalar::I32, &axes(), &[3]).unwrap();
        assert_eq!(tensor.shape, [5, 3]);
        assert!(tensor.set(&[-1, 2], &Value::I32(7)));
        assert!(tensor.set(&[3, 4], &Value::I32(8)));
        assert!(!tensor.set(&[4, 2], &Value::I32(9)));
        assert!(!tensor.set(&[0, 2], &Value::F32(9.0)));
        assert_eq!(tensor.data.get(0), Some(Value::I32(7)));
        assert_eq!(tensor.data.get(14), Some(Value::I32(8)));
        assert_eq!(tensor.get(&[-2, 2]), None);
        for position in 0..tensor.data.len() {
            assert_eq!(tensor.position(&tensor.index_of(position)), Some(position));
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(
            Tensor::zeros(Scalar::I8, &axes(), &[-5]).unwrap().shape,
            [0, 0]
        );
        let huge = Tensor::zeros(Scalar::I8, &axes(), &[1 << 62]);
        assert_eq!(huge, Err(TensorError::TooLarge));
        let short = Tensor::new(vec![2, 2], vec![1i8, 2, 3]);
        assert_eq!(
            short,
            Err(TensorError::Length {
                expect: 4,
                found: 3
            })
        );
    }

    #[test]
    fn random_contents_are_small_and_reproducible() {
        for ty in Scalar::ALL {
            let fill = |seed| Tensor::random(ty, &axes(), &[20], seed).unwrap();
            assert_eq!(fill(1), fill(1));
            assert_ne!(fill(1), fill(2));
            for position in 0..400 {
                let x = fill(1).data.get(position).unwrap().to_f64().unwrap();
                assert!(if ty.is_float() {
                    (-1.0..1.0).contains(&x)
                } else {
                    x.abs() <= 9.0
                });
            }
        }
    }

    #[test]
    fn comparison_names_the_element() {
        let a = Tensor::vector(vec![1.0f32, f32::NAN, 3.0]);
        let b = Tensor::vector(vec![1.0f32, f32::NAN, 3.001]);
        assert_eq!(a.first_difference(&b, 1e-2), None);
        let expect = Difference::Element {
            index: vec![2],
            left: Value::F32(3.0),
            right: Value::F32(3.001),
        };
        assert_eq!(a.first_difference(&b, 1e-6), Some(expect));
        assert_eq!(
            a.first_difference(&Tensor::vector(vec![1u8]), 0.0),
            Some(Difference::Kind)
        );
    }
}
