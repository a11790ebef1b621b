//! The session cookie of HTTP+SSE: it names the state of a client, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use trunkline_server::ServerLimits;
use trunkline_server::http::{AllowList, BearerTokens, CookieSessions, HttpServerOptions};

use crate::http_client::{EventReader, send, status, to};
use crate::service::{Service, initialize, tool, within};

async fn service(secure: bool) -> Service {
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    let options = HttpServerOptions {
        authenticator: Arc::new(tokens),
        cookie_sessions: Some(CookieSessions { secure, ..CookieSessions::default() }),
        ..HttpServerOptions::default()
    };
    Service::start_with(options, ServerLimits::default()).await
}

/// Opens a stream and calls the tool that returns the state's id; returns the cookie's value and that id.
async fn visit(service: &Service, who: &str, cookie: Option<&str>) -> (String, String) {
    visit_and_call(service, who, cookie, "bag").await
}

async fn visit_and_call(
    service: &Service,
    who: &str,
    cookie: Option<&str>,
    called: &str,
) -> (String, String) {
    let authorization = format!("Bearer {who}-token-0123456");
    let request = |method: &str, path: &str| {
        let mut request = to(service.address, method, path).header("authorization", &authorization);
        if let Some(cookie) = cookie {
            request = request.header("cookie", format!("mcp_session_id={cookie}"));
        }
        request
    };
    let response = send(service.address, request("GET", "/sse"), String::new()).await;
    let set = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    let value = set.split(['=', ';']).nth(1).unwrap().to_owned();
    let mut events = EventReader::new(response);
    let (_, path) = within(events.next()).await.unwrap();
    let path = String::from_utf8(path.to_vec()).unwrap();
    for message in [initialize("2024-11-05"), tool(1, called, json!({}))] {
        let posted = status(service.address, request("POST", &path), &message.to_string()).await;
        assert_eq!(posted.0, 202);
        assert!(posted.1.contains_key("set-cookie"));
    }
    events.message().await.unwrap();
    let answer = events.message().await.unwrap();
    (value, answer["result"]["content"][0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn session_cookie_restores_state_only_for_its_own_principal() {
    let service = service(false).await;
    let (cookie, bag) = visit(&service, "ann", None).await;
    assert_eq!(visit(&service, "ann", Some(&cookie)).await, (cookie.clone(), bag.clone()));
    let mut values = BTreeSet::from([cookie.clone()]);
    let mut bags = BTreeSet::from([bag.clone()]);
    for (who, sent) in [
        ("ann", None),
        ("ann", Some("evil")),
        ("ann", Some(bag.as_str())),
        ("ann", Some("0123456789abcdef0123456789abcdef")),
        ("bob", Some(cookie.as_str())),
    ] {
        let (value, bag) = visit(&service, who, sent).await;
        assert_ne!(Some(value.as_str()), sent, "a value that is not ours is never adopted");
        assert!(values.insert(value), "{who} {sent:?}");
        assert!(bags.insert(bag), "{who} {sent:?}");
    }
}

#[tokio::test]
async fn cors_credentials_are_allowed_only_for_listed_origins() {
    let listed = AllowList::loopback().and("https://app.example.com");
    for (cookies, origins, path, origin, granted) in [
        (true, listed.clone(), "/sse", "http://localhost:3000", true),
        (true, listed.clone(), "/messages", "https://app.example.com", true),
        (true, listed.clone(), "/mcp", "http://localhost:3000", false),
        (true, listed.clone(), "/ws", "http://localhost:3000", false),
        (true, listed.clone(), "/sse", "https://evil.example", false),
        (true, AllowList::any(), "/sse", "https://evil.example", false),
        (false, listed, "/sse", "http://localhost:3000", false),
    ] {
        let options = HttpServerOptions {
            cookie_sessions: cookies.then(CookieSessions::default),
            origins,
            ..HttpServerOptions::default()
        };
        let service = Service::start_with(options, ServerLimits::default()).await;
        let asked = to(service.address, "OPTIONS", path).header("origin", origin);
        let (_, preflight) = status(service.address, asked, "").await;
        let own = to(service.address, "GET", path).header("origin", origin);
        let response = send(service.address, own, String::new()).await;
        for headers in [&preflight, response.headers()] {
            let found = headers.get("access-control-allow-credentials").map(|value| value.to_str().unwrap());
            assert_eq!(found, granted.then_some("true"), "{path} {origin}");
            if granted {
                assert_eq!(headers["access-control-allow-origin"], origin, "never all of them");
            }
        }
    }
}

#[tokio::test]
async fn session_cookie_is_http_only_same_site_and_no_credential() {
    for secure in [false, true] {
        let service = service(secure).await;
        let (cookie, _) = visit(&service, "ann", None).await;
        let bare = to(service.address, "GET", "/sse").header("cookie", format!("mcp_session_id={cookie}"));
        assert_eq!(status(service.address, bare, "").await.0, 401);
        let own = to(service.address, "GET", "/sse").header("authorization", "Bearer ann-token-0123456");
        let (_, headers) = status(service.address, own, "").await;
        let set = headers["set-cookie"].to_str().unwrap();
        let expected = " Path=/; Max-Age=86400; HttpOnly; SameSite=Strict";
        let expected = format!("{expected}{}", if secure { "; Secure" } else { "" });
        assert_eq!(set.split_once(';').unwrap().1, expected);
    }
}

#[tokio::test]
async fn no_session_cookie_is_set_by_default() {
    let service = Service::start().await;
    let (_, headers) = status(service.address, to(service.address, "GET", "/sse"), "").await;
    assert!(!headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn cookie_session_state_outlives_its_sse_stream() {
    let service = service(false).await;
    let (cookie, count) = visit_and_call(&service, "ann", None, "count").await;
    assert_eq!(count, "1");
    service.is_left_alone().await;
    let counted = async |who: &str, cookie| visit_and_call(&service, who, cookie, "count").await.1;
    assert_eq!(
        counted("ann", Some(cookie.as_str())).await,
        "2",
        "the stream has ended, what it kept has not"
    );
    assert_eq!(counted("bob", Some(cookie.as_str())).await, "1", "another caller has nothing of it");
    assert_eq!(counted("ann", None).await, "1", "nor has the same caller without the cookie");
}
