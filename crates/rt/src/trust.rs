//! Trusted files: the user's own files that no one else may write.
//!
//! Files of the cache run with the user's rights. A file or folder of another owner, or one that
//! others may write, could contain anything; it counts as absent. Folders are held open while files
//! in them are read and loaded, so that no one can replace them in between.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Opens a trusted file or folder.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// The contents of a trusted file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A trusted folder, held open.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: File,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder {
            handle: open(path)?,
            path: path.to_path_buf(),
        })
    }

    /// A path into this folder that stays valid if the folder is renamed, for as long as it is
    /// open. Where the system has no paths of descriptors, it is the path that it was opened by.
    pub(crate) fn inside(&self, name: &OsStr) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            let numbered = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
            if Path::new(&numbered).exists() {
                return Path::new(&numbered).join(name);
            }
        }
        self.path.join(name)
    }
}

#[cfg(unix)]
fn check(data: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (owner, user) = (data.uid(), rustix::process::geteuid().as_raw());
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if owner != user {
        return refused(format!("it belongs to user {owner}, this is user {user}"));
    }
    if data.mode() & 0o022 != 0 {
        return refused("others may write to it; `chmod go-w` fixes that".to_string());
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(_: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn only_own_files_that_nobody_else_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "contents").unwrap();
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        for (bits, believed) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            mode(bits);
            assert_eq!(open(&path).is_ok(), believed, "{bits:o}");
        }
        mode(0o600);
        let held = Folder::open(folder.path()).unwrap();
        assert_eq!(
            fs::read(held.inside(OsStr::new("file"))).unwrap(),
            b"contents"
        );
        // It is the same folder under another name.
        let moved = folder.path().with_extension("moved");
        fs::rename(folder.path(), &moved).unwrap();
        let inside = fs::read(held.inside(OsStr::new("file")));
        fs::rename(&moved, folder.path()).unwrap();
        assert_eq!(inside.is_ok(), cfg!(target_os = "linux"));
        // Only root can change the owner of a file.
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(12_345), None).unwrap();
            let error = open(&path).unwrap_err();
            assert!(error.to_string().contains("12345"), "{error}");
        }
    }
}
