//! A file that caches the upstreams' last listings for the next run, so that clients are served at once while the
//! upstreams start.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use trunkline_config::{ServerLocation, ServerName};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{MalformedModel, Prompt, Resource, ResourceTemplate, Tool};
use trunkline_protocol::{Era, JsonWriter, RawJson, Revision};

use crate::registry::UpstreamListing;
use crate::upstream::{CapabilityListing, InputSet, ListingKey, MAX_LISTINGS};

/// The version of the format; a file of another version is not used.
const FORMAT: u32 = 2;

/// The largest file that is read or written. A larger listing is not saved.
const MAX_FILE_BYTES: usize = 32 << 20;

/// The most bytes stored for one server.
const MAX_SERVER_BYTES: usize = 4 << 20;

/// The listing file of one hub.
#[derive(Debug)]
pub(crate) struct ListingsFile {
    path: PathBuf,
    servers: Mutex<BTreeMap<String, StoredServer>>,
}

/// The stored listings of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredServer {
    /// Identifies the server by its location; a digest, since command lines may have secrets in them.
    reach: String,
    /// One entry for each era in which it was listed, the newest connection last.
    pub(crate) eras: Vec<StoredEra>,
    /// The eras that it is known not to support.
    not_spoken: Vec<StoredEraName>,
    /// When the last of them was tried, in seconds since 1970. Files without it count as tried long ago.
    #[serde(default)]
    probed_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredEraName {
    Legacy,
    Modern,
}

impl From<Era> for StoredEraName {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Legacy,
            Era::Modern => Self::Modern,
        }
    }
}

impl From<StoredEraName> for Era {
    fn from(name: StoredEraName) -> Self {
        match name {
            StoredEraName::Legacy => Self::Legacy,
            StoredEraName::Modern => Self::Modern,
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The stored listings of one server in one era.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredEra {
    /// The negotiated revision, which also determines the era.
    pub(crate) revision: String,
    pub(crate) keeps_sessions: bool,
    pub(crate) instructions: Option<String>,
    listings: Vec<StoredListing>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredListing {
    capabilities: u8,
    has_resources: bool,
    tools: Vec<RawJson>,
    prompts: Vec<RawJson>,
    resources: Vec<RawJson>,
    templates: Vec<RawJson>,
}

#[derive(Serialize, Deserialize)]
struct StoredListings<S> {
    format: u32,
    servers: S,
}

impl ListingsFile {
    /// Reads the file. A missing or unusable file counts as empty, and is replaced by the next save.
    pub(crate) fn open(path: PathBuf) -> Self {
        let servers = match read(&path) {
            Ok(servers) => servers,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "ignoring stored listings");
                BTreeMap::new()
            }
        };
        Self { path, servers: Mutex::new(servers) }
    }

    /// Returns the stored listings of a server, if its location is unchanged.
    pub(crate) fn server(&self, name: &ServerName, reach: &ServerLocation) -> Option<StoredServer> {
        let stored = self.lock().get(name.as_str()).cloned();
        stored.filter(|stored| stored.reach == reach_digest(reach))
    }

    /// Writes the file: servers that have listed nothing in this run keep their stored listings, and servers that are
    /// not configured any more are removed.
    pub(crate) fn save(&self, servers: Vec<(ServerName, Option<StoredServer>)>) -> io::Result<()> {
        let mut stored = self.lock();
        let mut before = std::mem::take(&mut *stored);
        for (name, listed) in servers {
            let old = before.remove(name.as_str());
            if let Some(server) = StoredServer::merged(old, listed) {
                stored.insert(name.as_str().to_owned(), server);
            }
        }
        let text = serde_json::to_string(&StoredListings { format: FORMAT, servers: &*stored })?;
        drop(stored);
        if text.len() > MAX_FILE_BYTES {
            return Err(io::Error::other(format!("they have more than {MAX_FILE_BYTES} bytes")));
        }
        if let Some(folder) = self.path.parent() {
            create_private_folder(folder)?;
        }
        trunkline_config::replace_file(&self.path, &text)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredServer>> {
        self.servers.lock()
    }
}

impl StoredServer {
    /// Creates the stored form of a server; `None` if its listings are too large.
    pub(crate) fn new(
        reach: &ServerLocation,
        mut eras: Vec<StoredEra>,
        not_spoken: impl IntoIterator<Item = Era>,
    ) -> Option<Self> {
        let not_spoken: Vec<_> = not_spoken.into_iter().map(StoredEraName::from).collect();
        let probed_at = if not_spoken.is_empty() { 0 } else { unix_seconds() };
        eras.retain(|era| !era.listings.is_empty());
        let listings = eras.iter().flat_map(|era| &era.listings);
        let bytes: usize = listings.map(StoredListing::bytes).sum();
        (bytes <= MAX_SERVER_BYTES).then_some(Self {
            reach: reach_digest(reach),
            eras,
            not_spoken,
            probed_at,
        })
    }

    /// Merges the listings of this run with the earlier ones, for clients with other capabilities or of the other
    /// era.
    fn merged(old: Option<Self>, new: Option<Self>) -> Option<Self> {
        match (old, new) {
            (Some(old), Some(mut new)) if old.reach == new.reach => {
                for era in old.eras {
                    new.add(era);
                }
                let speaks = |name: StoredEraName| new.eras.iter().any(|era| era.era() == Some(name.into()));
                let unspoken: Vec<_> = old.not_spoken.into_iter().filter(|name| !speaks(*name)).collect();
                if new.not_spoken.is_empty() {
                    new.probed_at = old.probed_at;
                }
                new.not_spoken.extend(unspoken);
                new.not_spoken.dedup();
                Some(new)
            }
            (old, new) => new.or(old),
        }
    }

    /// Adds the earlier listings of one era.
    fn add(&mut self, old: StoredEra) {
        let Some(era) = old.era().filter(|era| !self.not_spoken.contains(&(*era).into())) else { return };
        match self.eras.iter_mut().find(|known| known.era() == Some(era)) {
            Some(known) => known.add(old),
            None => self.eras.insert(0, old),
        }
    }

    /// Returns the eras that the server is known not to support.
    pub(crate) fn not_spoken(&self) -> Vec<Era> {
        self.not_spoken.iter().map(|name| (*name).into()).collect()
    }

    /// Returns how long ago these were tried.
    pub(crate) fn probe_age(&self) -> Duration {
        Duration::from_secs(unix_seconds().saturating_sub(self.probed_at))
    }
}

impl StoredEra {
    /// Creates the stored form of a server's listings in the era of a revision.
    pub(crate) fn new(
        revision: Revision,
        keeps_sessions: bool,
        instructions: Option<String>,
        listings: &[CapabilityListing],
    ) -> Self {
        let listings = listings.iter().filter(|(key, _)| key.era == revision.era());
        let listings = listings.map(StoredListing::from_listing).collect();
        Self { revision: revision.as_str().to_owned(), keeps_sessions, instructions, listings }
    }

    fn era(&self) -> Option<Era> {
        Revision::parse(&self.revision).map(Revision::era)
    }

    /// Adds the earlier listings for clients with other capabilities, if the revision is the same.
    fn add(&mut self, old: Self) {
        if self.revision != old.revision {
            return;
        }
        let is_new = |listing: &StoredListing| {
            self.listings.iter().all(|known| known.capabilities != listing.capabilities)
        };
        let others: Vec<_> = old.listings.into_iter().filter(is_new).collect();
        self.listings.extend(others);
        self.listings.truncate(MAX_LISTINGS);
    }

    /// Returns the listings, without items that cannot be read.
    pub(crate) fn listings(&self, era: Era) -> Vec<CapabilityListing> {
        self.listings.iter().map(|listing| listing.to_listing(era)).collect()
    }
}

impl StoredListing {
    fn from_listing((key, listing): &CapabilityListing) -> Self {
        Self {
            capabilities: key.input.bits(),
            has_resources: listing.has_resources,
            tools: encode_items(&listing.tools, Tool::write),
            prompts: encode_items(&listing.prompts, Prompt::write),
            resources: encode_items(&listing.resources, Resource::write),
            templates: encode_items(&listing.templates, ResourceTemplate::write),
        }
    }

    fn to_listing(&self, era: Era) -> CapabilityListing {
        let listing = UpstreamListing {
            tools: read_items(&self.tools, Tool::read),
            prompts: read_items(&self.prompts, Prompt::read),
            resources: read_items(&self.resources, Resource::read),
            templates: read_items(&self.templates, ResourceTemplate::read),
            has_resources: self.has_resources,
            ..UpstreamListing::default()
        };
        (ListingKey { era, input: InputSet::from_bits(self.capabilities) }, Arc::new(listing))
    }

    fn bytes(&self) -> usize {
        let lists = [&self.tools, &self.prompts, &self.resources, &self.templates];
        lists.into_iter().flatten().map(|item| item.as_str().len()).sum()
    }
}

fn encode_items<T>(items: &[T], write: impl Fn(&T, &Dialect, &mut JsonWriter)) -> Vec<RawJson> {
    let dialect = Dialect::of(Revision::NEWEST);
    let raw = |item: &T| {
        let mut writer = JsonWriter::with_capacity(256);
        write(item, dialect, &mut writer);
        writer.into_raw()
    };
    items.iter().map(raw).collect()
}

fn read_items<T>(items: &[RawJson], read: impl Fn(&RawJson) -> Result<T, MalformedModel>) -> Arc<Vec<T>> {
    Arc::new(items.iter().filter_map(|item| read(item).ok()).collect())
}

/// Digests a server's location, so that the file holds no secret of it.
fn reach_digest(reach: &ServerLocation) -> String {
    Sha256::digest(reach.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> io::Result<BTreeMap<String, StoredServer>> {
    let file = std::fs::File::open(path)?;
    if can_be_written_by_others(&file.metadata()?) {
        return Err(io::Error::other("others than its owner can write to it"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    // The format version is read first, since another version stores servers differently.
    let stored: StoredListings<RawJson> = serde_json::from_str(&text)?;
    match stored.format {
        FORMAT => Ok(serde_json::from_str(stored.servers.as_str())?),
        other => Err(io::Error::other(format!("it has format {other} in place of {FORMAT}"))),
    }
}

#[cfg(unix)]
fn can_be_written_by_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o022 != 0
}

#[cfg(not(unix))]
fn can_be_written_by_others(_: &std::fs::Metadata) -> bool {
    false
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trunkline_config::LocalProgram;

    use super::*;

    struct ListingsFolder(PathBuf);

    impl ListingsFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for ListingsFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn listing() -> CapabilityListing {
        let tool = json!({ "name": "t", "title": "T", "description": "d", "x-own": 1.50,
            "inputSchema": { "type": "object", "properties": { "n": { "type": "integer", "maximum": 12345678901234567890_u64 } } },
            "outputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true }, "_meta": { "a/b": [1] } });
        let prompt = json!({ "name": "p", "arguments": [{ "name": "a", "required": true }] });
        let resource = json!({ "uri": "x:1", "name": "r", "mimeType": "text/plain", "size": 3,
            "annotations": { "priority": 0.5 } });
        let template = json!({ "uriTemplate": "x:{n}", "name": "m" });
        let listing = UpstreamListing {
            tools: Arc::new(vec![Tool::read(&RawJson::from(&tool)).unwrap()]),
            prompts: Arc::new(vec![Prompt::read(&RawJson::from(&prompt)).unwrap()]),
            resources: Arc::new(vec![Resource::read(&RawJson::from(&resource)).unwrap()]),
            templates: Arc::new(vec![ResourceTemplate::read(&RawJson::from(&template)).unwrap()]),
            has_resources: true,
            ..UpstreamListing::default()
        };
        (key(Era::Legacy, 5), Arc::new(listing))
    }

    fn key(era: Era, capabilities: u8) -> ListingKey {
        ListingKey { era, input: InputSet::from_bits(capabilities) }
    }

    fn server(reach: &ServerLocation, listings: &[CapabilityListing]) -> Option<StoredServer> {
        let era = |revision| StoredEra::new(revision, true, Some("advice".to_owned()), listings);
        StoredServer::new(reach, vec![era(Revision::NEWEST), era(Revision::NEWEST_LEGACY)], Vec::new())
    }

    /// Returns the listings of all eras.
    fn listings(stored: &StoredServer) -> Vec<CapabilityListing> {
        stored.eras.iter().flat_map(|stored| stored.listings(stored.era().unwrap())).collect()
    }

    #[test]
    fn stored_listings_are_restored_only_for_the_same_server() {
        let folder = ListingsFolder::new("listing-read-back");
        let path = folder.0.join("deep").join("file.json");
        let (name, reach) =
            (ServerName::parse("a").unwrap(), ServerLocation::Program(LocalProgram::new("one")));
        let file = ListingsFile::open(path.clone());
        assert!(file.server(&name, &reach).is_none());
        file.save(vec![(name.clone(), server(&reach, &[listing()]))]).unwrap();
        // A server that lists nothing in the next run keeps its stored listings.
        ListingsFile::open(path.clone()).save(vec![(name.clone(), None)]).unwrap();
        let file = ListingsFile::open(path.clone());
        let stored = file.server(&name, &reach).unwrap();
        assert_eq!(listings(&stored), [listing()]);
        let era = stored.eras.first().unwrap();
        assert_eq!((&*era.revision, era.keeps_sessions), (Revision::NEWEST_LEGACY.as_str(), true));
        assert!(file.server(&name, &ServerLocation::Program(LocalProgram::new("two"))).is_none());
        let other = (key(Era::Legacy, 1), listing().1);
        file.save(vec![(name.clone(), server(&reach, std::slice::from_ref(&other)))]).unwrap();
        let stored = ListingsFile::open(path.clone()).server(&name, &reach).unwrap();
        assert_eq!(listings(&stored), [other, listing()], "those of other capabilities are kept");
        file.save(Vec::new()).unwrap();
        assert!(ListingsFile::open(path).server(&name, &reach).is_none(), "it is no longer configured");
    }

    #[test]
    fn stored_listings_last_until_their_era_or_revision_changes() {
        let reach = ServerLocation::Program(LocalProgram::new("one"));
        let legacy = listing();
        let modern = (key(Era::Modern, 5), Arc::new(UpstreamListing::default()));
        let old = server(&reach, std::slice::from_ref(&legacy));
        let new = |not_spoken| {
            let era = StoredEra::new(Revision::NEWEST, false, None, std::slice::from_ref(&modern));
            StoredServer::new(&reach, vec![era], not_spoken)
        };
        let merged = StoredServer::merged(old.clone(), new(Vec::new())).unwrap();
        assert_eq!(listings(&merged), [legacy.clone(), modern.clone()]);
        let merged = StoredServer::merged(old.clone(), new(vec![Era::Legacy])).unwrap();
        assert_eq!(listings(&merged), std::slice::from_ref(&modern));
        assert_eq!(merged.not_spoken(), [Era::Legacy]);
        let merged = StoredServer::merged(Some(merged), new(Vec::new())).unwrap();
        assert_eq!(merged.not_spoken(), [Era::Legacy], "it was not tried again");
        let merged = StoredServer::merged(Some(merged), old.clone()).unwrap();
        assert!(merged.not_spoken().is_empty(), "it speaks it by now");
        let other = (key(Era::Legacy, 1), legacy.1.clone());
        let era = StoredEra::new(Revision::V2024_11_05, true, None, std::slice::from_ref(&other));
        let merged = StoredServer::merged(old, StoredServer::new(&reach, vec![era], Vec::new())).unwrap();
        assert_eq!(listings(&merged), [other]);
    }

    #[test]
    fn listings_file_of_format_1_is_ignored_and_replaced() {
        let folder = ListingsFolder::new("listing-first-format");
        let path = folder.0.join("file.json");
        let (name, reach) =
            (ServerName::parse("a").unwrap(), ServerLocation::Program(LocalProgram::new("one")));
        let described = json!({ "reach": reach_digest(&reach), "revision": Revision::NEWEST.as_str(), "keeps_sessions": false,
            "instructions": null, "listings": [] });
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(&path, json!({ "format": 1, "servers": { "a": described } }).to_string()).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("format 1 in place of 2"));
        let file = ListingsFile::open(path.clone());
        assert!(file.server(&name, &reach).is_none());
        file.save(vec![(name.clone(), server(&reach, &[listing()]))]).unwrap();
        assert!(ListingsFile::open(path).server(&name, &reach).is_some());
    }

    #[test]
    fn untrusted_or_broken_listings_file_counts_as_empty() {
        let folder = ListingsFolder::new("listing-broken");
        let path = folder.0.join("file.json");
        let (name, reach) =
            (ServerName::parse("a").unwrap(), ServerLocation::Program(LocalProgram::new("one")));
        let file = ListingsFile::open(path.clone());
        file.save(vec![(name.clone(), server(&reach, &[listing()]))]).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        for broken in
            ["", "{", "[]", &good.replace("\"format\":2", "\"format\":1"), good.split_at(good.len() / 2).0]
        {
            std::fs::write(&path, broken).unwrap();
            assert!(ListingsFile::open(path.clone()).server(&name, &reach).is_none(), "{broken}");
        }
        std::fs::write(&path, &good).unwrap();
        assert!(ListingsFile::open(path.clone()).server(&name, &reach).is_some());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            assert!(ListingsFile::open(path).server(&name, &reach).is_none(), "others can write to it");
        }
    }

    #[test]
    fn server_with_oversized_listings_is_not_stored() {
        let reach = ServerLocation::Program(LocalProgram::new("one"));
        let long = json!({ "name": "t", "description": "d".repeat(MAX_SERVER_BYTES), "inputSchema": { "type": "object" } });
        let tools = Arc::new(vec![Tool::read(&RawJson::from(&long)).unwrap()]);
        let listing =
            (key(Era::Modern, 0), Arc::new(UpstreamListing { tools, ..UpstreamListing::default() }));
        assert!(server(&reach, &[listing]).is_none());
    }
}
