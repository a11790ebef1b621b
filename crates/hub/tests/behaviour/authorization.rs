//! Servers that reject the credentials of the hub.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::ServerConfig;
use trunkline_hub::{Connector, Hub, HubOptions, UpstreamConnectionState};

use crate::support::{
    NEW, OLD, TestServers, eager, echo_server, lazy, moved, plain_client, quick, say, tools, until, within,
};

/// Rejects the credentials of some servers, and counts the attempts to connect to each.
#[derive(Clone, Default)]
struct AuthConnector {
    servers: TestServers,
    denials: Arc<Mutex<HashMap<String, AuthDenial>>>,
    attempts: Arc<Mutex<HashMap<String, usize>>>,
}

/// The status and the challenge of a response.
type AuthDenial = (u16, Option<String>);

impl AuthConnector {
    fn hub(&self) -> Hub {
        Hub::new(HubOptions { connector: Arc::new(self.clone()), limits: quick(), ..HubOptions::default() })
    }

    fn deny(&self, name: &str, status: u16, challenge: Option<&str>) {
        self.servers.add_server(name, &echo_server(&["t"]), OLD);
        let denial = (status, challenge.map(str::to_owned));
        self.denials.lock().unwrap().insert(name.to_owned(), denial);
    }

    fn allow(&self, name: &str) {
        self.denials.lock().unwrap().remove(name);
    }

    fn attempts(&self, name: &str) -> usize {
        self.attempts.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

impl Connector for AuthConnector {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        *self.attempts.lock().unwrap().entry(server.name.to_string()).or_default() += 1;
        match self.denials.lock().unwrap().get(server.name.as_str()).cloned() {
            Some((status, challenge)) => {
                Box::pin(std::future::ready(Err(Error::Unauthorized { status, challenge })))
            }
            None => self.servers.connect(server, builder),
        }
    }
}

const SCOPE: &str = r#"Bearer error="insufficient_scope", scope="files:write""#;

#[tokio::test]
async fn server_that_needs_auth_is_not_retried() {
    for (status, challenge, needs_auth) in [
        (401, None, true),
        (401, Some("Bearer resource_metadata=\"https://example.com/.well-known\""), true),
        (403, Some(SCOPE), true),
        (403, None, false),
        (403, Some("Bearer error=\"invalid_request\""), false),
    ] {
        let connector = AuthConnector::default();
        connector.deny("a", status, challenge);
        connector.deny("retried", 403, None);
        let hub = connector.hub();
        let applied = within(hub.set_servers(vec![eager("a"), eager("retried")])).await;
        assert!(applied.failed[0].1.contains(&format!("HTTP {status}")), "{applied:?}");
        until(|| connector.attempts("retried") >= 5).await;
        let shown = hub.status_of("a").unwrap();
        if !needs_auth {
            until(|| connector.attempts("a") >= 5).await;
            assert_eq!(hub.status_of("a").unwrap().state == UpstreamConnectionState::NeedsAuth, needs_auth);
            continue;
        }
        assert_eq!(
            (connector.attempts("a"), shown.state, shown.retry_in),
            (1, UpstreamConnectionState::NeedsAuth, None)
        );
        let reason = shown.reason.unwrap();
        assert!(challenge.is_none_or(|challenge| reason.contains(challenge)), "{reason}");
        // Calls fail at once, and start no attempt either.
        let client = plain_client(&hub, NEW).await;
        let said = say(&client, "a__t").await;
        assert!(said.contains("upstream `a` unavailable: it requires authorization"), "{said}");
        assert_eq!(connector.attempts("a"), 1);
    }
}

#[tokio::test]
async fn call_to_a_listed_server_that_needs_auth_fails_at_once() {
    let connector = AuthConnector::default();
    connector.servers.add_server("a", &echo_server(&["t"]), OLD);
    let hub = connector.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let client = plain_client(&hub, NEW).await;
    assert_eq!(tools(&client).await, ["a__t"]);
    connector.deny("a", 401, Some("Bearer realm=\"x\""));
    let _ = within(hub.reconnect("a")).await;
    let before = connector.attempts("a");
    for _ in 0..3 {
        let said = say(&client, "a__t").await;
        assert!(said.contains("upstream `a` unavailable: it requires authorization"), "{said}");
        assert!(!said.contains("401") && !said.contains("realm"), "the challenge is for the hub: {said}");
    }
    assert_eq!(connector.attempts("a"), before);
    connector.allow("a");
    hub.authorized("a").unwrap();
    assert_eq!(say(&client, "a__t").await, "t");
    assert!(hub.authorized("unknown").is_err());
}

#[tokio::test]
async fn new_credentials_reconnect_or_a_new_configuration_end_needs_auth() {
    for way in ["authorized", "reconnect", "connect", "config"] {
        let connector = AuthConnector::default();
        connector.deny("a", 401, None);
        let hub = connector.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::NeedsAuth, "{way}");
        connector.allow("a");
        match way {
            "authorized" => hub.authorized("a").unwrap(),
            "reconnect" => within(hub.reconnect("a")).await.unwrap(),
            "connect" => within(hub.connect("a")).await.unwrap(),
            _ => {
                let applied = within(hub.set_servers(vec![moved(eager("a"))])).await;
                assert_eq!(applied.failed, []);
            }
        }
        until(|| hub.status_of("a").unwrap().state == UpstreamConnectionState::Ready).await;
        assert_eq!(connector.attempts("a"), 2, "{way}");
        assert_eq!(say(&plain_client(&hub, NEW).await, "a__t").await, "t", "{way}");
    }
}
