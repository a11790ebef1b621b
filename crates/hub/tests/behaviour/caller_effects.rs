//! What one caller can do to a server, or have it do, does not reach other callers.

use std::sync::Arc;

use serde_json::json;
use trunkline_client::{BoxFuture, Client, ClientBuilder, Error};
use trunkline_config::{ServerConfig, ServerLocation};
use trunkline_hub::{Connector, Hub, HubLimits, HubOptions};
use trunkline_server::http::{HttpServerOptions, HttpService, PeerInfo};
use trunkline_server::{EnvPolicy, Host, HostOptions};

use crate::hosts::HostSession;
use crate::support::{OLD, ScriptReply, lazy, quick, script, text_result, within};

/// A server that states in its instructions for which caller it works, by the variable `WHO`.
#[derive(Clone, Default)]
struct PersonalServer;

impl Connector for PersonalServer {
    fn connect(
        &self,
        server: &ServerConfig,
        builder: ClientBuilder,
    ) -> BoxFuture<'static, Result<Client, Error>> {
        let ServerLocation::Program(program) = &server.location else { panic!("a program") };
        let who = program.env.get("WHO").map_or_else(String::new, |value| value.expose().to_owned());
        let (_, opener) = script(move |_, message| match message["method"].as_str() {
            Some("initialize") => ScriptReply::Result(json!({
                "protocolVersion": OLD.as_str(),
                "serverInfo": { "name": "personal", "version": "1" },
                "capabilities": { "tools": {} },
                "instructions": format!("You work for <{who}>."),
            })),
            Some("tools/call") => ScriptReply::Result(text_result(&who)),
            _ => ScriptReply::AsUsual,
        });
        Box::pin(async move { builder.pin(OLD).connect(opener).await })
    }
}

fn hub_of(connector: PersonalServer, limits: HubLimits) -> Hub {
    Hub::new(HubOptions { connector: Arc::new(connector), limits, ..HubOptions::default() })
}

fn personal(name: &str) -> ServerConfig {
    let mut config = lazy(name);
    config.caller_env = vec!["WHO".to_owned()];
    config
}

/// Serves a hub that trusts the variables of its clients.
fn service_of(hub: &Hub) -> HttpService {
    let env = EnvPolicy { from_headers: vec!["WHO".to_owned()], ..EnvPolicy::default() };
    let host = Host::new(hub.clone(), HostOptions { env, ..HostOptions::default() }).unwrap();
    let unknown_peer = PeerInfo { loopback: true, tls: false };
    host.http_service(HttpServerOptions { unknown_peer, ..HttpServerOptions::default() })
}

#[tokio::test]
async fn instructions_for_a_caller_with_variables_are_shown_to_no_other() {
    let hub = hub_of(PersonalServer, quick());
    within(hub.set_servers(vec![personal("a")])).await;
    let service = service_of(&hub);
    let ann = HostSession::open_with(&service, "127.0.0.1", Some(("x-env-who", "ann"))).await;
    let tools = ann.request("tools/list", &json!({})).await;
    assert!(tools.to_string().contains("a__t"), "{tools}");
    assert_eq!(ann.call().await, "ann");
    // What clients are shown is put together again.
    within(hub.set_servers(vec![personal("a"), personal("b")])).await;
    let bob = HostSession::open_with(&service, "127.0.0.1", Some(("x-env-who", "bob"))).await;
    let opened = bob.opened.to_string();
    assert!(opened.contains("You work for <>.") && !opened.contains("ann"), "{opened}");
    assert_eq!(bob.call().await, "bob");
}
