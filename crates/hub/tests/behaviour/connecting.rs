//! How connections come to be: one that breaks off, as many as there may be, and how long they stay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{ConnectionSharing, ServerConfig};
use trunkline_hub::{Connector, Hub, HubLimits, HubOptions};

use crate::support::{
    NEW, OLD, ScriptReply, ScriptedServer, TestServers, client, eager, echo_server, lazy, named_principal,
    plain_client, quick, say, script, serve_hub, until, within,
};

/// Panics a few times before it connects.
struct PanickingConnector {
    town: TestServers,
    panics: AtomicUsize,
}

impl Connector for PanickingConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        let left = self.panics.fetch_sub(1, Ordering::SeqCst);
        let connecting = self.town.connect(server, builder);
        Box::pin(async move {
            assert!(left <= 1, "it breaks {left} times more");
            connecting.await
        })
    }
}

#[tokio::test]
async fn panicking_connector_counts_as_a_failed_attempt() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let connector = PanickingConnector { town, panics: AtomicUsize::new(4) };
    let hub =
        Hub::new(HubOptions { connector: Arc::new(connector), limits: quick(), ..HubOptions::default() });
    let applied = within(hub.set_servers(vec![eager("a")])).await;
    assert!(applied.failed[0].1.contains("an error within the hub"), "{applied:?}");
    until(|| hub.status_of("a").unwrap().tools == 1).await;
    assert_eq!(say(&plain_client(&hub, NEW).await, "a__t").await, "t");
}

#[tokio::test]
async fn connection_count_never_exceeds_the_limit() {
    const MOST: usize = 2;
    let town = TestServers::default();
    let (itself, most) = (Arc::new(OnceLock::<ScriptedServer>::new()), Arc::new(AtomicUsize::new(0)));
    let (opened, opener) = script({
        let (itself, most) = (itself.clone(), most.clone());
        move |_, message| {
            if message["method"] == "initialize" {
                let open = itself.get().map_or(0, ScriptedServer::open);
                most.fetch_max(open, Ordering::SeqCst);
            }
            ScriptReply::AsUsual
        }
    });
    assert!(itself.set(opened).is_ok());
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { connections_per_server: MOST, ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    let callers = ["ada", "bob", "cid", "dan", "eve"].map(|who| {
        let front = serve_hub(&hub);
        tokio::spawn(async move {
            let client = client(&front, Client::builder().pin(OLD), named_principal(who)).await;
            // All may be in use by others just now.
            while say(&client, "a__t").await != "t" {
                tokio::task::yield_now().await;
            }
        })
    });
    for caller in callers {
        within(caller).await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), MOST);
}

#[tokio::test]
async fn idle_private_connection_of_an_eager_server_is_closed() {
    for share in [ConnectionSharing::Principal, ConnectionSharing::Session] {
        let town = TestServers::default();
        town.add_server("a", &echo_server(&["t"]), OLD);
        let hub = town.hub_within(HubLimits { idle_timeout: Duration::from_millis(1), ..quick() });
        let mut config = eager("a");
        config.sharing = share;
        within(hub.set_servers(vec![config])).await;
        assert_eq!(town.connection_count("a"), 1);
        assert_eq!(say(&plain_client(&hub, OLD).await, "a__t").await, "t");
        // The one that was there from the start is the caller's now, and another is there for the next.
        until(|| town.connection_count("a") == 2 && hub.status_of("a").unwrap().connections == 1).await;
    }
}
