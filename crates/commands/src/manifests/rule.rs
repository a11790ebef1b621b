use std::path::{Path, PathBuf};

use super::ManifestLimits;
use crate::glob;

/// The rule for which files are manifests.
#[derive(Clone, Debug)]
pub(super) struct ManifestRule {
    /// The canonical path of the folder.
    pub(super) directory: PathBuf,
    /// Its parent folders, nearest first, up to the root of the repository.
    pub(super) parent_folders: Vec<PathBuf>,
    names: Vec<String>,
    path_patterns: Vec<Vec<String>>,
    pub(super) limits: ManifestLimits,
}

/// Entries that mark the root of a repository.
pub(super) const REPOSITORY_MARKERS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

impl ManifestRule {
    pub(super) fn new(directory: &Path, patterns: &[String], limits: ManifestLimits) -> Self {
        // A missing folder has no manifests, and is not an error.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let parent_folders = parent_folders(&directory);
        let (paths, names): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|pattern| pattern.contains('/'));
        let segments =
            |path: &String| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Self {
            directory,
            parent_folders,
            names: names.into_iter().cloned().collect(),
            path_patterns: paths.into_iter().map(segments).collect(),
            limits,
        }
    }

    /// Reports whether the whole tree below the folder has to be searched.
    pub(super) fn is_deep(&self) -> bool {
        !self.path_patterns.is_empty()
    }

    /// Reports whether a file of the folder, of a direct child or of a parent folder has the name of a manifest.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| glob::matches_name(pattern, name))
    }

    /// Reports whether a file below the folder is a manifest, by the components of its relative path.
    pub(super) fn matches_path(&self, parts: &[&str]) -> bool {
        let near = parts.len() <= 2 && parts.last().is_some_and(|name| self.matches_name(name));
        let fits = |path: &Vec<String>| {
            let is_any_number = |at: usize| path.get(at).is_some_and(|part| part == "**");
            glob::matches(path, parts, is_any_number, glob::matches_name)
        };
        near && !parts.iter().rev().skip(1).any(|folder| folder.starts_with('.'))
            || self.path_patterns.iter().any(fits)
    }

    /// Reports whether a pattern matches names with a leading dot.
    pub(super) fn matches_hidden(&self) -> bool {
        self.names.iter().chain(self.path_patterns.iter().flatten()).any(|part| part.starts_with('.'))
    }
}

/// Returns the parent folders, nearest first, up to the root of the repository, or otherwise up to the user's home.
fn parent_folders(directory: &Path) -> Vec<PathBuf> {
    let is_root =
        |folder: &Path| REPOSITORY_MARKERS.iter().any(|mark| folder.join(mark).symlink_metadata().is_ok());
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let root = directory.ancestors().find(|folder| is_root(folder));
    let root = root.or_else(|| directory.ancestors().find(|folder| Some(*folder) == home.as_deref()));
    let Some(root) = root else { return Vec::new() };
    let parent_folders = directory.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    parent_folders.map(Path::to_owned).collect()
}
