//! Files that are believed: the user's own, which nobody else may write.
//!
//! What lies in the cache is run with the user's rights. A file or folder of another owner, or one that others may write, could hold
//! anything; it counts as absent. Files are looked at through the handle that is then read or loaded, so that nobody can exchange them in between.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a file that is believed.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// All of a file that is believed.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Is the folder believed?
pub(crate) fn check_folder(path: &Path) -> io::Result<()> {
    check(&std::fs::metadata(path)?)
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
        return refused("others may write to it; `chmod go-w` mends that".to_string());
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
        check_folder(folder.path()).unwrap();
        // Only root can give files away.
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(12_345), None).unwrap();
            let error = open(&path).unwrap_err();
            assert!(error.to_string().contains("12345"), "{error}");
        }
    }
}
