use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_server::protocol::model::{ReadResourceResult, Resource, ResourceContents};
use trunkline_server::{BoxFuture, ChangeNotifier, Context, ResourceProvider, ToolError};

use super::folders::ManifestFolders;
use super::manifest_file::ManifestFile;
use super::rule::ManifestRule;
use super::scan::{ManifestScan, WatchScope};
use super::watch::ManifestWatcher;

/// The manifests as resources of a server.
#[derive(Debug)]
pub(crate) struct ManifestProvider {
    shared: Arc<ManifestState>,
    /// Rescans when files change; stopped with the provider.
    watch: Mutex<Option<ManifestWatcher>>,
}

#[derive(Debug)]
pub(super) struct ManifestState {
    pub(super) rule: ManifestRule,
    folders: ManifestFolders,
    manifests: Mutex<Vec<ManifestFile>>,
}

impl ManifestProvider {
    pub(super) fn new(rule: ManifestRule) -> Self {
        let folders = ManifestFolders::open(&rule);
        let shared = Arc::new(ManifestState { rule, folders, manifests: Mutex::default() });
        let provider = Self { shared, watch: Mutex::default() };
        provider.shared.scan();
        provider
    }
}

#[cfg(all(test, unix))]
impl ManifestProvider {
    /// Rescans, and returns whether the list has changed, and the URIs of updated manifests.
    pub(super) fn rescan(&self) -> (bool, Vec<String>) {
        let (changes, _) = self.shared.scan();
        (changes.list_changed, changes.updated)
    }
}

/// The changes since the last scan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ManifestChanges {
    /// Manifests were added or removed.
    pub(super) list_changed: bool,
    /// The URIs of manifests with new content.
    pub(super) updated: Vec<String>,
}

impl ManifestChanges {
    /// Adds the changes of a later scan.
    pub(super) fn merge(&mut self, later: Self) {
        self.list_changed |= later.list_changed;
        self.updated.extend(later.updated);
    }
}

impl ManifestState {
    /// Scans for manifests, and returns the changes and the folders to watch.
    pub(super) fn scan(&self) -> (ManifestChanges, WatchScope) {
        let scan = ManifestScan::run(&self.rule);
        if scan.truncated {
            let directory = self.rule.directory.display();
            tracing::warn!(
                "the search for manifests below {directory} reached its limits; there may be more"
            );
        }
        let before = std::mem::replace(&mut *self.lock(), scan.manifests.clone());
        let same = |found: &ManifestFile| before.iter().find(|other| other.path == found.path);
        let changes = ManifestChanges {
            list_changed: before.len() != scan.manifests.len()
                || scan.manifests.iter().any(|found| same(found).is_none()),
            updated: scan
                .manifests
                .iter()
                .filter(|found| same(found).is_some_and(|other| other != *found))
                .filter_map(ManifestFile::uri)
                .collect(),
        };
        (changes, scan.watch_scope)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ManifestFile>> {
        self.manifests.lock()
    }

    /// Reads a manifest; `None` if there is none with this URI.
    fn read(&self, uri: &str) -> io::Result<Option<ResourceContents>> {
        let found = self.lock().iter().find(|found| found.uri().as_deref() == Some(uri)).cloned();
        let Some(found) = found else { return Ok(None) };
        let bytes = match self.folders.read(&found.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut contents = match String::from_utf8(bytes) {
            Ok(text) => ResourceContents::text(uri, text),
            Err(error) => ResourceContents::blob(uri, error.as_bytes()),
        };
        contents.mime_type = found.resource(&self.rule.directory).and_then(|resource| resource.mime_type);
        Ok(Some(contents))
    }
}

impl ResourceProvider for ManifestProvider {
    fn source(&self) -> String {
        "manifests".to_owned()
    }

    fn resources(&self) -> Vec<Resource> {
        let directory = &self.shared.rule.directory;
        self.shared.lock().iter().filter_map(|found| found.resource(directory)).collect()
    }

    fn read(
        &self,
        uri: &str,
        _: Context,
    ) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>> {
        let (shared, uri) = (self.shared.clone(), uri.to_owned());
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || shared.read(&uri)).await?;
            Ok(read?.map(|contents| ReadResourceResult::new(vec![contents])))
        })
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        let watch = ManifestWatcher::spawn(self.shared.clone(), notifier);
        *self.watch.lock() = Some(watch);
    }
}
