//! A device with the memory and the queues of earlier runs.

use std::sync::{Mutex, PoisonError};

use super::driver::{Driver, Queue};
use super::pool::Pool;
use crate::error::Error;

/// A device that programs run on. All users of one device share its memory pool.
#[derive(Debug)]
pub struct Gpu<D: Driver> {
    pub info: D::Info,
    pub(crate) driver: D,
    pool: Mutex<Pool<D>>,
    queues: Mutex<Vec<D::Queue>>,
}

impl<D: Driver> Gpu<D> {
    pub(crate) fn new(info: D::Info, driver: D) -> Gpu<D> {
        Gpu {
            info,
            driver,
            pool: Mutex::default(),
            queues: Mutex::default(),
        }
    }

    /// Memory of at least `bytes`: from an earlier run, or new.
    pub(crate) fn allocate(&self, bytes: usize, what: &str) -> Result<D::Memory, Error> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = pool.take(bytes) {
            return Ok(memory);
        }
        if let Some(memory) = self.driver.allocate(bytes)? {
            return Ok(memory);
        }
        // The pool may hold the missing memory.
        pool.clear();
        if let Some(memory) = self.driver.allocate(bytes)? {
            return Ok(memory);
        }
        Err(Error::DeviceMemory {
            what: what.to_string(),
            bytes,
            free: self.driver.free_memory(),
        })
    }

    /// Returns unused memory to the pool.
    pub(crate) fn give_back(&self, memory: D::Memory) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.put(memory);
    }

    /// Frees the memory and the queues that are kept for later runs.
    pub fn release_memory(&self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.clear();
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.clear();
    }

    /// Lends an idle queue.
    pub(crate) fn with_queue<T>(
        &self,
        work: impl FnOnce(&D::Queue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let kept = || self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = kept().pop();
        let queue = match spare {
            Some(queue) => queue,
            None => self.driver.queue()?,
        };
        let done = work(&queue);
        // After a failure the queue may still be busy.
        let waited = queue.wait();
        if waited.is_ok() {
            kept().push(queue);
        }
        let done = done?;
        waited?;
        Ok(done)
    }
}
