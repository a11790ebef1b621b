use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ignore::{DirEntry, WalkBuilder};

use super::found::Found;
use super::rule::Rule;

/// What one look for manifests has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The manifests, in the order of their paths.
    pub(super) found: Vec<Found>,
    /// The folders in which another could appear.
    pub(super) folders: Vec<PathBuf>,
    /// The look ended at one of its limits, so that there may be more.
    pub(super) cut: bool,
}

/// How deep plain names are looked for: in the folder itself and in its direct children.
const NEAR: usize = 2;

impl Scan {
    /// Looks for manifests, within the limits of the rule.
    pub(super) fn of(rule: &Rule) -> Self {
        let mut scan = Self::default();
        let deadline = Instant::now() + rule.limits.within;
        let mut entries = 0;
        for folder in &rule.above {
            scan.above(rule, folder, &mut entries);
        }
        let depth = if rule.is_deep() { rule.limits.depth.max(NEAR) } else { NEAR };
        let walk = WalkBuilder::new(&rule.directory)
            .max_depth(Some(depth))
            .follow_links(false)
            // A folder that is no repository may have ignore files too.
            .require_git(false)
            .git_global(false)
            .build();
        for entry in walk.flatten() {
            entries += 1;
            if entries > rule.limits.entries
                || scan.found.len() >= rule.limits.files
                || Instant::now() >= deadline
            {
                scan.cut = true;
                break;
            }
            scan.below(rule, &entry);
        }
        scan.found.sort();
        scan.found.dedup();
        scan
    }

    /// Looks at one file or folder below the rule's folder.
    fn below(&mut self, rule: &Rule, entry: &DirEntry) {
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            let may_have = rule.is_deep() || entry.depth() < NEAR;
            if may_have && self.folders.len() < rule.limits.watched {
                self.folders.push(entry.path().to_owned());
            }
            return;
        }
        let Ok(below) = entry.path().strip_prefix(&rule.directory) else { return };
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        if kind.is_some_and(|kind| kind.is_file())
            && parts.is_some_and(|parts| rule.takes(&parts))
            && let Ok(metadata) = entry.metadata()
        {
            self.found.push(found(entry.path(), &metadata));
        }
    }

    /// Looks at the files of one folder above the rule's folder.
    fn above(&mut self, rule: &Rule, folder: &Path, entries: &mut usize) {
        self.folders.push(folder.to_owned());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            *entries += 1;
            if *entries > rule.limits.entries || self.found.len() >= rule.limits.files {
                self.cut = true;
                return;
            }
            let is_manifest = entry.file_name().to_str().is_some_and(|name| rule.names(name));
            // The kind of the entry itself: a link is no file here, whatever it leads to.
            if is_manifest
                && entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(metadata) = entry.metadata()
            {
                self.found.push(found(&entry.path(), &metadata));
            }
        }
    }
}

fn found(path: &Path, metadata: &Metadata) -> Found {
    Found { path: path.to_owned(), size: metadata.len(), changed: metadata.modified().ok() }
}
