//! Manifest files as resources: listing, reading and change notifications.
//!
//! # Invariants
//!
//! - Only manifests below the configured folders can be read: `only_manifests_below_the_folders_can_be_read`.

mod folders;
mod manifest_file;
mod provider;
mod rule;
mod scan;
mod watch;

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::provider::ManifestProvider;
use self::rule::ManifestRule;

/// The files in and around a folder that are served as resources.
///
/// A plain name such as `golem.yaml` is searched for in the folder, in its direct children, and in its parent
/// folders up to the root of the repository. A pattern with folders, such as `**/golem.yaml`, is searched for in
/// the whole tree below the folder, within [limits](ManifestLimits). Files excluded by `.gitignore` are left out,
/// symbolic links are not followed, and only files found by this search can be read.
#[derive(Clone, Debug)]
#[must_use = "manifests are not offered until a program or a server has them"]
pub struct Manifests {
    patterns: Vec<String>,
    directory: Option<PathBuf>,
    limits: ManifestLimits,
}

/// The limits of the search for manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestLimits {
    /// Depth below the folder. Default 16 folders.
    pub depth: usize,
    /// Manifests found. Default 1,000.
    pub files: usize,
    /// Files and folders visited. Default 100,000, each of which costs a few microseconds.
    pub entries: usize,
    /// Duration of a search. Default 500 ms.
    pub timeout: Duration,
    /// The largest file that is read. Default 1 MiB.
    pub bytes: u64,
    /// Folders watched for changes. Default 1,024; each costs about one KiB in the kernel.
    pub watched: usize,
}

impl Default for ManifestLimits {
    fn default() -> Self {
        Self {
            depth: 16,
            files: 1_000,
            entries: 100_000,
            timeout: Duration::from_millis(500),
            bytes: 1 << 20,
            watched: 1_024,
        }
    }
}

impl Manifests {
    /// Creates a set of files, by names or by path patterns; in both, `*` is any number of characters of a name and
    /// `?` is one.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        Self {
            patterns: patterns.into_iter().map(Into::into).collect(),
            directory: None,
            limits: ManifestLimits::default(),
        }
    }

    /// Sets the folder. Default: the current one.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: ManifestLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds the manifests to a server as resources.
    pub fn add_to(&self, server: trunkline_server::Server) -> trunkline_server::Server {
        server.resources_from(self.provider())
    }

    pub(crate) fn provider(&self) -> ManifestProvider {
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        ManifestProvider::new(ManifestRule::new(&directory, &self.patterns, self.limits.clone()))
    }
}
