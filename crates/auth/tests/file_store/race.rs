//! Refreshes that happen at once, in one process and in several.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode, Uri};
use trunkline_auth::authorizer::{AuthorizationError, AuthorizationOptions, Authorizer};
use trunkline_auth::registration::ClientCredential;
use trunkline_auth::token_set::TokenSet;
use trunkline_auth::token_store::{FileTokenStore, MemoryTokenStore, TokenGeneration, TokenKey, TokenStore};
use trunkline_auth::user_agent::{PreparedRedirect, UserAgent, UserAgentError};
use trunkline_transport::Secret;
use trunkline_transport::dial::Dialer;

use crate::child;
use crate::store::{create, key, open, tokens};
use crate::token_endpoint::TokenEndpoint;

const SERVER: &str = "http://127.0.0.1:1/mcp";
const CALLS: usize = 50;

/// No user is there.
#[derive(Debug)]
struct NoUser;

impl UserAgent for NoUser {
    fn prepare<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> futures_util::future::BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        Box::pin(async { Err(UserAgentError::Unavailable("test".to_owned())) })
    }
}

fn authorizer(store: Arc<dyn TokenStore>) -> Arc<Authorizer> {
    let mut options = AuthorizationOptions::code_flow(NoUser).with_store(store);
    options.principal = "u".to_owned();
    Arc::new(Authorizer::new(options, &SERVER.parse().unwrap(), Dialer::default()))
}

/// Returns tokens that expired an hour ago.
fn expired(endpoint: &TokenEndpoint) -> TokenSet {
    let mut set = tokens("a0");
    set.refresh_token = Some(Secret::new("r0"));
    set.issued_at = SystemTime::now() - Duration::from_secs(7200);
    set.expires_at = Some(SystemTime::now() - Duration::from_secs(3600));
    set.context.token_endpoint.clone_from(&endpoint.url);
    set
}

fn own_key() -> TokenKey {
    key(SERVER)
}

async fn save_expired(store: &dyn TokenStore, endpoint: &TokenEndpoint) {
    store.save(&own_key(), &expired(endpoint), TokenGeneration::ABSENT).await.unwrap();
}

async fn token_of(authorizer: &Authorizer) -> Result<String, AuthorizationError> {
    let mut attempt = authorizer.begin("tools/call x");
    let headers = attempt.headers(&Method::POST, &Uri::from_static(SERVER)).await?;
    Ok(headers.get(AUTHORIZATION).map_or("none", |value| value.to_str().unwrap()).to_owned())
}

/// Makes calls at once, and returns the different tokens that they used.
async fn call_at_once(authorizers: &[Arc<Authorizer>]) -> Vec<String> {
    let calls = (0..CALLS).flat_map(|_| authorizers).cloned();
    let calls: Vec<_> =
        calls.map(|authorizer| tokio::spawn(async move { token_of(&authorizer).await.unwrap() })).collect();
    let mut used = Vec::new();
    for call in calls {
        used.push(call.await.unwrap());
    }
    used.sort();
    used.dedup();
    used
}

async fn stored(store: &dyn TokenStore) -> TokenSet {
    store.load(&own_key()).await.unwrap().unwrap().tokens
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_calls_on_an_expired_token_refresh_it_once() {
    let (_folder, path) = create();
    let stores: [Arc<dyn TokenStore>; 2] = [Arc::new(MemoryTokenStore::default()), Arc::new(open(&path))];
    for store in stores {
        let endpoint = TokenEndpoint::start().await;
        save_expired(&*store, &endpoint).await;
        // Two authorizers share the store, as connections of a hub do.
        let authorizers = [authorizer(store.clone()), authorizer(store.clone())];
        assert_eq!(call_at_once(&authorizers).await, ["Bearer a1"]);
        assert_eq!(endpoint.requests(), 1);
        assert_eq!(stored(&*store).await.refresh_token.unwrap().expose(), "r1");
    }
}

/// Is the child process: makes calls at once, and prints the tokens that they used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_calls_at_once() {
    let Some(path) = child::store_path() else { return };
    let store: Arc<dyn TokenStore> = Arc::new(open(&path));
    println!("used {:?}", call_at_once(&[authorizer(store)]).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_three_processes_refresh_an_expired_token_once() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start().await;
    let store = open(&path);
    save_expired(&store, &endpoint).await;
    let start = || child::start("race::child_that_calls_at_once", &path, &[]);
    let children = [start(), start()];
    let used = call_at_once(&[authorizer(Arc::new(store.clone()))]).await;
    assert_eq!(used, ["Bearer a1"]);
    for mut child in children {
        let output = tokio::task::spawn_blocking(move || {
            let mut output = String::new();
            child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
            assert!(child.wait().unwrap().success(), "{output}");
            output
        });
        let output = output.await.unwrap();
        assert!(output.contains(r#"used ["Bearer a1"]"#), "{output}");
    }
    assert_eq!(endpoint.requests(), 1);
}

#[tokio::test]
async fn network_errors_keep_the_tokens() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start().await;
    let store = open(&path);
    save_expired(&store, &endpoint).await;
    let authorizer = authorizer(Arc::new(store.clone()));
    endpoint.set_failing(true);
    let error = token_of(&authorizer).await.unwrap_err().to_string();
    assert!(error.contains("/token") && error.contains("503") && !error.contains("r0"), "{error}");
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r0");
    endpoint.set_failing(false);
    assert_eq!(token_of(&authorizer).await.unwrap(), "Bearer a1");
}

#[tokio::test]
async fn refused_client_costs_tokens_only_if_it_registered_itself() {
    for is_configured in [true, false] {
        let (_folder, path) = create();
        let endpoint = TokenEndpoint::start().await;
        let store = open(&path);
        save_expired(&store, &endpoint).await;
        let mut options = AuthorizationOptions::code_flow(NoUser).with_store(Arc::new(store.clone()));
        options.principal = "u".to_owned();
        if is_configured {
            let secret = ClientCredential::Secret(Secret::new("replaced"));
            options = options.with_client(own_key().client_id, secret);
        }
        let authorizer = Authorizer::new(options, &SERVER.parse().unwrap(), Dialer::default());
        endpoint.set_refusing_clients(true);
        let refused = token_of(&authorizer).await;
        endpoint.set_refusing_clients(false);
        let kept = stored(&store).await.refresh_token.map(|token| token.expose().to_owned());
        if is_configured {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("invalid_client") && !error.contains("replaced"), "{error}");
            assert_eq!(kept.as_deref(), Some("r0"));
            assert_eq!(token_of(&authorizer).await.unwrap(), "Bearer a1");
        } else {
            assert_eq!((refused.unwrap().as_str(), kept), ("Bearer a0", None), "it registers again");
        }
    }
}

#[tokio::test]
async fn cancelled_call_keeps_the_rotated_token() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start_silent().await;
    let store = open(&path);
    save_expired(&store, &endpoint).await;
    let authorizer = authorizer(Arc::new(store.clone()));
    let call = tokio::spawn({
        let authorizer = authorizer.clone();
        async move { token_of(&authorizer).await }
    });
    endpoint.has_requests(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    endpoint.allow_responses(1);
    assert_eq!(token_of(&authorizer).await.unwrap(), "Bearer a1");
    assert_eq!((endpoint.requests(), endpoint.valid_token()), (1, "r1".to_owned()));
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r1");
}

/// Replaces the stored tokens without the lock, as an older program would.
async fn replace_without_lock(store: &FileTokenStore, set: &TokenSet) {
    let generation = store.load(&own_key()).await.unwrap().unwrap().generation;
    store.save(&own_key(), set, generation).await.unwrap();
}

#[tokio::test]
async fn invalid_grant_after_a_lost_race_uses_the_stored_tokens() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start_silent().await;
    let store = open(&path);
    let mut used_before = expired(&endpoint);
    used_before.refresh_token = Some(Secret::new("r-used-before"));
    store.save(&own_key(), &used_before, TokenGeneration::ABSENT).await.unwrap();
    let authorizer = authorizer(Arc::new(store.clone()));
    let call = tokio::spawn(async move { token_of(&authorizer).await });
    endpoint.has_requests(1).await;
    let mut winner = tokens("a-winner");
    winner.refresh_token = Some(Secret::new("r0"));
    replace_without_lock(&store, &winner).await;
    endpoint.allow_responses(1);
    assert_eq!(call.await.unwrap().unwrap(), "Bearer a-winner");
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r0", "the winner's token is kept");
}

#[tokio::test]
async fn rejected_refresh_token_is_never_sent_again() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start().await;
    let store = open(&path);
    let mut used_before = expired(&endpoint);
    used_before.refresh_token = Some(Secret::new("r-used-before"));
    store.save(&own_key(), &used_before, TokenGeneration::ABSENT).await.unwrap();
    for _ in 0..3 {
        let authorizer = authorizer(Arc::new(store.clone()));
        assert_eq!(token_of(&authorizer).await.unwrap(), "Bearer a0", "the server decides about it");
        let mut attempt = authorizer.begin("tools/call x");
        attempt.headers(&Method::POST, &Uri::from_static(SERVER)).await.unwrap();
        let refused = attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await;
        assert!(refused.unwrap_err().needs_login());
    }
    assert_eq!(endpoint.requests(), 1);
    assert_eq!(stored(&store).await.refresh_token, None);
}

#[tokio::test]
async fn logins_and_logouts_of_other_processes_are_noticed() {
    let (_folder, path) = create();
    let endpoint = TokenEndpoint::start().await;
    let store = open(&path);
    let authorizer = authorizer(Arc::new(store.clone()));
    let mut attempt = authorizer.begin("tools/call x");
    let uri = Uri::from_static(SERVER);
    assert!(attempt.headers(&Method::POST, &uri).await.unwrap().is_empty());
    save_expired(&open(&path), &endpoint).await;
    assert!(attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await.unwrap());
    assert_eq!(attempt.headers(&Method::POST, &uri).await.unwrap()[AUTHORIZATION], "Bearer a1");
    let generation = store.load(&own_key()).await.unwrap().unwrap().generation;
    open(&path).remove(&own_key(), generation).await.unwrap();
    let refused = attempt.is_refused(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await;
    assert!(refused.unwrap_err().needs_login());
    assert_eq!(endpoint.requests(), 1, "the tokens of a logged out user are not refreshed");
}
