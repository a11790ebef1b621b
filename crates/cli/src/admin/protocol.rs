//! The messages of the admin socket. Unknown members are ignored, so that the two sides may have different versions.

use serde::{Deserialize, Serialize};

/// The most bytes of a request.
#[cfg(unix)]
pub(crate) const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// The most bytes of an answer: a thousand servers with long reasons fit into it.
#[cfg(unix)]
pub(crate) const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// A request to the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum AdminRequest {
    /// Returns the status of the servers.
    Status,
    /// Offer what a server has.
    Enable { server: String },
    /// Offer nothing of a server, and stay connected.
    Disable { server: String },
    /// Connect to a server now.
    Connect { server: String },
    /// End every connection to a server until it is connected to again.
    Disconnect { server: String },
    /// Closes every connection to a server and reconnects.
    Reconnect { server: String },
    /// Pings a server.
    Ping { server: String },
    /// Read the configuration again.
    Reload,
    /// Returns the legacy sessions.
    Sessions,
    /// Ends the session with an id that begins like this.
    EndSession { session: String },
    /// Makes a link at which the user of this machine logs in to a server.
    Login { server: String },
    /// Waits until the login at a link is complete.
    AwaitLogin { link: String },
    /// Uses the tokens that are stored for a server now.
    ReloadTokens { server: String },
    /// Streams the hub's events as lines of JSON after the response, until the client closes the connection. Without
    /// messages, none are copied for it.
    Events {
        #[serde(default = "with_messages")]
        messages: bool,
    },
    /// Makes a link that opens the web console once.
    ConsoleLink { read_only: bool },
    /// Removes the stored tokens of a user, for one server or for all, and closes the user's connections.
    RevokeUser { user: String, server: Option<String> },
}

/// The default of a request from an older program.
fn with_messages() -> bool {
    true
}

/// What the hub answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AdminResponse {
    /// The status of the servers.
    Status(HubReport),
    /// Whether a switch was the other way before.
    Switched(bool),
    /// It is done.
    Done,
    /// How many seconds a server took to answer.
    Pinged(f64),
    /// What came of reading the configuration again.
    Applied(ReloadSummary),
    /// The legacy sessions.
    Sessions(SessionReport),
    /// A link to open once, within ten minutes.
    LoginLink(String),
    /// A link that opens the web console once.
    ConsoleLink(String),
    /// How many stored logins were removed.
    Revoked(usize),
    /// It is not done.
    Failed(AdminFailure),
}

/// A hub and its servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HubReport {
    /// The version of the hub's program.
    pub(crate) version: String,
    /// The hub's process.
    pub(crate) pid: u32,
    /// Where it serves, if that is an address.
    pub(crate) url: Option<String>,
    /// The configuration file.
    pub(crate) config: String,
    pub(crate) servers: Vec<ServerState>,
    /// Names and URIs that several servers claim, as one message each.
    pub(crate) collisions: Vec<String>,
}

/// The status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServerState {
    pub(crate) name: String,
    /// `pending`, `connecting`, `ready`, `failed`, `needs-auth`, `disabled` or `disconnected`.
    pub(crate) state: String,
    /// Why it failed last.
    pub(crate) reason: Option<String>,
    /// In how many milliseconds it is tried again.
    pub(crate) retry_in_ms: Option<u64>,
    /// Whether the hub is not ready without it.
    pub(crate) required: bool,
    /// How it is reached, with variables by name and not by value.
    pub(crate) reach: String,
    /// The negotiated protocol version.
    pub(crate) revision: Option<String>,
    /// What it calls itself, and its version.
    pub(crate) identity: Option<String>,
    pub(crate) transport: Option<String>,
    /// What it declared to support, such as `tools (listChanged), prompts`.
    pub(crate) capabilities: Option<String>,
    /// What its program printed last outside of the protocol.
    pub(crate) output: Option<String>,
    pub(crate) tools: usize,
    pub(crate) prompts: usize,
    pub(crate) resources: usize,
    /// What of its lists could not be taken, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// What of its lists was malformed or too long, and is offered without that, each with the reason.
    pub(crate) repaired: Vec<String>,
    /// The connections, and so processes, that there are.
    pub(crate) connections: usize,
    /// The calls that run.
    pub(crate) calls: usize,
    /// How often it was connected to.
    pub(crate) starts: u64,
}

/// The legacy sessions of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionReport {
    /// `memory`, `file` or `redis`; where the sessions over `http` are.
    pub(crate) store: String,
    /// The oldest first.
    pub(crate) sessions: Vec<SessionState>,
    /// Whether there are more.
    pub(crate) is_truncated: bool,
}

/// One legacy session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionState {
    /// The first eight characters of its id, which are too few to use it.
    pub(crate) id: String,
    pub(crate) principal: String,
    /// What the client calls itself, and its version.
    pub(crate) client: Option<String>,
    pub(crate) revision: String,
    /// `http`, `sse`, `websocket`, `stdio` or `channel`. All but those over `http` end with their connection.
    pub(crate) transport: String,
    /// The level set by `logging/setLevel`.
    pub(crate) log_level: Option<String>,
    /// The resources that it subscribed to.
    pub(crate) subscriptions: Vec<String>,
    /// How many seconds ago it was opened.
    pub(crate) age_s: u64,
    /// How many seconds ago it was last used, if it was since the hub started.
    pub(crate) idle_s: Option<u64>,
    /// Whether a call runs or a stream is open.
    pub(crate) busy: bool,
}

/// What came of a new configuration, by the names of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReloadSummary {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) updated: Vec<String>,
    pub(crate) unchanged: Vec<String>,
    /// Those that could not be connected to, each with the reason.
    pub(crate) failed: Vec<(String, String)>,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdminFailure {
    pub(crate) kind: AdminFailureKind,
    pub(crate) what: String,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AdminFailureKind {
    /// The server is unknown.
    NoSuchServer,
    /// The session is unknown, or several begin like this.
    NoSuchSession,
    /// The server cannot be reached.
    Unavailable,
    /// The login failed.
    Login,
    /// There is no web console.
    Console,
    /// The configuration is wrong, and the one before still applies.
    Configuration,
    /// The request is not one that this hub knows.
    Request,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_answers_are_written_as_they_are_documented() {
        for (request, written) in [
            (
                AdminRequest::RevokeUser { user: "ann".into(), server: None },
                json!({ "do": "revoke-user", "user": "ann", "server": null }),
            ),
            (AdminRequest::Status, json!({ "do": "status" })),
            (AdminRequest::Events { messages: false }, json!({ "do": "events", "messages": false })),
            (AdminRequest::Enable { server: "a".into() }, json!({ "do": "enable", "server": "a" })),
            (AdminRequest::Reload, json!({ "do": "reload" })),
            (
                AdminRequest::EndSession { session: "0a".into() },
                json!({ "do": "end-session", "session": "0a" }),
            ),
        ] {
            assert_eq!(serde_json::to_value(&request).unwrap(), written);
            assert_eq!(serde_json::from_value::<AdminRequest>(written).unwrap(), request);
        }
        let older = serde_json::from_value::<AdminRequest>(json!({ "do": "events" }));
        assert_eq!(older.unwrap(), AdminRequest::Events { messages: true });
        let problem = AdminFailure { kind: AdminFailureKind::NoSuchServer, what: "no".into() };
        assert_eq!(
            serde_json::to_value(AdminResponse::Failed(problem)).unwrap(),
            json!({ "failed": { "kind": "no-such-server", "what": "no" } })
        );
        assert_eq!(serde_json::to_value(AdminResponse::Switched(true)).unwrap(), json!({ "switched": true }));
        assert_eq!(serde_json::to_value(AdminResponse::Done).unwrap(), json!("done"));
    }

    #[test]
    fn unknown_admin_response_members_are_ignored() {
        let report = json!({ "status": { "servers": [{ "name": "a", "mood": "good" }], "weather": "fine" } });
        let AdminResponse::Status(report) = serde_json::from_value(report).unwrap() else {
            panic!("a status")
        };
        assert_eq!(report.servers, [ServerState { name: "a".into(), ..ServerState::default() }]);
    }
}
