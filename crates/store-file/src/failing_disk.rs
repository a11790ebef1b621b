//! A disk that fails for a while, as a full one does.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{Database, StorageBackend};
use trunkline_protocol::{RawJson, Revision};
use trunkline_session::{
    EventId, EventReplay, EventStore as _, Principal, SessionId, SessionRecord, SessionStore as _, StateKeys,
    StoreError, StreamEvent, StreamId, Timestamp,
};

use crate::error::DatabaseFailure;
use crate::{FileStore, FileStoreLimits};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

#[derive(Clone, Debug, Default)]
struct FailingDisk {
    content: Arc<Mutex<Vec<u8>>>,
    is_failing: Arc<AtomicBool>,
}

impl FailingDisk {
    fn check(&self) -> io::Result<()> {
        match self.is_failing.load(Ordering::SeqCst) {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }

    fn open(&self) -> Result<Database, DatabaseFailure> {
        Ok(Database::builder().create_with_file_format_v3(true).create_with_backend(self.clone())?)
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let content = self.content.lock();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        content.get(start..start + len).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.content.lock().resize(usize::try_from(len).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut content = self.content.lock();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start + data.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        Ok(())
    }
}

fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: Principal::Anonymous,
        revision: Revision::NEWEST_LEGACY,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: std::collections::BTreeSet::new(),
        created: NOW,
    }
}

fn event(seq: u64) -> StreamEvent {
    StreamEvent { id: EventId { stream: StreamId(1), seq }, data: Bytes::from_static(b"x") }
}

#[tokio::test]
async fn failed_writes_are_refused_and_made_up_for() {
    let (disk, keys) = (FailingDisk::default(), StateKeys::random().unwrap());
    let open = || {
        let reopened = disk.clone();
        let reopen = Box::new(move || reopened.open());
        let path: Arc<Path> = Path::new("in memory").into();
        FileStore::start(path, disk.open().unwrap(), reopen, &keys, FileStoreLimits::default()).unwrap()
    };
    let store = open();
    let (before, during, after) = (record(), record(), record());
    store.sessions().create(before.clone(), NOW).await.unwrap();
    store.events().append(before.id, event(0), NOW).wait().await.unwrap();

    disk.is_failing.store(true, Ordering::SeqCst);
    let refused = store.sessions().create(during.clone(), NOW).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = store.events().append(before.id, event(1), NOW).wait().await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = store.sessions().delete(before.id, &Principal::Anonymous).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let found = store.sessions().get(before.id, &Principal::Anonymous, NOW).await.unwrap();
    assert!(found.is_some(), "what is stored can still be read");

    disk.is_failing.store(false, Ordering::SeqCst);
    while store.sessions().create(after.clone(), NOW).await.is_err() {
        tokio::task::yield_now().await;
    }
    drop(store);
    let store = open();
    for (record, is_kept) in [(&before, true), (&during, false), (&after, true)] {
        let found = store.sessions().get(record.id, &Principal::Anonymous, NOW).await.unwrap();
        assert_eq!(found.is_some(), is_kept);
    }
    let replay = store.events().replay(before.id, event(0).id, NOW).await.unwrap();
    assert_eq!(replay, EventReplay::Events(Vec::new()), "a refused event is not replayed");
}
