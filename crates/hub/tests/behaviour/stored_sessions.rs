//! Sessions with servers over Streamable HTTP that the next hub continues.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_client::{Client, InputHandler};
use trunkline_config::{ConfigText, ProtocolEra, RemoteEndpoint, ServerConfig, ServerLocation, ServerName};
use trunkline_hub::{Hub, HubOptions, StoreAccess, UpstreamSessions};
use trunkline_server::http::{HttpServerOptions, HttpService, serve as serve_http};
use trunkline_server::{Context, Host, HostOptions, Server, Tool};
use trunkline_session::{
    MemorySessions, MemoryStates, SessionLimits, SessionStore as _, StateLimits, StateStore as _, Timestamp,
};

use crate::support::{OLD, RecordingHandler, client, named_principal, quick, say, serve_hub, until, within};

/// A server over HTTP with a tool that returns the session of its caller.
struct SessionServer {
    url: String,
    sessions: Arc<MemorySessions>,
    endpoint: HttpService,
}

impl SessionServer {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let session = Tool::new("session").run(async |cx: Context| match cx.session_id() {
            Some(id) => id.to_string(),
            None => "none".to_owned(),
        });
        let roots = Tool::new("roots").run(async |cx: Context| {
            let session = cx.session_id().map(|id| id.to_string()).unwrap_or_default();
            match cx.ask(trunkline_server::roots().key("r")).await {
                Ok(roots) => {
                    format!("{session} {}", roots.iter().map(|root| root.uri.as_str()).collect::<String>())
                }
                Err(error) => format!("{session} {error:?}"),
            }
        });
        let host =
            Host::new(Server::new("s").with(session).with(roots).handle().unwrap(), HostOptions::default());
        let sessions = Arc::new(MemorySessions::new(SessionLimits::default()));
        let options = HttpServerOptions { sessions: Some(sessions.clone()), ..HttpServerOptions::default() };
        let endpoint = host.unwrap().http_service(options);
        let served = endpoint.clone();
        tokio::spawn(async move {
            let _ = serve_http(listener, &served, served.clone(), std::time::Duration::from_secs(1)).await;
        });
        Self { url, sessions, endpoint }
    }

    /// Forgets all sessions, as a server that is restarted.
    async fn forget_sessions(&self) {
        for session in self.sessions.list_all(100, Timestamp(0)).await.unwrap() {
            let request = Request::delete("/mcp")
                .header("host", "localhost")
                .header("mcp-session-id", session.id.to_string());
            let response = within(self.endpoint.handle(request.body(Full::new(Bytes::new())).unwrap())).await;
            assert_eq!(response.status().as_u16(), 204);
        }
    }

    fn config(&self) -> ServerConfig {
        let location = ServerLocation::Endpoint(RemoteEndpoint::new(self.url.as_str()));
        let mut config = ServerConfig::new(ServerName::parse("s").unwrap(), location);
        config.era = Some(ProtocolEra::Legacy);
        config
    }
}

/// The store that outlives the hubs.
fn states() -> Arc<MemoryStates> {
    Arc::new(MemoryStates::new(StateLimits::default()))
}

async fn start_hub(states: &Arc<MemoryStates>, access: StoreAccess, config: ServerConfig) -> Hub {
    let sessions = UpstreamSessions::new(states.clone(), access);
    let hub =
        Hub::new(HubOptions { upstream_sessions: Some(sessions), limits: quick(), ..HubOptions::default() });
    within(hub.set_servers(vec![config])).await;
    hub
}

async fn connect(hub: &Hub, name: &str) -> Client {
    client(&serve_hub(hub), Client::builder().pin(OLD), named_principal(name)).await
}

async fn connect_with(hub: &Hub, name: &str, input: impl InputHandler) -> Client {
    client(&serve_hub(hub), Client::builder().pin(OLD).input(input), named_principal(name)).await
}

async fn session_of(hub: &Hub, name: &str) -> String {
    say(&connect(hub, name).await, "s__session").await
}

#[tokio::test]
async fn upstream_session_is_continued_only_for_its_own_callers() {
    for access in [StoreAccess::Exclusive, StoreAccess::Shared] {
        let (server, states) = (SessionServer::start().await, states());
        let hub = start_hub(&states, access, server.config()).await;
        let (ann, bob) = (session_of(&hub, "ann").await, session_of(&hub, "bob").await);
        assert_ne!(ann, bob);
        until(|| states.count() == 2).await;
        within(hub.shutdown()).await;
        assert!(server.sessions.count() >= 2, "the sessions stay open at the server");

        let hub = start_hub(&states, access, server.config()).await;
        let carol = session_of(&hub, "carol").await;
        assert!(![&ann, &bob].contains(&&carol), "a third caller has a session of its own");
        assert_eq!(session_of(&hub, "bob").await, bob);
        let sampling =
            RecordingHandler::with_roots(&[]).declaring(ClientCapabilities::default().with_sampling());
        let capable = say(&connect_with(&hub, "ann", sampling).await, "s__session").await;
        assert_ne!(capable, ann, "the server knows the session as one without sampling");
        assert_eq!(session_of(&hub, "ann").await, ann);
        within(hub.shutdown()).await;
    }
}

#[tokio::test]
async fn changed_server_gets_a_new_upstream_session() {
    let (server, states) = (SessionServer::start().await, states());
    let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
    let before = session_of(&hub, "ann").await;
    until(|| states.count() == 1).await;
    within(hub.shutdown()).await;
    let mut config = server.config();
    let ServerLocation::Endpoint(endpoint) = &mut config.location else { unreachable!() };
    endpoint.headers.insert("authorization".to_owned(), ConfigText::new("Bearer other"));
    let hub = start_hub(&states, StoreAccess::Exclusive, config).await;
    assert_ne!(session_of(&hub, "ann").await, before);
}

#[tokio::test]
async fn forgotten_upstream_session_is_replaced_and_the_new_one_is_stored() {
    let (server, states) = (SessionServer::start().await, states());
    let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
    let before = session_of(&hub, "ann").await;
    until(|| states.count() == 1).await;
    within(hub.shutdown()).await;
    server.forget_sessions().await;
    let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
    let after = session_of(&hub, "ann").await;
    assert_ne!(after, before);
    within(hub.shutdown()).await;
    let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
    assert_eq!(session_of(&hub, "ann").await, after);
}

#[tokio::test]
async fn removed_server_loses_its_stored_sessions() {
    let (server, states) = (SessionServer::start().await, states());
    let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
    session_of(&hub, "ann").await;
    until(|| states.count() == 1).await;
    within(hub.set_servers(Vec::new())).await;
    until(|| server.sessions.count() == 0).await;
    until(|| states.count() == 0).await;
}

#[tokio::test]
async fn continued_session_serves_only_callers_with_the_roots_that_it_was_sent() {
    for order in [["file:///a", "file:///b"], ["file:///b", "file:///a"]] {
        let (server, states) = (SessionServer::start().await, states());
        let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
        let here = |uri: &str| RecordingHandler::with_roots(&[uri]);
        let before = say(&connect_with(&hub, "ann", here("file:///a")).await, "s__roots").await;
        assert!(before.ends_with("file:///a"), "{before}");
        until(|| states.count() == 1).await;
        within(hub.shutdown()).await;

        let hub = start_hub(&states, StoreAccess::Exclusive, server.config()).await;
        for root in order {
            let after = say(&connect_with(&hub, "ann", here(root)).await, "s__roots").await;
            assert!(after.ends_with(root), "{after}");
            let is_continued = after.split(' ').next() == before.split(' ').next();
            assert_eq!(is_continued, root == "file:///a", "{order:?}: {after} after {before}");
        }
    }
}

#[tokio::test]
async fn second_process_of_a_shared_store_opens_a_session_of_its_own() {
    let (server, states) = (SessionServer::start().await, states());
    let first = start_hub(&states, StoreAccess::Shared, server.config()).await;
    let before = session_of(&first, "ann").await;
    until(|| states.count() == 1).await;
    let second = start_hub(&states, StoreAccess::Shared, server.config()).await;
    assert_ne!(session_of(&second, "ann").await, before);
    // A process that ends in order leaves its session to the next one.
    within(first.shutdown()).await;
    let third = start_hub(&states, StoreAccess::Shared, server.config()).await;
    assert_eq!(session_of(&third, "ann").await, before);
    within(second.shutdown()).await;
}
