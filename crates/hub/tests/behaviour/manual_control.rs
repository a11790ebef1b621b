//! What can be done to one server by hand: connect, disconnect, reconnect, ping, look at it.

use serde_json::json;
use trunkline_client::Error;
use trunkline_hub::{ManageError, UpstreamConnectionState};

use crate::support::{
    NEW, OLD, ScriptReply, TestServers, eager, echo_server, lazy, plain_client, say, script, tools, until,
    within,
};

#[tokio::test]
async fn server_can_be_disconnected_connected_and_pinged_manually() {
    for revision in [OLD, NEW] {
        let town = TestServers::default();
        town.add_server("a", &echo_server(&["t"]), revision);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, OLD).await;
        assert!(within(hub.ping("a")).await.is_ok(), "{revision}");
        within(hub.disconnect("a")).await.unwrap();
        let status = hub.status_of("a").unwrap();
        assert_eq!((status.state, status.connections), (UpstreamConnectionState::Disconnected, 0));
        assert!(tools(&client).await.is_empty());
        assert!(say(&client, "a__t").await.contains("Unknown tool"));
        let Err(ManageError::Unavailable { reason, .. }) = within(hub.ping("a")).await else { panic!() };
        assert_eq!(reason, "it was disconnected manually");
        assert_eq!(town.connection_count("a"), 1, "it stays so");
        within(hub.connect("a")).await.unwrap();
        assert_eq!(tools(&client).await, ["a__t"]);
        within(hub.reconnect("a")).await.unwrap();
        assert_eq!(town.connection_count("a"), 3);
        let status = hub.status_of("a").unwrap();
        assert_eq!(
            (status.state, status.connections, status.revision),
            (UpstreamConnectionState::Ready, 1, Some(revision))
        );
        assert_eq!(status.identity.unwrap().name, "parrots");
        assert_eq!(say(&client, "a__t").await, "t");
    }
}

#[tokio::test]
async fn failed_ping_has_the_error_of_its_request_as_its_source() {
    let (_server, opener) = script(|_, message| match message["method"].as_str() {
        Some("ping") => ScriptReply::Error(json!({ "code": -32603, "message": "out of order" })),
        _ => ScriptReply::AsUsual,
    });
    let servers = TestServers::default();
    servers.add_script("a", opener, OLD);
    let hub = servers.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let failed = within(hub.ping("a")).await.unwrap_err();
    let source = std::error::Error::source(&failed).and_then(|source| source.downcast_ref::<Error>());
    assert!(matches!(source, Some(Error::ErrorResponse(error)) if error.code == -32603), "{failed:?}");
}

#[tokio::test]
async fn every_management_error_names_the_unknown_server() {
    let hub = TestServers::default().hub();
    let nobody = ManageError::NoSuchServer("nobody".to_owned());
    assert_eq!(nobody.to_string(), "unknown server `nobody`");
    assert_eq!(within(hub.connect("nobody")).await, Err(nobody.clone()));
    assert_eq!(within(hub.disconnect("nobody")).await, Err(nobody.clone()));
    assert_eq!(within(hub.reconnect("nobody")).await, Err(nobody.clone()));
    assert_eq!(within(hub.ping("nobody")).await, Err(nobody.clone()));
    assert_eq!(hub.status_of("nobody").map(|_| ()), Err(nobody));
}

#[tokio::test]
async fn manual_connect_of_a_failed_server_skips_the_backoff() {
    let town = TestServers::default();
    town.set_unreachable("a", "out to lunch");
    let limits = trunkline_hub::HubLimits {
        restart_delay: std::time::Duration::from_secs(3600),
        max_restart_delay: std::time::Duration::from_secs(3600),
        ..crate::support::quick()
    };
    let hub = town.hub_within(limits);
    within(hub.set_servers(vec![eager("a")])).await;
    let status = hub.status_of("a").unwrap();
    assert_eq!(status.state, UpstreamConnectionState::Failed);
    assert!(status.reason.unwrap().contains("out to lunch") && status.retry_in.is_some());
    let Err(ManageError::Unavailable { reason, .. }) = within(hub.connect("a")).await else { panic!() };
    assert!(reason.contains("out to lunch"), "{reason}");
    town.add_server("a", &echo_server(&["t"]), OLD);
    within(hub.connect("a")).await.unwrap();
    let status = hub.status_of("a").unwrap();
    assert_eq!((status.state, status.reason, status.retry_in), (UpstreamConnectionState::Ready, None, None));
}

#[tokio::test]
async fn status_reports_each_connection_state_in_order() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    town.block_connections("a");
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::Pending);
    let connecting = {
        let hub = hub.clone();
        tokio::spawn(async move { hub.connect("a").await })
    };
    until(|| hub.status_of("a").unwrap().state == UpstreamConnectionState::Connecting).await;
    town.allow_connections("a");
    within(connecting).await.unwrap().unwrap();
    let status = hub.status_of("a").unwrap();
    assert_eq!((status.state, status.tools, status.starts), (UpstreamConnectionState::Ready, 1, 1));
}

#[tokio::test]
async fn disconnect_during_a_pending_connect_returns_at_once_and_wins() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    town.block_connections("a");
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let connecting = {
        let hub = hub.clone();
        tokio::spawn(async move { hub.connect("a").await })
    };
    until(|| town.connection_count("a") == 1).await;
    within(hub.disconnect("a")).await.unwrap();
    assert!(within(connecting).await.unwrap().is_err());
    town.allow_connections("a");
    assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::Disconnected);
}
