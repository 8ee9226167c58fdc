//! Measured numbers of devices, stored across processes.
//!
//! One file for each device, `calibration/KEY`, where KEY is the hash of the device's name: a line
//! with the device, a line for each number, and the hash of all of them. A complete file gets its
//! name by a rename. A damaged one is never used.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cache::{CacheOptions, hash_of, make_dir};
use crate::simd;
use crate::trust;

const FOLDER: &str = "calibration";
const FIRST_LINE: &str = "systola calibration 1";

/// Why a stored file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged: {reason}", path.display())]
pub struct Damaged {
    pub path: PathBuf,
    pub reason: String,
}

/// Numbers by name.
pub type Numbers = Vec<(String, f64)>;

/// The stored numbers of a device; `None` if there are none.
pub fn load(cache: &CacheOptions, device: &str) -> Result<Option<Numbers>, Damaged> {
    let path = file(cache, device);
    let damaged = |reason: String| Damaged {
        path: path.clone(),
        reason,
    };
    let text = match trust::read(&path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| damaged("it is no text".to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(error.to_string())),
    };
    read(&text, device).map(Some).map_err(damaged)
}

/// Stores the numbers of a device, replacing earlier ones. Returns the file.
pub fn store(cache: &CacheOptions, device: &str, numbers: &[(String, f64)]) -> io::Result<PathBuf> {
    let path = file(cache, device);
    let folder = path.parent().unwrap_or(Path::new("."));
    make_dir(folder)?;
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(text(device, numbers).as_bytes())?;
    whole.as_file().sync_all()?;
    whole.persist(&path).map_err(|error| error.error)?;
    Ok(path)
}

/// The name of the CPU of this machine, under which its measurements are stored.
pub fn cpu_name() -> String {
    let listed = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = listed.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    let name = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {threads} threads, {}", simd::detect().name())
}

fn file(cache: &CacheOptions, device: &str) -> PathBuf {
    cache.dir.join(FOLDER).join(hash_of(&[device.as_bytes()]))
}

fn text(device: &str, numbers: &[(String, f64)]) -> String {
    let mut text = format!("{FIRST_LINE}\n{}\n", device.replace('\n', " "));
    for (name, value) in numbers {
        let _ = writeln!(text, "{name} {value:e}");
    }
    let sum = hash_of(&[text.as_bytes()]);
    let _ = writeln!(text, "{sum}");
    text
}

fn read(text: &str, device: &str) -> Result<Numbers, String> {
    let torn = || "it ends too early".to_string();
    let (body, sum) = text
        .strip_suffix('\n')
        .and_then(|text| text.rsplit_once('\n'))
        .ok_or_else(torn)?;
    if hash_of(&[format!("{body}\n").as_bytes()]) != sum {
        return Err("its sum is wrong".to_string());
    }
    let mut lines = body.lines();
    if lines.next() != Some(FIRST_LINE) {
        return Err("it was written by another version".to_string());
    }
    if lines.next() != Some(device) {
        return Err("it is of another device".to_string());
    }
    let number = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    };
    let numbers = lines.map(|line| number(line).ok_or_else(|| format!("`{line}` is no number")));
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Numbers {
        vec![("clock".to_string(), 3.1e9), ("fma".to_string(), 1.96)]
    }

    #[test]
    fn what_is_stored_is_found() {
        let root = tempfile::tempdir().unwrap();
        let cache = CacheOptions::new(root.path().join("a/b"));
        assert_eq!(load(&cache, "some device"), Ok(None));
        store(&cache, "some device", &numbers()).unwrap();
        assert_eq!(load(&cache, "some device"), Ok(Some(numbers())));
        assert_eq!(load(&cache, "another"), Ok(None));
        let other = vec![("clock".to_string(), 2.0e9)];
        let path = store(&cache, "some device", &other).unwrap();
        assert_eq!(load(&cache, "some device"), Ok(Some(other)));
        let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "nothing is left behind");
    }

    #[test]
    fn a_damaged_file_is_told_of() {
        let root = tempfile::tempdir().unwrap();
        let cache = CacheOptions::new(root.path());
        let path = store(&cache, "some device", &numbers()).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(load(&cache, "some device").is_err(), "{length} bytes of it");
        }
        fs::write(&path, whole.replace("3.1e9", "9.1e9")).unwrap();
        let damaged = load(&cache, "some device").unwrap_err();
        assert_eq!(damaged.reason, "its sum is wrong");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(load(&cache, "some device").is_err());
        store(&cache, "some device", &numbers()).unwrap();
        assert_eq!(load(&cache, "some device"), Ok(Some(numbers())));
    }
}
