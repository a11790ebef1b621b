//! Requests that name another host or come from another page, on every route and with every method.

use crate::raw_http;
use crate::service::{Service, Setup};
use trunkline_server::http::{AllowList, HttpServerOptions};

/// Hosts, and whether they may be named. `None` is a request without the header.
const HOSTS: &[(Option<&str>, bool)] = &[
    (Some("localhost"), true),
    (Some("LocalHost:7411"), true),
    (Some("127.0.0.1"), true),
    (Some("127.0.0.1:65535"), true),
    (Some("[::1]:80"), true),
    (Some("mcp.example.com"), true),
    (Some("MCP.example.com:8443"), true),
    (None, false),
    (Some(""), false),
    (Some("evil.example"), false),
    (Some("evil.example:7411"), false),
    (Some("localhost.evil.example"), false),
    (Some("127.0.0.1.evil.example"), false),
    (Some("mcp.example.com.evil.example"), false),
    (Some("x.mcp.example.com"), false),
    (Some("localhost."), false),
    (Some("localhost:"), false),
    (Some("localhost:0"), false),
    (Some("localhost:65536"), false),
    (Some("localhost:80:80"), false),
    (Some("localhost:+80"), false),
    (Some("user@localhost"), false),
    (Some("localhost@evil.example"), false),
    (Some("localhost#evil.example"), false),
    (Some("localhost/evil.example"), false),
    (Some("localhost, evil.example"), false),
    (Some("127.1"), false),
    (Some("2130706433"), false),
    (Some("0x7f.0.0.1"), false),
    (Some("0.0.0.0"), false),
    (Some("[::]"), false),
    (Some("[::ffff:127.0.0.1]"), false),
    (Some("::1"), false),
    (Some("[::1"), false),
    (Some("169.254.169.254"), false),
    (Some("null"), false),
];

/// Origins, and whether their pages may call.
const ORIGINS: &[(Option<&str>, bool)] = &[
    (None, true),
    (Some("http://localhost"), true),
    (Some("https://127.0.0.1:3000"), true),
    (Some("http://[::1]:3000"), true),
    (Some("https://app.example.com"), true),
    (Some("null"), false),
    (Some(""), false),
    (Some("http://evil.example"), false),
    (Some("http://app.example.com"), false),
    (Some("https://app.example.com.evil.example"), false),
    (Some("https://app.example.com:444"), false),
    (Some("http://localhost.evil.example"), false),
    (Some("http://localhost@evil.example"), false),
    (Some("http://evil.example/http://localhost"), false),
    (Some("file://"), false),
    (Some("file://localhost"), false),
    (Some("chrome-extension://localhost"), false),
    (Some("localhost"), false),
    (Some("http://localhost http://evil.example"), false),
    (Some("http://localhost, http://evil.example"), false),
];

const METHODS: &[&str] = &["POST", "GET", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD", "TRACE"];
const PATHS: &[&str] = &["/mcp", "/", "/mcp/", "/MCP", "/mcp?x=1", "/elsewhere", "/%6dcp", "//mcp"];

async fn service() -> Service {
    let http = HttpServerOptions {
        hosts: AllowList::loopback().and("mcp.example.com"),
        origins: AllowList::loopback().and("https://app.example.com"),
        ..HttpServerOptions::default()
    };
    Service::start_with(Setup { http, ..Setup::default() }).await
}

/// Writes a request that would be answered with 200 if its host, origin, method and path are right.
fn request(method: &str, path: &str, host: Option<&str>, origin: Option<&str>) -> Vec<u8> {
    let body = if method == "POST" { raw_http::echo(1, "in") } else { String::new() };
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in [("Host", host), ("Origin", origin)] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    text.push_str(
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n",
    );
    text.push_str(&format!(
        "Mcp-Name: echo\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    text.into_bytes()
}

async fn assert_guarded(
    service: &Service,
    method: &str,
    path: &str,
    host: (Option<&str>, bool),
    origin: (Option<&str>, bool),
) {
    let reply = service.ask(&request(method, path, host.0, origin.0)).await;
    let what = format!("{method} {path} Host {host:?} Origin {origin:?} gave {}", reply.status);
    let allowed = host.1 && origin.1;
    // Without `Host` it is not a request at all (RFC 9112, section 3.2).
    let refused = if host.0.is_none() { 400 } else { 403 };
    assert_eq!(reply.status == refused, !allowed, "{what}");
    if allowed {
        let right = ["/mcp", "/mcp/", "/mcp?x=1"].contains(&path) && matches!(method, "POST");
        assert_eq!(reply.status == 200, right, "{what}");
    }
    let granted = reply.header("access-control-allow-origin");
    assert_eq!(granted, origin.0.filter(|_| allowed), "{what}");
}

#[tokio::test]
async fn only_allowed_hosts_and_origins_are_served_on_every_method() {
    let service = service().await;
    for method in METHODS {
        for host in HOSTS {
            assert_guarded(&service, method, "/mcp", *host, (None, true)).await;
            assert_guarded(&service, method, "/mcp", *host, (Some("http://evil.example"), false)).await;
        }
        for origin in ORIGINS {
            assert_guarded(&service, method, "/mcp", (Some("localhost"), true), *origin).await;
            assert_guarded(&service, method, "/mcp", (Some("evil.example"), false), *origin).await;
        }
    }
    service.idle().await;
}

#[tokio::test]
async fn host_and_origin_are_checked_before_routing() {
    let service = service().await;
    for path in PATHS {
        for method in METHODS {
            assert_guarded(&service, method, path, (Some("localhost"), true), (None, true)).await;
            assert_guarded(&service, method, path, (Some("evil.example"), false), (None, true)).await;
            assert_guarded(&service, method, path, (Some("localhost"), true), (Some("null"), false)).await;
        }
    }
}

#[tokio::test]
async fn ambiguous_hosts_and_origins_are_refused() {
    let service = service().await;
    for head in [
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
        "POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n",
        "POST http://localhost/mcp HTTP/1.1\r\nHost: evil.example\r\n",
        "POST http://user@localhost/mcp HTTP/1.1\r\nHost: localhost\r\n",
        "POST /mcp HTTP/1.0\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localh\u{f6}st\r\n",
        "CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let body = raw_http::echo(1, "in");
        let rest = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let reply = service.ask(format!("{head}{rest}").as_bytes()).await;
        let refused = if head.matches("Host: localhost\r\nHost:").count() > 0 { 400 } else { 403 };
        assert_eq!(reply.status, refused, "{head}");
    }
    service.still_serves().await;
}
