//! Noticing that a hub would start itself without end: its file may name `trunkline serve`, as a client's file does.

use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Tells the programs that a hub starts which hubs they are within: the files of those, as a list of paths.
pub(super) const VARIABLE: &str = "TRUNKLINE_WITHIN";

/// Returns what the programs that the hub of a file starts are told.
///
/// # Errors
/// This process was itself started by a hub of the file.
pub(super) fn told(file: &Path) -> Result<String, Failure> {
    let outer = std::env::var_os(VARIABLE).unwrap_or_default();
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut files: Vec<PathBuf> = std::env::split_paths(&outer).collect();
    if files.contains(&file) {
        let what = format!(
            "the hub of {} was started by itself, and would start itself again without end",
            file.display()
        );
        return Err(Failure::configuration(what)
            .hint("`--no-config` serves the built-in servers; else take this hub out of its own file"));
    }
    files.push(file);
    // A path that cannot be part of a list is told of alone by its absence.
    let joined = std::env::join_paths(files).unwrap_or_default();
    Ok(joined.into_string().unwrap_or_default())
}
