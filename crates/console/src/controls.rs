use std::fmt;

use serde::{Deserialize, Serialize};
use trunkline_server::BoxFuture;

/// What an operator can do to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerAction {
    /// Close every connection to it and connect again: a server over stdio gets a new process.
    Reconnect,
    /// Expose its items.
    Enable,
    /// Hide its items; the connection stays open.
    Disable,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is no such server or session.
    #[error("{0}")]
    NotFound(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// The legacy sessions of clients, and the logins that are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientSessions {
    /// `memory`, `file` or `redis`; where the sessions over `http` are.
    pub store: String,
    /// The oldest first.
    pub sessions: Vec<ClientSession>,
    /// Whether there are more sessions.
    pub is_truncated: bool,
    /// The logins of users at servers.
    pub logins: Vec<ClientLogin>,
    /// Whether there are more logins.
    pub has_more_logins: bool,
}

/// A legacy session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientSession {
    /// The first characters of its id, which are too few to use it.
    pub id: String,
    /// The user that it belongs to.
    pub principal: String,
    /// What the client calls itself, and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The negotiated revision.
    pub revision: String,
    /// `http`, `sse`, `websocket`, `stdio` or `channel`.
    pub transport: String,
    /// The level set by `logging/setLevel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// The resources that it subscribed to.
    pub subscriptions: Vec<String>,
    /// How many seconds ago it was opened.
    pub age_s: u64,
    /// How many seconds ago it was last used, if it was since the hub started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    /// Whether a call runs or a stream is open.
    pub is_busy: bool,
}

/// A login of a user at a server, without its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientLogin {
    /// The user, as the hub knows it.
    pub user: String,
    /// The name of the user at the issuer, which was not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The configured servers that it is for, or else the origin of the server.
    pub servers: Vec<String>,
    /// The issuer of its tokens.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// In how many seconds the access token expires; negative if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<i64>,
    /// Whether a new access token can be had without the user.
    pub is_renewable: bool,
}

/// What the console can do to a hub, and what it has to wait for.
///
/// The console decides who may: see `api/routes.rs`.
pub trait HubControls: fmt::Debug + Send + Sync {
    /// Does something to a server.
    fn change_server<'a>(
        &'a self,
        name: &'a str,
        action: ServerAction,
    ) -> BoxFuture<'a, Result<(), ControlError>>;

    /// Returns the sessions and logins, each list up to a number.
    fn sessions(&self, most: usize) -> BoxFuture<'_, Result<ClientSessions, ControlError>>;

    /// Ends the session that has an id which begins like this.
    fn end_session<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), ControlError>>;
}
