//! Views of arrays of the crate `ndarray`, in any layout.

use std::marker::PhantomData;

use ndarray::{ArrayBase, ArrayView, ArrayViewMut, Data, DataMut, Dimension};

use super::{Element, View, ViewMut};
use crate::layout::Layout;
use crate::raw::Address;

impl<'a, T: Element, D: Dimension> From<ArrayView<'a, T, D>> for View<'a> {
    fn from(array: ArrayView<'a, T, D>) -> Self {
        View {
            data: Address::of(array.as_ptr()),
            ty: T::SCALAR,
            layout: Layout {
                shape: array.shape().to_vec(),
                strides: array.strides().to_vec(),
            },
            life: PhantomData,
        }
    }
}

impl<'a, T: Element, D: Dimension> From<ArrayViewMut<'a, T, D>> for ViewMut<'a> {
    fn from(mut array: ArrayViewMut<'a, T, D>) -> Self {
        ViewMut {
            data: Address::of(array.as_mut_ptr()),
            ty: T::SCALAR,
            layout: Layout {
                shape: array.shape().to_vec(),
                strides: array.strides().to_vec(),
            },
            life: PhantomData,
        }
    }
}

impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for View<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        array.view().into()
    }
}

impl<'a, T: Element, S: DataMut<Elem = T>, D: Dimension> From<&'a mut ArrayBase<S, D>>
    for ViewMut<'a>
{
    fn from(array: &'a mut ArrayBase<S, D>) -> Self {
        array.view_mut().into()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, s};
    use systola_ir::Scalar;

    use super::*;

    #[test]
    fn only_dense_views_take_other_shapes() {
        let matrix = Array2::<f64>::zeros((3, 4));
        assert!(View::from(matrix.t()).set_shape(&[12]).is_err());
        assert!(View::from(&matrix).set_shape(&[12]).is_ok());
    }

    #[test]
    fn layouts_are_those_of_the_arrays() {
        let array = Array2::<f64>::zeros((3, 5));
        assert!(View::from(&array).is_dense());
        assert!(!View::from(array.t()).is_dense());
        let backwards = View::from(array.slice(s![.., ..;-1]));
        assert_eq!(backwards.layout.strides, [5, -1]);
        assert_eq!(backwards.ty(), Scalar::F64);
        assert!(!View::from(array.slice(s![.., 1..3])).is_dense());
        assert!(View::from(array.slice(s![1..2, 1..3])).is_dense());
    }
}
