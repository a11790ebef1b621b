use std::path::{Path, PathBuf};

use super::ManifestLimits;
use crate::glob;

/// Which files are manifests.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The folder, without links on the way to it.
    pub(super) directory: PathBuf,
    /// The folders above it, nearest first, up to the root of the repository.
    pub(super) above: Vec<PathBuf>,
    names: Vec<String>,
    paths: Vec<Vec<String>>,
    pub(super) limits: ManifestLimits,
}

/// What the root of a repository has in it.
pub(super) const REPOSITORIES: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

impl Rule {
    pub(super) fn new(directory: &Path, patterns: &[String], limits: ManifestLimits) -> Self {
        // A folder that is not there has no manifests, which is no reason to fail.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let above = above(&directory);
        let (paths, names): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|pattern| pattern.contains('/'));
        let segments =
            |path: &String| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Self {
            directory,
            above,
            names: names.into_iter().cloned().collect(),
            paths: paths.into_iter().map(segments).collect(),
            limits,
        }
    }

    /// Reports whether the whole tree below the folder has to be looked through.
    pub(super) fn is_deep(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Reports whether a file of the folder, of a direct child or of a folder above has the name of a manifest.
    pub(super) fn names(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| glob::fits_name(pattern, name))
    }

    /// Reports whether a file below the folder is a manifest, by the parts of its path from there.
    pub(super) fn takes(&self, parts: &[&str]) -> bool {
        let near = parts.len() <= 2 && parts.last().is_some_and(|name| self.names(name));
        let fits = |path: &Vec<String>| {
            let is_any_number = |at: usize| path.get(at).is_some_and(|part| part == "**");
            glob::matches(path, parts, is_any_number, glob::fits_name)
        };
        near && !parts.iter().rev().skip(1).any(|folder| folder.starts_with('.'))
            || self.paths.iter().any(fits)
    }

    /// Reports whether something is meant whose name begins with a dot.
    pub(super) fn names_hidden(&self) -> bool {
        self.names.iter().chain(self.paths.iter().flatten()).any(|part| part.starts_with('.'))
    }
}

/// Returns the folders above one, nearest first, up to the root of its repository, or else up to the user's home.
fn above(directory: &Path) -> Vec<PathBuf> {
    let is_root =
        |folder: &Path| REPOSITORIES.iter().any(|mark| folder.join(mark).symlink_metadata().is_ok());
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let root = directory.ancestors().find(|folder| is_root(folder));
    let root = root.or_else(|| directory.ancestors().find(|folder| Some(*folder) == home.as_deref()));
    let Some(root) = root else { return Vec::new() };
    let above = directory.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    above.map(Path::to_owned).collect()
}
