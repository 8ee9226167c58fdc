//! Views of the caller's arrays, without copies.
//!
//! A [`View`] is read, a [`ViewMut`] is written. Both come from slices, from a [`HostArray`], or,
//! with the feature `ndarray`, from arrays of that crate in any layout. An array that is not dense
//! and row-major is packed into memory of the run; an output of that kind is scattered back
//! afterwards.

use std::marker::PhantomData;
use std::ptr::NonNull;

use half::{bf16, f16};
use systola_ir::Scalar;

use crate::error::Error;
use crate::host_array::HostArray;
use crate::layout::{Layout, Placed, element_count};
use crate::literal::size;
use crate::raw::Address;

#[cfg(feature = "ndarray")]
mod ndarray;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is an element type.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    const SCALAR: Scalar;
}

macro_rules! elements {
    ($($rust:ty: $scalar:ident,)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const SCALAR: Scalar = Scalar::$scalar;
        }
    )*};
}

elements! {
    bool: Bool,
    i8: I8,
    i16: I16,
    i32: I32,
    i64: I64,
    u8: U8,
    u16: U16,
    u32: U32,
    u64: U64,
    f16: F16,
    bf16: BF16,
    f32: F32,
    f64: F64,
}

/// An array that is read.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub(crate) data: Address,
    pub(crate) ty: Scalar,
    pub(crate) layout: Layout,
    pub(crate) life: PhantomData<&'a [u8]>,
}

/// An array that is written, borrowed exclusively.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) data: Address,
    pub(crate) ty: Scalar,
    pub(crate) layout: Layout,
    pub(crate) life: PhantomData<&'a mut [u8]>,
}

impl<'a> View<'a> {
    /// A slice as an array of this shape, row by row.
    pub fn new<T: Element>(data: &'a [T], shape: &[usize]) -> Result<View<'a>, Error> {
        Ok(View {
            data: Address::new(NonNull::from(data).cast()),
            ty: T::SCALAR,
            layout: layout_of(data.len(), shape)?,
            life: PhantomData,
        })
    }

    pub fn ty(&self) -> Scalar {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Gives a dense array another shape with as many elements, row by row.
    pub fn set_shape(&mut self, shape: &[usize]) -> Result<(), Error> {
        self.layout = reshaped(&self.layout, shape)?;
        Ok(())
    }

    /// Can it be used where it is?
    pub fn is_dense(&self) -> bool {
        self.layout.is_row_major() && self.data.is_aligned(size(self.ty))
    }

    pub(crate) fn placed(&self) -> Placed<'_> {
        placed(self.data, self.ty, &self.layout)
    }
}

impl<'a> ViewMut<'a> {
    /// A slice as an array of this shape, row by row.
    pub fn new<T: Element>(data: &'a mut [T], shape: &[usize]) -> Result<ViewMut<'a>, Error> {
        let layout = layout_of(data.len(), shape)?;
        Ok(ViewMut {
            data: Address::new(NonNull::from(data).cast()),
            ty: T::SCALAR,
            layout,
            life: PhantomData,
        })
    }

    pub fn ty(&self) -> Scalar {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Can it be used where it is?
    pub fn is_dense(&self) -> bool {
        self.layout.is_row_major() && self.data.is_aligned(size(self.ty))
    }

    /// Gives a dense array another shape with as many elements, row by row.
    pub fn set_shape(&mut self, shape: &[usize]) -> Result<(), Error> {
        self.layout = reshaped(&self.layout, shape)?;
        Ok(())
    }

    /// The same array, to be read for a while.
    pub fn as_view(&self) -> View<'_> {
        View {
            data: self.data,
            ty: self.ty,
            layout: self.layout.clone(),
            life: PhantomData,
        }
    }

    pub(crate) fn placed(&self) -> Placed<'_> {
        placed(self.data, self.ty, &self.layout)
    }
}

fn placed(data: Address, ty: Scalar, layout: &Layout) -> Placed<'_> {
    Placed {
        base: data.number(),
        layout,
        size: size(ty),
    }
}

fn reshaped(layout: &Layout, shape: &[usize]) -> Result<Layout, Error> {
    if layout.is_row_major() {
        return layout_of(layout.len(), shape);
    }
    Err(Error::WrongLength {
        shape: shape.to_vec(),
        expected: element_count(shape).unwrap_or(usize::MAX),
        got: layout.len(),
    })
}

fn layout_of(len: usize, shape: &[usize]) -> Result<Layout, Error> {
    let too_large = || Error::overflow(format!("an array of shape {shape:?}"));
    let expected = element_count(shape).ok_or_else(too_large)?;
    if expected != len {
        return Err(Error::WrongLength {
            shape: shape.to_vec(),
            expected,
            got: len,
        });
    }
    Layout::row_major(shape).ok_or_else(too_large)
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    /// One axis.
    fn from(data: &'a [T]) -> Self {
        View {
            data: Address::new(NonNull::from(data).cast()),
            ty: T::SCALAR,
            layout: Layout {
                shape: vec![data.len()],
                strides: vec![1],
            },
            life: PhantomData,
        }
    }
}

macro_rules! as_slices {
    ($([$($n:tt)*] $array:ty;)*) => {$(
        impl<'a, T: Element, $($n)*> From<&'a $array> for View<'a> {
            /// One axis.
            fn from(data: &'a $array) -> Self {
                data.as_slice().into()
            }
        }

        impl<'a, T: Element, $($n)*> From<&'a mut $array> for ViewMut<'a> {
            /// One axis.
            fn from(data: &'a mut $array) -> Self {
                data.as_mut_slice().into()
            }
        }
    )*};
}

as_slices! {
    [] Vec<T>;
    [const N: usize] [T; N];
}

impl<'a> From<&'a HostArray> for View<'a> {
    fn from(array: &'a HostArray) -> Self {
        array.view()
    }
}

impl<'a> From<&'a mut HostArray> for ViewMut<'a> {
    fn from(array: &'a mut HostArray) -> Self {
        array.view_mut()
    }
}

impl<'a, T: Element> From<&'a mut [T]> for ViewMut<'a> {
    /// One axis.
    fn from(data: &'a mut [T]) -> Self {
        let layout = Layout {
            shape: vec![data.len()],
            strides: vec![1],
        };
        ViewMut {
            data: Address::new(NonNull::from(data).cast()),
            ty: T::SCALAR,
            layout,
            life: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_must_fit_its_slice() {
        let data = [1i32, 2, 3, 4, 5, 6];
        assert_eq!(View::new(&data, &[2, 3]).unwrap().shape(), [2, 3]);
        assert!(matches!(
            View::new(&data, &[2, 2]),
            Err(Error::WrongLength {
                expected: 4,
                got: 6,
                ..
            })
        ));
        assert!(matches!(
            View::new(&data, &[usize::MAX, 2]),
            Err(Error::Overflow { .. })
        ));
        assert!(View::new::<f32>(&[], &[0, 7]).unwrap().is_dense());
    }

    #[test]
    fn vectors_and_arrays_are_slices_and_take_other_shapes() {
        let (list, array) = (vec![1i32; 6], [1i32; 6]);
        assert_eq!(View::from(&list).shape(), View::from(&array).shape());
        let mut list = list;
        let mut view = ViewMut::from(&mut list);
        view.set_shape(&[2, 3]).unwrap();
        assert_eq!((view.shape(), view.is_dense()), (&[2, 3][..], true));
        assert!(view.set_shape(&[4]).is_err());
    }
}
