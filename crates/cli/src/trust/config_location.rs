use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a configuration file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigLocation {
    /// The file itself, with links resolved.
    pub(super) file: PathBuf,
    /// The folder from which the hub counts the relative paths of the file: that of a link, not that of its target.
    pub(super) folder: PathBuf,
    /// The folder from which the file is linked, if it is not in it, or if the folder of a client is linked into a project.
    pub(super) linked_from: Option<PathBuf>,
}

impl ConfigLocation {
    pub(super) fn of(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute.parent().unwrap_or(Path::new("")).to_owned();
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let linked_from = linking_folder(&folder).filter(|folder| file.parent() != Some(folder));
        Self { file, folder, linked_from }
    }
}

/// Returns the folder that relative paths of a file in this folder count from. For the folder of a client in a project, such
/// as `.vscode`, it is the project, so that a link from another project matters.
fn linking_folder(folder: &Path) -> Option<PathBuf> {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    match (folder.parent(), folder.file_name()) {
        (Some(project), Some(name)) if is_hidden(name) => {
            Some(std::fs::canonicalize(project).ok()?.join(name))
        }
        _ => std::fs::canonicalize(folder).ok(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn linked_config_is_identified_by_the_folder_of_its_link() {
        let folder = std::env::temp_dir().join(format!("trunkline-location-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        for name in ["mine/.vscode", "mine/plain", "theirs"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let folder = std::fs::canonicalize(folder).unwrap();
        let at = |name: &str| folder.join(name);
        for name in ["mine/.vscode/mcp.json", "mine/plain/mcp.json"] {
            std::fs::write(at(name), "{}").unwrap();
        }
        symlink(at("mine/.vscode"), at("theirs/.vscode")).unwrap();
        symlink(at("mine/plain"), at("theirs/plain")).unwrap();
        symlink(at("mine/plain/mcp.json"), at("theirs/mcp.json")).unwrap();
        for (path, expected) in [
            ("mine/.vscode/mcp.json", None),
            ("mine/plain/mcp.json", None),
            ("theirs/mcp.json", Some("theirs")),
            ("theirs/.vscode/mcp.json", Some("theirs/.vscode")),
            // The system resolves relative paths in a linked folder as in its target.
            ("theirs/plain/mcp.json", None),
        ] {
            assert_eq!(ConfigLocation::of(&at(path)).linked_from, expected.map(at), "{path}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
