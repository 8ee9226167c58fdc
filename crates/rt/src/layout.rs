//! The layout of an array in memory, and overlaps of arrays.

/// Extents and strides, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl Layout {
    /// A row-major layout. `None` if there are more elements than can be addressed.
    pub(crate) fn row_major(shape: &[usize]) -> Option<Layout> {
        if element_count(shape)? == 0 {
            return Some(Layout {
                shape: shape.to_vec(),
                strides: vec![1; shape.len()],
            });
        }
        let mut strides = vec![0; shape.len()];
        let mut stride = 1usize;
        for (to, n) in strides.iter_mut().zip(shape).rev() {
            *to = isize::try_from(stride).ok()?;
            stride = stride.checked_mul(*n)?;
        }
        Some(Layout {
            shape: shape.to_vec(),
            strides,
        })
    }

    /// The number of elements. Shapes that do not fit into memory have been refused before.
    pub(crate) fn len(&self) -> usize {
        element_count(&self.shape).expect("the shape was checked")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Is it dense and row-major? An axis of one element may have any stride.
    pub(crate) fn is_row_major(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut dense = 1isize;
        for (n, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *n > 1 {
                if *stride != dense {
                    return false;
                }
                dense = dense.saturating_mul(*n as isize);
            }
        }
        true
    }
}

/// The product of extents, if a machine can address that many elements of 8 bytes.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1usize, |n, e| n.checked_mul(*e))?;
    count
        .checked_mul(8)
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .map(|_| count)
}

/// An array at an address.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) base: usize,
    pub(crate) layout: &'a Layout,
    /// Bytes of an element.
    pub(crate) size: usize,
}

impl Placed<'_> {
    /// Is there a byte that belongs to an element of both? Exact for arrays whose axes nest, as
    /// those of slices and transposes do; otherwise the answer may be a false yes.
    pub(crate) fn overlaps(&self, other: &Placed<'_>) -> bool {
        if self.layout.is_empty() || other.layout.is_empty() {
            return false;
        }
        let (a, b) = (Runs::of(self), Runs::of(other));
        if a.start >= b.end() || b.start >= a.end() {
            return false;
        }
        if !a.is_nested() || !b.is_nested() {
            return true;
        }
        // Both lists of runs are sorted, so that one merge finds every overlap.
        let (mut a_at, mut b_at) = (Walk::new(&a), Walk::new(&b));
        loop {
            let (a_run, b_run) = (a_at.here, b_at.here);
            let more = if a_run + a.run <= b_run {
                a_at.advance()
            } else if b_run + b.run <= a_run {
                b_at.advance()
            } else {
                return true;
            };
            if !more {
                return false;
            }
        }
    }
}

/// An array as runs of consecutive bytes: at start + Σ kᵢ·strideᵢ with 0 ≤ kᵢ < nᵢ, strides
/// positive and descending.
struct Runs {
    start: i128,
    axes: Vec<(i128, i128)>,
    run: i128,
}

impl Runs {
    fn of(placed: &Placed<'_>) -> Runs {
        let mut start = placed.base as i128;
        let mut axes = Vec::new();
        for (n, stride) in placed.layout.shape.iter().zip(&placed.layout.strides) {
            let (n, stride) = (*n as i128, *stride as i128 * placed.size as i128);
            if n > 1 && stride != 0 {
                start += if stride < 0 { (n - 1) * stride } else { 0 };
                axes.push((n, stride.abs()));
            }
        }
        axes.sort_by_key(|(_, stride)| -stride);
        let mut run = placed.size as i128;
        while let Some((n, _)) = axes.pop_if(|(_, stride)| *stride == run) {
            run *= n;
        }
        Runs { start, axes, run }
    }

    fn end(&self) -> i128 {
        self.start + self.axes.iter().map(|(n, s)| (n - 1) * s).sum::<i128>() + self.run
    }

    /// Is each stride larger than the extent of the inner axes?
    fn is_nested(&self) -> bool {
        let mut inner = self.run;
        self.axes.iter().rev().all(|(n, stride)| {
            let nested = *stride >= inner;
            inner += (n - 1) * stride;
            nested
        })
    }
}

/// The starts of runs, ascending if they nest.
struct Walk<'a> {
    runs: &'a Runs,
    digits: Vec<i128>,
    here: i128,
}

impl Walk<'_> {
    fn new(runs: &Runs) -> Walk<'_> {
        Walk {
            runs,
            digits: vec![0; runs.axes.len()],
            here: runs.start,
        }
    }

    fn advance(&mut self) -> bool {
        for ((n, stride), digit) in self.runs.axes.iter().zip(&mut self.digits).rev() {
            *digit += 1;
            self.here += stride;
            if *digit < *n {
                return true;
            }
            self.here -= n * stride;
            *digit = 0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn layout(shape: &[usize], strides: &[isize]) -> Layout {
        Layout {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        }
    }

    fn overlap(a: (usize, &Layout), b: (usize, &Layout)) -> bool {
        let placed = |(base, layout)| Placed {
            base,
            layout,
            size: 4,
        };
        placed(a).overlaps(&placed(b))
    }

    #[test]
    fn rows_are_recognised() {
        assert_eq!(
            Layout::row_major(&[2, 3, 4]).unwrap(),
            layout(&[2, 3, 4], &[12, 4, 1])
        );
        assert!(layout(&[2, 1, 4], &[4, 77, 1]).is_row_major());
        assert!(layout(&[2, 0], &[5, 5]).is_row_major());
        assert!(layout(&[], &[]).is_row_major());
        let huge = Layout::row_major(&[usize::MAX, usize::MAX, 0]).unwrap();
        assert_eq!((huge.len(), huge.is_row_major()), (0, true));
        assert!(!layout(&[2, 3], &[1, 2]).is_row_major());
        assert!(!layout(&[3], &[-1]).is_row_major());
        assert!(!layout(&[3], &[0]).is_row_major());
    }

    #[test]
    fn counts_are_bounded_by_what_can_be_addressed() {
        assert_eq!(element_count(&[1 << 30, 1 << 20]), Some(1 << 50));
        assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
        assert_eq!(element_count(&[1 << 60]), None);
        assert_eq!(element_count(&[usize::MAX, 0, usize::MAX]), Some(0));
    }

    #[test]
    fn halves_of_a_matrix_do_not_overlap() {
        let half = layout(&[8, 4], &[8, 1]);
        assert!(!overlap((4096, &half), (4096 + 16, &half)));
        assert!(overlap((4096, &half), (4096 + 12, &half)));
        let every_other = layout(&[32], &[2]);
        assert!(!overlap((4096, &every_other), (4100, &every_other)));
        let backwards = layout(&[8], &[-1]);
        assert!(overlap((4096 + 28, &backwards), (4096, &backwards)));
        assert!(!overlap((4096 + 28, &backwards), (4092, &backwards)));
    }

    #[test]
    fn arrays_whose_axes_do_not_nest_err_towards_overlap() {
        let windows = layout(&[4, 3], &[2, 1]);
        assert!(overlap((4096, &windows), (4096 + 32, &layout(&[1], &[1]))));
    }

    fn bytes(base: usize, layout: &Layout, size: usize) -> BTreeSet<i128> {
        let mut starts = vec![base as i128];
        for (n, stride) in layout.shape.iter().zip(&layout.strides) {
            starts = starts
                .iter()
                .flat_map(|s| (0..*n).map(move |k| s + k as i128 * *stride as i128 * size as i128))
                .collect();
        }
        starts
            .iter()
            .flat_map(|s| (0..size as i128).map(move |b| s + b))
            .collect()
    }

    fn nested() -> impl Strategy<Value = Layout> {
        let axis = (0usize..4, 0isize..3, any::<bool>());
        proptest::collection::vec(axis, 0..4).prop_map(|axes| {
            let (mut shape, mut strides, mut span) = (Vec::new(), Vec::new(), 1isize);
            for (n, gap, backwards) in axes {
                let stride = span + gap;
                shape.push(n);
                strides.push(if backwards { -stride } else { stride });
                span += stride * (n as isize - 1).max(0);
            }
            Layout { shape, strides }
        })
    }

    proptest! {
        #[test]
        fn overlap_is_what_the_bytes_say(
            a in nested(), b in nested(), a_base in 1000usize..1060, b_base in 1000usize..1060,
            a_size in 1usize..5, b_size in 1usize..5,
        ) {
            let expect = !bytes(a_base, &a, a_size).is_disjoint(&bytes(b_base, &b, b_size));
            let a = Placed { base: a_base, layout: &a, size: a_size };
            let b = Placed { base: b_base, layout: &b, size: b_size };
            prop_assert_eq!(a.overlaps(&b), expect);
            prop_assert_eq!(b.overlaps(&a), expect);
        }
    }
}
