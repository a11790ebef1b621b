//! CORS: preflight requests, and the simple requests that a page may send without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;
use trunkline_server::http::{HttpServerOptions, serve};
use trunkline_server::{EnvPolicy, HostOptions, Server, Tool};

use crate::raw_http::{self, Connection};
use crate::service::{DEADLINE, Service};

fn preflight(origin: &str) -> Vec<u8> {
    let asked = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type,mcp-protocol-version,mcp-param-region"),
    ];
    raw_http::bare("OPTIONS", &asked)
}

#[tokio::test]
async fn cors_preflight_allows_client_headers_only_for_allowed_origins() {
    let service = Service::start().await;
    let reply = service.ask(&preflight("http://localhost:3000")).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:3000"));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST, GET, DELETE"));
    assert_eq!(reply.header("access-control-allow-credentials"), None, "cookies mean nothing here");
    let headers = reply.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for needed in [
        "content-type",
        "authorization",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-name",
        "mcp-param-region",
    ] {
        assert!(headers.split(", ").any(|name| name == needed), "{needed} is not in {headers}");
    }
    let foreign = service.ask(&preflight("http://evil.example")).await;
    assert_eq!(foreign.status, 403);
    for name in
        ["access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers"]
    {
        assert_eq!(foreign.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn cors_preflight_allows_no_unknown_header() {
    let service = Service::start().await;
    for asked in ["cookie", "x-admin", "mcp-param-", "mcp-param-a b", "*", "mcp-param-a\u{e9}"] {
        let headers = [("Origin", "http://localhost"), ("Access-Control-Request-Headers", asked)];
        let reply = service.ask(&raw_http::bare("OPTIONS", &headers)).await;
        let granted = reply.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
        assert!(!granted.split(", ").any(|name| name == asked), "{asked} is granted by {granted}");
    }
}

#[tokio::test]
async fn cors_preflight_allows_env_headers_of_the_allow_list_on_every_path() {
    let env =
        EnvPolicy { from_headers: vec!["API_KEY".to_owned()], from_process: vec!["OWN_KEY".to_owned()] };
    let host = Server::new("target").host(HostOptions { env, ..HostOptions::default() }).unwrap();
    let endpoint = host.http_service(HttpServerOptions::default());
    let table = [
        ("http://localhost:3000", "x-env-api_key", true),
        ("http://localhost:3000", "X-Env-API-KEY", true),
        ("http://localhost:3000", "mcp-method, x-env-api-key", true),
        ("http://localhost:3000", "x-env-other", false),
        ("http://localhost:3000", "x-env-own_key", false),
        ("http://localhost:3000", "x-env-", false),
        ("http://localhost:3000", "x-env-api_key2", false),
        ("http://evil.example", "x-env-api_key", false),
    ];
    for path in ["/mcp", "/sse", "/messages", "/ws"] {
        for (origin, asked, granted) in table {
            let request = http::Request::options(path)
                .header("host", "localhost")
                .header("origin", origin)
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", asked);
            let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
            let response = endpoint.handle(request).await;
            let headers = response.headers().get("access-control-allow-headers");
            let headers = headers.map_or("", |value| value.to_str().unwrap());
            let last = asked.rsplit(", ").next().unwrap().to_ascii_lowercase();
            assert_eq!(
                headers.split(", ").any(|name| name == last),
                granted,
                "{path} {origin} {asked}: {headers}"
            );
        }
    }
}

/// Every content type that a page may send to another site without asking, and some that only look like JSON.
const SIMPLE: &[&str] = &[
    "text/plain",
    "text/plain; charset=utf-8",
    "text/plain; application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonx",
    "application/json5",
    "application/json-rpc",
    "application",
    "json",
    "*/*",
    "",
    "text/json",
];

#[tokio::test]
async fn cors_simple_requests_never_reach_a_handler() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let tool = Tool::new("echo").run(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { "called" }
    });
    let host = Server::new("target").with(tool).host(HostOptions::default()).unwrap();
    let endpoint = host.http_service(HttpServerOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { serve(listener, &endpoint, endpoint.clone(), DEADLINE).await });
    let body = raw_http::call(1, "echo", &serde_json::json!({}));
    let headers =
        [("MCP-Protocol-Version", raw_http::MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let send = async |extra: &[(&str, &str)]| {
        let mut connection = Connection::open(address).await;
        connection.send(&raw_http::post(&[&headers, extra].concat(), body.as_bytes())).await;
        connection.reply().await.status
    };
    for kind in SIMPLE {
        assert_eq!(send(&[("Content-Type", kind)]).await, 415, "{kind}");
    }
    let twice = [("Content-Type", "application/json"), ("content-type", "text/plain")];
    assert_eq!(send(&twice).await, 415, "two content types");
    let initialize =
        raw_http::post(&[("Content-Type", "text/plain")], raw_http::initialize(raw_http::LEGACY).as_bytes());
    let mut connection = Connection::open(address).await;
    connection.send(&initialize).await;
    assert_eq!(connection.reply().await.status, 415, "a handshake");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(send(&[]).await, 200, "as JSON it is served");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
