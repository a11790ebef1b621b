use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::super::contract::{client, key, still_waits};
use super::*;
use crate::token_set::tests::tokens;

/// A key file that lasts as long as the tests.
static KEY_FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn key_file(name: &str, secret: &[u8]) -> PathBuf {
    let path = KEY_FOLDER.path().join(name);
    replace::replace(&path, secret).unwrap();
    path
}

pub(in crate::token_store) fn sealing_key() -> StoreKey {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| key_file("sealing", &[7; 32]));
    StoreKey::from_files([&*FILE]).unwrap()
}

struct StoreFolder {
    folder: tempfile::TempDir,
}

impl StoreFolder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with_folder() -> Self {
        let folder = Self::new();
        replace::create_private_folder(folder.path().parent().unwrap()).unwrap();
        folder
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store/tokens.json")
    }

    fn open(&self, key: StoreKey) -> Result<FileTokenStore, TokenFileError> {
        FileTokenStore::open(self.path(), key)
    }

    async fn with_login(key_of_store: StoreKey) -> Self {
        let folder = Self::new();
        let store = folder.open(key_of_store).unwrap();
        let set = tokens("sentinel-a", Some("sentinel-r"), 1);
        store.save(&key("u", "https://h"), &set, TokenGeneration::ABSENT).await.unwrap();
        store.save_client(&client("https://a", "id", "r")).await.unwrap();
        folder
    }
}

#[cfg(unix)]
#[tokio::test]
async fn store_file_and_folder_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = StoreFolder::with_login(StoreKey::plain()).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.path();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(&path, 0o640);
    let error = folder.open(StoreKey::plain()).unwrap_err().to_string();
    assert!(error.contains("accessible to other users"), "{error}");
    set_mode(&path, 0o600);
    set_mode(path.parent().unwrap(), 0o770);
    let error = folder.open(StoreKey::plain()).unwrap_err().to_string();
    assert!(error.contains("other users can write to the folder"), "{error}");
}

#[tokio::test]
async fn sealed_file_has_nothing_readable_and_plain_file_is_not_sealed() {
    let sealed = StoreFolder::with_login(sealing_key()).await;
    let text = fs::read_to_string(sealed.path()).unwrap();
    assert!(!text.contains("sentinel") && !text.contains("https://h") && !text.contains("s3cret"), "{text}");
    let plain = StoreFolder::with_login(StoreKey::plain()).await;
    assert!(fs::read_to_string(plain.path()).unwrap().contains("sentinel-a"));
    let other = StoreKey::from_files([key_file("other", &[8; 40])]).unwrap();
    for (folder, key, expected) in [
        (&sealed, StoreKey::plain(), "is sealed, and no key was given"),
        (&sealed, other, "is sealed with another key"),
        (&plain, sealing_key(), "is not sealed although a key was given"),
    ] {
        let before = fs::read(folder.path()).unwrap();
        let error = folder.open(key).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read(folder.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn first_key_seals_and_all_keys_open() {
    let folder = StoreFolder::with_login(sealing_key()).await;
    let newer = key_file("newer", &[9; 32]);
    let both = StoreKey::from_files([newer.clone(), KEY_FOLDER.path().join("sealing")]).unwrap();
    let store = folder.open(both).unwrap();
    assert_eq!(store.protection(), &StoreProtection::KeyFile(newer.clone()));
    store.save_client(&client("https://b", "id", "r")).await.unwrap();
    let store = folder.open(StoreKey::from_files([newer]).unwrap()).unwrap();
    assert!(store.load(&key("u", "https://h")).await.unwrap().is_some());
}

#[test]
fn unusable_key_files_are_refused() {
    let short = key_file("short", &[1; 31]);
    let error = StoreKey::from_files([short]).unwrap_err().to_string();
    assert!(error.contains("fewer than 32 bytes"), "{error}");
    let error = StoreKey::from_files([KEY_FOLDER.path().join("missing")]).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert!(matches!(StoreKey::from_files::<PathBuf>([]), Err(StoreKeyError::Empty)));
    let folder = StoreFolder::with_folder();
    let beside = folder.path().with_file_name("key");
    replace::replace(&beside, &[1; 32]).unwrap();
    let error = folder.open(StoreKey::from_files([beside]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("where it protects nothing"), "{error}");
}

#[tokio::test]
async fn damaged_and_foreign_files_are_reported_and_never_overwritten() {
    let table: [(&str, &str); 7] = [
        ("", "is not a token store"),
        ("{}", "is not a token store"),
        ("# a file of someone else", "is not a token store"),
        (r#"{"format":"other","version":1}"#, "is not a token store"),
        (r#"{"format":"trunkline token store","version":2,"later":1}"#, "has version 2"),
        (r#"{"format":"trunkline token store","version":1,"plain":{"sentinel":1}}"#, "is damaged"),
        (
            r#"{"format":"trunkline token store","version":1,"sealed":{"nonce":"AA","text":"AA"}}"#,
            "is sealed",
        ),
    ];
    for (text, expected) in table {
        let folder = StoreFolder::with_folder();
        let store = folder.open(StoreKey::plain()).unwrap();
        replace::replace(&folder.path(), text.as_bytes()).unwrap();
        let error = folder.open(StoreKey::plain()).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("sentinel"), "{text}: {error}");
        // A store that was opened before notices it too.
        let saved = store.save(&key("u", "s"), &tokens("t", None, 1), TokenGeneration::ABSENT).await;
        assert!(
            matches!(&saved, Err(TokenStoreError::Unavailable(error)) if error.to_string().contains(expected)),
            "{saved:?}"
        );
        assert_eq!(fs::read_to_string(folder.path()).unwrap(), text);
    }
}

#[tokio::test]
async fn truncated_or_changed_sealed_file_never_opens() {
    let folder = StoreFolder::with_login(sealing_key()).await;
    let whole = fs::read(folder.path()).unwrap();
    for length in (1..whole.len() - 1).step_by(11) {
        fs::write(folder.path(), &whole[..length]).unwrap();
        assert!(folder.open(sealing_key()).is_err(), "{length} bytes");
        let mut changed = whole.clone();
        changed[length] ^= 1;
        fs::write(folder.path(), &changed).unwrap();
        assert!(folder.open(sealing_key()).is_err(), "byte {length}");
    }
}

#[tokio::test]
async fn refresh_lock_excludes_other_stores_of_the_file() {
    let folder = StoreFolder::new();
    assert!(!folder.path().parent().unwrap().exists(), "opening a store creates nothing");
    let (one, other) = (folder.open(StoreKey::plain()).unwrap(), folder.open(StoreKey::plain()).unwrap());
    let key = key("u", "https://h");
    let held = one.lock(&key).await.unwrap();
    for store in [&one, &other] {
        assert!(still_waits(&mut store.lock(&key), store).await, "a lock is held once");
    }
    let mut waiting = other.lock(&key);
    assert!(still_waits(&mut waiting, &other).await);
    // The file stays usable for all others.
    other.save(&key, &tokens("t", None, 1), TokenGeneration::ABSENT).await.unwrap();
    drop(held);
    drop(waiting.await.unwrap());
    drop(one.lock(&key).await.unwrap());
}

#[tokio::test]
async fn leftover_of_a_killed_writer_is_replaced() {
    let folder = StoreFolder::with_login(StoreKey::plain()).await;
    fs::write(folder.path().with_file_name("tokens.json.tmp"), "half a fi").unwrap();
    let store = folder.open(StoreKey::plain()).unwrap();
    store.save_client(&client("https://b", "id", "r")).await.unwrap();
    assert_eq!(store.load_clients().await.unwrap().len(), 2);
    assert!(!folder.path().with_file_name("tokens.json.tmp").exists());
}

#[tokio::test]
async fn generations_differ_after_the_file_was_removed() {
    let folder = StoreFolder::with_login(StoreKey::plain()).await;
    let store = folder.open(StoreKey::plain()).unwrap();
    let key = key("u", "https://h");
    let before = store.load(&key).await.unwrap().unwrap().generation;
    fs::remove_file(folder.path()).unwrap();
    assert_eq!(store.load(&key).await, Ok(None));
    let after = store.save(&key, &tokens("t", None, 1), TokenGeneration::ABSENT).await.unwrap();
    assert_ne!(before, after);
}

/// A process that ends while it writes leaves a beginning of the temporary file, of any length, or the new file.
#[tokio::test]
async fn write_that_is_cut_off_at_any_byte_leaves_the_store_as_it_was() {
    for key_of_store in [StoreKey::plain(), sealing_key()] {
        let folder = StoreFolder::with_login(key_of_store.clone()).await;
        let (path, entry) = (folder.path(), key("u", "https://h"));
        let before = fs::read(&path).unwrap();
        let store = folder.open(key_of_store.clone()).unwrap();
        let generation = store.load(&entry).await.unwrap().unwrap().generation;
        let newer = tokens("sentinel-b", Some("sentinel-s"), 2);
        store.save(&entry, &newer, generation).await.unwrap();
        let after = fs::read(&path).unwrap();
        let temporary = path.with_file_name("tokens.json.tmp");
        for length in 0..=after.len() {
            fs::write(&path, &before).unwrap();
            fs::write(&temporary, &after[..length]).unwrap();
            let store = folder.open(key_of_store.clone()).unwrap();
            let stored = store.load(&entry).await.unwrap().unwrap();
            assert_eq!(stored.tokens.access_token.expose(), "sentinel-a", "{length} bytes");
            if length % 97 == 0 || length == after.len() {
                store.save(&entry, &newer, stored.generation).await.unwrap();
                let stored = folder.open(key_of_store.clone()).unwrap().load(&entry).await.unwrap().unwrap();
                assert_eq!(stored.tokens.access_token.expose(), "sentinel-b", "{length} bytes");
                assert!(!temporary.exists(), "{length} bytes");
            }
        }
    }
}
