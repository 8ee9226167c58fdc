//! Where in its page an array begins.
//!
//! Before a load a processor looks among the stores that are not done yet for one to the same address, and at first it compares
//! no more than the place in a page. Large arrays all begin at the start of one. A stencil that reads one of them and
//! writes another then has loads that look as if they waited for its last stores, and so they do wait. Therefore each
//! array begins at the place that the fewest others have.

use std::sync::{Mutex, PoisonError};

/// What is compared at first: as many bytes as the smallest page has.
const PAGE: usize = 4096;
/// From one place to the next, in bytes.
const APART: usize = PAGE / PLACES;
const PLACES: usize = 8;
/// The first two are as far from each other as can be, the next two lie between, and so on.
const ORDER: [usize; PLACES] = [0, 4, 2, 6, 1, 5, 3, 7];
/// A smaller array is read from caches near by, and is not to take more room than it has elements.
const LARGE: usize = 16 * PAGE;

/// Arrays that there are now, by place.
static TAKEN: Mutex<[usize; PLACES]> = Mutex::new([0; PLACES]);

/// A place that is taken, until it is dropped.
pub(crate) struct Place(Option<usize>);

impl Place {
    pub(crate) const NONE: Place = Place(None);

    /// For an array of so many bytes.
    pub(crate) fn take(bytes: usize) -> Place {
        if bytes < LARGE {
            return Place::NONE;
        }
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let fewest = ORDER.into_iter().min_by_key(|place| taken[*place]);
        if let Some(place) = fewest {
            taken[place] += 1;
        }
        Place(fewest)
    }

    /// Bytes that may have to be skipped before it.
    pub(crate) fn most_skipped(&self) -> usize {
        self.0.map_or(0, |_| PAGE)
    }

    /// Bytes from an address to the next one at this place.
    pub(crate) fn skipped(&self, address: usize) -> usize {
        self.0
            .map_or(0, |n| (n * APART).wrapping_sub(address) % PAGE)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
            taken[place] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_at_a_time_begin_at_different_places() {
        // Other tests take places too.
        let places: Vec<Place> = (0..PLACES).map(|_| Place::take(LARGE)).collect();
        let mut different: Vec<usize> = places.iter().filter_map(|p| p.0).collect();
        assert_eq!(different.len(), PLACES);
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > PLACES / 2, "{different:?}");
        for place in &places {
            for address in [0, 64, 4032, 0x7f12_3456_7840] {
                let skipped = place.skipped(address);
                assert!(skipped < place.most_skipped());
                assert_eq!(Some((address + skipped) % PAGE / APART), place.0);
                assert_eq!((address + skipped) % APART, 0);
            }
        }
    }

    #[test]
    fn small_arrays_begin_where_they_are() {
        let place = Place::take(LARGE - 1);
        assert_eq!((place.skipped(12 * 64), place.most_skipped()), (0, 0));
    }
}
