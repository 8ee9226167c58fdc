//! Memory that starts at a multiple of 64 bytes; large arrays start at different page offsets.

use std::ptr::NonNull;

use crate::error::Error;
use crate::page_offset::PageOffset;
use crate::pages;

/// The unit of allocation: a cache line, and the widest vector.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; Line::BYTES]);

impl Line {
    pub(crate) const BYTES: usize = 64;
    const ZERO: Line = Line([0; Line::BYTES]);
}

/// Bytes on the heap. The result of [`AlignedBytes::for_writing`] is not initialised: only
/// generated code and copies write to it, by address.
pub(crate) struct AlignedBytes {
    /// The vector's length is the initialised part.
    lines: Vec<Line>,
    /// Lines before the first byte.
    skipped: usize,
    bytes: usize,
    _offset: PageOffset,
}

impl AlignedBytes {
    pub(crate) const EMPTY: AlignedBytes = AlignedBytes {
        lines: Vec::new(),
        skipped: 0,
        bytes: 0,
        _offset: PageOffset::NONE,
    };

    /// Bytes that are not initialised. `what` is for the error.
    pub(crate) fn for_writing(bytes: usize, what: &str) -> Result<AlignedBytes, Error> {
        let offset = PageOffset::take(bytes);
        let mut lines = Vec::<Line>::new();
        lines
            .try_reserve_exact(
                bytes
                    .saturating_add(offset.most_skipped())
                    .div_ceil(Line::BYTES),
            )
            .map_err(|_| Error::OutOfMemory {
                what: what.to_string(),
                bytes,
            })?;
        pages::prefer_large(&lines);
        let skipped = offset.skipped(lines.as_ptr() as usize) / Line::BYTES;
        Ok(AlignedBytes {
            lines,
            skipped,
            bytes,
            _offset: offset,
        })
    }

    pub(crate) fn zeroed(bytes: usize, what: &str) -> Result<AlignedBytes, Error> {
        let mut memory = AlignedBytes::for_writing(bytes, what)?;
        let lines = memory.skipped + bytes.div_ceil(Line::BYTES);
        memory.lines.resize(lines, Line::ZERO);
        Ok(memory)
    }

    /// Ensures a capacity of `bytes`; the contents are lost if new memory is allocated.
    pub(crate) fn ensure(&mut self, bytes: usize, what: &str) -> Result<(), Error> {
        if self.lines.capacity() - self.skipped < bytes.div_ceil(Line::BYTES) {
            *self = AlignedBytes::EMPTY;
            *self = AlignedBytes::for_writing(bytes, what)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The number of initialised bytes, from the start.
    pub(crate) fn initialised(&self) -> usize {
        let lines = self.lines.len().saturating_sub(self.skipped);
        self.bytes.min(lines * Line::BYTES)
    }

    // Pointers of the vector, unlike those of its slice, reach all of its capacity. They are never
    // null.
    pub(crate) fn start(&self) -> NonNull<u8> {
        let first = self.lines.as_ptr().wrapping_add(self.skipped).cast_mut();
        NonNull::new(first).map_or(DANGLING, NonNull::cast)
    }

    pub(crate) fn start_mut(&mut self) -> NonNull<u8> {
        let first = self.lines.as_mut_ptr().wrapping_add(self.skipped);
        NonNull::new(first).map_or(DANGLING, NonNull::cast)
    }
}

const DANGLING: NonNull<u8> = NonNull::<Line>::dangling().cast();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_reused() {
        let mut memory = AlignedBytes::for_writing(100, "a test").unwrap();
        assert_eq!(memory.start_mut().as_ptr() as usize % 64, 0);
        assert_eq!((memory.len(), memory.initialised()), (100, 0));
        let before = memory.start_mut();
        memory.ensure(7, "a test").unwrap();
        assert_eq!((memory.start_mut(), memory.len()), (before, 7));
        memory.ensure(1 << 20, "a test").unwrap();
        assert_eq!(memory.start_mut().as_ptr() as usize % 64, 0);
        assert_eq!(AlignedBytes::EMPTY.start().as_ptr() as usize % 64, 0);
        assert_eq!(
            AlignedBytes::zeroed(65, "a test").unwrap().initialised(),
            65
        );
    }

    #[test]
    fn large_arrays_begin_at_different_offsets_and_have_all_their_bytes() {
        let bytes = (1 << 20) + 1;
        let mut arrays: Vec<AlignedBytes> = (0..3)
            .map(|_| AlignedBytes::zeroed(bytes, "a test").unwrap())
            .collect();
        let offset = |a: &AlignedBytes| a.start().as_ptr() as usize % 4096;
        let offsets: Vec<usize> = arrays.iter().map(offset).collect();
        assert!(offsets.iter().any(|p| *p != offsets[0]), "{offsets:?}");
        for array in &mut arrays {
            let whole = crate::raw::bytes_of_mut(array);
            assert_eq!(whole.len(), bytes);
            assert!(whole.iter().all(|b| *b == 0));
            whole.fill(7);
        }
        // Memory that is large enough is not moved.
        let before = arrays[0].start();
        arrays[0].ensure(bytes - 5000, "a test").unwrap();
        arrays[0].ensure(bytes, "a test").unwrap();
        assert_eq!(arrays[0].start(), before);
    }

    #[test]
    fn too_much_is_an_error() {
        let error = AlignedBytes::for_writing(1 << 62, "a test").err().unwrap();
        assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes == 1 << 62));
    }
}
