//! Servers that are switched off and on.

use trunkline_client::{ChangeEvent, ChangeFilter};
use trunkline_config::NamePattern;
use trunkline_hub::{ManageError, ServerSwitch, ToggleOutcome, UpstreamConnectionState};

use futures_util::StreamExt as _;

use crate::support::{
    NEW, OLD, TestServers, eager, echo_server, echo_tool, gated, lazy, moved, names, plain_client, say,
    tools, until, within,
};

#[tokio::test]
async fn disabled_and_enabled_server_keeps_its_connection() {
    for revision in [OLD, NEW] {
        let town = TestServers::default();
        let server = town.add_server("a", &echo_server(&["t"]), revision);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, NEW).await;
        assert_eq!(tools(&client).await, ["a__t"]);
        assert_eq!(hub.toggle("a", ServerSwitch::On), Ok(ToggleOutcome::Unchanged));
        assert_eq!(hub.toggle("a", ServerSwitch::Off), Ok(ToggleOutcome::Changed));
        assert_eq!(hub.toggle("a", ServerSwitch::Off), Ok(ToggleOutcome::Unchanged));
        assert_eq!(
            hub.toggle("nobody", ServerSwitch::Off),
            Err(ManageError::NoSuchServer("nobody".to_owned()))
        );
        assert!(tools(&client).await.is_empty());
        let status = hub.status_of("a").unwrap();
        assert_eq!((status.state, status.connections), (UpstreamConnectionState::Disabled, 1));

        // A change while it is off brings nothing back, and is not forgotten.
        server.add(echo_tool("u")).unwrap();
        until(|| hub.status_of("a").unwrap().tools == 2).await;
        assert!(tools(&client).await.is_empty());
        assert_eq!(hub.toggle("a", ServerSwitch::On), Ok(ToggleOutcome::Changed));
        assert_eq!(tools(&client).await, ["a__t", "a__u"]);
        assert_eq!(say(&client, "a__u").await, "u");
        assert_eq!((town.connection_count("a"), hub.status_of("a").unwrap().starts), (1, 1));
    }
}

#[tokio::test]
async fn hidden_tool_is_refused_like_an_unknown_tool() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    for revision in [OLD, NEW] {
        let client = plain_client(&hub, revision).await;
        hub.toggle("a", ServerSwitch::Off).unwrap();
        let hidden = say(&client, "a__t").await;
        let unknown = say(&client, "a__nothing").await;
        assert_eq!(hidden.replace("a__t", "?"), unknown.replace("a__nothing", "?"));
        hub.toggle("a", ServerSwitch::On).unwrap();
        assert_eq!(say(&client, "a__t").await, "t");
    }
}

#[tokio::test]
async fn running_calls_finish_after_their_server_is_disabled() {
    let town = TestServers::default();
    let (server, gate) = gated();
    town.add_server("old", &server, OLD);
    town.add_server("new", &server, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("old"), eager("new")])).await;
    let client = plain_client(&hub, OLD).await;
    let calls = ["old__wait", "new__wait"].map(|tool| {
        let client = client.clone();
        tokio::spawn(async move { say(&client, tool).await })
    });
    gate.waiting(2).await;
    for name in ["old", "new"] {
        hub.toggle(name, ServerSwitch::Off).unwrap();
    }
    assert!(tools(&client).await.is_empty());
    gate.open();
    for call in calls {
        assert_eq!(within(call).await.unwrap(), "waited");
    }
}

#[tokio::test]
async fn server_disabled_at_start_is_never_connected() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), NEW);
    let hub = town.hub();
    let mut config = eager("a");
    config.enabled = false;
    let applied = within(hub.set_servers(vec![config.clone()])).await;
    assert!(applied.failed.is_empty());
    let client = plain_client(&hub, OLD).await;
    assert!(tools(&client).await.is_empty());
    assert_eq!(town.connection_count("a"), 0);
    config.enabled = true;
    let applied = within(hub.set_servers(vec![config])).await;
    assert_eq!(names(&applied.updated), ["a"]);
    until(|| hub.status_of("a").unwrap().tools == 1).await;
    assert_eq!(tools(&client).await, ["a__t"]);
}

#[tokio::test]
async fn lazy_server_enabled_later_sends_list_changed() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    town.add_server("b", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    let mut off = lazy("b");
    off.enabled = false;
    within(hub.set_servers(vec![lazy("a"), off])).await;
    let client = plain_client(&hub, NEW).await;
    let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
    assert_eq!(tools(&client).await, ["a__t"]);
    hub.toggle("b", ServerSwitch::On).unwrap();
    while within(changes.next()).await != Some(ChangeEvent::Tools) || hub.status_of("b").unwrap().tools == 0 {
    }
    assert_eq!(tools(&client).await, ["a__t", "b__t"]);
}

#[tokio::test]
async fn manually_disabled_server_stays_disabled_after_other_config_changes() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t", "u"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    hub.toggle("a", ServerSwitch::Off).unwrap();
    let client = plain_client(&hub, NEW).await;
    let mut other_rules = eager("a");
    other_rules.tools.deny.push(NamePattern::new("u"));
    for config in [other_rules.clone(), moved(other_rules.clone())] {
        let applied = within(hub.set_servers(vec![config])).await;
        assert_eq!(names(&applied.updated), ["a"]);
        assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::Disabled);
        assert!(tools(&client).await.is_empty());
    }
    hub.toggle("a", ServerSwitch::On).unwrap();
    assert_eq!(tools(&client).await, ["a__t"]);
}

#[tokio::test]
async fn server_with_an_unset_variable_cannot_be_connected_when_enabled() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    let mut config = lazy("a");
    (config.enabled, config.unset_variable) = (false, Some("TOKEN".to_owned()));
    within(hub.set_servers(vec![config])).await;
    hub.toggle("a", ServerSwitch::On).unwrap();
    let failed = within(hub.connect("a")).await.unwrap_err().to_string();
    assert!(failed.contains("environment variable `TOKEN`"), "{failed}");
    assert_eq!(town.connection_count("a"), 0);
    // Once it has a value, the configuration is another.
    within(hub.set_servers(vec![eager("a")])).await;
    assert_eq!(say(&plain_client(&hub, NEW).await, "a__t").await, "t");
}
