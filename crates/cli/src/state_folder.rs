//! What a hub keeps outside of its configuration: where, and under which name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Returns a name that follows from a configuration file as it is found on disk, so that every way to write its path leads to
/// the same one.
pub(crate) fn name_of_config(config: &Path) -> Option<String> {
    let file = std::fs::canonicalize(config).or_else(|_| std::path::absolute(config)).ok()?;
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    Some(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// Returns where the hub of a configuration file keeps what its servers listed, if there is a folder for such things.
pub(crate) fn listings_of_config(config: &Path) -> Option<PathBuf> {
    let folder = state_folder(|name| std::env::var_os(name))?.join("listings");
    Some(folder.join(format!("{}.json", name_of_config(config)?)))
}

/// Returns where the trust in a configuration file is remembered, if there is a folder for such things.
pub(crate) fn trust_of_config(config: &Path) -> Option<PathBuf> {
    let folder = state_folder(|name| std::env::var_os(name))?.join("trust");
    Some(folder.join(format!("{}.json", name_of_config(config)?)))
}

/// Returns the folder of what a user's programs keep.
pub(crate) fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = || Some(absolute_path_variable(&variable, "HOME")?.join(".local").join("state"));
    Some(absolute_path_variable(&variable, "XDG_STATE_HOME").or_else(home)?.join("trunkline"))
}

/// Returns the path in a variable. A relative one would mean another folder to every program.
pub(crate) fn absolute_path_variable(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &str,
) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
