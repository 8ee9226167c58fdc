//! An owned array of any element type.

use systola_ir::Scalar;

use std::marker::PhantomData;

use crate::aligned::AlignedBytes;
use crate::buffer::{Element, View, ViewMut};
use crate::error::Error;
use crate::layout::{Layout, element_count};
use crate::literal::size;
use crate::raw::{Address, bytes_of, bytes_of_mut, slice_of, slice_of_mut};

/// A row-major array whose element type is known at run time only.
pub struct HostArray {
    data: AlignedBytes,
    ty: Scalar,
    layout: Layout,
}

impl HostArray {
    /// Zeros, or `false`.
    pub fn zeros(ty: Scalar, shape: &[usize]) -> Result<HostArray, Error> {
        let what = || format!("an array of shape {shape:?}");
        let n = element_count(shape).ok_or_else(|| Error::overflow(what()))?;
        let layout = Layout::row_major(shape).ok_or_else(|| Error::overflow(what()))?;
        Ok(HostArray {
            data: AlignedBytes::zeroed(n * size(ty), &what())?,
            ty,
            layout,
        })
    }

    pub fn from_slice<T: Element>(data: &[T], shape: &[usize]) -> Result<HostArray, Error> {
        HostArray::from_view(&View::new(data, shape)?)
    }

    /// A dense copy.
    pub fn from_view(view: &View<'_>) -> Result<HostArray, Error> {
        let mut array = HostArray::zeros(view.ty(), view.shape())?;
        crate::raw::gather(view, &mut array.data);
        Ok(array)
    }

    /// An array from the bytes of a file: elements row by row, each in little-endian order.
    pub fn from_le_bytes(ty: Scalar, shape: &[usize], bytes: &[u8]) -> Result<HostArray, Error> {
        let mut array = HostArray::zeros(ty, shape)?;
        if bytes.len() != array.data.len() {
            return Err(Error::WrongLength {
                shape: shape.to_vec(),
                expected: array.data.len() / size(ty),
                got: bytes.len() / size(ty),
            });
        }
        if ty == Scalar::Bool
            && let Some((at, value)) = bytes.iter().enumerate().find(|(_, b)| **b > 1)
        {
            return Err(Error::BadBool { at, value: *value });
        }
        let to = bytes_of_mut(&mut array.data);
        to.copy_from_slice(bytes);
        swap_to_native(to, size(ty));
        Ok(array)
    }

    /// Elements row by row, each in little-endian order.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        let mut bytes = bytes_of(&self.data).to_vec();
        swap_to_native(&mut bytes, size(self.ty));
        bytes
    }

    pub fn ty(&self) -> Scalar {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The elements, if they are of this type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        slice_of(&self.view())
    }

    /// The elements, if they are of this type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        slice_of_mut(self.view_mut())
    }

    /// Copies the elements into an array of the same type and shape.
    pub fn copy_to(&self, to: &mut ViewMut<'_>) -> Result<(), Error> {
        if to.ty() != self.ty {
            return Err(Error::WrongType {
                name: "the target of a copy".to_string(),
                expected: self.ty,
                got: to.ty(),
            });
        }
        if to.shape() != self.shape() {
            return Err(Error::WrongShape {
                name: "the target of a copy".to_string(),
                expected: self.shape().to_vec(),
                got: to.shape().to_vec(),
            });
        }
        crate::raw::scatter(&self.data, to);
        Ok(())
    }

    pub fn view(&self) -> View<'_> {
        View {
            data: Address::new(self.data.start()),
            ty: self.ty,
            layout: self.layout.clone(),
            life: PhantomData,
        }
    }

    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut {
            data: Address::new(self.data.start_mut()),
            ty: self.ty,
            layout: self.layout.clone(),
            life: PhantomData,
        }
    }
}

impl std::fmt::Debug for HostArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostArray({} {:?})", self.ty, self.layout.shape)
    }
}

/// Its own inverse.
fn swap_to_native(bytes: &mut [u8], size: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_there_and_back() {
        let bytes = [1, 0, 0, 0, 0, 1, 0, 0, 255, 255, 255, 255];
        let array = HostArray::from_le_bytes(Scalar::I32, &[3], &bytes).unwrap();
        assert_eq!(array.as_slice::<i32>().unwrap(), [1, 256, -1]);
        assert!(array.as_slice::<f32>().is_none());
        assert_eq!(array.to_le_bytes(), bytes);
    }

    #[test]
    fn bytes_must_fit() {
        let check = |ty, shape: &[usize], bytes: &[u8]| {
            HostArray::from_le_bytes(ty, shape, bytes).unwrap_err()
        };
        assert!(matches!(
            check(Scalar::F64, &[2], &[0; 15]),
            Error::WrongLength {
                expected: 2,
                got: 1,
                ..
            }
        ));
        assert!(matches!(
            check(Scalar::Bool, &[3], &[0, 1, 2]),
            Error::BadBool { at: 2, value: 2 }
        ));
        assert!(matches!(
            check(Scalar::U8, &[1 << 40, 1 << 40], &[]),
            Error::Overflow { .. }
        ));
        assert!(matches!(
            check(Scalar::U8, &[1 << 59], &[]),
            Error::OutOfMemory { .. }
        ));
    }

    #[test]
    fn elements_can_be_changed() {
        let mut array = HostArray::from_slice(&[1.0f32, 2.0], &[2, 1]).unwrap();
        array.as_mut_slice::<f32>().unwrap()[1] = 5.0;
        assert_eq!(array.as_slice::<f32>().unwrap(), [1.0, 5.0]);
        assert_eq!((array.ty(), array.shape()), (Scalar::F32, &[2, 1][..]));
    }
}
