//! What was opened with an access token ends with it, and belongs to its principal.

use std::time::Duration;

use serde_json::json;
use trunkline_server::Tool;
use trunkline_server::http::resource_server::{TokenRules, TrustedIssuer};

use super::issuer_server::{IssuerServer, seconds_from_now};
use super::issuers::credentials;
use super::{ResourceFixture, options};
use crate::http_client::{EventReader, send, status, to};
use crate::service::{initialize, request, within};

async fn open_session(fixture: &ResourceFixture, bearer: &str) -> String {
    let post = to(fixture.service.address, "POST", "/mcp").header("authorization", bearer);
    let (opened, headers) =
        status(fixture.service.address, post, &initialize("2025-11-25").to_string()).await;
    assert_eq!(opened, 200);
    headers["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn open_stream(fixture: &ResourceFixture, bearer: &str, session: &str) -> EventReader {
    let get = to(fixture.service.address, "GET", "/mcp")
        .header("authorization", bearer)
        .header("mcp-session-id", session);
    let response = send(fixture.service.address, get, String::new()).await;
    assert_eq!(response.status(), 200);
    EventReader::new(response)
}

#[tokio::test]
async fn open_stream_ends_when_its_access_token_expires() {
    let fixture = ResourceFixture::start(|options, issuer| {
        for trusted in &mut options.issuers {
            trusted.rules = TokenRules::new(issuer.issuer(), [super::RESOURCE]);
            trusted.rules.skew = Duration::ZERO;
        }
    })
    .await;
    let short = format!("Bearer {}", fixture.token(json!({ "exp": seconds_from_now(2) })));
    let long = format!("Bearer {}", fixture.token(json!({})));
    let session = open_session(&fixture, &long).await;
    let mut stream = open_stream(&fixture, &short, &session).await;
    assert!(within(stream.message()).await.is_none(), "it ends at the expiry");
    let ping = request(1, "ping", json!({})).to_string();
    for (bearer, expected) in [(&short, 401), (&long, 200)] {
        let post = to(fixture.service.address, "POST", "/mcp")
            .header("authorization", bearer)
            .header("mcp-session-id", &session);
        assert_eq!(status(fixture.service.address, post, &ping).await.0.as_u16(), expected);
    }
}

const OPAQUE: &str = "opaque-0123456789";

/// Starts a resource server with a second issuer, which introspects a token without an expiry.
async fn introspecting(introspected_age: Duration) -> (ResourceFixture, IssuerServer) {
    let second = IssuerServer::start().await;
    let mut active = second.claims("ann");
    active.as_object_mut().unwrap().remove("exp");
    active["active"] = true.into();
    second.set_introspected(OPAQUE, active);
    let trusted = TrustedIssuer::introspection(second.rules(), credentials())
        .at(format!("{}/introspect", second.issuer()));
    let fixture = ResourceFixture::start(|options, _| {
        options.issuers.push(trusted);
        options.verified_tokens.introspected_age = introspected_age;
    })
    .await;
    (fixture, second)
}

#[tokio::test]
async fn streams_of_a_revoked_opaque_token_end_after_one_introspection() {
    let (fixture, second) = introspecting(Duration::from_millis(300)).await;
    let bearer = format!("Bearer {OPAQUE}");
    let mut streams = Vec::new();
    for _ in 0..4 {
        let session = open_session(&fixture, &bearer).await;
        streams.push(open_stream(&fixture, &bearer, &session).await);
    }
    let before = second.requests("/introspect");
    within(second.wait_for_requests("/introspect", before + 3)).await;
    fixture.service.parts.add(Tool::new("another").run(async || "")).unwrap();
    for stream in &mut streams {
        assert!(within(stream.message()).await.is_some(), "the token is active");
    }
    second.set_introspected(OPAQUE, json!({ "active": false }));
    let before = second.requests("/introspect");
    for stream in &mut streams {
        assert!(within(stream.message()).await.is_none(), "the token was revoked");
    }
    let made = second.requests("/introspect") - before;
    assert!(made <= 1, "{made} introspections for one token");
}

#[tokio::test]
async fn streams_outlive_a_short_outage_of_the_introspection_endpoint() {
    let (fixture, second) = introspecting(Duration::from_millis(600)).await;
    let bearer = format!("Bearer {OPAQUE}");
    let session = open_session(&fixture, &bearer).await;
    let mut stream = open_stream(&fixture, &bearer, &session).await;
    second.set_down(true);
    let before = second.requests("/introspect");
    within(second.wait_for_requests("/introspect", before + 2)).await;
    second.set_down(false);
    let before = second.requests("/introspect");
    within(second.wait_for_requests("/introspect", before + 2)).await;
    fixture.service.parts.add(Tool::new("another").run(async || "")).unwrap();
    assert!(within(stream.message()).await.is_some(), "it went on");
    second.set_down(true);
    assert!(within(stream.message()).await.is_none(), "it ends in the end");
}

#[tokio::test]
async fn session_of_another_principal_does_not_exist() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let [ann, bob] =
        ["ann", "bob"].map(|subject| format!("Bearer {}", fixture.token(json!({ "sub": subject }))));
    let session = open_session(&fixture, &ann).await;
    let ping = request(1, "ping", json!({})).to_string();
    for (method, bearer, expected) in [
        ("POST", Some(&ann), 200),
        ("POST", Some(&bob), 404),
        ("POST", None, 401),
        ("GET", Some(&bob), 404),
        ("GET", None, 401),
        ("DELETE", Some(&bob), 404),
        ("DELETE", None, 401),
        ("POST", Some(&ann), 200),
    ] {
        let mut message = to(fixture.service.address, method, "/mcp").header("mcp-session-id", &session);
        if let Some(bearer) = bearer {
            message = message.header("authorization", bearer);
        }
        let found = status(fixture.service.address, message, &ping).await.0;
        assert_eq!(found.as_u16(), expected, "{method} {bearer:?}");
    }
}

#[tokio::test]
async fn removed_issuer_revokes_its_tokens_and_streams() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let bearer = format!("Bearer {}", fixture.token(json!({})));
    let cron = "Bearer cron-token-0123456";
    let sessions = [open_session(&fixture, &bearer).await, open_session(&fixture, cron).await];
    let mut stream = open_stream(&fixture, &bearer, &sessions[0]).await;
    let mut other = open_stream(&fixture, cron, &sessions[1]).await;
    let new = IssuerServer::start().await;
    let mut options = options(&new);
    // The static tokens are the same set.
    options.static_tokens = Some(fixture.static_tokens.clone());
    fixture.authenticator.replace(options).unwrap();
    assert!(within(stream.message()).await.is_none());
    fixture.service.parts.add(Tool::new("another").run(async || "")).unwrap();
    assert!(within(other.message()).await.is_some(), "the stream of a static token goes on");
}
