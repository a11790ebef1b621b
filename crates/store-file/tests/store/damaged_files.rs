//! Files that were cut off or overwritten: they are refused, or read as far as they are intact.

use std::path::Path;

use trunkline_session::{EventStore as _, SessionRecord, SessionStore as _, StateKeys};
use trunkline_store_file::{FileStore, FileStoreError, FileStoreLimits};

use crate::fixture::{NOW, ann, event, folder, keys, open, record};

/// How many files are damaged in each way; a longer run sets another number.
const COUNT_VARIABLE: &str = "DAMAGED_FILES";
const COUNT: usize = 40;

fn count() -> usize {
    std::env::var(COUNT_VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT)
}

/// Returns the content of a file with sessions, and the sessions.
async fn filled(path: &Path, keys: &StateKeys) -> (Vec<u8>, Vec<SessionRecord>) {
    let store = open(path, keys);
    let records: Vec<_> = (0..50).map(|_| record(&ann(), NOW)).collect();
    for own in &records {
        store.sessions().create(own.clone(), NOW).await.unwrap();
        store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    }
    drop(store);
    (std::fs::read(path).unwrap(), records)
}

/// Opens a damaged file, and returns whether it was accepted; then it has sessions as they were, or does not have them.
async fn is_accepted(path: &Path, keys: &StateKeys, records: &[SessionRecord]) -> bool {
    let store = match FileStore::open(path, keys, FileStoreLimits::default()) {
        Ok(store) => store,
        Err(error) => {
            let text = error.to_string();
            assert!(
                matches!(
                    error,
                    FileStoreError::Damaged { .. }
                        | FileStoreError::WrongKey(_)
                        | FileStoreError::Newer { .. }
                ),
                "{error:?}"
            );
            assert!(text.contains("sessions.redb"), "{text}");
            return false;
        }
    };
    for own in records {
        let found = store.sessions().get(own.id, &ann(), NOW).await.unwrap();
        assert!(found.is_none_or(|found| found == *own), "a session has changed");
    }
    // It may still be impossible to write, which no caller waits for in vain.
    let created = store.sessions().create(record(&ann(), NOW), NOW).await;
    drop(created);
    true
}

#[tokio::test]
async fn file_that_was_cut_off_is_refused_and_nothing_panics() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "cut");
    let (content, records) = filled(&path, &keys).await;
    let mut refused = 0;
    for step in 1..=count() {
        let length = content.len() * step / (count() + 1) / 512 * 512 + step % 3;
        std::fs::write(&path, &content[..length]).unwrap();
        refused += usize::from(!is_accepted(&path, &keys, &records).await);
    }
    assert!(refused > count() / 2, "{refused} of {} were refused", count());
}

#[tokio::test]
async fn file_that_was_overwritten_in_part_never_has_another_content() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "overwritten");
    let (content, records) = filled(&path, &keys).await;
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    for step in 0..count() {
        let mut damaged = content.clone();
        // Every third time within the header, which decides how the rest is read.
        let within = if step % 3 == 0 { 320 } else { content.len() };
        for _ in 0..1 + next(4) {
            let (at, length) = (next(within), 1 + next(64));
            let end = (at + length).min(damaged.len());
            damaged[at..end].iter_mut().for_each(|byte| *byte = u8::try_from(next(256)).unwrap());
        }
        std::fs::write(&path, &damaged).unwrap();
        is_accepted(&path, &keys, &records).await;
    }
}
