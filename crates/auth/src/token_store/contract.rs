//! What every [`TokenStore`] does, checked for each.

use std::sync::Arc;

use futures_util::FutureExt as _;

use super::*;
use crate::registration::{ClientCredential, ClientRegistration, RegistrationSource};
use crate::token_request::TokenAuthMethod;
use crate::token_set::tests::tokens;
use trunkline_transport::Secret;

pub(super) fn key(principal: &str, server: &str) -> TokenKey {
    TokenKey {
        principal: principal.to_owned(),
        server_url: server.to_owned(),
        issuer: "https://a".to_owned(),
        client_id: "client".to_owned(),
        account: None,
    }
}

pub(super) fn client(issuer: &str, id: &str, redirect: &str) -> ClientRegistration {
    ClientRegistration {
        issuer: issuer.to_owned(),
        client_id: id.to_owned(),
        credential: ClientCredential::Secret(Secret::new("s3cret")),
        auth_method: TokenAuthMethod::ClientSecretPost,
        source: RegistrationSource::Dynamic,
        redirect_uri: Some(redirect.to_owned()),
        secret_expires_at: Some(crate::token_set::tests::at(5)),
    }
}

/// One store of each kind, with what it needs until the end of the test.
fn stores() -> Vec<(Arc<dyn TokenStore>, Option<tempfile::TempDir>)> {
    let file = |key: StoreKey| -> (Arc<dyn TokenStore>, _) {
        let folder = tempfile::tempdir().unwrap();
        let store = FileTokenStore::open(folder.path().join("new/tokens.json"), key).unwrap();
        (Arc::new(store), Some(folder))
    };
    let sealed = file::tests::sealing_key();
    vec![(Arc::new(MemoryTokenStore::default()), None), file(StoreKey::plain()), file(sealed)]
}

#[tokio::test]
async fn write_over_newer_generation_is_a_conflict() {
    for (store, _folder) in stores() {
        let key = key("u", "https://h");
        assert_eq!(store.load(&key).await, Ok(None));
        let first = store.save(&key, &tokens("t1", None, 1), TokenGeneration::ABSENT).await.unwrap();
        let second = store.save(&key, &tokens("t2", None, 1), first).await.unwrap();
        let conflict = Err(TokenStoreError::Conflict);
        assert_eq!(store.save(&key, &tokens("t3", None, 1), first).await, conflict);
        assert_eq!(store.save(&key, &tokens("t3", None, 1), TokenGeneration::ABSENT).await, conflict);
        assert_eq!(store.remove(&key, first).await, Err(TokenStoreError::Conflict));
        assert_eq!(store.load(&key).await.unwrap().unwrap().tokens.access_token.expose(), "t2");
        store.remove(&key, second).await.unwrap();
        assert_eq!(store.load(&key).await, Ok(None));
        let again = store.save(&key, &tokens("t4", None, 1), TokenGeneration::ABSENT).await.unwrap();
        assert!(again > second, "a new entry never has the generation of an old one");
    }
}

#[tokio::test]
async fn stored_tokens_are_loaded_as_they_were_saved() {
    for (store, _folder) in stores() {
        let least = TokenSet { expires_at: None, ..tokens("a", None, 1) };
        let most = TokenSet {
            kind: crate::token_set::AccessTokenKind::Dpop,
            dpop_key: Some(Secret::new("pkcs8")),
            user: Some("Ann".to_owned()),
            ..tokens("b", Some("r"), 1_000)
        };
        for (account, set) in [(None, least), (Some("work".to_owned()), most)] {
            let key = TokenKey { account, ..key("u", "https://h") };
            let generation = store.save(&key, &set, TokenGeneration::ABSENT).await.unwrap();
            assert_eq!(store.load(&key).await, Ok(Some(StoredTokens { tokens: set, generation })));
        }
    }
}

#[tokio::test]
async fn keys_are_listed_by_principal() {
    for (store, _folder) in stores() {
        for (principal, server) in [("u", "https://b"), ("u", "https://a"), ("v", "https://a")] {
            let saved =
                store.save(&key(principal, server), &tokens("t", None, 1), TokenGeneration::ABSENT).await;
            assert!(saved.is_ok());
        }
        assert_eq!(store.list("u").await.unwrap(), [key("u", "https://a"), key("u", "https://b")]);
        assert_eq!(store.list("w").await.unwrap(), []);
        assert_eq!(store.load(&key("w", "https://a")).await, Ok(None));
        let all = [key("u", "https://a"), key("u", "https://b"), key("v", "https://a")];
        assert_eq!(store.list_all().await.unwrap(), all);
    }
}

#[tokio::test]
async fn client_registrations_are_kept_by_issuer() {
    for (store, _folder) in stores() {
        for (issuer, id, redirect) in [("a", "1", "r"), ("a", "2", "r"), ("a", "3", "s"), ("b", "4", "r")] {
            store.save_client(&client(issuer, id, redirect)).await.unwrap();
        }
        let loaded = async |issuer: &str| {
            let clients = store.load_clients().await.unwrap();
            clients.into_iter().filter(|client| client.issuer == issuer).collect::<Vec<_>>()
        };
        assert_eq!(loaded("a").await, [client("a", "2", "r"), client("a", "3", "s")]);
        store.remove_client("a", "3").await.unwrap();
        store.remove_client("a", "4").await.unwrap();
        assert_eq!(loaded("a").await, [client("a", "2", "r")]);
        assert_eq!(loaded("b").await, [client("b", "4", "r")]);
        for id in ["5", "6", "5"] {
            let source = RegistrationSource::Preregistered;
            store.save_client(&ClientRegistration { source, ..client("c", id, "r") }).await.unwrap();
        }
        assert_eq!(loaded("c").await.len(), 2, "an operator may register several clients");
    }
}

/// Reports whether a lock is waited for, after all that the store does before it waits is done.
pub(super) async fn still_waits(waiting: &mut StoreFuture<'_, TokenLock>, store: &dyn TokenStore) -> bool {
    for _ in 0..10 {
        if waiting.now_or_never().is_some() {
            return false;
        }
        store.list_all().await.unwrap();
    }
    true
}

#[tokio::test]
async fn concurrent_refreshes_of_one_key_are_serialized() {
    for (store, _folder) in stores() {
        let key = key("u", "https://h");
        let held = store.lock(&key).await.unwrap();
        let mut waiting = store.lock(&key);
        assert!(still_waits(&mut waiting, &*store).await);
        drop(held);
        drop(waiting.await.unwrap());
    }
}

#[tokio::test]
async fn no_debug_output_of_a_store_has_a_token() {
    for (store, _folder) in stores() {
        let key = key("u", "https://h");
        store.save(&key, &tokens("sentinel", Some("sentinel"), 1), TokenGeneration::ABSENT).await.unwrap();
        let stored = store.load(&key).await.unwrap().unwrap();
        let clients = store.load_clients().await.unwrap();
        assert!(!format!("{stored:?}{clients:?}").contains("sentinel"));
    }
}

#[test]
fn token_store_is_bounded() {
    let mut entries = entries::TokenEntries::default();
    let set = tokens("t", None, 1);
    for n in 0..MAX_STORED_ENTRIES {
        entries.save(&key("u", &n.to_string()), &set, TokenGeneration::ABSENT).unwrap();
    }
    let result = entries.save(&key("u", "more"), &set, TokenGeneration::ABSENT);
    assert_eq!(result, Err(TokenStoreError::Full));
    assert!(!format!("{entries:?}").contains("\"t\""));
}
