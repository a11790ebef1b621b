//! Hubs that are among their own servers, directly or through each other.

use std::time::Duration;

use trunkline_client::protocol::Revision;
use trunkline_client::transport::{ChannelOpener, memory};
use trunkline_client::{Client, ClientCall, Error};
use trunkline_hub::{Hub, HubLimits, UpstreamConnectionState};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, TestServers, eager, echo_server, lazy, plain_client, quick, say, serve_hub, tools, until,
    within,
};

/// Lets a hub live somewhere, as a server like any other.
fn settle_hub(town: &TestServers, name: &str, hub: &Hub, pin: Revision) {
    let host = serve_hub(hub);
    let opener = ChannelOpener::new(name, move || {
        let (ours, theirs) = memory(64);
        let host = host.clone();
        tokio::spawn(async move { host.serve_channel(ours, Principal::Process).await.map(drop) });
        std::future::ready(Ok(theirs))
    });
    town.add_script(name, opener, pin);
}

/// Hubs that wait for each other do so for a moment.
fn hub_in(town: &TestServers) -> Hub {
    town.hub_within(HubLimits { first_list_timeout: Duration::from_secs(1), ..quick() })
}

/// Lists the tools, but for those with which hubs read resources.
async fn theirs(client: &Client) -> Vec<String> {
    tools(client).await.into_iter().filter(|name| !name.contains("mcp_resource")).collect()
}

#[tokio::test]
async fn hub_loop_is_reported_and_other_servers_are_served() {
    for pin in [Revision::V2024_11_05, OLD, NEW] {
        let town = TestServers::default();
        town.add_server("a", &echo_server(&["t"]), OLD);
        let hub = town.hub();
        settle_hub(&town, "me", &hub, pin);
        let applied = within(hub.set_servers(vec![eager("a"), eager("me")])).await;
        let [(name, reason)] = applied.failed.as_slice() else { panic!("{applied:?}") };
        assert!(*name == "me" && reason.contains("this hub is reached through itself"), "{reason}");
        let client = plain_client(&hub, NEW).await;
        assert_eq!(tools(&client).await, ["a__t"], "{pin}");
        assert_eq!(say(&client, "a__t").await, "t");
        until(|| hub.status_of("me").unwrap().state == UpstreamConnectionState::Failed).await;
        let status = hub.status_of("me").unwrap();
        assert!(status.reason.unwrap().contains("reached through itself"));
    }
}

#[tokio::test]
async fn chained_hubs_list_their_own_tools_without_loops() {
    for pin in [Revision::V2024_11_05, OLD, NEW] {
        let (town_of_one, town_of_two) = (TestServers::default(), TestServers::default());
        town_of_one.add_server("x", &echo_server(&["t"]), NEW);
        town_of_two.add_server("y", &echo_server(&["u"]), OLD);
        let (one, two) = (hub_in(&town_of_one), hub_in(&town_of_two));
        settle_hub(&town_of_one, "two", &two, pin);
        settle_hub(&town_of_two, "one", &one, pin);
        within(one.set_servers(vec![lazy("x"), lazy("two")])).await;
        within(two.set_servers(vec![lazy("y"), lazy("one")])).await;
        let (of_one, of_two) = (plain_client(&one, OLD).await, plain_client(&two, NEW).await);
        for _ in 0..3 {
            // Changes after the first lists are notified.
            within(async { while theirs(&of_one).await != ["two__y__u", "x__t"] {} }).await;
            within(async { while theirs(&of_two).await != ["one__x__t", "y__u"] {} }).await;
        }
        assert_eq!(
            (say(&of_one, "two__y__u").await, say(&of_two, "one__x__t").await),
            ("u".into(), "t".into())
        );
        until(|| {
            let left_out = one.status_of("two").unwrap().skipped;
            left_out.iter().any(|reason| reason.contains("lead back to this hub"))
        })
        .await;
    }
}

#[tokio::test]
async fn unknown_resource_in_a_hub_loop_fails_with_the_loop_error() {
    let (town_of_one, town_of_two) = (TestServers::default(), TestServers::default());
    let (one, two) = (hub_in(&town_of_one), hub_in(&town_of_two));
    settle_hub(&town_of_one, "two", &two, NEW);
    settle_hub(&town_of_two, "one", &one, NEW);
    within(one.set_servers(vec![eager("two")])).await;
    within(two.set_servers(vec![eager("one")])).await;
    let client = plain_client(&one, NEW).await;
    let Err(Error::ErrorResponse(refused)) = within(client.run(ClientCall::read("nobody:x"))).await else {
        panic!("nobody has it");
    };
    assert!(refused.message.contains("this hub is reached through itself"), "{refused:?}");
}
