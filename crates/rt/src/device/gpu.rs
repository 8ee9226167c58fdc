//! A device with the memory and the queues that earlier runs left.

use std::sync::{Mutex, PoisonError};

use super::driver::{Driver, Queue};
use super::pool::Pool;
use crate::error::Error;

/// A device that programs run on. All who open one share its memory pool.
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

    /// Memory for so many bytes: one that an earlier run left, or new.
    pub(crate) fn allocate(&self, bytes: usize, what: &str) -> Result<D::Memory, Error> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = pool.take(bytes) {
            return Ok(memory);
        }
        if let Some(memory) = self.driver.allocate(bytes)? {
            return Ok(memory);
        }
        // What lies in the pool may be what is missing.
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

    /// Gives memory back that no work uses any more.
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

    /// Lends a queue on which nothing is under way.
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
        // What failed in the middle may still be running.
        let waited = queue.wait();
        if waited.is_ok() {
            kept().push(queue);
        }
        let done = done?;
        waited?;
        Ok(done)
    }
}
