use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ignore::{DirEntry, WalkBuilder};

use super::manifest_file::ManifestFile;
use super::rule::{ManifestRule, REPOSITORY_MARKERS};

/// The result of one scan for manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ManifestScan {
    /// The manifests, in the order of their paths.
    pub(super) manifests: Vec<ManifestFile>,
    pub(super) watch_scope: WatchScope,
    /// The scan reached a limit, so that there may be more.
    pub(super) truncated: bool,
}

/// The folders in which another manifest could appear.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchScope {
    pub(super) folders: BTreeSet<PathBuf>,
    /// There are more folders than may be watched.
    pub(super) has_more: bool,
}

impl WatchScope {
    fn add(&mut self, folder: &Path, rule: &ManifestRule) {
        if self.folders.len() < rule.limits.watched {
            self.folders.insert(folder.to_owned());
        } else {
            self.has_more |= !self.folders.contains(folder);
        }
    }
}

/// The depth for plain names: the folder itself and its direct children.
const PLAIN_NAME_DEPTH: usize = 2;

impl ManifestScan {
    /// Scans for manifests, within the limits of the rule.
    pub(super) fn run(rule: &ManifestRule) -> Self {
        let mut scan = Self::default();
        let deadline = Instant::now() + rule.limits.timeout;
        let mut entries = 0;
        for folder in &rule.parent_folders {
            scan.visit_parent(rule, folder, &mut entries);
        }
        scan.walk(rule, PLAIN_NAME_DEPTH, deadline, &mut entries);
        if rule.is_deep() && !scan.truncated {
            scan.walk(rule, rule.limits.depth.max(PLAIN_NAME_DEPTH), deadline, &mut entries);
        }
        scan.manifests.sort();
        scan.manifests.dedup();
        scan
    }

    /// Walks the tree below the folder to a depth. The near files are visited first, so that a limit never excludes
    /// them.
    fn walk(&mut self, rule: &ManifestRule, depth: usize, deadline: Instant, entries: &mut usize) {
        let walk = WalkBuilder::new(&rule.directory)
            .max_depth(Some(depth))
            .follow_links(false)
            .hidden(!rule.matches_hidden())
            .filter_entry(|entry| !REPOSITORY_MARKERS.iter().any(|mark| entry.file_name() == *mark))
            // A folder outside of a repository may have ignore files too.
            .require_git(false)
            .git_global(false)
            .build();
        for entry in walk.flatten() {
            *entries += 1;
            if *entries > rule.limits.entries
                || self.manifests.len() >= rule.limits.files
                || Instant::now() >= deadline
            {
                self.truncated = true;
                break;
            }
            self.visit_entry(rule, &entry);
        }
    }

    /// Visits one file or folder below the rule's folder.
    fn visit_entry(&mut self, rule: &ManifestRule, entry: &DirEntry) {
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            if rule.is_deep() || entry.depth() < PLAIN_NAME_DEPTH {
                self.watch_scope.add(entry.path(), rule);
            }
            return;
        }
        let Ok(below) = entry.path().strip_prefix(&rule.directory) else { return };
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        if kind.is_some_and(|kind| kind.is_file())
            && parts.is_some_and(|parts| rule.matches_path(&parts))
            && let Ok(metadata) = entry.metadata()
        {
            self.manifests.push(manifest_file(entry.path(), &metadata));
        }
    }

    /// Visits the files of one parent folder.
    fn visit_parent(&mut self, rule: &ManifestRule, folder: &Path, entries: &mut usize) {
        self.watch_scope.add(folder, rule);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            *entries += 1;
            if *entries > rule.limits.entries || self.manifests.len() >= rule.limits.files {
                self.truncated = true;
                return;
            }
            let is_manifest = entry.file_name().to_str().is_some_and(|name| rule.matches_name(name));
            // The type of the entry itself: a symbolic link is not a file here, whatever its target is.
            if is_manifest
                && entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(metadata) = entry.metadata()
            {
                self.manifests.push(manifest_file(&entry.path(), &metadata));
            }
        }
    }
}

fn manifest_file(path: &Path, metadata: &Metadata) -> ManifestFile {
    ManifestFile { path: path.to_owned(), size: metadata.len(), modified: metadata.modified().ok() }
}
