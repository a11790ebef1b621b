//! Clients that close their side of the connection behind a request, and clients that are gone.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use trunkline_server::ServerLimits;
use trunkline_server::http::RequestBody;

use crate::other_services::beside;
use crate::raw_http::{self, Connection};
use crate::service::{Service, Setup, eventually};

/// A call that waits for the gate, from a client that accepts these types.
fn wait_call(accept: &str) -> Vec<u8> {
    let headers = [
        ("MCP-Protocol-Version", raw_http::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "wait"),
        ("Accept", accept),
    ];
    raw_http::post(&headers, raw_http::call(1, "wait", &json!({})).as_bytes())
}

async fn half_closed(service: &Service, request: &[u8]) -> Connection {
    let mut connection = service.connect().await;
    connection.send(request).await;
    eventually("the call runs", || service.host.load().0 == 1).await;
    connection.stream.shutdown().await.unwrap();
    connection
}

/// A server that makes a stream of a silent call after this time.
async fn service(stream_after: Duration) -> Service {
    let limits = ServerLimits { stream_after, ..ServerLimits::default() };
    Service::start_with(Setup { limits, ..Setup::default() }).await
}

const ANY: &str = "application/json, text/event-stream";

#[tokio::test]
async fn half_closed_clients_get_their_responses_and_gone_ones_are_cancelled() {
    const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let service = service(Duration::from_secs(600)).await;
    for accept in ["application/json", ANY] {
        let request = wait_call(accept);
        let mut connection = half_closed(&service, &request).await;
        // The server has noticed the half-close, and has not cancelled the call.
        for _ in 0..3 {
            connection.read_past(INTERIM).await;
        }
        service.gate.add_permits(1);
        let reply = connection.reply().await;
        assert_eq!((reply.status, &reply.json()["result"]["content"][0]["text"]), (200, &json!("waited")));
        connection.ended().await;

        // At any time after it.
        drop(half_closed(&service, &request).await);
        service.idle().await;
        let mut connection = half_closed(&service, &request).await;
        connection.read_past(INTERIM).await;
        drop(connection);
        service.idle().await;
    }
    service.still_serves().await;
}

#[tokio::test]
async fn half_closed_clients_read_their_streams_to_the_end() {
    let service = service(Duration::from_millis(20)).await;
    let mut connection = half_closed(&service, &wait_call(ANY)).await;
    let head = connection.stream_head().await;
    assert!(head.contains("text/event-stream"), "{head}");
    assert_eq!(connection.read_until(":\n\n").await, ":\n\n");
    service.gate.add_permits(1);
    let rest = connection.read_rest().await;
    assert!(rest.contains("waited"), "{rest}");
    connection.ended().await;

    let mut connection = half_closed(&service, &wait_call(ANY)).await;
    connection.stream_head().await;
    connection.read_until(":\n\n").await;
    drop(connection);
    service.idle().await;
}

#[tokio::test]
async fn pipelined_requests_of_a_half_closed_client_are_answered() {
    let service = service(Duration::from_secs(600)).await;
    let echo = raw_http::modern("tools/call", "echo", &raw_http::echo(2, "behind"));
    let mut connection = half_closed(&service, &[wait_call(ANY), echo].concat()).await;
    connection.read_past(b"100 Continue\r\n\r\n").await;
    service.gate.add_permits(1);
    let text = connection.all().await;
    assert!(text.contains("waited") && text.contains("behind"), "{text}");
}

#[tokio::test]
async fn streams_and_requests_without_a_probe_end_with_the_side_of_their_client() {
    let service = service(Duration::from_secs(600)).await;
    // A client of HTTP/1.0 knows no interim response.
    let request = String::from_utf8(wait_call(ANY)).unwrap().replace("HTTP/1.1", "HTTP/1.0");
    half_closed(&service, request.as_bytes()).await.ended().await;
    service.idle().await;
    // A `GET` opens a stream that answers nothing.
    let session = service.session(raw_http::LEGACY).await;
    let mut standalone = service.connect().await;
    standalone.send(&raw_http::bare("GET", &[("Mcp-Session-Id", &session)])).await;
    standalone.stream_head().await;
    standalone.stream.shutdown().await.unwrap();
    standalone.ended().await;
}

#[tokio::test]
async fn get_stream_that_opens_after_the_half_close_ends_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let answer = {
        let gate = gate.clone();
        move |_: Request<RequestBody>| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                let endless = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
                let response = Response::builder().header("content-type", "text/event-stream");
                response.body(StreamBody::new(endless)).unwrap()
            }
        }
    };
    let mut connection = beside(answer).await;
    connection.send(&raw_http::bare("GET", &[])).await;
    connection.stream.shutdown().await.unwrap();
    // The server has noticed the half-close, and waits for the answer.
    connection.read_past(b"100 Continue\r\n\r\n").await;
    gate.add_permits(1);
    connection.stream_head().await;
    connection.ended().await;
}
