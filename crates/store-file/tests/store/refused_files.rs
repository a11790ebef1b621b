//! Files that cannot be opened, and keys that change.

use redb::{Database, TableDefinition};
use trunkline_session::SessionStore as _;
use trunkline_store_file::{FileStore, FileStoreError, FileStoreLimits};

use crate::fixture::{NOW, ann, folder, keys, open, record};

fn refused(path: &std::path::Path, keys: &trunkline_session::StateKeys) -> FileStoreError {
    FileStore::open(path, keys, FileStoreLimits::default()).unwrap_err()
}

#[tokio::test]
async fn wrong_key_is_refused_and_the_file_stays_as_it_is() {
    let (folder, path) = folder();
    let (right, wrong) = (keys(folder.path(), "right"), keys(folder.path(), "wrong"));
    let own = record(&ann(), NOW);
    open(&path, &right).sessions().create(own.clone(), NOW).await.unwrap();
    let error = refused(&path, &wrong);
    assert!(matches!(error, FileStoreError::WrongKey(_)), "{error:?}");
    assert!(error.to_string().contains("another state key"), "{error}");
    assert!(open(&path, &right).sessions().get(own.id, &ann(), NOW).await.unwrap().is_some());
}

#[tokio::test]
async fn records_are_sealed_again_when_the_keys_change() {
    let (folder, path) = folder();
    let [first, second, third] = ["first", "second", "third"].map(|name| keys(folder.path(), name));
    let own = record(&ann(), NOW);
    open(&path, &first).sessions().create(own.clone(), NOW).await.unwrap();
    drop(open(&path, &second.clone().followed_by(&first)));
    assert!(
        matches!(refused(&path, &first), FileStoreError::WrongKey(_)),
        "the old key is not needed any more"
    );
    let store = open(&path, &second);
    assert!(store.sessions().get(own.id, &ann(), NOW).await.unwrap().is_some());
    // The same while the store is open.
    assert!(store.replace_keys(&third.clone().followed_by(&second)));
    drop(store);
    assert!(open(&path, &third).sessions().get(own.id, &ann(), NOW).await.unwrap().is_some());
}

#[tokio::test]
async fn file_of_another_process_is_refused() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let _open = open(&path, &keys);
    let error = refused(&path, &keys);
    assert!(matches!(error, FileStoreError::Locked(_)), "{error:?}");
}

#[tokio::test]
async fn newer_format_is_refused_with_a_clear_error() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    drop(open(&path, &keys));
    let database = Database::open(&path).unwrap();
    let writing = database.begin_write().unwrap();
    let header: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("header");
    writing.open_table(header).unwrap().insert("format", 2_u32.to_le_bytes().as_slice()).unwrap();
    writing.commit().unwrap();
    drop(database);
    let error = refused(&path, &keys);
    assert!(
        matches!(&error, FileStoreError::Newer { detail, .. } if detail.contains("format 2")),
        "{error:?}"
    );
}

#[test]
fn foreign_file_is_rejected_and_left_unchanged() {
    let (folder, path) = folder();
    let keys = keys(folder.path(), "one");
    let text = "not a database ".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    let error = refused(&path, &keys);
    assert!(matches!(error, FileStoreError::Damaged { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let nowhere = folder.path().join("missing/sessions.redb");
    let error = refused(&nowhere, &keys);
    assert!(matches!(error, FileStoreError::Unusable { .. }), "{error:?}");
}
