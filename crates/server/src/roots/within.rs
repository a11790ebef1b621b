use std::path::{Component, Path, PathBuf};

use trunkline_protocol::model::Root;

use super::root_path;

/// Reports whether a path lies within one of the roots. It reads the file system, and so may block.
pub(super) fn contains(roots: &[Root], path: &Path) -> bool {
    let roots: Vec<PathBuf> =
        roots.iter().filter_map(root_path).filter_map(|root| root.canonicalize().ok()).collect();
    let absolute = if path.is_absolute() {
        path.to_owned()
    } else {
        let Some(primary) = roots.first() else { return false };
        primary.join(path)
    };
    resolve(&absolute).is_some_and(|path| roots.iter().any(|root| path.starts_with(root)))
}

/// Resolves the links of a path that may not exist to its end; `None` if that cannot be done.
fn resolve(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => resolved.push(component),
            Component::CurDir => {}
            // What is resolved so far has no links left, so that its parent is the one that the system would go to.
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                resolved.push(name);
                match resolved.symlink_metadata() {
                    // A link to nowhere cannot be followed, and may lead anywhere tomorrow.
                    Ok(_) => resolved = resolved.canonicalize().ok()?,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(_) => return None,
                }
            }
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn path_is_within_a_root_only_after_resolving_links() {
        let folder = TestFolder::new("within");
        let base = folder.path();
        for made in ["p1/sub", "p1-evil", "p 2", "outside"] {
            fs::create_dir_all(base.join(made)).unwrap();
        }
        fs::write(base.join("p1/file"), "x").unwrap();
        fs::write(base.join("outside/file"), "x").unwrap();
        symlink(base.join("outside"), base.join("p1/out")).unwrap();
        symlink(base.join("p1/sub"), base.join("outside/in")).unwrap();
        symlink(base.join("nowhere"), base.join("p1/dangling")).unwrap();
        symlink("loop", base.join("p1/loop")).unwrap();
        let root = |path: &str| Root { uri: format!("file://{}/{path}", base.display()), ..Root::default() };
        let roots = [root("p1"), root("p%202"), root("missing"), root("../not-encoded/.."), Root::default()];
        for (path, expected) in [
            ("p1", true),
            ("p1/", true),
            ("p1/file", true),
            ("p1/sub/../file", true),
            ("p1/new/file", true),
            ("p 2/file", true),
            ("outside/in/x", true),
            ("p1-evil/file", false),
            ("outside/file", false),
            ("p1/../outside/file", false),
            ("p1/new/../../outside/file", false),
            ("p1/out/file", false),
            ("p1/out/new", false),
            ("p1/sub/../out/file", false),
            ("p1/dangling", false),
            ("p1/loop/x", false),
            ("P1/file", false),
            ("missing/file", false),
            ("", false),
        ] {
            assert_eq!(contains(&roots[..4], &base.join(path)), expected, "{path}");
        }
        assert!(contains(&roots, Path::new("sub")), "a relative path begins at the primary root");
        assert!(!contains(&roots, Path::new("../outside")));
        assert!(!contains(&[], Path::new("sub")) && !contains(&[], base));
        assert!(!contains(&roots, Path::new("/etc/passwd")) && !contains(&roots, Path::new("p1\0x")));
    }
}
