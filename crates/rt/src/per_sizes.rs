//! A cache of values for the sizes of recent runs.

use std::sync::{Arc, Mutex, PoisonError};

/// The number of sizes that are remembered.
const MOST: usize = 16;

/// Values by sizes, of the most recent runs.
pub(crate) struct PerSizes<T>(Mutex<Vec<(Vec<i128>, Arc<T>)>>);

impl<T> Default for PerSizes<T> {
    fn default() -> Self {
        PerSizes(Mutex::default())
    }
}

impl<T> PerSizes<T> {
    /// The value for these sizes, computed if it is not cached. An error is not cached.
    pub(crate) fn get<E>(
        &self,
        sizes: &[i128],
        compute: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |all: &Vec<(Vec<i128>, Arc<T>)>| {
            let at = all.iter().position(|(own, _)| own == sizes)?;
            Some(Arc::clone(&all[at].1))
        };
        if let Some(value) = found(&known()) {
            return Ok(value);
        }
        let value = Arc::new(compute()?);
        let mut all = known();
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push((sizes.to_vec(), Arc::clone(&value)));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_computed_once_while_it_is_remembered() {
        let known = PerSizes::default();
        let get = |n: i128| *known.get(&[n], || Ok::<_, ()>(n)).unwrap();
        assert_eq!((get(1), get(2), get(1)), (1, 2, 1));
        let again = known.get(&[1], || Err("computed again"));
        assert_eq!(again.as_deref(), Ok(&1));
        for n in 3..40 {
            get(n);
        }
        assert_eq!(
            known.get(&[1], || Err("forgotten")).err(),
            Some("forgotten")
        );
    }
}
