//! Shutdown: running calls may finish, streams are ended, and requests on open connections are served.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;
use trunkline_server::ServerLimits;
use trunkline_server::http::DrainOutcome;

use crate::raw_http::{self, Connection};
use crate::service::{Service, Setup, eventually};

fn wait_call(id: u64) -> Vec<u8> {
    raw_http::modern("tools/call", "wait", &raw_http::call(id, "wait", &json!({})))
}

async fn listening(service: &Service) -> Connection {
    let mut connection = service.connect().await;
    connection.send(&raw_http::modern("subscriptions/listen", "-", &raw_http::listen(9))).await;
    connection.stream_head().await;
    connection.read_until("acknowledged").await;
    connection
}

async fn standing(service: &Service, session: &str) -> Connection {
    let mut connection = service.connect().await;
    connection.send(&raw_http::bare("GET", &[("Mcp-Session-Id", session)])).await;
    assert!(connection.stream_head().await.contains("200 OK"));
    connection.read_chunk().await.expect("the stream opens");
    connection
}

#[tokio::test]
async fn draining_finishes_running_calls_ends_streams_and_closes_idle_connections() {
    let service = Service::start().await;
    let session = service.session(raw_http::LEGACY).await;
    let mut listen = listening(&service).await;
    let mut stand = standing(&service, &session).await;
    let mut running = service.connect().await;
    running.send(&wait_call(1)).await;
    eventually("the call runs", || service.host.load().0 == 1).await;
    let mut kept = service.connect().await;
    kept.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(2, "before"))).await;
    assert_eq!(kept.reply().await.status, 200);

    service.host.shutdown().drain();
    let last = listen.read_rest().await;
    assert!(last.contains(r#""id":9,"result""#) && last.contains("complete"), "the closing answer: {last}");
    let last = stand.read_rest().await;
    assert!(last.contains("retry: "), "told when to come back: {last}");
    eventually("the listener is closed", || std::net::TcpStream::connect(service.address).is_err()).await;
    kept.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(3, "after"))).await;
    assert!(kept.reply_or_end().await.is_none(), "an idle connection was closed");
    assert_eq!(service.host.load().0, 1, "the call still runs");

    service.gate.add_permits(1);
    let answer = running.reply().await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "waited");
    assert_eq!(service.drained().await, DrainOutcome::Cleanly);
}

#[tokio::test]
async fn request_read_on_an_open_connection_while_draining_is_served() {
    let service = Service::start().await;
    let session = service.session(raw_http::LEGACY).await;
    let echo = raw_http::legacy_call(2, "echo", &json!({ "message": "after" }));
    let requests = [
        raw_http::modern("tools/call", "echo", &raw_http::echo(1, "after")),
        raw_http::legacy(&session, &echo),
        raw_http::post(&[], raw_http::initialize(raw_http::LEGACY).as_bytes()),
    ];
    let get = raw_http::bare("GET", &[("Mcp-Session-Id", &session)]);
    let listen = raw_http::modern("subscriptions/listen", "-", &raw_http::listen(3));
    let mut begun = Vec::new();
    for request in requests.iter().chain([&get, &listen]) {
        let mut kept = service.connect().await;
        kept.send(&raw_http::modern("tools/call", "echo", &raw_http::echo(4, "before"))).await;
        assert_eq!(kept.reply().await.status, 200);
        // The connection is not idle any more, so it stays open for the rest.
        kept.send(&request[..20]).await;
        begun.push((kept, &request[20..]));
    }
    service.host.shutdown().drain();
    eventually("the listener is closed", || std::net::TcpStream::connect(service.address).is_err()).await;
    let mut replies = Vec::new();
    for (mut kept, rest) in begun {
        kept.send(rest).await;
        replies.push(kept.reply().await);
        kept.ended().await;
    }
    for reply in &replies {
        assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
    }
    let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503], "only streams that would stay open are refused");
    for reply in &replies[..2] {
        assert_eq!(reply.json()["result"]["content"][0]["text"], "after");
    }
    assert_eq!(service.drained().await, DrainOutcome::Cleanly);
}

#[tokio::test]
async fn call_running_past_the_shutdown_grace_is_aborted_and_counted() {
    let grace = Duration::from_millis(200);
    let service = Service::start_with(Setup { grace, ..Setup::default() }).await;
    let mut running = service.connect().await;
    running.send(&wait_call(1)).await;
    eventually("the call runs", || service.host.load().0 == 1).await;
    let (host, started) = (service.host.clone(), Instant::now());
    host.shutdown().drain();
    assert_eq!(service.drained().await, DrainOutcome::Aborted(1));
    assert!(started.elapsed() >= grace, "it had all of its time");
    assert!(running.reply_or_end().await.is_none(), "its caller sees the connection end");
    assert_eq!(host.load(), (0, 0), "nothing outlives the server");
}

#[tokio::test]
async fn detached_legacy_call_is_awaited_until_the_shutdown_grace() {
    let grace = Duration::from_millis(200);
    let service = Service::start_with(Setup { grace, ..Setup::default() }).await;
    let session = service.session(raw_http::LEGACY).await;
    let mut running = service.connect().await;
    running.send(&raw_http::legacy(&session, &raw_http::legacy_call(1, "wait", &json!({})))).await;
    eventually("the call runs", || service.host.load().0 == 1).await;
    drop(running);
    let host = service.host.clone();
    host.shutdown().drain();
    assert_eq!(service.drained().await, DrainOutcome::Aborted(1));
    eventually("the detached call is ended too", || host.load() == (0, 0)).await;
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let limits = ServerLimits { head_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut held = Vec::new();
    for part in ["", "POST /mcp HT", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut connection = service.connect().await;
        connection.send(part.as_bytes()).await;
        held.push(connection);
    }
    for _ in 0..20 {
        held.push(listening(&service).await);
    }
    service.host.shutdown().drain();
    assert_eq!(service.drained().await, DrainOutcome::Cleanly);
    for mut connection in held {
        connection.ended().await;
    }
}

#[tokio::test]
async fn stopping_aborts_all_calls_at_once() {
    let service = Service::start().await;
    let mut running = service.connect().await;
    running.send(&wait_call(1)).await;
    eventually("the call runs", || service.host.load().0 == 1).await;
    let address = service.address;
    service.host.shutdown().stop();
    assert_eq!(service.drained().await, DrainOutcome::Aborted(1));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn stopped_server_can_restart_on_the_same_port() {
    let first = Service::start().await;
    let address = first.address;
    first.still_serves().await;
    first.host.shutdown().drain();
    assert_eq!(first.drained().await, DrainOutcome::Cleanly);
    let second = Service::start_with(Setup { address, ..Setup::default() }).await;
    assert_eq!(second.address, address);
    second.still_serves().await;
}
