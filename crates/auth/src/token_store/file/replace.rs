//! Private files, and their atomic replacement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use zeroize::Zeroizing;

/// Reads at most `limit` bytes of a file; `None` if other users have access to it.
pub(super) fn read_private(path: &Path, limit: u64) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if mode(&metadata) & 0o077 != 0 {
        return Ok(None);
    }
    // A buffer that grows would leave copies behind.
    let expected = usize::try_from(metadata.len().min(limit)).unwrap_or_default();
    let mut bytes = Zeroizing::new(Vec::with_capacity(expected.saturating_add(1)));
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file by one of mode 0600: other processes see the old content or the new one. Only one process at a time may
/// do this.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_path(path);
    // A process that was killed while it wrote has left it.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, path)?;
    // The rename survives a power loss where folders can be synced; the file itself is synced already.
    if let Some(folder) = path.parent().filter(|_| cfg!(unix)) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn temporary_path(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Creates a folder that only its owner may enter, unless it exists.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Reports whether other users can replace files in a folder.
pub(super) fn is_writable_by_others(folder: &Path) -> io::Result<bool> {
    // In a folder with the sticky bit, such as `/tmp`, users replace their own files only.
    let mode = mode(&fs::metadata(folder)?);
    Ok(mode & 0o022 != 0 && mode & 0o1000 == 0)
}

/// Returns the permissions of a file. Systems without modes give access by other means.
fn mode(metadata: &fs::Metadata) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}
