//! Compiled libraries and precompiled headers, kept from one process to the next.
//!
//! An entry is one file, `KEY/SUM.so` (or `.gch`): KEY is the hash of everything the code was made
//! from, SUM the hash of the file's own bytes. A complete file gets its name by a rename and is not
//! changed afterwards; a file damaged by a crash or a bad disk does not match the sum in its name
//! and counts as absent. Processes that store the same entry at once each store a whole file. Using
//! an entry renews its time, and the least recently used entries are evicted when the cache exceeds
//! its limit; a loaded library stays loaded when its file is removed. Files that belong to another
//! user, or that others may write, are never used: see `trust.rs`.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use hmac_sha256::Hash;
use tempfile::TempDir;

use crate::error::Error;
use crate::trust::{self, Folder};

/// The folder of the cache, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    pub dir: PathBuf,
    /// Bytes. The entry in use is kept even if it alone is larger.
    pub limit: u64,
}

impl CacheOptions {
    pub const DEFAULT_MB: u64 = 512;

    pub fn new(dir: impl Into<PathBuf>) -> CacheOptions {
        CacheOptions {
            dir: dir.into(),
            limit: Self::DEFAULT_MB << 20,
        }
    }

    /// `SYSTOLA_CACHE`, else `systola` in `XDG_CACHE_HOME` or in `~/.cache`; `SYSTOLA_CACHE_MB` is
    /// the limit. `None`: the limit is 0, or there is no such folder.
    pub fn from_env() -> Result<Option<CacheOptions>, Error> {
        let path = |name| {
            env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        // A relative path in `XDG_CACHE_HOME` is to be ignored, as its specification says.
        let standard = || path("XDG_CACHE_HOME").filter(|p| p.is_absolute());
        let home = || path("HOME").map(|home| home.join(".cache"));
        let dir = path("SYSTOLA_CACHE").or_else(|| Some(standard().or_else(home)?.join("systola")));
        let megabytes = match env::var("SYSTOLA_CACHE_MB") {
            Ok(text) => text.trim().parse().map_err(|_| Error::BadVariable {
                name: "SYSTOLA_CACHE_MB",
                value: text,
                expected: "a number of megabytes",
            })?,
            Err(_) => Self::DEFAULT_MB,
        };
        Ok(dir.filter(|_| megabytes > 0).map(|dir| CacheOptions {
            dir,
            limit: megabytes.saturating_mul(1 << 20),
        }))
    }
}

/// A hash of several texts; different lists have different hashes even if their concatenations are
/// equal.
pub(crate) fn hash_of(parts: &[&[u8]]) -> String {
    let mut hash = Hash::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The extension of precompiled headers.
const HEADER_EXTENSION: &str = "gch";
const LOCKS: &str = "locks";
const WORK: &str = "work-";
/// A work directory of this age is abandoned.
const STALE: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Cache {
    dir: PathBuf,
    limit: u64,
}

impl Cache {
    pub(crate) fn new(options: &CacheOptions) -> Cache {
        Cache {
            dir: options.dir.clone(),
            limit: options.limit,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The complete file of the key.
    pub(crate) fn find(&self, key: &str) -> Option<Found> {
        Folder::open(&self.dir).ok()?;
        let folder = Folder::open(&self.dir.join(key)).ok()?;
        for path in fs::read_dir(self.dir.join(key))
            .ok()?
            .flatten()
            .map(|e| e.path())
        {
            let (Some(sum), Some(name)) = (sum_in(&path), path.file_name()) else {
                continue;
            };
            let Ok(bytes) = trust::read(&folder.inside(name)) else {
                continue;
            };
            if hash_of(&[&bytes]) == sum {
                // Without write permission its time is not renewed.
                let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                return Some(Found {
                    path,
                    folder,
                    bytes,
                });
            }
            let _ = fs::remove_file(&path);
        }
        None
    }

    /// A directory to build in, on the same file system. It is removed when it is dropped.
    pub(crate) fn work_dir(&self) -> io::Result<TempDir> {
        make_dir(&self.dir)?;
        Folder::open(&self.dir)?;
        tempfile::Builder::new().prefix(WORK).tempdir_in(&self.dir)
    }

    /// Waits for another process that builds the same, at most `patience`. The owner of the lock
    /// should look again before building. Locks only save work: without one, as on some network
    /// file systems, two processes may build, and both results are valid.
    pub(crate) fn lock(&self, key: &str, patience: Duration) -> Option<File> {
        let dir = self.dir.join(LOCKS);
        make_dir(&dir).ok()?;
        // A fixed set of lock files, shared by all keys: removing one that another process waits
        // for would separate the two.
        let file = File::create(dir.join(&key[..2])).ok()?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < patience => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(fs::TryLockError::WouldBlock | fs::TryLockError::Error(_)) => return None,
            }
        }
    }

    /// Moves a finished file in, and evicts entries beyond the limit.
    pub(crate) fn store(&self, key: &str, made: &Path) -> io::Result<Found> {
        let mut file = File::open(made)?;
        // Compilers create it with the permissions of the user's other files.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        file.sync_all()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let sum = hash_of(&[&bytes]);
        let dir = self.dir.join(key);
        let is_header = made.extension() == Some(OsStr::new(HEADER_EXTENSION));
        let path = dir.join(sum).with_extension(match is_header {
            true => HEADER_EXTENSION,
            false => env::consts::DLL_EXTENSION,
        });
        make_dir(&dir)?;
        if let Err(error) = fs::rename(made, &path) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            // Another process removed the directory, which was empty, between the two steps.
            make_dir(&dir)?;
            fs::rename(made, &path)?;
        }
        let folder = Folder::open(&dir)?;
        self.evict(&path);
        Ok(Found {
            path,
            folder,
            bytes,
        })
    }

    /// Removes the least recently used entries until the limit holds. Errors mean that another
    /// process was faster.
    fn evict(&self, keep: &Path) {
        let Ok(listing) = fs::read_dir(&self.dir) else {
            return;
        };
        let mut entries = Vec::new();
        for place in listing.flatten() {
            let path = place.path();
            let name = place.file_name();
            if is_hash(&name) {
                entries.extend(entries_in(&path));
            } else if name.to_string_lossy().starts_with(WORK) && is_stale(&path) {
                let _ = fs::remove_dir_all(&path);
            }
        }
        entries.sort_by_key(|entry| entry.used);
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if total <= self.limit {
                break;
            }
            if entry.path != keep && fs::remove_file(&entry.path).is_ok() {
                total -= entry.bytes;
                // Fails if there is another file for the same key.
                if let Some(dir) = entry.path.parent() {
                    let _ = fs::remove_dir(dir);
                }
            }
        }
    }
}

/// A file of the cache, in a folder that is held open: the loaded file is the hashed one.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    folder: Folder,
    #[cfg_attr(
        not(any(feature = "cuda", feature = "opencl", test)),
        expect(dead_code, reason = "libraries are loaded by their path")
    )]
    pub(crate) bytes: Vec<u8>,
}

impl Found {
    /// The path to load it from. The system identifies libraries by name; the name is the hash of
    /// the contents, so this is correct.
    pub(crate) fn load_path(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        self.folder.inside(name)
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Only files with the names of entries: the user may keep other files in the directory.
fn entries_in(dir: &Path) -> Vec<Entry> {
    let Ok(files) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let entry = |file: fs::DirEntry| {
        let data = file.metadata().ok()?;
        sum_in(&file.path())?;
        Some(Entry {
            path: file.path(),
            bytes: data.len(),
            used: data.modified().ok()?,
        })
    };
    files.flatten().filter_map(entry).collect()
}

fn sum_in(path: &Path) -> Option<String> {
    let stem = path.file_stem()?;
    let extensions = [env::consts::DLL_EXTENSION, HEADER_EXTENSION];
    let is_entry = extensions
        .iter()
        .any(|e| path.extension() == Some(OsStr::new(e)));
    (is_entry && is_hash(stem)).then(|| stem.to_string_lossy().into_owned())
}

fn is_hash(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_stale(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|data| data.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE))
}

/// Code in this directory runs with the user's rights, so nobody else may write to it.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        root: TempDir,
        cache: Cache,
    }

    fn fixture(limit: u64) -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache {
            dir: root.path().join("a/b"),
            limit,
        };
        Fixture { root, cache }
    }

    fn store(cache: &Cache, key: &str, contents: &[u8]) -> PathBuf {
        let work = cache.work_dir().unwrap();
        let built = work.path().join("built");
        fs::write(&built, contents).unwrap();
        cache.store(key, &built).unwrap().path
    }

    fn age(path: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }

    fn key(n: u8) -> String {
        hash_of(&[&[n]])
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(hash_of(&[b"ab", b"c"]), hash_of(&[b"a", b"bc"]));
        assert_ne!(hash_of(&[b"ab"]), hash_of(&[b"ab", b""]));
        assert_eq!(hash_of(&[b"ab"]).len(), 64);
    }

    #[test]
    fn what_is_stored_is_found() {
        let Fixture { root: _root, cache } = fixture(1 << 20);
        assert!(cache.find(&key(1)).is_none());
        let path = store(&cache, &key(1), b"one");
        assert_eq!(cache.find(&key(1)).unwrap().path, path);
        assert!(cache.find(&key(2)).is_none());
        assert_eq!(store(&cache, &key(1), b"one"), path);
    }

    #[test]
    fn a_torn_file_is_absent_and_goes() {
        let Fixture { root: _root, cache } = fixture(1 << 20);
        let path = store(&cache, &key(1), b"some contents");
        fs::write(&path, b"some con").unwrap();
        assert!(cache.find(&key(1)).is_none());
        assert!(!path.exists());
        assert_eq!(store(&cache, &key(1), b"some contents"), path);
        assert_eq!(cache.find(&key(1)).unwrap().path, path);
    }

    #[cfg(unix)]
    #[test]
    fn what_others_may_write_is_absent_and_stays() {
        use std::os::unix::fs::PermissionsExt;
        let Fixture { root: _root, cache } = fixture(1 << 20);
        let path = store(&cache, &key(1), b"one");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for place in [&path, path.parent().unwrap(), &cache.dir] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
            assert!(cache.find(&key(1)).is_none(), "{}", place.display());
            fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(cache.find(&key(1)).unwrap().bytes, b"one");
        }
        fs::set_permissions(&cache.dir, fs::Permissions::from_mode(0o777)).unwrap();
        let error = cache.work_dir().unwrap_err();
        assert!(error.to_string().contains("others may write"), "{error}");
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let Fixture { root: _root, cache } = fixture(250);
        let paths: Vec<PathBuf> = (0..2).map(|n| store(&cache, &key(n), &[n; 100])).collect();
        age(&paths[0], 2000);
        age(&paths[1], 1000);
        cache.find(&key(0)).unwrap();
        let third = store(&cache, &key(2), &[2; 100]);
        assert!(paths[0].exists() && third.exists());
        assert!(!paths[1].exists() && !paths[1].parent().unwrap().exists());
        let huge = store(&cache, &key(3), &[3; 1000]);
        assert!(huge.exists() && !third.exists());
    }

    #[test]
    fn the_users_files_are_left_alone() {
        let Fixture { root: _root, cache } = fixture(10);
        store(&cache, &key(0), &[0; 100]);
        let own = cache.dir.join("thesis");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("chapter.so"), [0; 5000]).unwrap();
        fs::write(cache.dir.join(key(0)).join("notes"), [0; 5000]).unwrap();
        store(&cache, &key(1), &[1; 100]);
        assert!(own.join("chapter.so").exists());
        assert!(cache.dir.join(key(0)).join("notes").exists());
        assert!(cache.find(&key(0)).is_none());
    }

    #[test]
    fn what_a_crash_left_behind_is_swept() {
        let Fixture { root: _root, cache } = fixture(1 << 20);
        let left = cache.work_dir().unwrap().keep();
        store(&cache, &key(0), b"zero");
        assert!(left.exists());
        let old = SystemTime::now() - 2 * STALE;
        File::open(&left).unwrap().set_modified(old).unwrap();
        store(&cache, &key(1), b"one");
        assert!(!left.exists());
    }

    #[test]
    fn a_lock_is_waited_for_only_so_long() {
        let Fixture { root: _root, cache } = fixture(1 << 20);
        let held = cache.lock(&key(1), Duration::ZERO);
        assert!(held.is_some());
        assert!(cache.lock(&key(1), Duration::from_millis(20)).is_none());
        drop(held);
        assert!(cache.lock(&key(1), Duration::ZERO).is_some());
    }
}
