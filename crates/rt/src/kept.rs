//! Machine code of devices: out of the cache, or made and kept.

use std::fs;
use std::io;
use std::time::Duration;

use crate::cache::{Cache, CacheOptions};
use crate::compile::{Note, Origin};
use crate::error::Error;

/// How long to wait for another process that compiles the same.
const PATIENCE: Duration = Duration::from_secs(60);

/// Machine code, and where it came from.
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: Origin,
    pub(crate) notes: Vec<Note>,
    /// What the compiler said; empty where the code comes from the cache.
    pub(crate) log: String,
}

/// Looks for code under a key, and makes it where it is not there. Code without bytes is not kept.
pub(crate) fn find_or_make(
    options: Option<&CacheOptions>,
    key: impl FnOnce() -> Result<String, Error>,
    make: impl FnOnce() -> Result<(Vec<u8>, String), Error>,
) -> Result<Kept, Error> {
    let made = |notes| {
        let (bytes, log) = make()?;
        Ok(Kept {
            bytes,
            origin: Origin::Compiler,
            notes,
            log,
        })
    };
    let Some(kept) = options else {
        return made(Vec::new());
    };
    let (cache, key) = (Cache::new(kept), key()?);
    let find = || {
        Some(Kept {
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
        dir: kept.dir.clone(),
        reason: error.to_string(),
    };
    let work = match cache.workplace() {
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
