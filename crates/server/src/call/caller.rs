use std::net::IpAddr;
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{ClientCapabilities, Implementation};
use trunkline_protocol::{LoggingLevel, RawJson, RequestId, Revision};
use trunkline_session::{Principal, SessionId};

use crate::access_grant::AccessGrant;
use crate::caller_identity::CallerIdentity;
use crate::env::Env;
use crate::party::address_key;

/// The sender of the latest request of a call, and the metadata of that request.
///
/// What the client declares about itself is for display and for choosing the form of the response; only the
/// principal is verified.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The principal that the request belongs to.
    pub principal: Principal,
    /// The protocol revision of the request.
    pub revision: Revision,
    /// The capabilities object, as declared.
    pub capabilities: RawJson,
    /// The client's description of itself, as declared.
    pub client: Option<RawJson>,
    /// The id of the request; a call from within this process has none.
    pub request_id: Option<RequestId>,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The connection that the request came over, if that outlives the request: a pipe, a WebSocket, or a channel
    /// within this process. A request of Streamable HTTP has none.
    pub connection: Option<SessionId>,
    /// The address that the request came from, if it came over a network: that of a proxy, if one stands before the
    /// server. For a legacy session over HTTP it is the address that the session was opened from.
    pub remote_address: Option<IpAddr>,
    /// The transport of the request: `stdio`, `http`, `sse`, `websocket` or `channel`.
    pub transport: &'static str,
    /// The id under which state may be kept for this caller between calls: that of its cookie, or else of its
    /// legacy session. It locates the state, and grants no access to it.
    pub state_id: Option<SessionId>,
    /// The minimum level of log messages that the caller wants, if it wants any.
    pub log_level: Option<LoggingLevel>,
    /// The progress token of the request, if the caller wants progress notifications.
    pub progress_token: Option<RawJson>,
    /// The environment variables of the caller, of those that the operator allows.
    pub env: Env,
    /// What the caller's credential grants; `None` for a caller without one, such as the process at the other end of
    /// standard input and output.
    pub grant: Option<Arc<AccessGrant>>,
}

impl Caller {
    /// Returns the client's declared capabilities; none, if the declaration is not legible.
    pub fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::read(&self.capabilities, self.revision).unwrap_or_default()
    }

    /// Returns the host that the request came from: its address, or the network of an IPv6 address, of which one host has
    /// as many addresses as it likes.
    pub fn remote_host(&self) -> Option<IpAddr> {
        self.remote_address.map(address_key)
    }

    /// Returns the scopes of the caller's token; none, if it has no token or one without scopes.
    ///
    /// ```
    /// use trunkline_server::{Context, Server, Tool, ToolError};
    ///
    /// let tool = Tool::new("whoami").run(async |cx: Context| {
    ///     let caller = cx.caller();
    ///     let client = caller.oauth_client_id().unwrap_or("no OAuth client");
    ///     format!("{} through {client}, with the scopes {:?}", caller.principal, caller.scopes())
    /// });
    /// let server = Server::new("example").with(tool);
    /// ```
    pub fn scopes(&self) -> &[Box<str>] {
        self.grant.as_ref().map_or(&[], |grant| &grant.scopes)
    }

    /// Reports whether the caller's token has a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.has_scope(scope))
    }

    /// Returns the OAuth client that the caller's token was issued to.
    pub fn oauth_client_id(&self) -> Option<&str> {
        self.grant.as_ref()?.client_id.as_deref()
    }

    /// Returns the claims of the caller's token, as a JSON object.
    pub fn claims(&self) -> Option<&RawJson> {
        self.grant.as_ref()?.claims.as_ref()
    }

    /// Returns the verified part: the principal, and what its credential grants.
    pub fn identity(&self) -> CallerIdentity<'_> {
        CallerIdentity::new(&self.principal, self.grant.as_ref())
    }

    /// Returns the id that distinguishes the client from all others for as long as it is connected: its session, or
    /// else its connection. Clients that send each request separately have neither, and two requests of one such
    /// client look like those of two.
    pub fn client_id(&self) -> Option<SessionId> {
        self.session.or(self.connection)
    }

    /// Returns the client's description of itself, if it declares a legible one.
    pub fn client(&self) -> Option<Implementation> {
        Implementation::read(self.client.as_ref()?).ok()
    }

    /// Returns the kinds of content that the caller's revision has, by their names on the wire.
    ///
    /// They follow from the revision alone: no client declares what it can show.
    pub fn content_types(&self) -> &'static [&'static str] {
        let dialect = Dialect::of(self.revision);
        match (dialect.audio, dialect.resource_link) {
            (_, true) => &["text", "image", "resource", "audio", "resource_link"],
            (true, false) => &["text", "image", "resource", "audio"],
            (false, false) => &["text", "image", "resource"],
        }
    }
}

/// Formats only what may be shown: a session by the prefix of its id, and of variables only their names.
impl Serialize for Caller {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Caller", 6)?;
        object.serialize_field("principal", &self.principal.to_string())?;
        object.serialize_field("revision", self.revision.as_str())?;
        object.serialize_field("capabilities", &self.capabilities)?;
        object.serialize_field("client", &self.client)?;
        object.serialize_field("session", &self.session.map(|session| session.short().to_string()))?;
        object.serialize_field("env", &self.env)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::env::Secret;
    use crate::testing::caller;

    #[test]
    fn caller_content_types_depend_on_the_revision() {
        for (revision, last) in [
            (Revision::V2024_11_05, "resource"),
            (Revision::V2025_03_26, "audio"),
            (Revision::V2025_06_18, "resource_link"),
            (Revision::V2025_11_25, "resource_link"),
            (Revision::V2026_07_28, "resource_link"),
        ] {
            assert_eq!(caller(revision, &json!({})).content_types().last(), Some(&last), "{revision}");
        }
    }

    #[test]
    fn caller_debug_and_serialize_show_only_names_of_env_variables() {
        let mut caller = caller(Revision::NEWEST, &json!({ "sampling": {} }));
        caller.env = Env::new(vec![("TOKEN".into(), Secret::new("sentinel"))]);
        let id = SessionId::random();
        caller.session = Some(id);
        let written = serde_json::to_value(&caller).unwrap();
        assert_eq!(written["env"], json!(["TOKEN"]));
        assert_eq!(written["capabilities"], json!({ "sampling": {} }));
        let shown = format!("{written} {caller:?}");
        assert!(!shown.contains("sentinel") && !shown.contains(&id.to_string()), "{shown}");
    }
}
