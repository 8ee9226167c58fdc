//! Memory that starts at a multiple of 64 bytes.

use std::ptr::NonNull;

use crate::error::Error;
use crate::pages;

/// The unit of allocation: a cache line, and the widest vector.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; Line::BYTES]);

impl Line {
    pub(crate) const BYTES: usize = 64;
    const ZERO: Line = Line([0; Line::BYTES]);
}

/// Bytes on the heap. What [`AlignedBytes::for_writing`] made is not initialised: only generated code and
/// copies write to it, by address.
pub(crate) struct AlignedBytes {
    /// The vector's length is the initialised part.
    lines: Vec<Line>,
    bytes: usize,
}

impl AlignedBytes {
    pub(crate) const EMPTY: AlignedBytes = AlignedBytes {
        lines: Vec::new(),
        bytes: 0,
    };

    /// Not initialised. `what` is for the error.
    pub(crate) fn for_writing(bytes: usize, what: &str) -> Result<AlignedBytes, Error> {
        let mut lines = Vec::<Line>::new();
        lines
            .try_reserve_exact(bytes.div_ceil(Line::BYTES))
            .map_err(|_| Error::OutOfMemory {
                what: what.to_string(),
                bytes,
            })?;
        pages::prefer_large(&lines);
        Ok(AlignedBytes { lines, bytes })
    }

    pub(crate) fn zeroed(bytes: usize, what: &str) -> Result<AlignedBytes, Error> {
        let mut memory = AlignedBytes::for_writing(bytes, what)?;
        memory.lines.resize(bytes.div_ceil(Line::BYTES), Line::ZERO);
        Ok(memory)
    }

    /// Makes room for so many bytes; what was there is lost if there was not enough.
    pub(crate) fn ensure(&mut self, bytes: usize, what: &str) -> Result<(), Error> {
        if self.lines.capacity() < bytes.div_ceil(Line::BYTES) {
            *self = AlignedBytes::EMPTY;
            *self = AlignedBytes::for_writing(bytes, what)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// How many bytes from the start are initialised.
    pub(crate) fn initialised(&self) -> usize {
        self.bytes.min(self.lines.len() * Line::BYTES)
    }

    // Pointers of the vector, unlike those of its slice, reach all of its capacity. They are never null.
    pub(crate) fn start(&self) -> NonNull<u8> {
        NonNull::new(self.lines.as_ptr().cast_mut()).map_or(DANGLING, NonNull::cast)
    }

    pub(crate) fn start_mut(&mut self) -> NonNull<u8> {
        NonNull::new(self.lines.as_mut_ptr()).map_or(DANGLING, NonNull::cast)
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
    fn too_much_is_an_error() {
        let error = AlignedBytes::for_writing(1 << 62, "a test").err().unwrap();
        assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes == 1 << 62));
    }
}
