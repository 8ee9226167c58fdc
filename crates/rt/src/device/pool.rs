//! A pool of device memory, kept between runs.

use super::driver::Driver;

/// Unused pieces.
#[derive(Debug)]
pub(crate) struct Pool<D: Driver> {
    spare: Vec<D::Memory>,
}

impl<D: Driver> Default for Pool<D> {
    fn default() -> Self {
        Pool { spare: Vec::new() }
    }
}

/// The maximum number of pieces.
const MOST_PIECES: usize = 64;

impl<D: Driver> Pool<D> {
    /// The smallest piece of at least `bytes`, if it is not much too large.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<D::Memory> {
        let sizes = self.spare.iter().map(D::bytes);
        let at = best(sizes, bytes)?;
        Some(self.spare.swap_remove(at))
    }

    pub(crate) fn put(&mut self, memory: D::Memory) {
        if self.spare.len() >= MOST_PIECES {
            self.spare.remove(0);
        }
        self.spare.push(memory);
    }

    pub(crate) fn clear(&mut self) {
        self.spare.clear();
    }
}

fn best(sizes: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let most = bytes.saturating_mul(2).max(1 << 16);
    sizes
        .enumerate()
        .filter(|(_, size)| *size >= bytes && *size <= most)
        .min_by_key(|(_, size)| *size)
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let sizes = [1 << 20, 300_000, 400_000, 100];
        assert_eq!(best(sizes.into_iter(), 250_000), Some(1));
        assert_eq!(best(sizes.into_iter(), 350_000), Some(2));
        assert_eq!(best(sizes.into_iter(), 80), Some(3));
        assert_eq!(best(sizes.into_iter(), 200_000), Some(1));
        assert_eq!(best(sizes.into_iter(), 2 << 20), None);
        assert_eq!(best(sizes.into_iter(), 120_000), None);
    }
}
