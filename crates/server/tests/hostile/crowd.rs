//! More connections than there is room for.

use trunkline_server::Limits;

use crate::service::{Service, Setup, eventually};
use crate::wire;

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_are_served_when_others_go() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let mut held = Vec::new();
    for id in 0..3 {
        let mut connection = service.connect().await;
        connection
            .send(&wire::modern("tools/call", "wait", &wire::call(id, "wait", &serde_json::json!({}))))
            .await;
        held.push(connection);
    }
    eventually("three calls run", || service.host.load().0 == 3).await;
    let mut fourth = service.connect().await;
    fourth.send(&wire::modern("tools/call", "echo", &wire::echo(4, "patient"))).await;
    let mut early = [0];
    let heard =
        tokio::time::timeout(std::time::Duration::from_millis(100), fourth.stream.peek(&mut early)).await;
    assert!(heard.is_err(), "the fourth is not served yet");
    held.pop();
    assert_eq!(fourth.reply().await.json()["result"]["content"][0]["text"], "patient");
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused_at_once_and_cost_the_others_nothing() {
    let limits = Limits { calls: 2, ..Limits::default() };
    let service = Service::start_with(Setup { limits, ..Setup::default() }).await;
    let wait = |id| wire::modern("tools/call", "wait", &wire::call(id, "wait", &serde_json::json!({})));
    let mut held = Vec::new();
    for id in 0..2 {
        let mut connection = service.connect().await;
        connection.send(&wait(id)).await;
        held.push(connection);
    }
    eventually("two calls run", || service.host.load().0 == 2).await;
    for id in 2..50 {
        let reply = service.ask(&wait(id)).await;
        assert_eq!((reply.status, reply.json()["id"].as_u64()), (429, Some(id)));
    }
    assert_eq!(service.host.load().0, 2, "a refused call is not counted");
    service.gate.add_permits(2);
    for mut connection in held {
        assert_eq!(connection.reply().await.status, 200);
    }
    service.still_serves().await;
}

#[tokio::test]
async fn unknown_sessions_are_refused_and_leave_nothing() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    for n in 0..1000_u128 {
        let session = format!("{n:032x}");
        connection.send(&wire::legacy(&session, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await;
        assert_eq!(connection.reply().await.status, 404, "{session}");
    }
    assert_eq!(service.endpoint.sessions(), 0);
}
