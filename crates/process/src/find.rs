use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Finds the file of a program: its own path, or the first match in the `PATH` of the child's environment.
///
/// The search is done here because the standard library can start a program with a known path without forking this
/// process first. Relative folders in `PATH` are skipped: which program runs must not depend on the current folder. A
/// name with a separator is not searched, and is relative to the child's folder.
pub(super) fn program(name: &OsStr, path: Option<&OsString>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.to_string_lossy().contains(std::path::is_separator) {
        return Some(name.into());
    }
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| candidates(&folder, name))
        .find(|file| is_executable(file))
}

#[cfg(not(windows))]
fn candidates(folder: &Path, name: &OsStr) -> [PathBuf; 1] {
    [folder.join(name)]
}

/// A program on Windows is usually named without its extension, and is often a script with one of its own.
#[cfg(windows)]
fn candidates(folder: &Path, name: &OsStr) -> Vec<PathBuf> {
    let file = folder.join(name);
    if file.extension().is_some() {
        return vec![file];
    }
    let extensions = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    extensions.split(';').map(|extension| file.with_extension(extension.trim_start_matches('.'))).collect()
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_path_or_in_absolute_path_folders() {
        let table = [
            ("sh", Some("/nowhere:/bin:/usr/bin"), Some("/bin/sh")),
            ("sh", Some(".:bin::/bin"), Some("/bin/sh")),
            ("sh", Some("/nowhere"), None),
            ("sh", None, None),
            ("", Some("/bin"), None),
            ("./sh", Some("/bin"), Some("./sh")),
            ("/no/such", None, Some("/no/such")),
            // Folders and files without the execute permission are skipped.
            ("bin", Some("/usr"), None),
            ("passwd", Some("/etc"), None),
        ];
        for (name, path, expected) in table {
            let path = path.map(OsString::from);
            assert_eq!(
                program(OsStr::new(name), path.as_ref()),
                expected.map(PathBuf::from),
                "{name} {path:?}"
            );
        }
    }
}
