//! Sessions of every transport are listed for operators; those of channels end with their connection.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use trunkline_protocol::LoggingLevel;
use trunkline_server::http::{SessionSummary, SessionTransport};
use trunkline_server::session::Principal;

use crate::http_client::{status, to};
use crate::service::{Service, initialize, request, within};
use crate::transport_link::{TRANSPORTS, TransportLink, open_sse};
use crate::websocket::{close_code, connect};

async fn open(service: &Service, transport: &str) -> TransportLink {
    let mut link = TransportLink::open(transport, service).await;
    link.send(&initialize("2025-06-18")).await;
    link.receive().await;
    link.send(&request(2, "logging/setLevel", json!({ "level": "alert" }))).await;
    link.receive().await;
    link
}

async fn listed(service: &Service) -> Vec<SessionSummary> {
    service.endpoint.list_sessions(100).await.unwrap()
}

/// Waits until so many sessions are listed.
async fn are_listed(service: &Service, count: usize) -> Vec<SessionSummary> {
    within(async {
        loop {
            let found = listed(service).await;
            if found.len() == count {
                return found;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn sessions_of_every_transport_are_listed_until_their_connection_ends() {
    let service = Service::start().await;
    let mut links = Vec::new();
    for transport in TRANSPORTS {
        links.push(open(&service, transport).await);
    }
    let found = are_listed(&service, TRANSPORTS.len()).await;
    let mut names: Vec<_> = found.iter().map(|summary| summary.transport.to_string()).collect();
    names.sort();
    assert_eq!(names, ["channel", "channel", "channel", "http", "sse", "websocket"]);
    for summary in &found {
        assert_eq!(summary.record.log_level, Some(LoggingLevel::Alert), "{summary:?}");
        assert!(summary.record.client.is_some() && !summary.is_busy, "{summary:?}");
    }
    assert_eq!(service.host.channel_sessions(100).len(), TRANSPORTS.len() - 1);
    assert_eq!(service.host.channel_sessions(2).len(), 2);
    drop(links);
    let left = are_listed(&service, 1).await;
    assert_eq!(left[0].transport, SessionTransport::StreamableHttp);
    let record = &left[0].record;
    assert!(service.endpoint.end_session(record.id, &record.principal).await.unwrap());
    assert_eq!(listed(&service).await.len(), 0);
}

#[tokio::test]
async fn ended_session_of_a_channel_closes_its_connection_alone() {
    let service = Service::start().await;
    let (mut events, messages) = open_sse(service.address, &[]).await;
    let post = to(service.address, "POST", &messages);
    assert_eq!(status(service.address, post, &initialize("2024-11-05").to_string()).await.0, 202);
    events.message().await.unwrap();
    let (mut socket, _) = connect(&service, None).await.unwrap();
    socket.send(initialize("2025-11-25").to_string().into()).await.unwrap();
    within(socket.next()).await.unwrap().unwrap();

    let found = are_listed(&service, 2).await;
    let [sse, web] = [SessionTransport::HttpSse, SessionTransport::WebSocket]
        .map(|transport| found.iter().find(|summary| summary.transport == transport).unwrap().record.clone());
    assert!(
        !service.endpoint.end_session(sse.id, &Principal::Named("bob".into())).await.unwrap(),
        "it is of another principal"
    );
    assert!(service.endpoint.end_session(sse.id, &sse.principal).await.unwrap());
    assert!(within(events.next()).await.is_none());
    let left = are_listed(&service, 1).await;
    assert_eq!(left[0].record.id, web.id);
    assert!(service.endpoint.end_session(web.id, &web.principal).await.unwrap());
    assert_eq!(close_code(&mut socket).await, 1001);
    service.is_left_alone().await;
    assert!(!service.endpoint.end_session(web.id, &web.principal).await.unwrap(), "a session ends once");
}
