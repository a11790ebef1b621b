use std::io;
use std::path::Path;

/// Reports whether users other than its owner can read a file that holds a secret.
///
/// # Errors
/// The file's metadata cannot be read.
#[cfg(unix)]
pub(crate) fn is_exposed(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Reports that a file is private: on this platform it has no mode bits to check.
#[cfg(not(unix))]
pub(crate) fn is_exposed(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secret_file_is_exposed_with_any_group_or_other_permission() {
        let path = std::env::temp_dir().join(format!("trunkline-secret-file-{}", std::process::id()));
        std::fs::write(&path, "secret").unwrap();
        for (mode, exposed) in
            [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o620, true), (0o644, true)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_exposed(&path).unwrap(), exposed, "{mode:o}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(is_exposed(&path).is_err(), "a file that is not there");
    }
}
