//! Channels that begin as HTTP, with a secret in what opens them and in what goes through them.

use serde_json::{Value, json};

use super::{CanaryCaller, assert_clean, canary};
use crate::bare_client::{RawConnection, frame, request};
use crate::messages::{call, initialize, initialized, legacy, modern};

/// What opens a channel has a secret in each of these, and one that the server knows as a variable.
fn opening(caller: &CanaryCaller) -> Vec<(&'static str, String)> {
    let other = canary("opening");
    vec![
        ("Authorization", caller.token.clone()),
        ("X-Env-API_KEY", canary("variable")),
        ("X-Env-OTHER_KEY", other.clone()),
        ("Cookie", format!("mcp_session_id={other}; session={other}")),
        ("X-Api-Key", other.clone()),
        ("Tracestate", format!("vendor={other}")),
        ("User-Agent", other),
    ]
}

/// Messages with secrets in them, the last of which has an answer that ends with the word.
fn messages(last: &str) -> Vec<Value> {
    let (argument, variable) = (canary("argument"), canary("variable"));
    let echo = |id, message: &str| legacy(id, "tools/call", call("echo", json!({ "message": message })));
    vec![
        initialize(),
        initialized(),
        echo(2, &argument),
        echo(3, &format!("key {variable}")),
        legacy(
            4,
            "tools/call",
            call("convert", json!({ "time": argument, "from": argument, "to": argument })),
        ),
        legacy(5, "tools/call", call(&argument, json!({}))),
        legacy(6, &argument, json!({ "secret": argument })),
        json!({ "jsonrpc": "2.0", "id": argument, "result": { "secret": argument } }),
        modern(7, "tools/call", json!({ "name": "echo", "arguments": {}, "requestState": argument })),
        echo(8, last),
    ]
}

/// Checks all that came through a channel: a caller's own arguments may, and nothing else.
#[track_caller]
fn assert_own(what: &str, told: &str) {
    assert_clean(what, &told.replace(&canary("argument"), ""));
    assert!(told.contains("key [secret]"), "{what}: the tool did not repeat the variable: {told}");
}

/// Calls over HTTP+SSE, where the id of the session is in the address; returns that id, and that of the cookie.
pub(super) fn exercise_sse(caller: &CanaryCaller) -> Vec<String> {
    let other = canary("other");
    caller.send(&format!("POST /messages?sessionId={other}"), &[], &initialize().to_string());
    let mut stream = RawConnection::open(caller.address);
    let mut headers = opening(caller);
    headers.push(("Accept", "text/event-stream".to_owned()));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    stream.write(&request(caller.address, &format!("GET /sse?token={other}"), &headers, ""));
    let told = stream.read_until("\n\n");
    let cookie =
        told.split("mcp_session_id=").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie");
    let path = told.split("data: ").nth(1).and_then(|rest| rest.lines().next()).expect("an address").trim();
    let id = path.split("sessionId=").nth(1).expect("an id").to_owned();
    for message in messages("that was all") {
        let sent =
            caller.send(&format!("POST {path}"), &[("Cookie", &format!("x={other}"))], &message.to_string());
        assert_eq!(sent.status, 202, "{message}");
    }
    caller.send(&format!("POST {path}"), &[], &format!("{{\"secret\": \"{other}\""));
    assert_own("a stream", &stream.read_until("that was all"));
    vec![id, cookie.to_owned()]
}

/// Calls over a WebSocket, and ends it with what is no message.
pub(super) fn exercise_websocket(caller: &CanaryCaller) {
    let other = canary("other");
    caller.send(&format!("GET /ws?token={other}"), &[("Sec-WebSocket-Protocol", &other)], "");
    let upgrade = [
        ("Connection", "Upgrade, close"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    // With a wrong protocol, with a wrong token, and as it should be.
    for header in [("Sec-WebSocket-Protocol", other.as_str()), ("Authorization", other.as_str())] {
        let refused = caller.send("GET /ws", &[&upgrade[..], &[header]].concat(), "");
        assert!(matches!(refused.status, 400 | 401), "{refused:?}");
    }
    // A malformed message gets an error response or closes the socket; neither repeats it.
    let endings = [
        (0x1, format!("{{\"secret\": \"{other}\""), "-32700"),
        (0x2, other.clone(), "messages are text"),
        (0x3, other.clone(), "not a legal frame"),
    ];
    for (kind, last, said) in endings {
        let mut socket = RawConnection::open(caller.address);
        let headers = opening(caller);
        let mut headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.extend(upgrade);
        socket.write(&request(caller.address, &format!("GET /ws?token={other}"), &headers, ""));
        assert!(socket.read_until("\r\n\r\n").starts_with("HTTP/1.1 101"), "{}", socket.seen());
        for message in messages("that was all") {
            socket.write_bytes(&frame(0x1, message.to_string().as_bytes()));
        }
        assert_own("a socket", &socket.read_until("that was all"));
        socket.write_bytes(&frame(kind, last.as_bytes()));
        assert_own("a socket", &socket.read_until(said));
    }
}
