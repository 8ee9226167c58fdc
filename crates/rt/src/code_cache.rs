//! Machine code of devices: found in the cache, or compiled and stored there.

use std::fs;
use std::io;
use std::time::Duration;

use crate::cache::{Cache, CacheOptions};
use crate::compile::{Note, Origin};
use crate::error::Error;

/// The time to wait for another process that compiles the same code.
const PATIENCE: Duration = Duration::from_secs(60);

/// Machine code and its origin.
pub(crate) struct CachedCode {
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: Origin,
    pub(crate) notes: Vec<Note>,
    /// The compiler's log; empty where the code comes from the cache.
    pub(crate) log: String,
}

/// Finds code by its key, or makes it. Code without bytes is not stored.
pub(crate) fn find_or_make(
    options: Option<&CacheOptions>,
    key: impl FnOnce() -> Result<String, Error>,
    make: impl FnOnce() -> Result<(Vec<u8>, String), Error>,
) -> Result<CachedCode, Error> {
    let made = |notes| {
        let (bytes, log) = make()?;
        Ok(CachedCode {
            bytes,
            origin: Origin::Compiler,
            notes,
            log,
        })
    };
    let Some(options) = options else {
        return made(Vec::new());
    };
    let (cache, key) = (Cache::new(options), key()?);
    let find = || {
        Some(CachedCode {
            bytes: cache.find(&key)?.bytes,
            origin: Origin::Cache,
            notes: Vec::new(),
            log: String::new(),
        })
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    let unusable = |error: io::Error| Note::CacheUnusable {
        dir: options.dir.clone(),
        reason: error.to_string(),
    };
    let work = match cache.work_dir() {
        Ok(work) => work,
        Err(error) => return made(vec![unusable(error)]),
    };
    let _lock = cache.lock(&key, PATIENCE);
    if let Some(found) = find() {
        return Ok(found);
    }
    let mut made = made(Vec::new())?;
    if made.bytes.is_empty() {
        return Ok(made);
    }
    let path = work.path().join("kernel.bin");
    let stored = fs::write(&path, &made.bytes).and_then(|()| cache.store(&key, &path));
    if let Err(error) = stored {
        made.notes.push(unusable(error));
    }
    Ok(made)
}
