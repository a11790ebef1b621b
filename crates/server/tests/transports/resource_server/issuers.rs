//! Several issuers, opaque tokens, and what becomes of tokens when the options change.

use std::time::Duration;

use serde_json::json;
use trunkline_server::http::resource_server::{
    IntrospectionCredentials, MAX_INTROSPECTIONS, ResourceServer, ResourceServerError, ResourceServerOptions,
    TokenRules, TrustedIssuer,
};
use trunkline_server::transport::Secret;

use super::issuer_server::{IssuerKey, IssuerServer, RESOURCE};
use super::{ResourceFixture, options};

pub(super) fn credentials() -> IntrospectionCredentials {
    IntrospectionCredentials::Basic { client_id: "rs".to_owned(), client_secret: Secret::new("secret") }
}

#[tokio::test]
async fn each_issuer_identifies_its_own_subjects_only() {
    let second = IssuerServer::start().await;
    let key = IssuerKey::new("a");
    second.set_keys(&[&key]);
    let fixture = ResourceFixture::start(|options, _| options.issuers.push(second.trusted())).await;
    let of_second = key.sign(Some("at+jwt"), second.claims("ann"));
    let response = fixture.call(&of_second).await;
    let text = &response.body["result"]["content"][0]["text"];
    assert_eq!(*text, format!("{} ann", second.issuer()), "the same subject, another principal");
    fixture.assert_called_by(&fixture.call(&fixture.token(json!({}))).await, "ann");
    let forged = key.sign(Some("at+jwt"), fixture.claims(json!({})));
    assert_eq!(fixture.call(&forged).await.status, 401);
}

#[tokio::test]
async fn opaque_tokens_are_introspected_once_and_jwts_never() {
    let second = IssuerServer::start().await;
    let mut active = second.claims("ann");
    active["active"] = true.into();
    second.set_introspected("opaque-0123456789", active);
    let fixture = ResourceFixture::start(|options, _| {
        options.issuers.push(TrustedIssuer::introspection(second.rules(), credentials()));
    })
    .await;
    for _ in 0..3 {
        let response = fixture.call("opaque-0123456789").await;
        assert_eq!(response.status, 200, "{response:?}");
    }
    assert_eq!(second.requests("/introspect"), 1, "the result is cached");
    for _ in 0..3 {
        let response = fixture.call("unknown-0123456789").await;
        assert_eq!(response.body["error_description"], "the access token is not valid");
    }
    assert_eq!(second.requests("/introspect"), 2, "and so is a refusal, for a while");
    fixture.assert_called_by(&fixture.call(&fixture.token(json!({}))).await, "ann");
    fixture.call(&fixture.token(json!({ "iss": "https://evil.example" }))).await;
    assert_eq!(fixture.call("cron-token-0123456").await.status, 200);
    assert_eq!(second.requests("/introspect"), 2, "tokens of others never reach the endpoint");
}

#[tokio::test]
async fn concurrent_requests_with_one_opaque_token_cause_one_introspection() {
    let second = IssuerServer::start().await;
    let mut active = second.claims("ann");
    active["active"] = true.into();
    second.set_introspected("opaque-0123456789", active);
    let trusted = TrustedIssuer::introspection(second.rules(), credentials())
        .at(format!("{}/introspect", second.issuer()));
    let fixture = ResourceFixture::start(|options, _| options.issuers.push(trusted)).await;
    second.set_open(false);
    let calls = futures_util::future::join_all((0..20).map(|_| fixture.call("opaque-0123456789")));
    let opened = async {
        second.wait_for_requests("/introspect", 1).await;
        second.set_open(true);
    };
    let (responses, ()) = futures_util::future::join(calls, opened).await;
    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!(second.requests("/introspect"), 1);
}

#[tokio::test]
async fn tokens_that_cannot_be_checked_are_503_with_retry_after() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    fixture.issuer.set_down(true);
    let response = fixture.call(&fixture.token(json!({}))).await;
    assert_eq!(response.status, 503);
    assert_eq!(response.headers["retry-after"], "10");
    assert!(response.challenges().is_empty());
    assert_eq!(fixture.call("cron-token-0123456").await.status, 200, "static tokens need no issuer");
}

#[tokio::test]
async fn replaced_options_count_at_once_and_keep_the_keys() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let token = fixture.token(json!({}));
    assert_eq!(fixture.call(&token).await.status, 200);
    let stricter = options(&fixture.issuer).with_required_scopes(["mcp:admin"]);
    fixture.authenticator.replace(stricter).unwrap();
    assert_eq!(fixture.call(&token).await.status, 403);
    assert_eq!(fixture.issuer.requests("/jwks"), 1, "the keys of the issuer are still known");
    let invalid = ResourceServerOptions::new(RESOURCE);
    assert!(matches!(fixture.authenticator.replace(invalid), Err(ResourceServerError::NoCredentials)));
    assert_eq!(fixture.call(&token).await.status, 403, "nothing has changed");
    let other = IssuerServer::start().await;
    fixture.authenticator.replace(options(&other)).unwrap();
    assert_eq!(fixture.call(&token).await.status, 401, "its issuer is not trusted any more");
}

#[tokio::test]
async fn withdrawn_keys_end_their_tokens_when_the_keys_are_fetched() {
    let fixture =
        ResourceFixture::start(|options, _| options.key_cache.unknown_key_interval = Duration::ZERO).await;
    let token = fixture.token(json!({}));
    assert_eq!(fixture.call(&token).await.status, 200);
    let new = IssuerKey::new("b");
    fixture.issuer.set_keys(&[&new]);
    assert_eq!(fixture.call(&token).await.status, 200, "it is cached");
    let fresh = new.sign(Some("at+jwt"), fixture.claims(json!({})));
    assert_eq!(fixture.call(&fresh).await.status, 200);
    assert_eq!(fixture.call(&token).await.status, 401);
}

#[test]
fn options_that_would_leak_or_refuse_every_token_are_rejected() {
    let issuer = |issuer: &str| TokenRules::new(issuer, [RESOURCE]);
    let introspection = |name: &str| TrustedIssuer::introspection(issuer(name), credentials());
    let new = || ResourceServerOptions::new(RESOURCE);
    for (options, expected) in [
        (new(), "neither an issuer nor a static token"),
        (
            new()
                .with_issuer(TrustedIssuer::jwt(issuer("https://a")))
                .with_issuer(introspection("https://a")),
            "`https://a` is listed twice",
        ),
        (
            new().with_issuer(introspection("https://a")).with_issuer(introspection("https://b")),
            "each would receive the tokens of the other",
        ),
        (new().with_issuer(TrustedIssuer::jwt(issuer("http://login.example"))), "has to be an https URL"),
        (
            ResourceServerOptions::new("hub.example").with_issuer(TrustedIssuer::jwt(issuer("https://a"))),
            "is not the URL of an endpoint",
        ),
    ] {
        let error = ResourceServer::new(options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn bound_of_introspections_is_in_the_document_of_limits() {
    let document = include_str!("../../../../../docs/limits.md");
    assert!(document.contains(&format!("| `MAX_INTROSPECTIONS` | {MAX_INTROSPECTIONS} |")));
}
