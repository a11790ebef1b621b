//! Atomic replacement of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// How many names are tried for a temporary or backup file.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// Replaces a file atomically: other programs see the old content or the new one. It keeps the mode, and the owner if
/// the process may set it; a new file is writable by its owner alone, and readable by all unless it is private.
///
/// `is_wanted` runs after the temporary file is written and before the rename; if it returns false, nothing is
/// replaced. Returns its result.
pub(super) fn replace(
    path: &Path,
    contents: &str,
    is_private: bool,
    is_wanted: impl FnOnce() -> io::Result<bool>,
) -> io::Result<bool> {
    // A symbolic link stays one: its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (temporary, mut file) = create_unique(&target, "tmp", is_private)?;
    let written = (|| {
        if let Ok(metadata) = fs::metadata(&target) {
            copy_ownership(&file, &metadata)?;
        }
        file.write_all(contents.as_bytes())?;
        file.sync_all()?;
        drop(file);
        let is_wanted = is_wanted()?;
        if is_wanted {
            fs::rename(&temporary, &target)?;
        }
        Ok(is_wanted)
    })();
    match written {
        Ok(true) => sync_folder(&target),
        // If the cleanup fails too, the caller still receives the first error.
        Ok(false) | Err(_) => drop(fs::remove_file(&temporary)),
    }
    written
}

/// Replaces the content of a file atomically. A new file is readable and writable by its owner alone.
///
/// # Errors
/// The file cannot be written; the old content is kept.
pub fn replace_file(path: &Path, contents: &str) -> io::Result<()> {
    replace(path, contents, true, || Ok(true)).map(drop)
}

/// Copies a file to an unused name in the same folder, and returns that name.
pub(super) fn back_up(path: &Path, contents: &str) -> io::Result<PathBuf> {
    let target = fs::canonicalize(path)?;
    let (backup, mut file) = create_unique(&target, "bak", true)?;
    copy_ownership(&file, &fs::metadata(&target)?)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()?;
    Ok(backup)
}

/// Returns the names that copies of a file may have, the newest first.
pub(super) fn backup_paths(path: &Path) -> impl Iterator<Item = PathBuf> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    (1..=MAX_NAME_ATTEMPTS).rev().map(move |number| numbered(&target, "bak", number))
}

/// Reports whether only the owner can read a file.
pub(super) fn is_private(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 == 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        true
    }
}

/// Creates a file with an unused name: `NAME.bak`, `NAME.bak2` and so on.
fn create_unique(target: &Path, ending: &str, is_private: bool) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if is_private { 0o600 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = is_private;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 1..=MAX_NAME_ATTEMPTS {
        let path = numbered(target, ending, number);
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Returns the name of a file beside another one.
fn numbered(target: &Path, ending: &str, number: u32) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let number = if number == 1 { String::new() } else { number.to_string() };
    target.with_file_name(format!("{name}.{ending}{number}"))
}

/// Copies the mode and the owner of another file. The file is still empty, so no content was readable before.
fn copy_ownership(file: &File, metadata: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only the superuser can change the owner; for any other user it is the same already.
        let _ = fchown(file, Some(metadata.uid()), Some(metadata.gid()));
    }
    file.set_permissions(metadata.permissions())
}

/// Syncs the folder, so that the rename survives a power loss where possible; the file itself is synced already.
fn sync_folder(target: &Path) {
    if let Some(folder) = target.parent().filter(|_| cfg!(unix)) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_only_if_the_final_check_passes() {
        let folder = std::env::temp_dir().join(format!("trunkline-replace-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let path = folder.join("file");
        fs::write(&path, "theirs").unwrap();
        let beside = || fs::read_dir(&folder).unwrap().count() - 1;
        let refuse = || {
            assert_eq!(beside(), 1, "the new file is written when this is asked");
            Ok(false)
        };
        assert!(!replace(&path, "ours", true, refuse).unwrap());
        assert_eq!((fs::read_to_string(&path).unwrap(), beside()), ("theirs".to_owned(), 0));
        assert!(replace(&path, "ours", true, || Ok(true)).unwrap());
        assert_eq!((fs::read_to_string(&path).unwrap(), beside()), ("ours".to_owned(), 0));
        fs::remove_dir_all(folder).unwrap();
    }
}
