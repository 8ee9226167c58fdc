//! Files that a command reads and writes: reads have a limit, and writes are atomic.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use systola_interp::npy::{self, NpyError};
use systola_interp::tensor::Tensor;
use systola_ir::{Diagnostic, Scalar};
use tempfile::NamedTempFile;

use crate::source::Failure;

/// The maximum bytes of a program text.
pub const LONGEST_TEXT: u64 = 64 << 20;

/// Why an array could not be read.
pub enum ReadError {
    Io(Failure),
    Npy(NpyError),
    /// Another format.
    Refused(Diagnostic),
}

impl From<NpyError> for ReadError {
    fn from(error: NpyError) -> Self {
        ReadError::Npy(error)
    }
}

fn cannot(action: &str, path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("cannot {action} {}: {why}", path.display()))
}

/// A text of at most [`LONGEST_TEXT`] bytes.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|e| cannot("read", path, e))?;
    text(path, file)
}

/// The same from the standard input.
pub fn read_standard_input() -> Result<String, Failure> {
    text(Path::new("the standard input"), io::stdin().lock())
}

fn text(path: &Path, reader: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(LONGEST_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| cannot("read", path, e))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let most = LONGEST_TEXT >> 20;
        return Err(cannot("read", path, format!("it has more than {most} MiB"))
            .help("a program is a text; large arrays are given with --in"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        cannot("read", path, format!("line {line} is not UTF-8 text"))
    })
}

/// An array in NumPy's format. Its header gives the length of the file; no more than that is read
/// or allocated.
pub fn read_array(path: &Path, expect: Scalar) -> Result<Tensor, ReadError> {
    let io = |e: io::Error| ReadError::Io(cannot("read", path, e));
    let mut file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    let mut read_to = |bytes: &mut Vec<u8>, length: usize| -> Result<(), ReadError> {
        let more = length.saturating_sub(bytes.len());
        if bytes.try_reserve_exact(more).is_err() {
            let why = format!("there is no memory for its {length} bytes");
            return Err(ReadError::Io(cannot("read", path, why)));
        }
        let part = (&mut file).take(more as u64).read_to_end(bytes);
        part.map(|_| ()).map_err(io)
    };
    read_to(&mut bytes, npy::PREFIX)?;
    let head = npy::head_length(&bytes)?;
    read_to(&mut bytes, head)?;
    let whole = npy::file_length(&bytes)?;
    let found = fs::metadata(path).map_err(io)?;
    if found.is_file() && found.len() != whole as u64 {
        let data = |length: usize| length.saturating_sub(head);
        return Err(ReadError::Npy(NpyError::Data {
            expect: data(whole),
            found: data(usize::try_from(found.len()).unwrap_or(usize::MAX)),
        }));
    }
    read_to(&mut bytes, whole)?;
    Ok(npy::read(&bytes, Some(expect))?)
}

/// The maximum bytes of a picture or a text of numbers.
pub const LONGEST_DATA: u64 = 1 << 30;

/// A file of at most [`LONGEST_DATA`] bytes. One that starts with other bytes than these is not
/// read further.
pub fn read_bytes(path: &Path, starts: &[u8]) -> Result<Vec<u8>, ReadError> {
    let io = |e: io::Error| ReadError::Io(cannot("read", path, e));
    let mut file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    (&mut file)
        .take(starts.len() as u64)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes != starts {
        return Ok(bytes);
    }
    read_rest(file, bytes, LONGEST_DATA).map_err(|why| ReadError::Io(cannot("read", path, why)))
}

/// A file of this length, or one of at most [`LONGEST_DATA`] bytes. Of a longer file one byte more
/// is read.
pub fn read_up_to(path: &Path, length: Option<usize>) -> Result<Vec<u8>, ReadError> {
    let file = File::open(path).map_err(|e| ReadError::Io(cannot("read", path, e)))?;
    let read = match length {
        Some(length) => read_rest(file.take(length as u64 + 1), Vec::new(), u64::MAX),
        None => read_rest(file, Vec::new(), LONGEST_DATA),
    };
    read.map_err(|why| ReadError::Io(cannot("read", path, why)))
}

/// Appends what is left of a file. Memory grows with what was read.
fn read_rest(mut file: impl Read, mut bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, String> {
    const PART: usize = 1 << 20;
    loop {
        if bytes.len() as u64 > most {
            return Err(format!("it has more than {} MiB", most >> 20));
        }
        // Vectors double their memory.
        if bytes.try_reserve(PART).is_err() {
            return Err(format!("there is no memory for its {} bytes", bytes.len()));
        }
        match (&mut file).take(PART as u64).read_to_end(&mut bytes) {
            Ok(0) => return Ok(bytes),
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Writes one file, whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, bytes).map_err(|e| cannot("write", path, e))
}

/// The same, but returns the error of the system.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Staged::new(path, bytes)?.commit()
}

/// Files that appear together: all are written under temporary names before the first is renamed.
#[derive(Default)]
pub struct Outputs {
    staged: Vec<Staged>,
}

impl Outputs {
    /// Writes the bytes beside their destination.
    pub fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let staged = Staged::new(path, bytes).map_err(|e| cannot("write", path, e))?;
        self.staged.push(staged);
        Ok(())
    }

    /// Renames all files to their destinations.
    pub fn commit(self) -> Result<(), Failure> {
        for staged in self.staged {
            let path = staged.path.clone();
            staged.commit().map_err(|e| cannot("write", &path, e))?;
        }
        Ok(())
    }
}

struct Staged {
    path: PathBuf,
    contents: Contents,
}

enum Contents {
    /// Beside its destination.
    File(NamedTempFile),
    /// For destinations that are not plain files, such as pipes: there is nothing to rename.
    Bytes(Vec<u8>),
}

impl Staged {
    fn new(path: &Path, bytes: &[u8]) -> io::Result<Staged> {
        // A symbolic link stays: its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let old = fs::metadata(&path).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let contents = Contents::Bytes(bytes.to_vec());
            return Ok(Staged { path, contents });
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let mut file = beside(folder)?;
        file.write_all(bytes)?;
        if let Some(old) = old {
            // A file without write permission is not replaced either.
            File::options().write(true).open(&path)?;
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        let contents = Contents::File(file);
        Ok(Staged { path, contents })
    }

    fn commit(self) -> io::Result<()> {
        match self.contents {
            Contents::File(file) => file.persist(&self.path).map(|_| ()).map_err(|e| e.error),
            Contents::Bytes(bytes) => File::options()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(&bytes)),
        }
    }
}

/// A new file with the default permissions of the user.
fn beside(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".systola-");
    #[cfg(unix)]
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(rights);
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&one, "old").unwrap();
        let mut outputs = Outputs::default();
        outputs.add(&one, b"new").unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"old");
        assert!(outputs.add(&folder.path().join("none/two"), b"2").is_err());
        drop(outputs);
        assert_eq!(fs::read(&one).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["one"], "nothing is left behind");

        let mut outputs = Outputs::default();
        outputs.add(&one, b"new").unwrap();
        outputs.add(&two, b"2").unwrap();
        outputs.commit().unwrap();
        assert_eq!(names(folder.path()), ["one", "two"]);
        assert_eq!(fs::read(&one).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_rights_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn what_never_ends_is_read_up_to_a_limit() {
        let text = read_text(Path::new("/dev/zero"));
        assert!(text.is_err());
        let array = read_array(Path::new("/dev/zero"), Scalar::F32);
        assert!(matches!(array, Err(ReadError::Npy(NpyError::Magic))));
    }

    #[test]
    fn a_header_that_promises_too_much_is_refused_before_anything_is_allocated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n";
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((head.len() as u16).to_le_bytes());
        bytes.extend(head.as_bytes());
        fs::write(&path, bytes).unwrap();
        let array = read_array(&path, Scalar::F32);
        assert!(matches!(
            array,
            Err(ReadError::Npy(NpyError::Data {
                expect: 4_000_000_000_000,
                found: 0
            }))
        ));
    }
}
