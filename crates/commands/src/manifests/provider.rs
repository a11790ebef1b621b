use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_server::protocol::model::{ReadResult, Resource, ResourceContents};
use trunkline_server::{BoxFuture, Context, Notifier, ResourceProvider, ToolError};

use super::found::Found;
use super::read::Folders;
use super::rule::Rule;
use super::scan::{Around, Scan};
use super::watch::Watch;

/// The manifests as resources of a server.
#[derive(Debug)]
pub(crate) struct ManifestProvider {
    shared: Arc<Shared>,
    /// What looks again when files change; it ends when this does.
    watch: Mutex<Option<Watch>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rule: Rule,
    folders: Folders,
    found: Mutex<Vec<Found>>,
}

impl ManifestProvider {
    pub(super) fn new(rule: Rule) -> Self {
        let folders = Folders::open(&rule);
        let shared = Arc::new(Shared { rule, folders, found: Mutex::default() });
        let provider = Self { shared, watch: Mutex::default() };
        provider.shared.look();
        provider
    }
}

#[cfg(all(test, unix))]
impl ManifestProvider {
    /// Looks for manifests again, and returns whether the list is new and what has new content.
    pub(super) fn look_again(&self) -> (bool, Vec<String>) {
        let (news, _) = self.shared.look();
        (news.listed, news.updated)
    }
}

/// What is different from the look before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Manifests have come or gone.
    pub(super) listed: bool,
    /// The URIs of those that have new content.
    pub(super) updated: Vec<String>,
}

impl News {
    /// Adds what another look has found after this one.
    pub(super) fn add(&mut self, later: Self) {
        self.listed |= later.listed;
        self.updated.extend(later.updated);
    }
}

impl Shared {
    /// Looks for manifests, and returns what is new and where to look for more.
    pub(super) fn look(&self) -> (News, Around) {
        let scan = Scan::of(&self.rule);
        if scan.cut {
            let directory = self.rule.directory.display();
            tracing::warn!("the look for manifests below {directory} ended at its limits; there may be more");
        }
        let before = std::mem::replace(&mut *self.lock(), scan.found.clone());
        let same = |found: &Found| before.iter().find(|other| other.path == found.path);
        let news = News {
            listed: before.len() != scan.found.len() || scan.found.iter().any(|found| same(found).is_none()),
            updated: scan
                .found
                .iter()
                .filter(|found| same(found).is_some_and(|other| other != *found))
                .filter_map(Found::uri)
                .collect(),
        };
        (news, scan.around)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Found>> {
        self.found.lock()
    }

    /// Reads a manifest that was found; `None` if there is none of this URI.
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

    fn read(&self, uri: &str, _: Context) -> BoxFuture<'static, Result<Option<ReadResult>, ToolError>> {
        let (shared, uri) = (self.shared.clone(), uri.to_owned());
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || shared.read(&uri)).await?;
            Ok(read?.map(|contents| ReadResult::new(vec![contents])))
        })
    }

    fn watch(&self, notifier: Notifier) {
        let watch = Watch::begin(self.shared.clone(), notifier);
        *self.watch.lock() = Some(watch);
    }
}
