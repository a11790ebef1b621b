//! A token store with its key in the keychain of the system: `cargo xtask keychain` runs this in a session with a Secret
//! Service of its own.

use std::time::SystemTime;

use trunkline_auth::scopes::ScopeSet;
use trunkline_auth::token_set::{AccessTokenKind, TokenContext, TokenSet};
use trunkline_auth::token_store::{
    FileTokenStore, StoreKey, TokenFileError, TokenGeneration, TokenKey, TokenStore as _,
};
use trunkline_transport::Secret;

fn tokens() -> (TokenKey, TokenSet) {
    let key = TokenKey {
        principal: "u".to_owned(),
        server_url: "https://server.example/mcp".to_owned(),
        issuer: "https://a".to_owned(),
        client_id: "client".to_owned(),
        account: None,
    };
    let context = TokenContext {
        issuer: "https://a".to_owned(),
        token_endpoint: "https://a/token".to_owned(),
        revocation_endpoint: None,
        client_id: "client".to_owned(),
        resource: None,
        requested: ScopeSet::default(),
    };
    let tokens = TokenSet {
        access_token: Secret::new("sentinel-access"),
        kind: AccessTokenKind::Bearer,
        refresh_token: None,
        issued_at: SystemTime::UNIX_EPOCH,
        expires_at: None,
        granted: ScopeSet::default(),
        dpop_key: None,
        user: None,
        context,
    };
    (key, tokens)
}

#[tokio::test]
async fn key_is_made_in_the_keychain_once_and_opens_what_it_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store/tokens.json");
    // The library blocks, which a thread of a runtime must not.
    let keychain = async |name: &'static str| {
        let reading = tokio::task::spawn_blocking(move || StoreKey::from_keychain(name));
        reading.await.unwrap().unwrap()
    };
    let (key, saved) = tokens();
    let first = FileTokenStore::open(&path, keychain("test key").await).unwrap();
    assert_eq!(first.protection().to_string(), "sealed, key in the keychain");
    first.save(&key, &saved, TokenGeneration::ABSENT).await.unwrap();
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(!stored.contains("sentinel") && !stored.contains("server.example"), "{stored}");
    let second = FileTokenStore::open(&path, keychain("test key").await).unwrap();
    assert_eq!(second.load(&key).await.unwrap().unwrap().tokens, saved);
    let other = FileTokenStore::open(&path, keychain("another key").await);
    assert!(matches!(&other, Err(TokenFileError::OtherKey(_))), "{other:?}");
}
