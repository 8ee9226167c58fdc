//! The GPUs of this machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::{Context, Memory, Stream, device_count, device_info, start};
use super::pool::Pool;
use crate::error::Error;

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub ordinal: usize,
    pub name: String,
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Bytes.
    pub memory: u64,
    /// Major and minor number of the compute capability.
    pub capability: (u32, u32),
    /// Bytes of shared memory that one block can have.
    pub shared_per_block: u64,
    /// The newest CUDA that the driver knows.
    pub driver: (u32, u32),
}

impl DeviceInfo {
    /// As compilers name it: `sm_90`.
    pub fn arch(&self) -> String {
        let (major, minor) = self.capability;
        format!("sm_{major}{minor}")
    }
}

/// Every GPU of this machine, or why there is none.
pub fn devices() -> Result<Vec<DeviceInfo>, Error> {
    let driver = start()?;
    (0..device_count()?)
        .map(|ordinal| device_info(ordinal, driver))
        .collect()
}

/// A GPU that programs run on. All who open one device share its memory pool.
#[derive(Debug)]
pub struct Gpu {
    pub info: DeviceInfo,
    pub(crate) context: Context,
    pub(crate) pool: Mutex<Pool>,
    streams: Mutex<Vec<Stream>>,
}

impl Gpu {
    pub fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
        static OPEN: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let driver = start()?;
        let count = device_count()?;
        let wanted = i32::try_from(ordinal).ok().filter(|n| *n < count);
        let Some(wanted) = wanted else {
            let reason = match count {
                0 => "the driver knows no device".to_string(),
                n => format!("there is no device {ordinal}; there are {n}"),
            };
            return Err(Error::NoDriver { reason });
        };
        let gpu = Arc::new(Gpu {
            info: device_info(wanted, driver)?,
            context: Context::of(wanted)?,
            pool: Mutex::default(),
            streams: Mutex::default(),
        });
        open.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }

    /// Memory for so many bytes: one that an earlier run left, or new.
    pub(crate) fn allocate(&self, bytes: usize, what: &str) -> Result<Memory, Error> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = pool.take(bytes) {
            return Ok(memory);
        }
        if let Some(memory) = Memory::new(self.context, bytes)? {
            return Ok(memory);
        }
        // What lies in the pool may be what is missing.
        pool.clear();
        if let Some(memory) = Memory::new(self.context, bytes)? {
            return Ok(memory);
        }
        Err(Error::DeviceMemory {
            what: what.to_string(),
            bytes,
            free: self.context.free_memory().unwrap_or(0),
        })
    }

    /// Gives memory back that no work uses any more.
    pub(crate) fn give_back(&self, memory: Memory) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.put(memory);
    }

    /// Frees the memory that is kept for later runs.
    pub fn release_memory(&self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.clear();
    }

    /// Lends a stream on which nothing is under way.
    pub(crate) fn with_stream<T>(
        &self,
        work: impl FnOnce(&Stream) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let kept = || self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = kept().pop();
        let stream = match spare {
            Some(stream) => stream,
            None => Stream::new(self.context)?,
        };
        let done = work(&stream);
        // What failed in the middle may still be running.
        let waited = stream.wait();
        if waited.is_ok() {
            kept().push(stream);
        }
        let done = done?;
        waited?;
        Ok(done)
    }
}
