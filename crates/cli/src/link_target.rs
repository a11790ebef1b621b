//! Where the links of a path lead, also where there is no file yet.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The links that are followed in one path, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkTarget {
    /// The file that the system opens or creates for the path.
    pub(crate) path: PathBuf,
    /// Whether there is a link in the path.
    pub(crate) has_links: bool,
}

/// Follows the links of a path. In contrast to [`std::fs::canonicalize`] it also follows one that leads to no file: opening
/// the path to write creates that file.
pub(crate) fn follow_links(path: &Path) -> LinkTarget {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut pending = reversed_components(&absolute);
    let mut reached = PathBuf::new();
    let mut links = 0;
    while let Some(component) = pending.pop() {
        if component == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(component);
        match std::fs::read_link(&next) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                pending.extend(reversed_components(&target));
            }
            // The system refuses a path with more links.
            Ok(_) | Err(_) => reached = next,
        }
    }
    LinkTarget { path: std::fs::canonicalize(&absolute).unwrap_or(reached), has_links: links > 0 }
}

fn reversed_components(path: &Path) -> Vec<OsString> {
    let components = path.components().filter(|component| *component != Component::CurDir);
    components.rev().map(|component| component.as_os_str().to_owned()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_files_that_do_not_exist() {
        let folder = std::env::temp_dir().join(format!("trunkline-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("real/deep")).unwrap();
        let folder = std::fs::canonicalize(folder).unwrap();
        symlink("missing", folder.join("dangling")).unwrap();
        symlink("dangling", folder.join("twice")).unwrap();
        symlink("/nowhere/file", folder.join("absolute")).unwrap();
        symlink("real/deep", folder.join("deep")).unwrap();
        symlink("../gone", folder.join("real/up")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();
        let below = |name: &str| folder.join(name);
        for (path, expected, has_links) in [
            ("plain", below("plain"), false),
            ("dangling", below("missing"), true),
            ("twice", below("missing"), true),
            ("absolute", "/nowhere/file".into(), true),
            ("deep/new", below("real/deep/new"), true),
            ("deep/../up", below("gone"), true),
            ("missing/../plain", below("plain"), false),
            ("loop", below("loop"), true),
        ] {
            let found = follow_links(&folder.join(path));
            assert_eq!(found, LinkTarget { path: expected, has_links }, "{path}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
