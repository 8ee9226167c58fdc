//! The offset of an array in its page.
//!
//! A CPU first compares a load with the stores in flight by the low 12 bits of the address (4K
//! aliasing). Large arrays would all begin at the start of a page. A stencil that reads one of them
//! and writes another then has loads that seem to depend on its last stores, and wait for them.
//! Therefore each array begins at the offset that the fewest others have.

use std::sync::{Mutex, PoisonError};

/// The range of the first comparison: the bytes of the smallest page.
const PAGE: usize = 4096;
/// The distance between offsets, in bytes.
const DISTANCE: usize = PAGE / OFFSETS;
const OFFSETS: usize = 8;
/// The first two are as far apart as possible, the next two are halfway between them, and so on.
const ORDER: [usize; OFFSETS] = [0, 4, 2, 6, 1, 5, 3, 7];
/// A smaller array is read from L1 or L2, and should not take more memory than its elements.
const LARGE: usize = 16 * PAGE;

/// The number of live arrays, by offset.
static TAKEN: Mutex<[usize; OFFSETS]> = Mutex::new([0; OFFSETS]);

/// An offset, taken until it is dropped.
pub(crate) struct PageOffset(Option<usize>);

impl PageOffset {
    pub(crate) const NONE: PageOffset = PageOffset(None);

    /// The offset for an array of `bytes`.
    pub(crate) fn take(bytes: usize) -> PageOffset {
        if bytes < LARGE {
            return PageOffset::NONE;
        }
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let fewest = ORDER.into_iter().min_by_key(|offset| taken[*offset]);
        if let Some(offset) = fewest {
            taken[offset] += 1;
        }
        PageOffset(fewest)
    }

    /// The maximum number of bytes to skip before the array.
    pub(crate) fn most_skipped(&self) -> usize {
        self.0.map_or(0, |_| PAGE)
    }

    /// Bytes from an address to the next one at this offset.
    pub(crate) fn skipped(&self, address: usize) -> usize {
        self.0
            .map_or(0, |n| (n * DISTANCE).wrapping_sub(address) % PAGE)
    }
}

impl Drop for PageOffset {
    fn drop(&mut self) {
        if let Some(offset) = self.0 {
            let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
            taken[offset] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_arrays_begin_at_different_offsets() {
        // Other tests take offsets too.
        let offsets: Vec<PageOffset> = (0..OFFSETS).map(|_| PageOffset::take(LARGE)).collect();
        let mut different: Vec<usize> = offsets.iter().filter_map(|p| p.0).collect();
        assert_eq!(different.len(), OFFSETS);
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > OFFSETS / 2, "{different:?}");
        for offset in &offsets {
            for address in [0, 64, 4032, 0x7f12_3456_7840] {
                let skipped = offset.skipped(address);
                assert!(skipped < offset.most_skipped());
                assert_eq!(Some((address + skipped) % PAGE / DISTANCE), offset.0);
                assert_eq!((address + skipped) % DISTANCE, 0);
            }
        }
    }

    #[test]
    fn small_arrays_begin_where_they_are() {
        let offset = PageOffset::take(LARGE - 1);
        assert_eq!((offset.skipped(12 * 64), offset.most_skipped()), (0, 0));
    }
}
