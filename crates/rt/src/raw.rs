//! Addresses, and the copies between them.

#![expect(
    unsafe_code,
    reason = "arrays of any layout and element type are reached by address"
)]

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use systola_ir::Scalar;

use crate::aligned::AlignedBytes;
use crate::buffer::{Element, View, ViewMut};
use crate::layout::Layout;
use crate::literal::size;
use crate::pack::{SQUARE, Tile, for_each_tile};
use crate::pool::{Order, Pool};

/// The address of the first element of an array. It owns nothing: whoever dereferences it holds the
/// view or the memory it was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Address(NonNull<u8>);

// SAFETY: an address is a number until it is dereferenced. Views of `T: Element`, which is
// `Send + Sync`, may be read from any thread, and a `ViewMut` is the only one of its array.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    pub(crate) fn new(start: NonNull<u8>) -> Address {
        Address(start)
    }

    /// A null pointer, which only an array without elements may have, becomes a dangling aligned
    /// one.
    pub(crate) fn of<T>(start: *const T) -> Address {
        Address(NonNull::new(start.cast_mut().cast()).unwrap_or(AlignedBytes::EMPTY.start()))
    }

    pub(crate) fn number(self) -> usize {
        self.pointer().as_ptr() as usize
    }

    fn pointer(self) -> NonNull<u8> {
        self.0
    }

    pub(crate) fn is_aligned(self, bytes: usize) -> bool {
        self.number().is_multiple_of(bytes)
    }
}

impl<'a> View<'a> {
    /// An array of any layout, by address; strides count elements.
    ///
    /// # Safety
    ///
    /// Every element that shape and strides reach from `data` is initialised, holds a value of its
    /// type, and is not written while the view lives. Alignment is not needed.
    ///
    /// # Panics
    ///
    /// If shape and strides have different lengths.
    pub unsafe fn from_raw(
        data: *const u8,
        ty: Scalar,
        shape: &[usize],
        strides: &[isize],
    ) -> View<'a> {
        assert_eq!(shape.len(), strides.len(), "one stride for each axis");
        View {
            data: Address::of(data),
            ty,
            layout: Layout {
                shape: shape.to_vec(),
                strides: strides.to_vec(),
            },
            life: PhantomData,
        }
    }
}

impl<'a> ViewMut<'a> {
    /// An array of any layout, by address; strides count elements.
    ///
    /// # Safety
    ///
    /// As for [`View::from_raw`]; moreover no two positions are the same element, and no other code
    /// reads or writes one while the view lives. Other views of one run may overlap it: the run
    /// refuses them.
    ///
    /// # Panics
    ///
    /// If shape and strides have different lengths.
    pub unsafe fn from_raw(
        data: *mut u8,
        ty: Scalar,
        shape: &[usize],
        strides: &[isize],
    ) -> ViewMut<'a> {
        assert_eq!(shape.len(), strides.len(), "one stride for each axis");
        ViewMut {
            data: Address::of(data),
            ty,
            layout: Layout {
                shape: shape.to_vec(),
                strides: strides.to_vec(),
            },
            life: PhantomData,
        }
    }
}

/// Copies an array into memory, row by row.
pub(crate) fn gather(from: &View<'_>, to: &mut AlignedBytes) {
    let dense = dense_in(&from.layout, from.ty, to);
    let target = to.start_mut();
    for_each_tile(
        &from.layout.shape,
        &dense.strides,
        &from.layout.strides,
        // SAFETY: the view's elements are readable, and the memory holds all of its positions.
        // Nothing borrowed can lie in memory that is borrowed mutably here.
        |tile| unsafe { copy(target, from.data.pointer(), size(from.ty), tile) },
    );
}

/// Copies an array back from row-major memory.
pub(crate) fn scatter(from: &AlignedBytes, to: &mut ViewMut<'_>) {
    let dense = dense_in(&to.layout, to.ty, from);
    for_each_tile(
        &to.layout.shape,
        &to.layout.strides,
        &dense.strides,
        // SAFETY: the view's elements are writable by us alone, and the memory was written in full:
        // by `gather` or `fill` before the run, and by the kernels in it.
        |tile| unsafe { copy(to.data.pointer(), from.start(), size(to.ty), tile) },
    );
}

fn dense_in(layout: &Layout, ty: Scalar, memory: &AlignedBytes) -> Layout {
    let dense = Layout::row_major(&layout.shape).expect("shapes were checked against the axes");
    let bytes = layout.len() * size(ty);
    assert!(bytes <= memory.len(), "packed memory is large enough");
    dense
}

/// # Safety
///
/// All positions of the tile are inside readable or writable memory, respectively, and the two do
/// not overlap.
unsafe fn copy(to: NonNull<u8>, from: NonNull<u8>, size: usize, tile: Tile) {
    let dense = tile.to.column_step == 1 && tile.from.column_step == 1;
    // SAFETY: passed on; bytes 1, 2, 4 and 8 have no value that is not a value of the integer.
    unsafe {
        if tile.rows == 1 && dense {
            let to = to.offset(tile.to.start * size as isize);
            let from = from.offset(tile.from.start * size as isize);
            to.copy_from_nonoverlapping(from, tile.columns * size);
            return;
        }
        match size {
            1 => copy_strided::<u8>(to.cast(), from.cast(), tile),
            2 => copy_strided::<u16>(to.cast(), from.cast(), tile),
            4 => copy_strided::<u32>(to.cast(), from.cast(), tile),
            8 => copy_strided::<u64>(to.cast(), from.cast(), tile),
            other => unreachable!("no element has {other} bytes"),
        }
    }
}

/// # Safety
///
/// As for [`copy`].
unsafe fn copy_strided<T: Copy + Default>(to: NonNull<T>, from: NonNull<T>, tile: Tile) {
    // SAFETY: passed on.
    let read = |row, column| unsafe { from.offset(tile.from.at(row, column)).read_unaligned() };
    // SAFETY: passed on.
    let write = |row, column, value| unsafe {
        to.offset(tile.to.at(row, column)).write_unaligned(value);
    };
    if tile.rows == 1 {
        (0..tile.columns).for_each(|column| write(0, column, read(0, column)));
        return;
    }
    let mut square = [[T::default(); SQUARE]; SQUARE];
    for column in 0..tile.columns {
        for (row, to) in square[..tile.rows].iter_mut().enumerate() {
            to[column] = read(row, column);
        }
    }
    for (row, from) in square[..tile.rows].iter().enumerate() {
        for (column, value) in from[..tile.columns].iter().enumerate() {
            write(row, column, *value);
        }
    }
}

/// Fills a dense array with this element.
pub(crate) fn fill(to: &mut ViewMut<'_>, element: [u8; 8], threads: usize) {
    assert!(to.is_dense(), "only dense arrays are filled");
    let n = to.layout.len();
    // SAFETY: the view's elements are dense, aligned and writable by us alone.
    unsafe { fill_shared(to.data, size(to.ty), n, element, threads) }
}

/// Fills the memory with this element.
pub(crate) fn fill_memory(to: &mut AlignedBytes, size: usize, element: [u8; 8], threads: usize) {
    let n = to.len() / size;
    // SAFETY: the memory is large enough and aligned for all element types.
    unsafe { fill_shared(Address::new(to.start_mut()), size, n, element, threads) }
}

/// Large arrays are filled by several threads, which also spreads fresh pages over NUMA nodes.
///
/// # Safety
///
/// There are n writable elements of this size, aligned to it.
unsafe fn fill_shared(to: Address, size: usize, n: usize, element: [u8; 8], threads: usize) {
    /// Elements.
    const PIECE: usize = 1 << 17;
    let pieces = n.div_ceil(PIECE) as i64;
    Pool::global().run(pieces, Order::Chunks, threads, move |_, pieces| {
        let first = pieces.start as usize * PIECE;
        let last = n.min(pieces.end as usize * PIECE);
        // SAFETY: the pool calls only with numbers of pieces, which are inside the array and do not
        // overlap, and returns after the last call.
        unsafe { fill_at(to.pointer().add(first * size), size, last - first, element) }
    });
}

/// # Safety
///
/// There are n writable elements of this size, aligned to it.
unsafe fn fill_at(to: NonNull<u8>, size: usize, n: usize, element: [u8; 8]) {
    let [a, b, c, d, ..] = element;
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => fill_with(to, n, a),
            2 => fill_with(to.cast(), n, u16::from_ne_bytes([a, b])),
            4 => fill_with(to.cast(), n, u32::from_ne_bytes([a, b, c, d])),
            8 => fill_with(to.cast(), n, u64::from_ne_bytes(element)),
            other => unreachable!("no element has {other} bytes"),
        }
    }
}

/// # Safety
///
/// There are n writable elements, aligned.
unsafe fn fill_with<T: Copy>(to: NonNull<T>, n: usize, value: T) {
    for k in 0..n {
        // SAFETY: passed on.
        unsafe { to.add(k).write(value) }
    }
}

/// The initialised bytes.
pub(crate) fn bytes_of(memory: &AlignedBytes) -> &[u8] {
    // SAFETY: this many bytes were initialised, and they are borrowed with the memory.
    unsafe { slice::from_raw_parts(memory.start().as_ptr(), memory.initialised()) }
}

/// The initialised bytes.
pub(crate) fn bytes_of_mut(memory: &mut AlignedBytes) -> &mut [u8] {
    let n = memory.initialised();
    // SAFETY: this many bytes were initialised, and they are borrowed with the memory.
    unsafe { slice::from_raw_parts_mut(memory.start_mut().as_ptr(), n) }
}

#[cfg(any(feature = "cuda", feature = "opencl"))]
/// The bytes of a dense view.
pub(crate) fn bytes_of_view<'a>(view: &'a View<'_>) -> &'a [u8] {
    assert!(view.is_dense(), "only dense arrays are copied whole");
    let bytes = view.layout.len() * size(view.ty);
    // SAFETY: the view's elements are dense and initialised, and no element type has padding.
    unsafe { slice::from_raw_parts(view.data.pointer().as_ptr(), bytes) }
}

#[cfg(any(feature = "cuda", feature = "opencl"))]
/// The bytes of a dense view. Whoever writes to them writes values of its element type.
pub(crate) fn bytes_of_view_mut<'a>(view: &'a mut ViewMut<'_>) -> &'a mut [u8] {
    assert!(view.is_dense(), "only dense arrays are copied whole");
    let bytes = view.layout.len() * size(view.ty);
    // SAFETY: the view's elements are dense, initialised and writable by us alone.
    unsafe { slice::from_raw_parts_mut(view.data.pointer().as_ptr(), bytes) }
}

/// A dense view as a slice, if it has this element type.
pub(crate) fn slice_of<'a, T: Element>(view: &View<'a>) -> Option<&'a [T]> {
    if view.ty != T::SCALAR || !view.is_dense() {
        return None;
    }
    let n = view.layout.len();
    // SAFETY: the view's elements are dense, aligned, of this type and readable as long as it says.
    Some(unsafe { slice::from_raw_parts(view.data.pointer().as_ptr().cast(), n) })
}

/// A dense view as a slice, if it has this element type.
pub(crate) fn slice_of_mut<'a, T: Element>(view: ViewMut<'a>) -> Option<&'a mut [T]> {
    if view.ty != T::SCALAR || !view.is_dense() {
        return None;
    }
    let n = view.layout.len();
    // SAFETY: the view's elements are dense, aligned, of this type and ours as long as it says; the
    // view is used up.
    Some(unsafe { slice::from_raw_parts_mut(view.data.pointer().as_ptr().cast(), n) })
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array3, s};

    use super::*;
    use crate::literal::encode;
    use systola_ir::Literal;

    #[test]
    fn any_layout_goes_there_and_back() {
        let array = Array3::from_shape_fn((5, 6, 7), |(i, j, k)| (100 * i + 10 * j + k) as i16);
        let odd = array.view().permuted_axes([2, 0, 1]);
        let odd = odd.slice(s![..;-2, 1.., ..;3]);
        let mut memory = AlignedBytes::for_writing(odd.len() * 2, "a test").unwrap();
        gather(&View::from(odd), &mut memory);

        let mut back = Array3::from_elem((4, 2, 4), -1i16);
        let mut target = back.view_mut().permuted_axes([0, 2, 1]);
        scatter(&memory, &mut ViewMut::from(target.view_mut()));
        assert_eq!(target, odd);
    }

    #[test]
    fn fills_every_width() {
        let mut bytes = [0u8; 3];
        fill(
            &mut ViewMut::from(&mut bytes[..]),
            encode(Scalar::U8, Literal::Int(7)),
            1,
        );
        assert_eq!(bytes, [7; 3]);
        let mut floats = Array2::<f64>::zeros((3, 3));
        fill(
            &mut ViewMut::from(&mut floats),
            encode(Scalar::F64, Literal::Float(0.5)),
            2,
        );
        assert_eq!(floats, Array2::from_elem((3, 3), 0.5));
        let mut words = [0i32; 5];
        fill(
            &mut ViewMut::from(&mut words[1..4]),
            encode(Scalar::I32, Literal::Int(-2)),
            7,
        );
        assert_eq!(words, [0, -2, -2, -2, 0]);
    }

    #[test]
    fn large_arrays_are_filled_to_the_last_element() {
        for n in [1 << 17, 300_001] {
            let mut halves = vec![0u16; n + 2];
            fill(
                &mut ViewMut::from(&mut halves[1..=n]),
                encode(Scalar::U16, Literal::Int(-1)),
                3,
            );
            assert_eq!((halves[0], halves[n + 1]), (0, 0));
            assert!(halves[1..=n].iter().all(|h| *h == u16::MAX));
        }
    }
}
