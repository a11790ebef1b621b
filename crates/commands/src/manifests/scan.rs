use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ignore::{DirEntry, WalkBuilder};

use super::found::Found;
use super::rule::{REPOSITORIES, Rule};

/// What one look for manifests has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The manifests, in the order of their paths.
    pub(super) found: Vec<Found>,
    pub(super) around: Around,
    /// The look ended at one of its limits, so that there may be more.
    pub(super) cut: bool,
}

/// Where another manifest could appear.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) folders: BTreeSet<PathBuf>,
    /// There are more folders than may be watched.
    pub(super) has_more: bool,
}

impl Around {
    fn add(&mut self, folder: &Path, rule: &Rule) {
        if self.folders.len() < rule.limits.watched {
            self.folders.insert(folder.to_owned());
        } else {
            self.has_more |= !self.folders.contains(folder);
        }
    }
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
        scan.walk(rule, NEAR, deadline, &mut entries);
        if rule.is_deep() && !scan.cut {
            scan.walk(rule, rule.limits.depth.max(NEAR), deadline, &mut entries);
        }
        scan.found.sort();
        scan.found.dedup();
        scan
    }

    /// Looks through the tree below the folder, so deep. What is near comes first, so that a limit never costs it.
    fn walk(&mut self, rule: &Rule, depth: usize, deadline: Instant, entries: &mut usize) {
        let walk = WalkBuilder::new(&rule.directory)
            .max_depth(Some(depth))
            .follow_links(false)
            .hidden(!rule.names_hidden())
            .filter_entry(|entry| !REPOSITORIES.iter().any(|mark| entry.file_name() == *mark))
            // A folder that is no repository may have ignore files too.
            .require_git(false)
            .git_global(false)
            .build();
        for entry in walk.flatten() {
            *entries += 1;
            if *entries > rule.limits.entries
                || self.found.len() >= rule.limits.files
                || Instant::now() >= deadline
            {
                self.cut = true;
                break;
            }
            self.below(rule, &entry);
        }
    }

    /// Looks at one file or folder below the rule's folder.
    fn below(&mut self, rule: &Rule, entry: &DirEntry) {
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            if rule.is_deep() || entry.depth() < NEAR {
                self.around.add(entry.path(), rule);
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
        self.around.add(folder, rule);
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
