//! What was opened with a credential ends with it, and nothing else does.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::net::TcpStream;
use trunkline_server::http::{
    Authenticated, AuthenticationResult, Authenticator, BearerTokens, HttpServerOptions, TokenChanges,
};
use trunkline_server::session::Principal;
use trunkline_server::transport::{Channel as _, WebSocketChannel};
use trunkline_server::{AccessGrant, ServerLimits, Tool};

use crate::http_client::{EventReader, send, status, to};
use crate::service::{Service, initialize, modern, request, tool, within};
use crate::transport_link::{open_sse, open_websocket};

/// A client with one token and one of each kind of stream.
struct StreamingClient {
    authorization: String,
    session: String,
    standalone: EventReader,
    legacy_call: EventReader,
    modern_call: EventReader,
    subscription: EventReader,
    sse: EventReader,
    sse_messages: String,
    socket: WebSocketChannel<TcpStream>,
}

impl StreamingClient {
    /// Opens every stream; two calls of `wait` are under way then, and one more on each channel.
    async fn open(service: &Service, token: &str) -> Self {
        let authorization = format!("Bearer {token}");
        let session = open_session(service, &authorization).await;
        let standalone = events(service, with_token("GET", service, &authorization, &session), "").await;
        let post = with_token("POST", service, &authorization, &session);
        let legacy_call = events(service, post, &tool(1, "wait", json!({})).to_string()).await;
        let modern_call =
            modern_stream(service, &authorization, "tools/call", json!({ "name": "wait" })).await;
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut subscription = modern_stream(service, &authorization, "subscriptions/listen", filter).await;
        within(subscription.message()).await.expect("the acknowledgement");
        let headers = [("authorization", authorization.as_str())];
        let (sse, sse_messages) = open_sse(service.address, &headers).await;
        let socket = open_websocket(service.address, &headers).await;
        let mut client = Self {
            authorization,
            session,
            standalone,
            legacy_call,
            modern_call,
            subscription,
            sse,
            sse_messages,
            socket,
        };
        let wait = modern(7, "tools/call", json!({ "name": "wait" })).to_string();
        client.post_sse(service, &wait).await;
        client.socket.send(&wait);
        within(std::future::poll_fn(|cx| client.socket.poll_flush(cx))).await.unwrap();
        client
    }

    /// How many calls of `wait` it has under way.
    const CALLS: usize = 4;

    async fn post_sse(&self, service: &Service, message: &str) {
        let post =
            to(service.address, "POST", &self.sse_messages).header("authorization", &self.authorization);
        assert_eq!(status(service.address, post, message).await.0, 202);
    }

    /// Waits until every stream is over.
    async fn ended(&mut self) {
        for (kind, stream) in [
            ("standalone", &mut self.standalone),
            ("legacy call", &mut self.legacy_call),
            ("modern call", &mut self.modern_call),
            ("subscription", &mut self.subscription),
            ("HTTP+SSE", &mut self.sse),
        ] {
            while let Some(message) = within(stream.message()).await {
                assert_eq!(message["id"], serde_json::Value::Null, "{kind}: {message}");
            }
        }
        let closed = within(std::future::poll_fn(|cx| self.socket.poll_receive(cx))).await;
        assert!(closed.is_none_or(|message| message.is_err()), "the socket is closed");
    }

    /// Asserts that every stream still carries messages, after a change of the list of tools.
    async fn goes_on(&mut self, service: &Service) {
        for (kind, stream) in [("standalone", &mut self.standalone), ("subscription", &mut self.subscription)]
        {
            let message = within(stream.message()).await.expect(kind);
            assert_eq!(message["method"], "notifications/tools/list_changed", "{kind}");
        }
        let ping = request(9, "ping", json!({})).to_string();
        self.post_sse(service, &ping).await;
        assert_eq!(within(self.sse.message()).await.expect("HTTP+SSE goes on")["id"], 9);
        self.socket.send(&ping);
        within(std::future::poll_fn(|cx| self.socket.poll_flush(cx))).await.unwrap();
        let pong = within(std::future::poll_fn(|cx| self.socket.poll_receive(cx))).await;
        assert!(pong.expect("the socket is open").is_ok());
    }
}

fn with_token(method: &str, service: &Service, authorization: &str, session: &str) -> http::request::Builder {
    to(service.address, method, "/mcp")
        .header("authorization", authorization)
        .header("mcp-session-id", session)
}

async fn open_session(service: &Service, authorization: &str) -> String {
    let post = to(service.address, "POST", "/mcp").header("authorization", authorization);
    let (_, headers) = status(service.address, post, &initialize("2025-11-25").to_string()).await;
    headers["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn events(service: &Service, request: http::request::Builder, body: &str) -> EventReader {
    let response = send(service.address, request, body.to_owned()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    EventReader::new(response)
}

async fn modern_stream(
    service: &Service,
    authorization: &str,
    method: &str,
    params: serde_json::Value,
) -> EventReader {
    let mut post = to(service.address, "POST", "/mcp")
        .header("authorization", authorization)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        post = post.header("mcp-name", name);
    }
    events(service, post, &modern(1, method, params).to_string()).await
}

/// Responses begin at once, so that a test need not wait for them.
fn limits() -> ServerLimits {
    ServerLimits { stream_after: Duration::ZERO, ..ServerLimits::default() }
}

async fn start(authenticator: impl Authenticator) -> Service {
    let options =
        HttpServerOptions { authenticator: Arc::new(authenticator), ..HttpServerOptions::default() };
    Service::start_with(options, limits()).await
}

#[tokio::test]
async fn streams_of_a_revoked_token_end_and_others_stay() {
    let rotated = [("ann", "ann-token-0123456"), ("bob", "bob-token-0123456"), ("ann", "new-token-0123456")];
    let tokens = BearerTokens::new(rotated);
    let service = start(tokens.clone()).await;
    let mut old = StreamingClient::open(&service, "ann-token-0123456").await;
    let mut new = StreamingClient::open(&service, "new-token-0123456").await;
    let mut bob = StreamingClient::open(&service, "bob-token-0123456").await;
    service.waiting.are(3 * StreamingClient::CALLS).await;
    let changes = tokens.replace(&BearerTokens::new(rotated.into_iter().skip(1)));
    assert_eq!(changes, TokenChanges { added: 0, removed: 1 });
    old.ended().await;
    service.waiting.are(2 * StreamingClient::CALLS).await;
    service.parts.add(Tool::new("another").run(async || "")).unwrap();
    new.goes_on(&service).await;
    bob.goes_on(&service).await;
    // The session belongs to the principal: a new token goes on with it, the old one finds nothing.
    for (authorization, expected) in [(&old.authorization, 401), (&new.authorization, 200)] {
        let ping = with_token("POST", &service, authorization, &old.session);
        let body = request(8, "ping", json!({})).to_string();
        assert_eq!(status(service.address, ping, &body).await.0, expected);
    }
}

#[tokio::test]
async fn calls_of_a_revoked_token_end_without_a_stream_too() {
    let tokens = BearerTokens::new([("ann", "ann-token-0123456"), ("bob", "bob-token-0123456")]);
    let service = start(tokens.clone()).await;
    let authorization = "Bearer ann-token-0123456";
    let session = open_session(&service, authorization).await;
    // A legacy call goes on when its client disconnects.
    let post = with_token("POST", &service, authorization, &session);
    let detached = events(&service, post, &tool(1, "wait", json!({})).to_string()).await;
    service.waiting.are(1).await;
    drop(detached);
    // A client that accepts no stream waits for its response.
    let post = with_token("POST", &service, authorization, &session);
    let mut post = post.method("POST");
    post.headers_mut().unwrap().insert("accept", "application/json".parse().unwrap());
    let address = service.address;
    let waiting =
        tokio::spawn(async move { send(address, post, tool(2, "wait", json!({})).to_string()).await });
    service.waiting.are(2).await;
    tokens.replace(&BearerTokens::new([("bob", "bob-token-0123456")]));
    let refused = within(waiting).await.unwrap();
    assert_eq!(refused.status(), 401);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("invalid_token"), "{body:?}");
    service.waiting.are(0).await;
    service.is_left_alone().await;
}

/// Accepts every token for a while: an event of the clock, not of the test, ends the streams.
#[derive(Debug)]
struct ShortLived;

impl Authenticator for ShortLived {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        let lasting = request.headers["authorization"].as_bytes().ends_with(b"lasting");
        let lifetime = Duration::from_secs(if lasting { 3600 } else { 2 });
        let grant = AccessGrant::new().expiring_at(SystemTime::now() + lifetime);
        let name = if lasting { "bob" } else { "ann" };
        AuthenticationResult::Pending(Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Authenticated::new(Principal::Named(name.into())).with_grant(grant))
        }))
    }
}

#[tokio::test]
async fn streams_end_at_the_expiry_of_their_token() {
    let service = start(ShortLived).await;
    let mut bob = StreamingClient::open(&service, "lasting").await;
    let mut ann = StreamingClient::open(&service, "short").await;
    ann.ended().await;
    // The legacy call goes on: its client resumes the stream with its next token.
    service.waiting.are(StreamingClient::CALLS + 1).await;
    service.parts.add(Tool::new("another").run(async || "")).unwrap();
    bob.goes_on(&service).await;
}
