//! A hub that is served over HTTP, with its connect pages.

use std::sync::Arc;

use http::request::Parts;
use tokio::net::TcpListener;
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientBuilder};
use trunkline_config::ServerConfig;
use trunkline_hub::{AnonymousClients, Hub, HubLimits, HubOptions, LoginAudience, UserLogins};
use trunkline_server::http::{
    AnonymousAuthenticator, AuthRefusal, Authenticated, AuthenticationResult, Authenticator, BearerTokens,
    HttpServerOptions, IncomingRequest, Service as _, bearer_token, serve,
};
use trunkline_server::{AccessGrant, Host, HostOptions};
use trunkline_session::Principal;
use trunkline_transport::Secret;

use crate::{DEADLINE, within};

/// The newest revision of either era.
pub(crate) const REVISIONS: [Revision; 2] = [Revision::NEWEST_LEGACY, Revision::NEWEST];

/// The users of a hub, with the tokens of their clients.
pub(crate) const ANN: (&str, &str) = ("ann", "token-of-ann-sentinel");
pub(crate) const BOB: (&str, &str) = ("bob", "token-of-bob-sentinel");

pub(crate) struct Front {
    pub(crate) hub: Hub,
    pub(crate) origin: String,
    pub(crate) logins: UserLogins,
}

/// Accepts any token of a user, `token-of-NAME-…`, as an access token that an authorization server has issued.
#[derive(Debug)]
struct TokenUsers;

impl Authenticator for TokenUsers {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        let token = bearer_token(request).unwrap().map(|token| String::from_utf8(token.to_vec()).unwrap());
        AuthenticationResult::Ready(match token {
            Some(token) => {
                let user = token.split('-').nth(2).unwrap().to_owned();
                let grant = AccessGrant::new().with_access_token(Secret::new(token));
                Ok(Authenticated::new(Principal::Named(user.into())).with_grant(grant))
            }
            None => Err(AuthRefusal::missing_token()),
        })
    }
}

impl Front {
    /// Serves a hub for two users.
    pub(crate) async fn for_users(servers: Vec<ServerConfig>) -> Self {
        let tokens = BearerTokens::new([ANN, BOB]);
        Self::start(UserLogins::in_memory(LoginAudience::EachPrincipal), Arc::new(tokens), servers).await
    }

    /// Serves a hub for two users with access tokens of an authorization server.
    pub(crate) async fn for_token_users(servers: Vec<ServerConfig>) -> Self {
        Self::start(UserLogins::in_memory(LoginAudience::EachPrincipal), Arc::new(TokenUsers), servers).await
    }

    /// Serves a hub for clients without credentials, which may be different users.
    pub(crate) async fn for_anonymous(servers: Vec<ServerConfig>) -> Self {
        let logins = UserLogins::in_memory(LoginAudience::EachPrincipal);
        Self::start(logins, Arc::new(AnonymousAuthenticator), servers).await
    }

    /// Serves a hub for the user of this machine.
    pub(crate) async fn for_local_user(servers: Vec<ServerConfig>) -> Self {
        let logins = UserLogins::in_memory(LoginAudience::LocalUser);
        Self::start(logins, Arc::new(AnonymousAuthenticator), servers).await
    }

    pub(crate) async fn start(
        logins: UserLogins,
        authenticator: Arc<dyn Authenticator>,
        servers: Vec<ServerConfig>,
    ) -> Self {
        let anonymous = match logins.audience() {
            LoginAudience::LocalUser => AnonymousClients::SingleUser,
            LoginAudience::EachPrincipal => AnonymousClients::Isolated,
        };
        let limits = HubLimits { first_list_timeout: DEADLINE, ..HubLimits::default() };
        let hub =
            Hub::new(HubOptions { logins: Some(logins.clone()), anonymous, limits, ..HubOptions::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        logins.set_base_url(&origin);
        let host = Host::new(hub.clone(), HostOptions::default()).unwrap();
        let endpoint = host.http_service(HttpServerOptions { authenticator, ..HttpServerOptions::default() });
        let (served, pages) = (endpoint.clone(), logins.clone());
        let service = move |request: IncomingRequest| {
            let (endpoint, pages) = (served.clone(), pages.clone());
            async move {
                match UserLogins::serves_path(request.uri().path()) {
                    true => pages.respond(&endpoint, request).await,
                    false => endpoint.respond(request).await,
                }
            }
        };
        tokio::spawn(async move { serve(listener, &endpoint, service, DEADLINE).await });
        within(hub.set_servers(servers)).await;
        Self { hub, origin, logins }
    }

    /// Connects the client of a user.
    pub(crate) async fn client(&self, builder: ClientBuilder, user: (&str, &str)) -> Client {
        connect(&self.origin, builder, user).await
    }

    /// Connects a client without a token.
    pub(crate) async fn local_client(&self, revision: Revision) -> Client {
        within(Client::builder().pin(revision).connect(&*format!("{}/mcp", self.origin))).await.unwrap()
    }
}

/// Connects the client of a user to the hub at an origin.
pub(crate) async fn connect(origin: &str, builder: ClientBuilder, (_, token): (&str, &str)) -> Client {
    let builder = builder.header("Authorization", format!("Bearer {token}"));
    within(builder.connect(&*format!("{origin}/mcp"))).await.unwrap()
}

pub(crate) async fn tools(client: &Client) -> Vec<String> {
    within(client.tools()).await.unwrap().iter().map(|tool| tool.name.clone()).collect()
}

/// Calls a tool without arguments, and returns its text.
pub(crate) async fn say(client: &Client, tool: &str) -> String {
    match within(client.call(tool, serde_json::json!({}))).await {
        Ok(said) => said.text(),
        Err(error) => format!("error: {error}"),
    }
}

/// Returns the link in a text.
pub(crate) fn link_in(text: &str) -> String {
    let link = text.split_whitespace().find(|word| word.starts_with("http://"));
    link.unwrap_or_else(|| panic!("no link: {text}")).to_owned()
}
