//! Discovery, keys and introspection, and how often each is fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::json;
use trunkline_auth::access_token::{IntrospectionCredentials, KeyCachePolicy, TokenError};
use trunkline_auth::issuer::{IssuerClient, IssuerError, TrustedIssuer};
use trunkline_session::Timestamp;
use trunkline_transport::Secret;
use trunkline_transport::dial::{DialOptions, Dialer, ProxySettings};

use crate::issuer_server::{IssuerKey, IssuerServer};

fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}

fn client(trusted: TrustedIssuer) -> Arc<IssuerClient> {
    client_with(trusted, KeyCachePolicy::default(), || {})
}

fn client_with(
    trusted: TrustedIssuer,
    policy: KeyCachePolicy,
    on_withdrawal: impl Fn() + Send + Sync + 'static,
) -> Arc<IssuerClient> {
    Arc::new(IssuerClient::new(trusted, Dialer::default(), policy, on_withdrawal).unwrap())
}

#[tokio::test]
async fn concurrent_tokens_cause_one_fetch_of_the_keys() {
    let server = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    server.set_keys(&[&key]);
    let client = client(server.trusted());
    server.set_open(false);
    let checks: Vec<_> = (0..50)
        .map(|number| {
            let (client, token) =
                (client.clone(), key.sign(Some("at+jwt"), server.claims(&number.to_string())));
            tokio::spawn(async move { client.check(&token, now()).await })
        })
        .collect();
    server.wait_for_requests("/.well-known/oauth-authorization-server", 1).await;
    server.set_open(true);
    for check in checks {
        check.await.unwrap().unwrap();
    }
    // Made-up keys cause no further fetch within a minute.
    for _ in 0..10 {
        let token = IssuerKey::new("unknown").sign(Some("at+jwt"), server.claims("eve"));
        let refused = client.check(&token, now()).await;
        assert_eq!(refused, Err(IssuerError::Refused(TokenError::UnknownKey)));
    }
    assert_eq!(server.requests("/jwks"), 1);
    assert_eq!(server.requests("/.well-known/oauth-authorization-server"), 1);
}

#[tokio::test]
async fn fetch_survives_the_request_that_began_it() {
    let server = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    server.set_keys(&[&key]);
    let client = client(server.trusted().at(format!("{}/jwks", server.issuer())));
    server.set_open(false);
    let token = key.sign(Some("at+jwt"), server.claims("ann"));
    let abandoned = {
        let (client, token) = (client.clone(), token.clone());
        tokio::spawn(async move { client.check(&token, now()).await })
    };
    server.wait_for_requests("/jwks", 1).await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    server.set_open(true);
    assert_eq!(&*client.check(&token, now()).await.unwrap().subject, "ann");
    assert_eq!(server.requests("/jwks"), 1);
}

#[tokio::test]
async fn new_keys_are_found_and_withdrawn_keys_reported() {
    let server = IssuerServer::start().await;
    let (old, new) = (IssuerKey::new("old"), IssuerKey::new("new"));
    server.set_keys(&[&old]);
    let withdrawals = Arc::new(AtomicUsize::new(0));
    let counted = withdrawals.clone();
    let mut policy = KeyCachePolicy::default();
    policy.unknown_key_interval = Duration::ZERO;
    let client = client_with(server.trusted(), policy, move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let tokens = [&old, &new].map(|key| key.sign(Some("at+jwt"), server.claims("ann")));
    let accepted = async |token: &str| client.check(token, now()).await.is_ok();
    assert!(accepted(&tokens[0]).await && !accepted(&tokens[1]).await);
    server.set_keys(&[&old, &new]);
    assert!(accepted(&tokens[1]).await && accepted(&tokens[0]).await);
    assert_eq!(withdrawals.load(Ordering::SeqCst), 0);
    server.set_keys(&[&new]);
    let third = IssuerKey::new("third").sign(Some("at+jwt"), server.claims("ann"));
    assert!(!accepted(&third).await, "and with it the keys are fetched again");
    assert_eq!(withdrawals.load(Ordering::SeqCst), 1);
    assert!(!accepted(&tokens[0]).await && accepted(&tokens[1]).await);
}

#[tokio::test]
async fn keys_that_cannot_be_fetched_make_tokens_unavailable_until_they_can() {
    let server = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    server.set_keys(&[&key]);
    server.set_down(true);
    let mut policy = KeyCachePolicy::default();
    policy.retry_interval = Duration::from_secs(7);
    let client = client_with(server.trusted().at(format!("{}/jwks", server.issuer())), policy, || {});
    let token = key.sign(Some("at+jwt"), server.claims("ann"));
    let unavailable = IssuerError::Unavailable { retry_after: Duration::from_secs(7) };
    for _ in 0..3 {
        assert_eq!(client.check(&token, now()).await, Err(unavailable));
    }
    assert_eq!(server.requests("/jwks"), 1, "the next attempt is not due yet");
    server.set_down(false);
    let later = now().plus(Duration::from_secs(8));
    assert!(client.check(&token, later).await.is_ok());
}

#[tokio::test]
async fn opaque_tokens_are_introspected_with_credentials() {
    let server = IssuerServer::start().await;
    let mut active = server.claims("ann");
    active["active"] = true.into();
    server.set_introspected("opaque-1", active.clone());
    active["aud"] = "https://other.example".into();
    server.set_introspected("opaque-2", active);
    server.set_introspected("opaque-3", json!([]));
    server.set_introspected("jwt", json!({ "error": "unsupported_token_type" }));
    server.set_introspected("strange", json!({ "error": "invalid_request" }));
    let credentials = |secret: &str| IntrospectionCredentials::Basic {
        client_id: "rs".to_owned(),
        client_secret: Secret::new(secret),
    };
    let trusted = |secret: &str| TrustedIssuer::introspection(server.rules(), credentials(secret));
    let unavailable = Err(IssuerError::Unavailable { retry_after: Duration::from_secs(1) });
    for (trusted, token, expected) in [
        (trusted("secret"), "opaque-1", Ok("ann".into())),
        (trusted("secret").at(format!("{}/introspect", server.issuer())), "opaque-1", Ok("ann".into())),
        (trusted("secret"), "opaque-2", Err(IssuerError::Refused(TokenError::Audience))),
        (trusted("secret"), "opaque-3", unavailable.clone()),
        (trusted("secret"), "opaque-4", Err(IssuerError::Refused(TokenError::Inactive))),
        (trusted("secret"), "jwt", Err(IssuerError::Refused(TokenError::Inactive))),
        (trusted("secret"), "strange", unavailable.clone()),
        (trusted("wrong"), "opaque-1", unavailable),
    ] {
        let found = client(trusted).check(token, now()).await;
        assert_eq!(found.map(|claims| claims.subject), expected, "{token}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_are_not_used_for_keys() {
    let server = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    server.set_keys(&[&key]);
    let forged = json!({ "issuer": "https://evil.example", "jwks_uri": format!("{}/jwks", server.issuer()) });
    server.set_document("/.well-known/oauth-authorization-server", forged);
    let client = client(server.trusted());
    let token = key.sign(Some("at+jwt"), server.claims("ann"));
    assert!(matches!(client.check(&token, now()).await, Err(IssuerError::Unavailable { .. })));
    assert_eq!(server.requests("/jwks"), 0);
    assert!(client.metadata_document().await.is_none());
}

#[tokio::test]
async fn openid_metadata_are_used_where_there_are_no_others() {
    let server = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    server.set_keys(&[&key]);
    server.set_document("/.well-known/oauth-authorization-server", json!([]));
    let metadata = json!({ "issuer": server.issuer(), "jwks_uri": format!("{}/jwks", server.issuer()) });
    server.set_document("/.well-known/openid-configuration", metadata);
    let client = client(server.trusted());
    assert!(client.check(&key.sign(Some("at+jwt"), server.claims("ann")), now()).await.is_ok());
}

#[tokio::test]
async fn discovered_urls_are_limited_to_the_network_of_the_issuer() {
    for (host, expected) in [("169.254.169.254", 0), ("10.0.0.1", 0), ("8.8.8.8", 1)] {
        // All connections go through the server as their proxy, which sees which ones are attempted.
        let server = IssuerServer::start().await;
        let metadata = json!({ "issuer": server.issuer(), "jwks_uri": format!("https://{host}/keys") });
        server.set_document("/.well-known/oauth-authorization-server", metadata);
        let mut options = DialOptions::default();
        options.proxies = ProxySettings::all(&server.issuer()).unwrap();
        let (trusted, policy) = (server.trusted(), KeyCachePolicy::default());
        let client = IssuerClient::new(trusted, Dialer::new(options), policy, || {}).unwrap();
        let token = IssuerKey::new("a").sign(Some("at+jwt"), server.claims("ann"));
        assert!(matches!(client.check(&token, now()).await, Err(IssuerError::Unavailable { .. })));
        assert_eq!(server.requests("/.well-known/oauth-authorization-server"), 1);
        assert_eq!(server.requests(&format!("{host}:443")), expected, "{host}");
    }
}
