//! Results of explorations and choices of models, stored across processes.
//!
//! One file in the cache folder for each, to which every exploration or choice appends one line: a
//! checksum and a record in JSON. Lines are never changed. A line is written by one call, under a
//! lock where the file system has locks; a line torn by a crash or a full disk does not match its
//! checksum, is skipped and counted, and the next record starts on a new line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::{CacheOptions, hash_of};
use crate::error::Error;
use crate::trust;

/// Characters of a checksum.
const SUM: usize = 16;

/// The subject of a record; all fields must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The text of the system, without its name.
    pub system: &'a str,
    pub sizes: &'a [(String, i128)],
    pub target: &'a str,
    /// The identity of the device: its name, its instruction set, its threads.
    pub device: &'a str,
    /// The version of the compiler that made the kernels.
    pub version: &'a str,
}

/// The hash of the text of a system, without its name.
pub fn hash_of_system(text: &str) -> String {
    hash_of(&[text.as_bytes()])
}

impl Key<'_> {
    pub fn hash(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(|(p, v)| format!("{p}={v}")).collect();
        let parts = [
            self.system,
            &sizes.join(","),
            self.target,
            self.device,
            self.version,
        ];
        hash_of(&parts.map(str::as_bytes))
    }
}

/// One exploration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`Key::hash`].
    pub key: String,
    /// For people who read the file.
    pub system: String,
    pub sizes: Vec<(String, i128)>,
    pub target: String,
    pub device: String,
    /// Sizes that are numbers in the kernels; `all` for all.
    pub fix: Vec<String>,
    /// Did the search end by itself or by its budget? Otherwise it was interrupted.
    pub complete: bool,
    /// The number of candidates, and the duration.
    pub candidates: usize,
    pub seconds: f64,
    /// The best first.
    pub designs: Vec<Entry>,
}

/// One design that was measured and verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// In the text language.
    pub mapping: String,
    /// Was the mapping in the file?
    pub given: bool,
    pub taxonomy: String,
    pub choices: Vec<(String, String)>,
    /// Seconds.
    pub predicted: Option<f64>,
    pub limit: Option<String>,
    /// Seconds.
    pub measured: f64,
    pub samples: usize,
    pub registers: Option<u32>,
}

/// The choice of a model where nothing was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// [`Key::hash`].
    pub key: String,
    /// The hash of the system alone, without its name.
    pub about: String,
    /// For people who read the file.
    pub system: String,
    pub sizes: Vec<(String, i128)>,
    pub target: String,
    pub device: String,
    /// Sizes that are numbers in the kernels; `all` for all.
    pub fix: Vec<String>,
    /// In the text language.
    pub mapping: String,
    /// Seconds.
    pub predicted: f64,
    /// The number of candidates it was chosen from.
    pub candidates: usize,
}

/// A record that is stored in a file.
pub trait Stored: Serialize + DeserializeOwned {
    /// The name of its file, which changes when earlier records cannot be read any more.
    const FILE: &'static str;
}

impl Stored for Record {
    const FILE: &'static str = "tuning-1.jsonl";
}

impl Stored for Chosen {
    const FILE: &'static str = "chosen-2.jsonl";
}

/// A file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log<R> {
    path: PathBuf,
    kind: PhantomData<R>,
}

/// The measurements of explorations.
pub type Tuning = Log<Record>;

/// The choices of models.
pub type Choices = Log<Chosen>;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Records<R = Record> {
    /// In the order in which they were written.
    pub records: Vec<R>,
    /// The number of damaged lines.
    pub damaged: usize,
}

impl<R> Default for Records<R> {
    fn default() -> Records<R> {
        Records {
            records: Vec::new(),
            damaged: 0,
        }
    }
}

impl<R: Stored> Log<R> {
    /// A log in the cache folder.
    pub fn new(cache: &CacheOptions) -> Log<R> {
        Log {
            path: cache.dir.join(R::FILE),
            kind: PhantomData,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All readable records. A missing file is an empty one.
    pub fn read(&self) -> Result<Records<R>, Error> {
        self.read_where(|_| true)
    }

    /// The records with a key. Others are not parsed, so that a long file is read fast.
    pub fn read_about(&self, key: &str) -> Result<Records<R>, Error> {
        let beginning = format!("{{\"key\":\"{key}\"");
        self.read_where(|text| text.starts_with(beginning.as_bytes()))
    }

    fn read_where(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<Records<R>, Error> {
        let bytes = match trust::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(self.failed("read", source)),
        };
        let mut found = Records::default();
        let lines = bytes.split(|b| *b == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            match text_of(line) {
                Some(text) if !wanted(text) => {}
                Some(text) => match serde_json::from_slice(text) {
                    Ok(record) => found.records.push(record),
                    Err(_) => found.damaged += 1,
                },
                None => found.damaged += 1,
            }
        }
        Ok(found)
    }

    /// Appends a record; it is on the disk when this returns.
    pub fn add(&self, record: &R) -> Result<(), Error> {
        let add = || -> io::Result<()> {
            if let Some(dir) = self.path.parent() {
                crate::cache::make_dir(dir)?;
            }
            let mut options = File::options();
            let mut file = options
                .read(true)
                .append(true)
                .create(true)
                .open(&self.path)?;
            // Without locks two processes still write whole lines, unless one was torn just before.
            let _ = file.lock();
            let mut line = encode(record)?;
            if !ends_a_line(&mut file)? {
                line.insert(0, b'\n');
            }
            file.write_all(&line)?;
            file.sync_data()
        };
        add().map_err(|source| self.failed("write", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::Io {
            action,
            path: self.path.clone(),
            source,
        }
    }
}

fn encode(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(record).map_err(io::Error::other)?;
    Ok(format!("{} {text}\n", sum_of(text.as_bytes())).into_bytes())
}

/// The record of a line, if its checksum is right.
fn text_of(line: &[u8]) -> Option<&[u8]> {
    let (sum, text) = line.split_at_checked(SUM)?;
    let text = text.strip_prefix(b" ")?;
    (sum == sum_of(text).as_bytes()).then_some(text)
}

fn sum_of(text: &[u8]) -> String {
    hash_of(&[text])[..SUM].to_string()
}

/// Is the file empty, or its last line whole?
fn ends_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    fn record(n: usize) -> Record {
        Record {
            key: format!("{n:064}"),
            system: "conv1d".to_string(),
            sizes: vec![("C".to_string(), 1000), ("Q".to_string(), 5)],
            target: "cpu".to_string(),
            device: "a CPU".to_string(),
            fix: vec!["Q".to_string()],
            complete: true,
            candidates: 7,
            seconds: 1.5,
            designs: vec![Entry {
                mapping: "mapping a of conv1d {\n  lane = c;\n}\n".to_string(),
                given: false,
                taxonomy: "SBM".to_string(),
                choices: vec![("lanes".to_string(), "c".to_string())],
                predicted: Some(1e-4),
                limit: None,
                measured: 0.1 + 0.2,
                samples: 9,
                registers: Some(17),
            }],
        }
    }

    fn fresh() -> (tempfile::TempDir, Tuning) {
        let dir = tempfile::tempdir().unwrap();
        let tuning: Tuning = Log::new(&CacheOptions::new(dir.path().join("deep/inside")));
        (dir, tuning)
    }

    #[test]
    fn what_is_added_is_read() {
        let (_dir, tuning) = fresh();
        assert_eq!(tuning.read().unwrap(), Records::default());
        for n in 0..3 {
            tuning.add(&record(n)).unwrap();
        }
        let found = tuning.read().unwrap();
        assert_eq!(found.records, [record(0), record(1), record(2)]);
        assert_eq!(found.damaged, 0);
        let found = tuning.read_about(&record(1).key).unwrap();
        assert_eq!((found.records, found.damaged), (vec![record(1)], 0));
    }

    #[test]
    fn a_torn_record_hurts_no_other() {
        let (_dir, tuning) = fresh();
        tuning.add(&record(0)).unwrap();
        let first = fs::metadata(tuning.path()).unwrap().len();
        tuning.add(&record(1)).unwrap();
        let whole = fs::read(tuning.path()).unwrap();
        for end in first..whole.len() as u64 {
            fs::write(tuning.path(), &whole[..end as usize]).unwrap();
            let found = tuning.read().unwrap();
            let torn = end > first && end < whole.len() as u64 - 1;
            assert_eq!(found.damaged, usize::from(torn), "cut at {end}");
            tuning.add(&record(2)).unwrap();
            let found = tuning.read().unwrap();
            assert_eq!(found.records.last(), Some(&record(2)), "cut at {end}");
            assert_eq!(found.records[0], record(0));
        }
    }

    #[test]
    fn changed_bytes_are_seen() {
        let (_dir, tuning) = fresh();
        tuning.add(&record(0)).unwrap();
        tuning.add(&record(1)).unwrap();
        let whole = fs::read(tuning.path()).unwrap();
        for at in (0..whole.len() / 2).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(tuning.path(), &bytes).unwrap();
            let found = tuning.read().unwrap();
            assert_eq!(found.records.last(), Some(&record(1)), "at {at}");
            assert!(found.damaged >= 1, "at {at}");
        }
    }

    #[test]
    fn keys_differ_in_every_part() {
        let sizes = |n| vec![("N".to_string(), n)];
        let (one, two) = (sizes(1), sizes(2));
        let key = Key {
            system: "s",
            sizes: &one,
            target: "cpu",
            device: "d",
            version: "1",
        };
        let mut hashes = vec![
            key.hash(),
            Key {
                system: "t",
                ..key.clone()
            }
            .hash(),
            Key {
                sizes: &two,
                ..key.clone()
            }
            .hash(),
            Key {
                target: "cuda",
                ..key.clone()
            }
            .hash(),
            Key {
                device: "e",
                ..key.clone()
            }
            .hash(),
            Key {
                version: "2",
                ..key.clone()
            }
            .hash(),
        ];
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 6);
    }

    /// Not a separate test: the processes below run it.
    #[test]
    fn adds_without_end_if_requested() {
        let Some(dir) = std::env::var_os("SYSTOLA_TEST_TUNING") else {
            return;
        };
        let tuning = Tuning::new(&CacheOptions::new(dir));
        for n in 0.. {
            tuning.add(&record(n)).unwrap();
        }
    }

    #[test]
    fn processes_that_are_killed_leave_it_usable() {
        let dir = tempfile::tempdir().unwrap();
        let tuning = Tuning::new(&CacheOptions::new(dir.path()));
        let start = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "tuning::tests::adds_without_end_if_requested"])
                .env("SYSTOLA_TEST_TUNING", dir.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        for round in 0..3 {
            let mut both = [start(), start()];
            // Until both had time to write.
            let before = tuning.read().unwrap().records.len();
            for _ in 0..500 {
                std::thread::sleep(Duration::from_millis(10));
                if tuning.read().unwrap().records.len() >= before + 20 {
                    break;
                }
            }
            for child in &mut both {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            let found = tuning.read().unwrap();
            assert!(found.records.len() >= before + 20, "round {round}");
            tuning.add(&record(7)).unwrap();
            assert_eq!(tuning.read().unwrap().records.last(), Some(&record(7)));
            assert!(found.damaged <= 2 * (round + 1));
        }
    }
}
