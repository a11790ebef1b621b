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

/// Reports whether an address is that of this hub, as far as its text tells.
pub(super) fn is_here(url: &str, port: Option<&u16>) -> bool {
    let (Some((_, rest)), Some(port)) = (url.split_once("://"), port) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((host, written)) = authority.rsplit_once(':') else { return false };
    let is_loopback = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host.eq_ignore_ascii_case(name));
    is_loopback && written.parse() == Ok(*port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_knows_its_own_address() {
        for (url, expected) in [
            ("http://127.0.0.1:7411/mcp", true),
            ("ws://LOCALHOST:7411/ws", true),
            ("http://[::1]:7411", true),
            ("http://127.0.0.1:7412/mcp", false),
            ("http://127.0.0.1/mcp", false),
            ("https://example.com:7411/mcp", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_here(url, Some(&7411)), expected, "{url}");
            assert!(!is_here(url, None));
        }
    }
}
