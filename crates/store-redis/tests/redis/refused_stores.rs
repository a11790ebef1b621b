//! Stores that are not opened, and keys that change.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_session::{SessionStore as _, StateKeys};
use trunkline_store_redis::{RedisStore, RedisStoreError, RedisStoreLimits};

use crate::fixture::{NOW, ann, open, record};
use crate::server::{RedisProcess, free_port};

async fn refused(url: &str, keys: &StateKeys) -> RedisStoreError {
    RedisStore::open(&url.parse().unwrap(), keys, RedisStoreLimits::default()).await.unwrap_err()
}

#[tokio::test]
async fn wrong_key_is_refused_and_another_prefix_is_another_store() {
    let (server, right, wrong) =
        (RedisProcess::start(), StateKeys::random().unwrap(), StateKeys::random().unwrap());
    let own = record(&ann(), NOW);
    open(&server.url(), &right, RedisStoreLimits::default())
        .await
        .sessions()
        .create(own.clone(), NOW)
        .await
        .unwrap();
    let error = refused(&server.url(), &wrong).await;
    assert!(matches!(error, RedisStoreError::WrongKey(_)), "{error:?}");
    let other = open(&format!("{}?prefix=other", server.url()), &wrong, RedisStoreLimits::default()).await;
    assert_eq!(other.sessions().get(own.id, &ann(), NOW).await, Ok(None));
    let store = open(&server.url(), &right, RedisStoreLimits::default()).await;
    assert_eq!(store.sessions().get(own.id, &ann(), NOW).await, Ok(Some(own)));
}

#[tokio::test]
async fn newer_format_is_refused_with_a_clear_error() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    drop(open(&server.url(), &keys, RedisStoreLimits::default()).await);
    server.command(&["HSET", "{trunkline}:header", "format", "2"]);
    let error = refused(&server.url(), &keys).await;
    assert!(matches!(error, RedisStoreError::Newer { format: 2, supported: 1, .. }), "{error:?}");
}

#[tokio::test]
async fn unreachable_server_is_named_without_its_password() {
    let url = format!("redis://hub:sentinel@127.0.0.1:{}", free_port());
    let error = refused(&url, &StateKeys::random().unwrap()).await;
    assert!(matches!(error, RedisStoreError::Unreachable { .. }), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(text.contains("127.0.0.1") && !text.contains("sentinel"), "{text}");
}

#[tokio::test]
async fn server_that_is_no_redis_is_reported_as_such() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let answered = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream.flush().await.unwrap();
        // The connection stays open until the answer was read.
        while stream.read_u8().await.is_ok() {}
    });
    let error = refused(&url, &StateKeys::random().unwrap()).await;
    assert!(matches!(error, RedisStoreError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().ends_with("does not speak the protocol of Redis"), "{error}");
    answered.await.unwrap();
}

#[tokio::test]
async fn records_of_an_older_key_are_read_and_new_ones_are_sealed_with_the_first() {
    let server = RedisProcess::start();
    let [old, new] = [StateKeys::random().unwrap(), StateKeys::random().unwrap()];
    let [before, after] = [record(&ann(), NOW), record(&ann(), NOW)];
    let first = open(&server.url(), &old, RedisStoreLimits::default()).await;
    first.sessions().create(before.clone(), NOW).await.unwrap();
    // While the store is open, and at a start.
    assert!(first.replace_keys(&new.clone().followed_by(&old)));
    let store = open(&server.url(), &new.clone().followed_by(&old), RedisStoreLimits::default()).await;
    store.sessions().create(after.clone(), NOW).await.unwrap();
    assert_eq!(store.sessions().get(before.id, &ann(), NOW).await, Ok(Some(before.clone())));
    let store = open(&server.url(), &new, RedisStoreLimits::default()).await;
    assert_eq!(store.sessions().get(after.id, &ann(), NOW).await, Ok(Some(after)));
    assert_eq!(store.sessions().get(before.id, &ann(), NOW).await, Ok(None), "its key is gone");
}
