//! Refusals of the authentication: order of checks, challenges, and their bodies.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use trunkline_server::ServerLimits;
use trunkline_server::http::{
    AuthChallenge, AuthRefusal, AuthenticationResult, Authenticator, HttpServerOptions, ProtectedResource,
};

use crate::http_client::{send, status, to};
use crate::service::{Service, within};

const UNKNOWN: &str = "0123456789abcdef0123456789abcdef";

/// Sends the head of a request alone, and reads the status of the response.
async fn status_without_body(service: &Service, head: &str) -> String {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; "HTTP/1.1 401".len()];
    within(stream.read_exact(&mut status)).await.unwrap();
    String::from_utf8(status.to_vec()).unwrap()
}

#[tokio::test]
async fn authentication_precedes_session_lookup_and_the_body() {
    let service = Service::start_with_tokens().await;
    let places = [
        ("POST", "/mcp".to_owned(), 404),
        ("GET", "/mcp".to_owned(), 404),
        ("DELETE", "/mcp".to_owned(), 404),
        ("POST", format!("/messages?sessionId={UNKNOWN}"), 404),
        ("GET", "/ws".to_owned(), 426),
        ("PUT", "/mcp".to_owned(), 405),
        ("HEAD", "/mcp".to_owned(), 405),
    ];
    for (method, path, known) in places {
        for (token, expected) in
            [(None, 401), (Some("Bearer wrong-token-012345"), 401), (Some("Bearer ann-token-0123456"), known)]
        {
            let mut request = to(service.address, method, &path).header("mcp-session-id", UNKNOWN);
            if let Some(token) = token {
                request = request.header("authorization", token);
            }
            let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            assert_eq!(
                status(service.address, request, message).await.0,
                expected,
                "{method} {path} {token:?}"
            );
        }
    }
    // A body of any announced length is not waited for.
    for path in ["/mcp", "/messages?sessionId=0"] {
        for length in ["2", "999999999999"] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
            assert_eq!(status_without_body(&service, &head).await, "HTTP/1.1 401", "{head}");
        }
    }
}

#[tokio::test]
async fn duplicate_or_query_credentials_are_a_bad_request() {
    let service = Service::start_with_tokens().await;
    let ann = "Bearer ann-token-0123456";
    for (path, tokens) in [
        ("/mcp", &[ann, ann][..]),
        ("/mcp?access_token=ann-token-0123456", &[]),
        ("/mcp?access_token=ann-token-0123456", &[ann]),
        ("/sse?access_token=ann-token-0123456", &[ann]),
        ("/ws?access_token=ann-token-0123456", &[]),
    ] {
        let method = if path.starts_with("/mcp") { "POST" } else { "GET" };
        let request = tokens.iter().fold(to(service.address, method, path), |request, token| {
            request.header("authorization", *token)
        });
        let response = send(service.address, request, "{}".to_owned()).await;
        assert_eq!(response.status(), 400, "{path} {tokens:?}");
        let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        assert!(challenge.starts_with(r#"Bearer error="invalid_request""#), "{challenge}");
        let body: Value =
            serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(body["error"], "invalid_request");
    }
}

/// Refuses each path in its own way, some after a while.
#[derive(Debug)]
struct Refusing;

impl Authenticator for Refusing {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        AuthenticationResult::Pending(Box::pin(async move {
            tokio::task::yield_now().await;
            Err(match request.headers["x-case"].to_str().unwrap() {
                "both" => AuthRefusal::missing_token()
                    .with_challenge(AuthChallenge::new("DPoP").param("algs", "ES256 EdDSA"))
                    .with_header(HeaderName::from_static("dpop-nonce"), HeaderValue::from_static("n0")),
                "expired" => AuthRefusal::invalid_token("the token has expired"),
                "scope" => AuthRefusal::insufficient_scope(["files:read", "files:write"]),
                "busy" => AuthRefusal::too_many_requests(Duration::from_millis(1500)),
                _ => AuthRefusal::unavailable(Duration::from_secs(30)),
            })
        }))
    }
}

fn challenges(headers: &HeaderMap) -> Vec<&str> {
    headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn refusals_have_their_status_challenges_headers_and_oauth_error() {
    let resource = ProtectedResource::new("https://hub.example/mcp").unwrap().scopes(["mcp:use"]);
    let options = HttpServerOptions {
        authenticator: Arc::new(Refusing),
        protected_resource: Some(resource),
        ..HttpServerOptions::default()
    };
    let service = Service::start_with(options, ServerLimits::default()).await;
    const METADATA: &str =
        r#"resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp""#;
    for (case, expected, error, wanted) in [
        (
            "both",
            401,
            "unauthorized",
            vec![
                format!(r#"Bearer scope="mcp:use", {METADATA}"#),
                format!(r#"DPoP algs="ES256 EdDSA", scope="mcp:use", {METADATA}"#),
            ],
        ),
        (
            "expired",
            401,
            "invalid_token",
            vec![format!(
                r#"Bearer error="invalid_token", error_description="the token has expired", scope="mcp:use", {METADATA}"#
            )],
        ),
        (
            "scope",
            403,
            "insufficient_scope",
            vec![format!(r#"Bearer error="insufficient_scope", scope="files:read files:write", {METADATA}"#)],
        ),
        ("busy", 429, "too_many_requests", vec![]),
        ("down", 503, "temporarily_unavailable", vec![]),
    ] {
        for (method, path) in [("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse"), ("GET", "/ws")] {
            let origin = "http://localhost:3000";
            let request = to(service.address, method, path).header("x-case", case).header("origin", origin);
            let response = send(service.address, request, "{}".to_owned()).await;
            assert_eq!(response.status(), expected, "{case} {path}");
            assert_eq!(challenges(response.headers()), wanted, "{case} {path}");
            let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!(header("dpop-nonce"), (case == "both").then_some("n0"));
            let retry = match case {
                "busy" => Some("2"),
                "down" => Some("30"),
                _ => None,
            };
            assert_eq!(header("retry-after"), retry);
            assert_eq!(header("content-type"), Some("application/json"));
            // A page must be able to read the challenge.
            assert_eq!(header("access-control-allow-origin"), Some(origin));
            assert_eq!(
                header("access-control-expose-headers"),
                Some("WWW-Authenticate, Mcp-Session-Id, DPoP-Nonce")
            );
            let body: Value =
                serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
            assert_eq!(body["error"], json!(error), "{body}");
            assert!(body["error_description"].is_string(), "{body}");
        }
    }
}
