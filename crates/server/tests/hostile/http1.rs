//! HTTP/1.1 requirements for servers that clients rely on, over raw sockets.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_server::ServerLimits;

use crate::raw_http;
use crate::service::{Service, Setup, eventually};

fn echo(id: u64) -> Vec<u8> {
    raw_http::modern("tools/call", "echo", &raw_http::echo(id, "said"))
}

/// Replaces the first line of a request, and adds a header.
fn altered(request: &[u8], line: &str, header: &str) -> Vec<u8> {
    let text = String::from_utf8(request.to_vec()).unwrap();
    let (_, rest) = text.split_once("\r\n").unwrap();
    format!("{line}\r\n{header}{rest}").into_bytes()
}

/// Writes a call with these chunks as its body.
fn chunked(chunks: &str) -> Vec<u8> {
    let headers = [
        ("Transfer-Encoding", "chunked"),
        ("MCP-Protocol-Version", raw_http::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let request = String::from_utf8(raw_http::post(&headers, chunks.as_bytes())).unwrap();
    let lines = request.split_inclusive("\r\n").filter(|line| !line.starts_with("Content-Length"));
    lines.collect::<String>().into_bytes()
}

#[track_caller]
fn assert_said(reply: &raw_http::RawReply, what: &str) {
    assert_eq!(reply.status, 200, "{what}: {reply:?}");
    assert_eq!(reply.json()["result"]["content"][0]["text"], "said", "{what}");
}

#[tokio::test]
async fn connection_stays_open_unless_a_side_sends_close() {
    let service = Service::start().await;
    let table = [
        ("POST /mcp HTTP/1.1", "", true),
        ("POST /mcp HTTP/1.1", "Connection: keep-alive\r\n", true),
        ("POST /mcp HTTP/1.1", "Connection: x, Close\r\n", false),
        ("POST /mcp HTTP/1.0", "", false),
        ("POST /mcp HTTP/1.0", "Connection: keep-alive\r\n", false),
        ("POST http://localhost/mcp HTTP/1.1", "", true),
        ("\r\n\r\nPOST /mcp HTTP/1.1", "", true),
    ];
    for (line, header, is_kept) in table {
        let what = format!("{line:?} {header:?}");
        let mut connection = service.connect().await;
        connection.send(&altered(&echo(1), line, header)).await;
        let reply = connection.reply().await;
        assert_said(&reply, &what);
        assert_eq!(reply.header("connection"), (!is_kept).then_some("close"), "{what}");
        assert!(reply.header("date").is_some_and(|date| date.ends_with(" GMT")), "{what}");
        if is_kept {
            connection.send(&echo(2)).await;
            assert_said(&connection.reply().await, &what);
        } else {
            connection.ended().await;
        }
    }
}

#[tokio::test]
async fn expect_100_continue_is_answered_only_for_accepted_requests() {
    let limits = ServerLimits { message_bytes: 10_000, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let whole = altered(&echo(1), "POST /mcp HTTP/1.1", "Expect: 100-continue\r\n");
    let head = whole.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut connection = service.connect().await;
    connection.send(&whole[..head]).await;
    assert_eq!(connection.reply().await.status, 100);
    connection.send(&whole[head..]).await;
    assert_said(&connection.reply().await, "asked for");
    // A body that comes with its head needs no `100 Continue`.
    connection.send(&whole).await;
    assert_said(&connection.reply().await, "unasked");
    connection.send(&raw_http::post(&[("Expect", "100-continue"), ("Content-Length", "10001")], b"")).await;
    assert_eq!(connection.reply().await.status, 413);
    connection.ended().await;
    service.still_serves().await;
}

#[tokio::test]
async fn chunked_body_is_decoded_for_any_fragmentation() {
    let service = Service::start().await;
    let body = raw_http::echo(1, "said");
    let (first, second) = body.split_at(20);
    let chunks = format!(
        "{:x}\r\n{first}\r\n{:X};name=value\r\n{second}\r\n0\r\nx-a: b\r\n\r\n",
        first.len(),
        second.len()
    );
    let request = chunked(&chunks);
    let mut connection = service.connect().await;
    for piece in [request.len(), 100, 7, 1] {
        for part in request.chunks(piece) {
            connection.send(part).await;
            tokio::task::yield_now().await;
        }
        assert_said(&connection.reply().await, &format!("in pieces of {piece}"));
    }
}

#[tokio::test]
async fn bytes_after_a_malformed_chunk_are_not_parsed_as_a_request() {
    let service = Service::start().await;
    let table = [
        "zz\r\n0\r\n\r\n",
        "5\n0\r\n\r\n",
        "5\r\nhello\n\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nx-a: b\n\r\n",
        "0x5\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\n0\r\n\r\n",
    ];
    for body in table {
        let mut connection = service.connect().await;
        connection.send(&[&chunked(body)[..], &echo(2)].concat()).await;
        assert_eq!(connection.reply().await.status, 400, "{body:?}");
        assert!(connection.reply_or_end().await.is_none(), "{body:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_timeout_applies_to_a_fast_endless_body() {
    let limits = ServerLimits { body_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let connection = service.connect().await;
    let (mut reader, mut writer) = connection.stream.into_split();
    let flood = tokio::spawn(async move {
        let block = b"1\r\n \r\n".repeat(10_000);
        let _ = writer.write_all(&chunked("")).await;
        while writer.write_all(&block).await.is_ok() {}
    });
    let mut head = [0; 12];
    reader.read_exact(&mut head).await.unwrap();
    assert!(matches!(&head, b"HTTP/1.1 408" | b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&head));
    drop(reader);
    flood.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_lines_do_not_extend_connection_timeouts() {
    let soon = Duration::from_millis(200);
    let limits = ServerLimits { head_timeout: soon, idle_timeout: soon, ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    for before in [&b""[..], &echo(1)] {
        for lines in [b"\r\n".repeat(32 * 1024), b"\r\n\r".to_vec()] {
            let mut connection = service.connect().await;
            connection.send(before).await;
            if !before.is_empty() {
                assert_said(&connection.reply().await, "before");
            }
            while connection.stream.write_all(&lines).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    assert_eq!(service.ask(&[&b"\r"[..], &echo(1)].concat()).await.status, 400, "that is not a line");
}

#[tokio::test]
async fn head_request_gets_no_body() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    connection.send(&raw_http::bare("HEAD", &[])).await;
    let head = connection.stream_head().await;
    assert!(head.starts_with("HTTP/1.1 4") && head.contains("content-length: "), "{head}");
    // What follows is the next response, and nothing of a body.
    connection.send(&echo(1)).await;
    assert_said(&connection.reply().await, "the next");
}

#[tokio::test]
async fn early_response_reaches_a_client_that_is_still_sending() {
    let service = Service::start().await;
    let unread = vec![b'x'; 3_000_000];
    for _ in 0..5 {
        let mut connection = service.connect().await;
        connection.send(&altered(&raw_http::post(&[], &unread), "POST /elsewhere HTTP/1.1", "")).await;
        assert_eq!(connection.reply().await.status, 404);
        connection.ended().await;
    }
    // What is here already is skipped, and the connection kept.
    let mut connection = service.connect().await;
    for length in [2, 5_000, 20_000] {
        connection
            .send(&altered(&raw_http::post(&[], &unread[..length]), "POST /elsewhere HTTP/1.1", ""))
            .await;
        assert_eq!(connection.reply().await.status, 404);
        connection.send(&echo(1)).await;
        assert_said(&connection.reply().await, "the next");
    }
}

#[tokio::test]
async fn malformed_head_gets_an_explanatory_error() {
    let service = Service::start().await;
    let table = [
        ("POST /mcp HTTP/1.1\r\nHost localhost\r\n\r\n", 400, "name"),
        ("POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "`Content-Length`"),
        ("POST /mcp HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400, "`chunked`"),
        ("POST /mcp HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"),
        ("GET /mcp HTTP/2.0\r\n\r\n", 400, "1.1"),
    ];
    for (request, status, named) in table {
        let mut connection = service.connect().await;
        connection.send(request.as_bytes()).await;
        let reply = connection.reply().await;
        assert_eq!(reply.status, status, "{request:?}");
        let sentence = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(sentence.contains(named), "{request:?}: {sentence}");
        connection.ended().await;
    }
}

#[tokio::test]
async fn partial_pipelined_head_has_the_head_timeout() {
    let limits = ServerLimits { head_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut connection = service.connect().await;
    connection.send(&[&echo(1)[..], b"POST /mcp HT"].concat()).await;
    assert_said(&connection.reply().await, "the first");
    connection.ended().await;
}

#[tokio::test]
async fn disconnect_cancels_a_running_call_despite_pipelined_bytes() {
    let service = Service::start().await;
    let call = raw_http::modern("tools/call", "wait", &raw_http::call(1, "wait", &serde_json::json!({})));
    for ahead in [&b""[..], b"POST /mcp HT", &echo(2)] {
        let mut connection = service.connect().await;
        connection.send(&[&call[..], ahead].concat()).await;
        eventually("the call runs", || service.host.load().0 == 1).await;
        drop(connection);
        service.idle().await;
    }
    service.still_serves().await;
}

#[tokio::test]
async fn websocket_key_has_to_be_sixteen_bytes_in_base64() {
    let service = Service::start().await;
    for (key, status) in [
        ("dGhlIHNhbXBsZSBub25jZQ==", 101),
        ("dGhlIHNhbXBsZSBub25jZQ=a", 400),
        ("dGhlIHNhbXBsZSBub25jZ*==", 400),
        ("dGhlIHNhbXBsZSBub25j====", 400),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", 400),
        ("short", 400),
    ] {
        let handshake = format!(
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
        );
        let mut connection = service.connect().await;
        connection.send(handshake.as_bytes()).await;
        let head = connection.stream_head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{key}: {head}");
    }
}

#[tokio::test]
async fn websocket_bytes_sent_with_the_handshake_are_not_lost() {
    let service = Service::start().await;
    let message = raw_http::initialize(raw_http::LEGACY);
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    // A text that is masked with nothing.
    let frame = [&[0x81, 0x80 | 126][..], &length, &[0; 4], message.as_bytes()].concat();
    let handshake = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let with_body = handshake.replace("Host", "Content-Length: 2\r\nHost");
    assert_eq!(service.ask(with_body.as_bytes()).await.status, 426, "a body would be taken for frames");
    let mut connection = service.connect().await;
    connection.send(&[handshake.as_bytes(), &frame].concat()).await;
    let head = connection.stream_head().await;
    assert!(head.starts_with("HTTP/1.1 101 ") && !head.contains("content-length"), "{head}");
    connection.read_past(b"serverInfo").await;
    eventually("it is a channel", || service.endpoint.channels() == 1).await;
}
