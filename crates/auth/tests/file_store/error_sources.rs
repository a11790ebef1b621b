//! The errors that caused an error of a refresh or of the store.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, Uri};
use trunkline_auth::authorizer::{AuthorizationError, AuthorizationOptions, Authorizer, RefreshError};
use trunkline_auth::fetch::FetchError;
use trunkline_auth::token_store::{
    FileTokenStore, MemoryTokenStore, StoreKey, TokenFileError, TokenGeneration, TokenStore, TokenStoreError,
};
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

use crate::store::{key, tokens};

const SERVER: &str = "http://127.0.0.1:1/mcp";

/// Looks for a cause of an error by its type.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let first = error.source();
    std::iter::successors(first, |&cause: &&(dyn Error + 'static)| cause.source())
        .find_map(|cause| cause.downcast_ref())
}

/// Asserts that no text of an error or of its causes contains a secret.
fn assert_without(error: &(dyn Error + 'static), secret: &str) {
    for error in std::iter::successors(Some(error), |&error: &&(dyn Error + 'static)| error.source()) {
        assert!(!format!("{error} {error:?}").contains(secret), "{error:?}");
    }
}

/// Makes a request with a token that has to be refreshed first.
async fn refresh(store: Arc<dyn TokenStore>) -> AuthorizationError {
    let mut options = AuthorizationOptions::client_secret("client", "sentinel");
    options.store = store;
    options.principal = "u".to_owned();
    let authorizer = Authorizer::new(options, &SERVER.parse().unwrap(), Dialer::default());
    authorizer.begin("tools/call").headers(&Method::POST, &Uri::from_static(SERVER)).await.unwrap_err()
}

#[tokio::test]
async fn failed_refresh_has_the_failed_connection_as_its_cause() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut expired = tokens("sentinel");
    expired.refresh_token = Some(Secret::new("sentinel"));
    expired.expires_at = Some(SystemTime::now() - Duration::from_secs(60));
    expired.context.token_endpoint = format!("http://{closed}/token");
    let store = Arc::new(MemoryTokenStore::default());
    store.save(&key(SERVER), &expired, TokenGeneration::ABSENT).await.unwrap();
    let error = refresh(store).await;
    let refresh: Option<&Arc<RefreshError>> = cause(&error);
    assert!(matches!(refresh.map(|error| &**error), Some(RefreshError::Fetch(_))), "{error:?}");
    assert!(matches!(cause(&error), Some(FetchError::Http { .. })), "{error:?}");
    assert_without(&error, "sentinel");
}

#[tokio::test]
async fn failed_store_has_the_error_of_its_file_as_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let store = FileTokenStore::open(&path, StoreKey::plain()).unwrap();
    // A folder in the place of the file cannot be read as one.
    std::fs::create_dir(&path).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let error = store.load(&key(SERVER)).await.unwrap_err();
    assert!(matches!(cause(&error), Some(TokenFileError::Io { .. })), "{error:?}");
    assert!(cause::<io::Error>(&error).is_some(), "{error:?}");
    let error = refresh(Arc::new(store)).await;
    assert!(matches!(cause(&error), Some(TokenStoreError::Unavailable(_))), "{error:?}");
    assert!(cause::<io::Error>(&error).is_some(), "{error:?}");
}

#[tokio::test]
async fn damaged_store_has_no_cause_that_quotes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let content = r#"{"format":"trunkline token store","version":1,"plain":{"tokens":"sentinel"}}"#;
    for content in [content, "sentinel"] {
        std::fs::write(&path, content).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = FileTokenStore::open(&path, StoreKey::plain()).unwrap_err();
        assert_without(&error, "sentinel");
        assert_without(&TokenStoreError::from(error), "sentinel");
    }
}
