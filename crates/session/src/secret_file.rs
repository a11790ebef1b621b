//! The check that a file with a secret is private.

use std::fmt;
use std::io;
use std::path::Path;

/// How users other than its owner can get at a secret in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretExposure {
    /// They can read or write the file.
    Mode,
    /// The file belongs to another user, who can change it.
    Owner,
    /// They can replace the file, because they can write to its folder.
    Folder,
}

impl fmt::Display for SecretExposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mode => "can be read by others; make it private with `chmod 600`",
            Self::Owner => "belongs to another user, who can change it; take it over with `chown`",
            Self::Folder => {
                "is in a folder that others can write to; make the folder private with `chmod go-w`"
            }
        })
    }
}

/// Finds how other users can get at a file that holds a secret; `None` if they cannot.
///
/// # Errors
/// The metadata of the file or of its folder cannot be read.
#[cfg(unix)]
pub fn secret_file_exposure(path: &Path) -> io::Result<Option<SecretExposure>> {
    use std::os::unix::fs::MetadataExt as _;
    const STICKY: u32 = 0o1000;
    let file = std::fs::metadata(path)?;
    if file.mode() & 0o077 != 0 {
        return Ok(Some(SecretExposure::Mode));
    }
    let is_trusted = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    if !is_trusted(file.uid()) {
        return Ok(Some(SecretExposure::Owner));
    }
    // The folder of the file itself, where the path is a link.
    let path = path.canonicalize()?;
    let folder = std::fs::metadata(path.parent().unwrap_or(&path))?;
    // In a sticky folder, such as /tmp, only the owner of a file can replace it.
    let is_own_group = folder.gid() == rustix::process::getegid().as_raw();
    let foreign_bits = if is_own_group { 0o002 } else { 0o022 };
    let is_open = folder.mode() & foreign_bits != 0 && folder.mode() & STICKY == 0;
    Ok((is_open || !is_trusted(folder.uid())).then_some(SecretExposure::Folder))
}

/// Reports that a file is private: on this platform it has no mode bits to check.
#[cfg(not(unix))]
pub fn secret_file_exposure(_path: &Path) -> io::Result<Option<SecretExposure>> {
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
    }

    #[test]
    fn secret_file_is_exposed_by_its_mode_its_owner_and_its_folder() {
        let folder = std::env::temp_dir().join(format!("trunkline-secret-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("secret");
        std::fs::write(&path, "secret").unwrap();
        for (folder_mode, mode, exposed) in [
            (0o700, 0o600, None),
            (0o755, 0o400, None),
            (0o700, 0o640, Some(SecretExposure::Mode)),
            (0o700, 0o604, Some(SecretExposure::Mode)),
            (0o700, 0o620, Some(SecretExposure::Mode)),
            (0o777, 0o600, Some(SecretExposure::Folder)),
            (0o770, 0o600, None),
            (0o1777, 0o600, None),
        ] {
            set_mode(&folder, folder_mode);
            set_mode(&path, mode);
            assert_eq!(secret_file_exposure(&path).unwrap(), exposed, "{folder_mode:o} {mode:o}");
        }
        set_mode(&folder, 0o700);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            assert_eq!(secret_file_exposure(&path).unwrap(), Some(SecretExposure::Owner));
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(secret_file_exposure(&path).is_err(), "a file that is not there");
    }
}
