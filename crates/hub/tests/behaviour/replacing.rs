//! Servers that come, go, change and fail, while clients look on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use trunkline_client::{ChangeEvent, ChangeFilter};
use trunkline_config::NamePattern;
use trunkline_hub::{Hub, HubLimits, ServerSwitch, UpstreamConnectionState};

use crate::support::{
    NEW, OLD, ScriptReply, ScriptedServer, TestServers, eager, echo_server, echo_tool, gated, lazy, moved,
    names, plain_client, quick, say, script, tools, until, within,
};

#[tokio::test]
async fn configuration_diff_keeps_unchanged_servers_connected() {
    let town = TestServers::default();
    for name in ["same", "changes", "goes", "comes", "other-rules"] {
        town.add_server(name, &echo_server(&["t"]), OLD);
    }
    let hub = town.hub();
    let first = within(hub.set_servers(["same", "changes", "goes", "other-rules"].map(eager).to_vec())).await;
    assert_eq!(names(&first.added), ["same", "changes", "goes", "other-rules"]);
    assert!(first.failed.is_empty(), "{first:?}");
    let client = plain_client(&hub, NEW).await;
    assert_eq!(tools(&client).await, ["changes__t", "goes__t", "other-rules__t", "same__t"]);

    let mut other_rules = eager("other-rules");
    other_rules.tools.deny.push(NamePattern::new("t"));
    let configs = vec![eager("comes"), moved(eager("changes")), eager("same"), other_rules];
    let second = within(hub.set_servers(configs)).await;
    assert_eq!(names(&second.added), ["comes"]);
    assert_eq!(names(&second.removed), ["goes"]);
    assert_eq!(names(&second.updated), ["changes", "other-rules"]);
    assert_eq!(names(&second.unchanged), ["same"]);
    assert!(second.failed.is_empty(), "{second:?}");
    assert_eq!(tools(&client).await, ["changes__t", "comes__t", "same__t"]);
    for (name, visits) in [("same", 1), ("changes", 2), ("goes", 1), ("comes", 1), ("other-rules", 1)] {
        assert_eq!(town.connection_count(name), visits, "{name}");
    }
    let order: Vec<_> = hub.status().into_iter().map(|status| status.name.to_string()).collect();
    assert_eq!(order, ["comes", "changes", "same", "other-rules"]);
}

#[tokio::test]
async fn failing_server_affects_no_other_and_reports_its_reason() {
    let town = TestServers::default();
    town.add_server("well", &echo_server(&["t"]), NEW);
    town.set_unreachable("dead", "`npx` was not found in PATH");
    let hub = town.hub_within(HubLimits { restart_delay: Duration::from_millis(500), ..quick() });
    let applied = within(hub.set_servers(vec![eager("dead"), eager("well")])).await;
    let [(name, reason)] = &applied.failed[..] else { panic!("{applied:?}") };
    assert_eq!((name.as_str(), reason.contains("not found in PATH")), ("dead", true), "{reason}");
    let client = plain_client(&hub, OLD).await;
    assert_eq!(tools(&client).await, ["well__t"]);
    let dead = hub.status_of("dead").unwrap();
    assert!(
        matches!(dead.state, UpstreamConnectionState::Failed | UpstreamConnectionState::Connecting),
        "{:?}",
        dead.state
    );
    assert!(dead.reason.unwrap().contains("not found in PATH"));
    assert_eq!(hub.status_of("well").unwrap().state, UpstreamConnectionState::Ready);

    // It is tried again by itself, and is there once it is well.
    town.add_server("dead", &echo_server(&["u"]), OLD);
    until(|| hub.status_of("dead").unwrap().tools == 1).await;
    assert_eq!(tools(&client).await, ["dead__u", "well__t"]);
    assert_eq!(hub.status_of("dead").unwrap().reason, None);
}

#[tokio::test]
async fn slow_server_is_left_out_of_the_first_list_and_announced_later() {
    let town = TestServers::default();
    town.add_server("quick", &echo_server(&["t"]), NEW);
    town.add_server("slow", &echo_server(&["t"]), OLD);
    town.block_connections("slow");
    let hub = town.hub_within(HubLimits { first_list_timeout: Duration::from_millis(500), ..quick() });
    within(hub.set_servers(vec![lazy("quick"), lazy("slow")])).await;
    assert_eq!((town.connection_count("quick"), town.connection_count("slow")), (0, 0), "nobody has asked");
    let client = plain_client(&hub, NEW).await;
    let mut changes = client.subscribe(ChangeFilter::all_lists()).await.unwrap();
    assert_eq!(tools(&client).await, ["quick__t"]);
    assert_eq!(tools(&client).await, ["quick__t"]);
    town.allow_connections("slow");
    while within(changes.next()).await != Some(ChangeEvent::Tools)
        || hub.status_of("slow").unwrap().tools == 0
    {}
    assert_eq!(tools(&client).await, ["quick__t", "slow__t"]);
}

#[tokio::test]
async fn slow_connect_blocks_neither_the_next_configuration_nor_shutdown() {
    let town = TestServers::default();
    for name in ["well", "slow", "comes"] {
        town.add_server(name, &echo_server(&["t"]), OLD);
    }
    town.block_connections("slow");
    let hub = town.hub();
    let first = {
        let hub = hub.clone();
        tokio::spawn(async move { hub.set_servers(vec![eager("well"), eager("slow")]).await })
    };
    until(|| town.connection_count("slow") == 1).await;
    let second = within(hub.set_servers(vec![eager("well"), eager("comes")])).await;
    assert_eq!((names(&second.added), names(&second.removed)), (vec!["comes"], vec!["slow"]));
    let first = within(first).await.unwrap();
    let [(name, reason)] = &first.failed[..] else { panic!("{first:?}") };
    assert_eq!((name.as_str(), reason.as_str()), ("slow", "it is no longer configured"));
    assert_eq!(tools(&plain_client(&hub, NEW).await).await, ["comes__t", "well__t"]);
    within(hub.shutdown()).await;
    assert!(hub.status().is_empty());
}

#[tokio::test]
async fn tool_of_a_never_listed_server_is_found_by_its_name() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    assert_eq!(say(&plain_client(&hub, NEW).await, "a__t").await, "t");
}

/// Lists the tools and calls one, in a loop until it is stopped.
async fn look_on(hub: Hub, stop: Arc<AtomicBool>) -> usize {
    let client = plain_client(&hub, NEW).await;
    let mut looks = 0;
    while !stop.load(Ordering::SeqCst) {
        let listed = tools(&client).await;
        assert!(listed.contains(&"stable__t".to_owned()), "there was a moment without it: {listed:?}");
        assert_eq!(say(&client, "stable__t").await, "t");
        looks += 1;
    }
    looks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unchanged_server_stays_listed_and_callable_through_300_reconfigurations() {
    let town = TestServers::default();
    for name in ["stable", "a", "b", "c"] {
        town.add_server(name, &echo_server(&["t"]), if name == "b" { NEW } else { OLD });
    }
    town.set_unreachable("dead", "gone");
    let hub = town.hub();
    within(hub.set_servers(vec![eager("stable")])).await;
    let stop = Arc::new(AtomicBool::new(false));
    let looking: Vec<_> = (0..3).map(|_| tokio::spawn(look_on(hub.clone(), stop.clone()))).collect();
    for round in 0..300 {
        let mut configs = vec![eager("stable")];
        for (at, name) in ["a", "b", "c", "dead"].into_iter().enumerate() {
            match (round >> at) % 3 {
                0 => configs.push(lazy(name)),
                1 => configs.push(moved(eager(name))),
                _ => {}
            }
        }
        let first = round % configs.len();
        configs.rotate_left(first);
        let applied = within(hub.set_servers(configs)).await;
        assert!(names(&applied.unchanged).contains(&"stable"), "{applied:?}");
        assert!(applied.failed.iter().all(|(name, _)| *name == "dead"), "{applied:?}");
    }
    stop.store(true, Ordering::SeqCst);
    for looks in looking {
        assert!(within(looks).await.unwrap() > 0);
    }
    // Each of the three looks as another caller of the same principal, so that one connection served all.
    assert_eq!((town.connection_count("stable"), hub.status_of("stable").unwrap().starts), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replaced_reconnected_or_relisted_server_keeps_its_tools_listed() {
    let town = TestServers::default();
    let server = town.add_server("stable", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("stable")])).await;
    let stop = Arc::new(AtomicBool::new(false));
    let looking = tokio::spawn(look_on(hub.clone(), stop.clone()));
    for round in 0..50 {
        within(hub.set_servers(vec![moved(eager("stable"))])).await;
        if round % 2 == 0 {
            server.add(echo_tool("u")).unwrap();
        } else {
            server.remove_tool("u");
        }
        within(hub.set_servers(vec![eager("stable")])).await;
        within(hub.reconnect("stable")).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    assert!(within(looking).await.unwrap() > 0);
}

#[tokio::test]
async fn tools_are_removed_if_the_replacement_server_never_connects() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    town.set_unreachable("a", "moved away");
    let applied = within(hub.set_servers(vec![moved(eager("a"))])).await;
    assert_eq!(applied.failed.len(), 1);
    assert!(tools(&plain_client(&hub, NEW).await).await.is_empty());
}

#[tokio::test]
async fn running_call_finishes_after_its_server_is_removed() {
    let town = TestServers::default();
    let (server, gate) = gated();
    for (name, revision) in [("old", OLD), ("new", NEW)] {
        town.add_server(name, &server, revision);
    }
    let hub = town.hub_within(HubLimits { drain_timeout: Duration::from_secs(60), ..quick() });
    within(hub.set_servers(vec![eager("old"), eager("new")])).await;
    let client = plain_client(&hub, NEW).await;
    let calls = ["old__wait", "new__wait"].map(|tool| {
        let client = client.clone();
        tokio::spawn(async move { say(&client, tool).await })
    });
    gate.waiting(2).await;
    let removing = tokio::spawn(async move { hub.set_servers(Vec::new()).await });
    until(|| town.connection_count("old") == 1).await;
    gate.open();
    for call in calls {
        assert_eq!(within(call).await.unwrap(), "waited");
    }
    assert_eq!(names(&within(removing).await.unwrap().removed), ["old", "new"]);
}

#[tokio::test]
async fn list_changed_is_sent_only_for_lists_that_differ() {
    let town = TestServers::default();
    for name in ["a", "b", "c"] {
        town.add_server(name, &echo_server(&["t"]), NEW);
    }
    let hub = town.hub();
    let client = plain_client(&hub, NEW).await;
    let mut changes = client.subscribe(ChangeFilter::all_lists()).await.unwrap();
    within(hub.set_servers(["a", "b", "c"].map(eager).to_vec())).await;
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools));
    until_listed(&client, &["a__t", "b__t", "c__t"]).await;
    drop(changes);
    let mut changes = client.subscribe(ChangeFilter::all_lists()).await.unwrap();
    // None of these changes the list; the last change does, and only it is notified.
    within(hub.set_servers(["c", "b", "a"].map(eager).to_vec())).await;
    within(hub.reconnect("a")).await.unwrap();
    until(|| hub.status_of("a").unwrap().state == UpstreamConnectionState::Ready).await;
    assert_eq!(changes.next().now_or_never(), None, "nothing changed, and nothing is told");
    within(hub.set_servers(Vec::new())).await;
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools));
}

async fn until_listed(client: &trunkline_client::Client, expected: &[&str]) {
    while tools(client).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ready_names_the_required_servers_that_failed() {
    let town = TestServers::default();
    town.add_server("there", &echo_server(&["t"]), NEW);
    town.set_unreachable("not-there", "gone fishing");
    let hub = town.hub();
    let required = |name| {
        let mut config = lazy(name);
        config.required = true;
        config
    };
    within(hub.set_servers(vec![required("there"), required("not-there"), lazy("whatever")])).await;
    let missing = within(hub.ready()).await;
    let [(name, reason)] = &missing[..] else { panic!("{missing:?}") };
    assert_eq!((name.as_str(), reason.contains("gone fishing")), ("not-there", true));
}

#[tokio::test]
async fn replacement_program_starts_after_the_old_one_exits_and_tools_stay() {
    let town = TestServers::default();
    let (itself, seen) = (Arc::new(OnceLock::<ScriptedServer>::new()), Arc::new(Mutex::new(Vec::new())));
    let (program, opener) = script({
        let (itself, seen) = (itself.clone(), seen.clone());
        move |peer, message| match message["method"].as_str() {
            Some("initialize") => {
                seen.lock().unwrap().push(itself.get().map_or(0, ScriptedServer::open));
                ScriptReply::AsUsual
            }
            // The first connection runs its call until the test ends it.
            Some("tools/call") if peer.number == 0 => ScriptReply::Nothing,
            _ => ScriptReply::AsUsual,
        }
    });
    assert!(itself.set(program.clone()).is_ok());
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { drain_timeout: Duration::from_millis(300), ..quick() });
    within(hub.set_servers(vec![eager("a")])).await;
    let client = plain_client(&hub, NEW).await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { say(&client, "a__t").await }
    });
    program.received("tools/call", 1).await;
    let replacing = tokio::spawn({
        let hub = hub.clone();
        async move { hub.set_servers(vec![moved(eager("a"))]).await }
    });
    until(|| hub.status_of("a").unwrap().starts == 0).await;
    assert!(tools(&client).await.contains(&"a__t".to_owned()));
    let applied = within(replacing).await.unwrap();
    assert!(applied.failed.is_empty(), "{applied:?}");
    assert_eq!(*seen.lock().unwrap(), [1, 1], "one at a time");
    assert_eq!(say(&client, "a__t").await, "t");
    assert!(within(call).await.unwrap().contains("was lost"));
}

#[tokio::test]
async fn slow_added_server_does_not_delay_later_list_requests() {
    let town = TestServers::default();
    for name in ["a", "new", "off"] {
        town.add_server(name, &echo_server(&["t"]), OLD);
    }
    let hub = town.hub_within(HubLimits { first_list_timeout: Duration::from_secs(600), ..quick() });
    let mut off = lazy("off");
    off.enabled = false;
    within(hub.set_servers(vec![lazy("a"), off.clone()])).await;
    let client = plain_client(&hub, NEW).await;
    let mut changes = client.subscribe(ChangeFilter::all_lists()).await.unwrap();
    assert_eq!(tools(&client).await, ["a__t"]);
    town.block_connections("new");
    town.block_connections("off");
    let adding = tokio::spawn({
        let (hub, configs) = (hub.clone(), vec![lazy("a"), lazy("new"), off]);
        async move { hub.set_servers(configs).await }
    });
    until(|| town.connection_count("new") == 1).await;
    hub.toggle("off", ServerSwitch::On).unwrap();
    until(|| town.connection_count("off") == 1).await;
    assert_eq!(tools(&client).await, ["a__t"]);
    town.allow_connections("new");
    town.allow_connections("off");
    within(adding).await.unwrap();
    let are_there = || ["new", "off"].iter().all(|name| hub.status_of(name).unwrap().tools == 1);
    while within(changes.next()).await != Some(ChangeEvent::Tools) || !are_there() {}
    assert_eq!(tools(&client).await, ["a__t", "new__t", "off__t"]);
}

#[tokio::test]
async fn changed_timeouts_apply_to_open_connections() {
    let town = TestServers::default();
    let (server, gate) = gated();
    town.add_server("a", &server, OLD);
    let hub = town.hub();
    let with = |timeout: Option<u64>, idle: Duration| {
        let mut config = lazy("a");
        (config.timeout, config.idle) = (timeout.map(Duration::from_millis), Some(idle));
        vec![config]
    };
    let long = Duration::from_secs(3600);
    within(hub.set_servers(with(Some(20), long))).await;
    let client = plain_client(&hub, NEW).await;
    let late = say(&client, "a__wait").await;
    assert!(late.contains("no answer within"), "{late}");

    // A time that is taken away again cuts no call short.
    within(hub.set_servers(with(None, long))).await;
    let call = tokio::spawn(async move { say(&client, "a__wait").await });
    gate.waiting(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.open();
    assert_eq!(within(call).await.unwrap(), "waited");
    assert_eq!((town.connection_count("a"), hub.status_of("a").unwrap().connections), (1, 1));

    within(hub.set_servers(with(None, Duration::from_millis(1)))).await;
    until(|| hub.status_of("a").unwrap().connections == 0).await;
}
