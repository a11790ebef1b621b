//! WebSockets that do not open, or do not stay.

use trunkline_client::Error;
use trunkline_client::transport::accept_key;

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, SeenRequest};
use crate::test_server::direct;
use crate::within;

/// Agrees to speak, and leaves.
fn agree_and_leave(seen: &SeenRequest) -> ScriptedResponse {
    let accept = accept_key(seen.headers["sec-websocket-key"].as_bytes());
    ScriptedResponse::bytes(format!(
        "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    ))
}

#[tokio::test]
async fn failed_websocket_handshake_is_reported_with_the_reason() {
    type WebSocketScript = fn(&SeenRequest) -> ScriptedResponse;
    let table: &[(&str, WebSocketScript, &str)] = &[
        ("no such place", |_| ScriptedResponse::status(404, "nothing here"), "HTTP 404: nothing here"),
        ("no WebSocket", |_| ScriptedResponse::status(200, "<html>"), "HTTP 200: <html>"),
        ("a failure", |_| ScriptedResponse::status(503, ""), "HTTP 503"),
        (
            "a wrong handshake",
            |_| {
                ScriptedResponse::bytes(
                    "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
                )
            },
            "handshake is wrong",
        ),
        ("nothing", |_| ScriptedResponse::bytes(""), "closed"),
    ];
    for (what, script, expected) in table {
        let server = ScriptedHttpServer::start(*script).await;
        let url = server.url.replacen("http://", "ws://", 1);
        let connecting = direct().bearer("sentinel").connect(url.as_str());
        let Err(Error::Unreachable(error)) = within(connecting).await else { panic!("{what}") };
        assert!(error.cause.contains(expected), "{what}: {error}");
        assert_eq!(error.attempts.len(), 1, "{what}");
        assert_eq!(server.seen()[0].header("authorization"), Some("Bearer sentinel"));
    }
    let server =
        ScriptedHttpServer::start(|_| ScriptedResponse::status(401, "").with("www-authenticate", "Bearer"))
            .await;
    let url = server.url.replacen("http://", "ws://", 1);
    let Err(Error::Unauthorized { status: 401, challenge }) = within(direct().connect(url.as_str())).await
    else {
        panic!()
    };
    assert_eq!(challenge.as_deref(), Some("Bearer"));
}

#[tokio::test]
async fn websocket_closed_during_the_probe_is_inconclusive() {
    let server = ScriptedHttpServer::start(agree_and_leave).await;
    let url = server.url.replacen("http://", "ws://", 1);
    let Err(Error::Unreachable(error)) = within(direct().connect(url.as_str())).await else { panic!() };
    assert_eq!(error.attempts.len(), 1);
    assert!(error.attempts[0].action.starts_with("server/discover"), "{:?}", error.attempts);
    assert_eq!(server.seen().len(), 1, "nothing else was tried");
}
