//! Lists that a server does not give at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_hub::HubLimits;

use crate::support::{
    NEW, OLD, ScriptReply, TestServers, eager, echo_server, moved, plain_client, quick, script, tools, until,
    within,
};

/// The first responses of a server to `tools/list`, before it is ready.
#[derive(Clone, Copy, Debug)]
enum ListingFault {
    Error,
    Silence,
}

/// Makes a server that lists its tools only after this many requests.
fn troubled(times: usize, trouble: ListingFault) -> trunkline_client::transport::ChannelOpener {
    let asked = Arc::new(AtomicUsize::new(0));
    let (_, opener) = script(move |_, message: &Value| {
        if message["method"] != "tools/list" || asked.fetch_add(1, Ordering::SeqCst) >= times {
            return ScriptReply::AsUsual;
        }
        match trouble {
            ListingFault::Error => ScriptReply::Error(json!({ "code": -32603, "message": "not yet" })),
            ListingFault::Silence => ScriptReply::Nothing,
        }
    });
    opener
}

#[tokio::test]
async fn failed_list_is_retried_until_it_succeeds() {
    for (trouble, up) in
        [(ListingFault::Error, OLD), (ListingFault::Error, NEW), (ListingFault::Silence, OLD)]
    {
        let town = TestServers::default();
        town.add_script("a", troubled(3, trouble), up);
        let hub = town.hub_within(HubLimits { listing_timeout: Duration::from_millis(100), ..quick() });
        within(hub.set_servers(vec![eager("a")])).await;
        until(|| hub.status_of("a").unwrap().tools == 1).await;
        assert_eq!(tools(&plain_client(&hub, NEW).await).await[0], "a__t", "{trouble:?} {up}");
        assert!(hub.status_of("a").unwrap().skipped.is_empty(), "{trouble:?} {up}");
        assert_eq!(town.connection_count("a"), 1, "{trouble:?} {up}: the connection is good");
    }
}

#[tokio::test]
async fn predecessors_listing_stays_until_the_successor_has_listed() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t", "u"]), OLD);
    let later = Duration::from_secs(600);
    let hub = town.hub_within(HubLimits { restart_delay: later, max_restart_delay: later, ..quick() });
    within(hub.set_servers(vec![eager("a")])).await;
    let client = plain_client(&hub, NEW).await;
    assert_eq!(tools(&client).await, ["a__t", "a__u"]);
    town.add_script("a", troubled(1, ListingFault::Error), OLD);
    within(hub.set_servers(vec![moved(eager("a"))])).await;
    until(|| !hub.status_of("a").unwrap().skipped.is_empty()).await;
    assert_eq!(tools(&client).await[..2], ["a__t", "a__u"]);
}
