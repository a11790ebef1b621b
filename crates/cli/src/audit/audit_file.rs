use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to append to. A new one can be read by its owner only.
///
/// # Errors
/// It cannot be opened, or other users can change what is written to it.
pub(super) fn open_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    check_owned(&file.metadata()?)?;
    Ok(file)
}

/// Checks the file that was opened and not its path, which may lead elsewhere meanwhile.
#[cfg(unix)]
fn check_owned(metadata: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    const ROOT: u32 = 0;
    let kind = metadata.file_type();
    if kind.is_char_device() {
        // It stores nothing, as `/dev/null` and a terminal.
        return Ok(());
    }
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    // Standard output may be a pipe.
    if !kind.is_file() && !kind.is_fifo() {
        return refused("it is not a regular file");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() && metadata.uid() != ROOT {
        return refused("it belongs to another user; take it over with `chown`, or move it away");
    }
    if metadata.mode() & 0o022 != 0 {
        return refused("other users can write to it; make it private with `chmod go-w`");
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn audit_file_of_others_is_refused() {
        let folder = std::env::temp_dir().join(format!("trunkline-audit-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log");
        open_append(&path).unwrap();
        let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for (mode, is_refused) in [(0o640, false), (0o644, false), (0o660, true), (0o602, true)] {
            set_mode(mode);
            let opened = open_append(&path);
            assert_eq!(opened.is_err(), is_refused, "{mode:o}");
            let text = opened.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.contains("chmod go-w"), is_refused, "{text}");
        }
        set_mode(0o600);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            assert!(open_append(&path).unwrap_err().to_string().contains("another user"));
        }
        assert!(open_append(&folder).is_err(), "a folder");
        open_append(Path::new("/dev/null")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
