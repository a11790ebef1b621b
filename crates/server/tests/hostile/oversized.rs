//! Requests that are too large, too slow, or compressed.

use std::time::{Duration, Instant};

use trunkline_server::ServerLimits;
use trunkline_server::http::{IncomingRequest, serve};

use crate::raw_http::{self, Connection};
use crate::service::{Service, Setup};

const SHORT: Duration = Duration::from_millis(150);

async fn small_and_quick() -> Service {
    let limits = ServerLimits {
        message_bytes: 10_000,
        head_timeout: SHORT,
        body_timeout: SHORT,
        ..ServerLimits::default()
    };
    Service::start_with(Setup { limits, ..Setup::default() }).await
}

#[tokio::test]
async fn oversized_content_length_is_refused_before_the_body() {
    let service = small_and_quick().await;
    for announced in ["10001", "4294967296", "9223372036854775807"] {
        let reply = service.ask(&raw_http::post(&[("Content-Length", announced)], b"")).await;
        assert_eq!(reply.status, 413, "{announced}");
        assert_eq!(reply.json()["error"]["code"], -32600);
    }
    service.still_serves().await;
}

#[tokio::test]
async fn body_limit_is_exact_to_one_byte() {
    let service = small_and_quick().await;
    let fixed = raw_http::echo(1, "").len();
    for (length, status) in [(10_000, 200), (10_001, 413)] {
        let body = raw_http::echo(1, &"x".repeat(length - fixed));
        assert_eq!(body.len(), length);
        assert_eq!(
            service.ask(&raw_http::modern("tools/call", "echo", &body)).await.status,
            status,
            "{length}"
        );
    }
}

#[tokio::test]
async fn chunked_body_is_refused_beyond_the_limit() {
    let service = small_and_quick().await;
    let head = raw_http::post(&[("Content-Length-Left-Out", "1")], b"");
    let head =
        String::from_utf8(head).unwrap().replace("Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n");
    let mut connection = service.connect().await;
    connection.send(head.as_bytes()).await;
    let chunk = format!("3e8\r\n{}\r\n", " ".repeat(1000));
    for _ in 0..11 {
        connection.send(chunk.as_bytes()).await;
    }
    assert_eq!(connection.reply().await.status, 413);
    // The rest of the body could be another request, so the connection is closed.
    connection.ended().await;
    service.still_serves().await;
}

#[tokio::test]
async fn header_flood_is_refused_or_disconnected() {
    let service = small_and_quick().await;
    let many = (0..200).map(|n| format!("X-{n}: {n}\r\n")).collect::<String>();
    let long = format!("X-Long: {}\r\n", "a".repeat(1 << 20));
    let long_line = "a".repeat(200_000);
    for flood in [
        format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{long}\r\n"),
        format!("POST /{long_line} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("{long_line} /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let mut connection = service.connect().await;
        connection.send(flood.as_bytes()).await;
        if let Some(reply) = connection.reply_or_end().await {
            assert!(matches!(reply.status, 400 | 414 | 431), "{}: {}", reply.status, &flood[..60]);
        }
        connection.ended().await;
    }
    service.still_serves().await;
}

/// A call with a head of so many bytes.
fn with_head_of(bytes: usize) -> Vec<u8> {
    let request = |padding: usize| {
        let padding = "p".repeat(padding);
        let headers = [
            ("MCP-Protocol-Version", raw_http::MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "echo"),
            ("X-Padding", &*padding),
        ];
        raw_http::post(&headers, raw_http::echo(1, "heady").as_bytes())
    };
    let body = raw_http::echo(1, "heady").len();
    request(bytes - (request(0).len() - body))
}

#[tokio::test]
async fn head_limit_is_exact_to_one_byte() {
    let service = Service::start().await;
    let most = 64 << 10;
    for (bytes, status) in
        [(most, 200), (most + 1, 431), (most + 5000, 431), (2 * most, 431), (16 * most, 431)]
    {
        let request = with_head_of(bytes);
        for in_one_piece in [true, false] {
            let mut connection = service.connect().await;
            if in_one_piece {
                connection.send(&request).await;
            } else {
                let pieces = request.chunks(1400);
                for piece in pieces {
                    connection.send(piece).await;
                }
            }
            assert_eq!(connection.reply().await.status, status, "{bytes} in one piece: {in_one_piece}");
            if status != 200 {
                connection.ended().await;
            }
        }
    }
    service.still_serves().await;
}

#[tokio::test]
async fn idle_timeout_is_longer_than_the_head_timeout() {
    let limits = ServerLimits { head_timeout: SHORT, idle_timeout: 4 * SHORT, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "again"));
    let mut connection = service.connect().await;
    for _ in 0..3 {
        connection.send(&echo).await;
        assert_eq!(connection.reply().await.status, 200);
        let silence = tokio::time::timeout(2 * SHORT, connection.stream.readable()).await;
        assert!(silence.is_err(), "it is kept");
    }
    connection.send(&echo).await;
    assert_eq!(connection.reply().await.status, 200);
    let started = Instant::now();
    connection.ended().await;
    assert!(started.elapsed() >= 4 * SHORT);
}

#[tokio::test]
async fn head_on_an_idle_connection_has_the_head_timeout() {
    // A test that waits for the longer of the two fails by its own deadline.
    let limits = ServerLimits { head_timeout: SHORT, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "again"));
    let mut connection = service.connect().await;
    connection.send(&echo).await;
    assert_eq!(connection.reply().await.status, 200);
    let started = Instant::now();
    connection.send(&echo[..20]).await;
    connection.ended().await;
    assert!(started.elapsed() >= SHORT);
}

#[tokio::test]
async fn long_call_outlives_head_and_idle_timeouts_and_starts_streaming() {
    for directly in [true, false] {
        let limits = ServerLimits {
            head_timeout: SHORT,
            idle_timeout: SHORT,
            stream_after: SHORT,
            ..ServerLimits::default()
        };
        let service = Service::start_with(Setup { limits, directly, ..Setup::default() }).await;
        let mut connection = service.connect().await;
        for id in 1..=2 {
            let wait = raw_http::call(id, "wait", &serde_json::json!({}));
            connection.send(&raw_http::modern("tools/call", "wait", &wait)).await;
            let head = connection.stream_head().await;
            assert!(head.contains("text/event-stream"), "{directly}: {head}");
            let silence = tokio::time::timeout(3 * SHORT, connection.stream.readable()).await;
            assert!(silence.is_err(), "{directly}: it is kept");
            service.gate.add_permits(1);
            connection.read_until("waited").await;
            connection.read_rest().await;
        }
        connection.ended().await;
    }
}

#[tokio::test]
async fn non_http_bytes_end_only_their_connection() {
    let service = small_and_quick().await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"POST /mcp\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n Host: localhost\r\n\r\n",
    ] {
        let mut connection = service.connect().await;
        connection.send(garbage).await;
        if let Some(reply) = connection.reply_or_end().await {
            assert!((400..500).contains(&reply.status), "{}: {garbage:?}", reply.status);
        }
        connection.ended().await;
    }
    service.still_serves().await;
}

#[tokio::test]
async fn conflicting_content_lengths_are_refused() {
    let service = small_and_quick().await;
    let hidden = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "hidden"));
    let length = hidden.len().to_string();
    let mut request =
        raw_http::post(&[("Content-Length", &length), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n");
    request.extend(&hidden);
    let mut connection = service.connect().await;
    connection.send(&request).await;
    let first = connection.reply().await;
    assert_eq!(first.status, 400, "an empty body is not a message, however its length was told");
    assert!(connection.reply_or_end().await.is_none(), "what comes after it is not read as a request");
    service.still_serves().await;
}

#[tokio::test]
async fn slow_head_and_slow_body_time_out() {
    let service = small_and_quick().await;
    let whole = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "slow"));
    let head = whole.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    for (what, sent) in [("nothing", 0), ("a part of the head", head / 2), ("a part of the body", head + 10)]
    {
        let mut connection = service.connect().await;
        let started = Instant::now();
        connection.send(&whole[..sent]).await;
        let reply = connection.reply_or_end().await;
        connection.ended().await;
        assert!(started.elapsed() >= SHORT, "{what}");
        assert_eq!(reply.map(|reply| reply.status), (sent > head).then_some(408), "{what}");
    }
    service.still_serves().await;
}

#[tokio::test]
async fn body_timeout_is_not_extended_by_each_byte() {
    let service = small_and_quick().await;
    let whole = raw_http::modern("tools/call", "echo", &raw_http::echo(1, "slow"));
    let mut connection = service.connect().await;
    let mut sent = whole.len() - 100;
    connection.send(&whole[..sent]).await;
    let started = Instant::now();
    let mut pace = tokio::time::interval(SHORT / 10);
    while started.elapsed() < SHORT * 3 && sent < whole.len() {
        pace.tick().await;
        connection.send(&whole[sent..=sent]).await;
        sent += 1;
    }
    assert_eq!(connection.reply().await.status, 408);
}

#[tokio::test]
async fn content_encoding_is_refused() {
    let service = small_and_quick().await;
    for encoding in
        ["gzip", "deflate", "br", "zstd", "GZIP", "gzip, gzip", "identity, gzip", "x-unheard-of", ""]
    {
        let headers = [("Content-Encoding", encoding), ("MCP-Protocol-Version", raw_http::MODERN)];
        let reply = service.ask(&raw_http::post(&headers, b"\x1f\x8b\x08\0\0\0\0\0\0\x03")).await;
        assert_eq!(reply.status, 415, "{encoding:?}");
        assert_eq!(reply.header("accept-encoding"), Some("identity"), "{encoding:?}");
    }
    let headers = [
        ("Content-Encoding", "Identity"),
        ("MCP-Protocol-Version", raw_http::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    assert_eq!(
        service.ask(&raw_http::post(&headers, raw_http::echo(1, "plain").as_bytes())).await.status,
        200
    );
}

#[tokio::test]
async fn service_can_read_a_large_request_in_another_task() {
    let service = Service::start().await;
    let endpoint = service.endpoint.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let spawning = move |request: IncomingRequest| {
        let endpoint = endpoint.clone();
        async move { tokio::spawn(async move { endpoint.handle(request.into_request()).await }).await.unwrap() }
    };
    let endpoint = service.endpoint.clone();
    let serving =
        tokio::spawn(async move { serve(listener, &endpoint, spawning, Duration::from_secs(1)).await });
    let mut connection = Connection::open(address).await;
    let text = "x".repeat(1 << 20);
    connection.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(1, &text))).await;
    assert_eq!(connection.reply().await.json()["result"]["content"][0]["text"], text);
    serving.abort();
}
