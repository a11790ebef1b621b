//! An MCP server with an authorization server, behind a tap that keeps every byte which a client sends.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http::request::Parts;
use http_body::Body as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use trunkline_config::{RemoteEndpoint, ServerConfig, ServerLocation, ServerName};
use trunkline_protocol::Refusal;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Implementation, ServerCapabilities};
use trunkline_server::http::{
    AuthRefusal, Authenticated, AuthenticationResult, Authenticator, HttpServerOptions, IncomingRequest,
    McpResponseBody, ProtectedResource, RequestBody, Service as _, bearer_token, serve,
};
use trunkline_server::{
    AccessGrant, BoxFuture, CallerIdentity, ChangeSubscriber, ChangeSubscription, Context, Handler,
    HandlerOutcome, Host, HostOptions, IncomingCall, Resource, Server, ServerHandle, SubscriptionFilter,
    Tool,
};
use trunkline_session::Principal;

use crate::DEADLINE;
use crate::token_issuer::TokenIssuer;

pub(crate) struct ProtectedServer {
    pub(crate) origin: String,
    pub(crate) issuer: Arc<TokenIssuer>,
    pub(crate) handles: Vec<(&'static str, ServerHandle)>,
    sent: Arc<Mutex<Vec<u8>>>,
    /// Whether the authorization server answers requests for its metadata.
    has_metadata: watch::Sender<bool>,
}

impl ProtectedServer {
    /// Starts a server on which each of these users has a tool and a resource of their own.
    pub(crate) async fn start(users: &[&'static str]) -> Self {
        Self::start_with(users, None).await
    }

    /// Starts a server that demands a token only after the handshake.
    pub(crate) async fn start_with_open_handshake(users: &[&'static str]) -> Self {
        Self::start_with(users, Some(Mutex::default())).await
    }

    async fn start_with(users: &[&'static str], open_handshakes: Option<Mutex<BTreeSet<String>>>) -> Self {
        let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", front.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(tap(front, inner.local_addr().unwrap(), sent.clone()));
        let issuer = Arc::new(TokenIssuer::default());
        let handles: Vec<_> = users.iter().map(|user| (*user, server_of(user).handle().unwrap())).collect();
        let host = Host::new(ServersByUser(handles.clone()), HostOptions::default()).unwrap();
        let resource = ProtectedResource::new(format!("{origin}/mcp")).unwrap();
        let options = HttpServerOptions {
            authenticator: Arc::new(IssuedTokens { issuer: issuer.clone(), open_handshakes }),
            protected_resource: Some(resource.authorization_server(&origin).scopes(["read"])),
            ..HttpServerOptions::default()
        };
        let endpoint = host.http_service(options);
        let (served, tokens, address) = (endpoint.clone(), issuer.clone(), origin.clone());
        let has_metadata = watch::Sender::new(true);
        let answers = has_metadata.subscribe();
        let service = move |request: IncomingRequest| {
            let (endpoint, tokens, address) = (served.clone(), tokens.clone(), address.clone());
            let mut answers = answers.clone();
            async move {
                let path = request.uri().path().to_owned();
                if path.starts_with("/mcp") || path.contains("oauth-protected-resource") {
                    return endpoint.respond(request).await;
                }
                if path.contains("oauth-authorization-server") {
                    let _ = answers.wait_for(|answers| *answers).await;
                }
                let query = request.uri().query().unwrap_or_default().to_owned();
                let (_, body) = request.into_head_and_body();
                let body = String::from_utf8(read(body).await).unwrap();
                tokens.respond(&address, &path, &query, &body).map(McpResponseBody::whole)
            }
        };
        tokio::spawn(async move { serve(inner, &endpoint, service, DEADLINE).await });
        Self { origin, issuer, handles, sent, has_metadata }
    }

    /// Lets requests for the metadata of the authorization server wait, or go on.
    pub(crate) fn set_metadata(&self, answers: bool) {
        self.has_metadata.send_replace(answers);
    }

    pub(crate) fn config(&self, name: &str) -> ServerConfig {
        config_at(&self.origin, name)
    }

    /// Reports whether a client has ever sent this.
    pub(crate) fn was_sent(&self, text: &str) -> bool {
        let sent = self.sent.lock().unwrap();
        sent.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// Describes the server at an origin.
pub(crate) fn config_at(origin: &str, name: &str) -> ServerConfig {
    let endpoint = RemoteEndpoint::new(&*format!("{origin}/mcp"));
    ServerConfig::new(ServerName::parse(name).unwrap(), ServerLocation::Endpoint(endpoint))
}

/// Copies connections, and keeps what clients send.
async fn tap(front: TcpListener, inner: std::net::SocketAddr, sent: Arc<Mutex<Vec<u8>>>) {
    while let Ok((client, _)) = front.accept().await {
        let sent = sent.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(inner).await else { return };
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                sent.lock().unwrap().extend_from_slice(&buffer[..count]);
                if to_server.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn read(mut body: RequestBody) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        read.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    read
}

fn server_of(user: &'static str) -> Server {
    let whoami = Tool::new("whoami").run(|context: Context| async move { context.principal().to_string() });
    let own = Tool::new(format!("tool_of_{}", user.replace(' ', "_"))).run(move || async move { user });
    let write = Tool::new("write").require_scopes(["write"]).run(|| async { "written" });
    // The same URI for every user, with other content.
    let diary = Resource::new("diary:day", "day").text(user);
    Server::new("protected").with(whoami).with(own).with(write).with(diary)
}

/// Accepts the tokens of the issuer.
#[derive(Debug)]
struct IssuedTokens {
    issuer: Arc<TokenIssuer>,
    /// The sessions that a client has begun without a token.
    open_handshakes: Option<Mutex<BTreeSet<String>>>,
}

impl Authenticator for IssuedTokens {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        let token =
            bearer_token(request).map(|token| token.map(|token| String::from_utf8_lossy(token).into_owned()));
        AuthenticationResult::Ready(match token {
            Ok(Some(token)) => match self.issuer.token(&token) {
                Some(issued) => {
                    let mut grant = AccessGrant::default();
                    grant.scopes = issued.scopes.split(' ').map(Into::into).collect();
                    Ok(Authenticated::new(Principal::Named(issued.user.into())).with_grant(grant))
                }
                None => Err(AuthRefusal::invalid_token("sentinel-challenge")),
            },
            Ok(None) if self.open_handshakes.as_ref().is_some_and(|begun| is_handshake(request, begun)) => {
                Ok(Authenticated::new(Principal::Anonymous))
            }
            Ok(None) => Err(AuthRefusal::missing_token()),
            Err(refusal) => Err(refusal),
        })
    }
}

/// Reports whether a request is one of those with which a connection begins.
fn is_handshake(request: &Parts, begun: &Mutex<BTreeSet<String>>) -> bool {
    match (request.headers.get("mcp-method"), request.headers.get("mcp-session-id")) {
        (Some(method), _) => method == "server/discover",
        (None, None) => true,
        // The first message of a session is the notification that ends the handshake.
        (None, Some(id)) => {
            request.method == http::Method::POST
                && begun.lock().unwrap().insert(id.to_str().unwrap().to_owned())
        }
    }
}

/// A server of its own for each user.
struct ServersByUser(Vec<(&'static str, ServerHandle)>);

impl ServersByUser {
    fn of(&self, principal: &Principal) -> &ServerHandle {
        let known = self.0.iter().find(|(user, _)| *user == principal.to_string());
        &known.unwrap_or_else(|| panic!("a request of {principal}")).1
    }
}

impl Handler for ServersByUser {
    fn identity(&self) -> Implementation {
        self.0[0].1.identity()
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.0[0].1.capabilities()
    }

    fn instructions(&self, _: CallerIdentity<'_>) -> Option<String> {
        None
    }

    fn mirrored_arguments(&self, _: &str, _: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        None
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        Handler::call(self.of(&call.context.principal()), call)
    }

    fn prepare_subscription(
        &self,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BoxFuture<'static, Result<BTreeSet<String>, Refusal>> {
        self.of(&listener.principal).prepare_subscription(listener, uris)
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        let principal = filter.subscriber.as_ref().map(|subscriber| subscriber.principal.clone());
        self.of(&principal.unwrap()).subscribe(filter)
    }
}
