//! A file that an earlier build wrote, as it is checked in: every later build reads all of it.

use std::path::{Path, PathBuf};

use trunkline_protocol::{LoggingLevel, RawJson, Revision};
use trunkline_session::{
    EventId, EventReplay, EventStore as _, Principal, SessionId, SessionRecord, SessionStore as _,
    StateHandle, StateLifetime, StateRecord, StateStore as _, StreamId,
};

use crate::fixture::{NOW, ann, event, folder, keys, open};

const HANDLE: &str = "st_00112233445566778899aabbccddeeff";

/// The file with format 1, the first one. A new format gets a file of its own beside it, and this one stays.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/fixtures/format-1.redb")
}

/// The sessions in the file: one with everything that a session can have, and one with as little as possible.
fn sessions() -> [SessionRecord; 2] {
    let full = SessionRecord {
        id: SessionId::parse(b"0123456789abcdef0123456789abcdef").unwrap(),
        principal: ann(),
        revision: Revision::V2025_06_18,
        capabilities: RawJson::parse(r#"{"elicitation":{},"roots":{"listChanged":true}}"#).unwrap(),
        client: Some(RawJson::parse(r#"{"name":"old","version":"1"}"#).unwrap()),
        log_level: Some(LoggingLevel::Alert),
        subscriptions: ["a:b", "c:d"].map(str::to_owned).into(),
        created: NOW,
    };
    let bare = SessionRecord {
        id: SessionId::parse(b"fedcba9876543210fedcba9876543210").unwrap(),
        principal: Principal::Anonymous,
        revision: Revision::V2024_11_05,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: Default::default(),
        created: NOW,
    };
    [full, bare]
}

#[tokio::test]
async fn file_with_the_first_format_is_read_whole() {
    let (folder, path) = folder();
    std::fs::copy(fixture(), &path).unwrap();
    let store = open(&path, &keys(folder.path(), "fixture"));
    for record in sessions() {
        let found = store.sessions().get(record.id, &record.principal, NOW).await.unwrap();
        assert_eq!(found, Some(record));
    }
    let [full, _] = sessions();
    let first = EventId { stream: StreamId(1), seq: 0 };
    let replay = store.events().replay(full.id, first, NOW).await.unwrap();
    assert_eq!(replay, EventReplay::Events(vec![event(1, 1), event(1, 2)]));
    let handle = StateHandle::parse(HANDLE).unwrap();
    let state = store.states().get(handle, &ann(), NOW).await.unwrap().unwrap();
    assert_eq!((state.value, state.version), (RawJson::from_text("second"), 1));
}

/// Writes the file again, for a new format: `cargo test -p trunkline-store-file --test store -- --ignored fixture`.
#[tokio::test]
#[ignore = "writes the checked-in fixture"]
async fn fixture_is_written_with_the_current_format() {
    let (folder, path) = folder();
    let store = open(&path, &keys(folder.path(), "fixture"));
    for record in sessions() {
        store.sessions().create(record, NOW).await.unwrap();
    }
    let [full, _] = sessions();
    for seq in 0..3 {
        store.events().append(full.id, event(1, seq), NOW).wait().await.unwrap();
    }
    let handle = StateHandle::parse(HANDLE).unwrap();
    let value = RawJson::from_text("first");
    let state = StateRecord { handle, principal: ann(), lifetime: StateLifetime::Idle, value };
    store.states().create(state, NOW).await.unwrap();
    store.states().replace(handle, &ann(), 0, RawJson::from_text("second"), NOW).await.unwrap();
    drop(store);
    std::fs::copy(&path, fixture()).unwrap();
}
