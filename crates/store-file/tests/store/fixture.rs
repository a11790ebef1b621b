use std::path::{Path, PathBuf};

use bytes::Bytes;
use trunkline_protocol::{RawJson, Revision};
use trunkline_session::{
    EventId, Principal, SessionId, SessionRecord, StateKeys, StreamEvent, StreamId, Timestamp,
};
use trunkline_store_file::{FileStore, FileStoreLimits};

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A folder of its own, and the path of a store in it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.redb");
    (folder, path)
}

/// The keys of a file with this content.
pub(crate) fn keys(folder: &Path, content: &str) -> StateKeys {
    let path = folder.join(format!("{}.key", content.chars().take(8).collect::<String>()));
    std::fs::write(&path, content.repeat(32)).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    StateKeys::from_files([path]).unwrap()
}

pub(crate) fn open(path: &Path, keys: &StateKeys) -> FileStore {
    FileStore::open(path, keys, FileStoreLimits::default()).unwrap()
}

pub(crate) fn ann() -> Principal {
    Principal::Named("ann".into())
}

pub(crate) fn record(principal: &Principal, created: Timestamp) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: principal.clone(),
        revision: Revision::V2025_06_18,
        capabilities: RawJson::parse(r#"{"sampling":{}}"#).unwrap(),
        client: Some(RawJson::parse(r#"{"name":"sentinel"}"#).unwrap()),
        log_level: None,
        subscriptions: ["test://sentinel".to_owned()].into(),
        created,
    }
}

pub(crate) fn event(stream: u64, seq: u64) -> StreamEvent {
    StreamEvent {
        id: EventId { stream: StreamId(stream), seq },
        data: Bytes::from(format!("sentinel {seq}")),
    }
}
