//! Where a hub listens for those who run it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Returns where the hub of a configuration file listens, if there is a folder for such things.
///
/// The name follows from the file as it is found on disk, so that every way to write its path leads to the same hub.
pub(crate) fn of_config(config: &Path) -> Option<PathBuf> {
    let file = std::fs::canonicalize(config).or_else(|_| std::path::absolute(config)).ok()?;
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(folder(|name| std::env::var_os(name), Path::is_dir)?.join(format!("{name}.sock")))
}

/// Returns the folder of a user's sockets: one that ends with the session, or else one that stays.
fn folder(variable: impl Fn(&str) -> Option<OsString>, is_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    // A relative path here would mean another folder to everybody.
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // The variable outlives the folder where somebody has become another user.
    let runtime =
        path("XDG_RUNTIME_DIR").filter(|path| is_there(path)).map(|folder| folder.join("trunkline"));
    let state = || path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local").join("state")));
    runtime.or_else(|| Some(state()?.join("trunkline").join("run")))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_in_the_folder_of_the_session_or_else_in_that_of_state() {
        for (variables, expected) in [
            (&[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/h")][..], Some("/run/user/1/trunkline")),
            (&[("XDG_RUNTIME_DIR", "/run/gone"), ("HOME", "/h")], Some("/h/.local/state/trunkline/run")),
            (&[("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "/s")], Some("/s/trunkline/run")),
            (&[("HOME", "/h")], Some("/h/.local/state/trunkline/run")),
            (&[], None),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            };
            let is_there = |path: &Path| !path.ends_with("gone");
            assert_eq!(folder(variable, is_there), expected.map(PathBuf::from), "{variables:?}");
        }
    }
}
