//! Pages of disallowed origins, callers without a token, and callers with the token of another principal.

use serde_json::json;

use crate::http_client::{status, to};
use crate::service::{Service, request};
use crate::transport_link::open_sse;

const PLACES: &[(&str, &str)] = &[
    ("GET", "/sse"),
    ("POST", "/messages?sessionId=0123456789abcdef0123456789abcdef"),
    ("GET", "/ws"),
    ("OPTIONS", "/sse"),
    ("OPTIONS", "/messages"),
    ("OPTIONS", "/ws"),
];

fn upgrade(request: http::request::Builder) -> http::request::Builder {
    request
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "mcp")
}

#[tokio::test]
async fn disallowed_hosts_and_origins_reach_no_channel() {
    let service = Service::start().await;
    for (method, path) in PLACES {
        for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
            let foreign = upgrade(to(service.address, method, path)).header("origin", origin);
            let (status, headers) = status(service.address, foreign, "{}").await;
            assert_eq!(status, 403, "{method} {path} {origin}");
            assert!(!headers.contains_key("access-control-allow-origin"));
        }
        let rebound = http::Request::builder().method(*method).uri(*path).header("host", "evil.example");
        let (status, _) = status(service.address, upgrade(rebound), "").await;
        assert_eq!(status, 403, "{method} {path}");
    }
    assert_eq!(service.endpoint.channels(), 0);
}

#[tokio::test]
async fn allowed_origins_reach_every_channel() {
    let service = Service::start().await;
    for (method, path, expected) in [("GET", "/sse", 200), ("GET", "/ws", 101), ("OPTIONS", "/messages", 204)]
    {
        let origin = "http://localhost:3000";
        let own = upgrade(to(service.address, method, path)).header("origin", origin);
        let (status, headers) = status(service.address, own, "").await;
        assert_eq!(status, expected, "{method} {path}");
        assert_eq!(headers["access-control-allow-origin"], origin);
    }
}

#[tokio::test]
async fn channel_is_opened_and_posted_to_only_by_its_own_principal() {
    let service = Service::start_with_tokens().await;
    for (method, path) in PLACES.iter().filter(|(method, _)| *method != "OPTIONS") {
        for wrong in [None, Some("Bearer ann-token-012345"), Some("Bearer carol-token-0123456")] {
            let mut request = upgrade(to(service.address, method, path));
            if let Some(wrong) = wrong {
                request = request.header("authorization", wrong);
            }
            let (status, headers) = status(service.address, request, "{}").await;
            assert_eq!(status, 401, "{method} {path}");
            assert!(headers.contains_key("www-authenticate"));
        }
    }
    let (mut events, messages) =
        open_sse(service.address, &[("authorization", "Bearer ann-token-0123456")]).await;
    let ping = request(1, "ping", json!({})).to_string();
    for (name, expected) in [("bob", 404), ("ann", 202)] {
        let post = to(service.address, "POST", &messages)
            .header("authorization", format!("Bearer {name}-token-0123456"));
        assert_eq!(status(service.address, post, &ping).await.0, expected, "{name}");
    }
    assert_eq!(events.message().await.unwrap()["id"], 1);
}
