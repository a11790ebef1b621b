//! The protocol's own keys in `_meta`, and the client metadata of a modern request.
//!
//! See [General fields, `_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta).

use std::borrow::Cow;

use crate::json::{JsonKind, JsonObject, RawJson};
use crate::logging_level::LoggingLevel;
use crate::refusal::Refusal;

/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client's `Implementation`.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The lowest log level that the client requests.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's `Implementation`.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token under which progress is reported.
///
/// See [Progress Flow](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress#progress-flow).
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The task that a message belongs to, in 2025-11-25.
///
/// See [Related Task Metadata](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#related-task-metadata).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The hop-by-hop members of `_meta`.
pub(crate) const HOP_BY_HOP: [&str; 8] = [
    SERVER_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
    SUBSCRIPTION_ID,
    RELATED_TASK,
];

/// Reports whether a member of `_meta` is hop-by-hop, so that a relay writes its own.
pub fn is_hop_by_hop(key: &str) -> bool {
    HOP_BY_HOP.contains(&key)
}

/// The client metadata in the `_meta` of a modern request.
#[derive(Clone, Debug)]
pub struct ClientMetadata<'a> {
    /// The requested protocol version.
    pub version: Cow<'a, str>,
    /// The capabilities object, as written.
    pub capabilities: &'a RawJson,
    /// The client's description of itself, as written.
    pub client: Option<&'a RawJson>,
}

/// Reports whether a request claims to be modern: its `_meta` has a member that every modern request must have.
pub fn has_modern_meta(meta: Option<&JsonObject>) -> bool {
    meta.is_some_and(|meta| [PROTOCOL_VERSION, CLIENT_CAPABILITIES].iter().any(|key| meta.get(key).is_some()))
}

/// Reads the claim of a modern request.
///
/// # Errors
/// [`Refusal::MISSING_META`] naming the first key that is absent or has the wrong type.
pub fn read_client_metadata(meta: Option<&JsonObject>) -> Result<ClientMetadata<'_>, Refusal> {
    let missing = |what: &str| Refusal::MISSING_META.with_message(what.to_owned());
    let meta = meta.ok_or_else(|| missing("`params._meta` is missing"))?;
    let version = match meta.get(PROTOCOL_VERSION) {
        None => return Err(missing("`params._meta` lacks `io.modelcontextprotocol/protocolVersion`")),
        Some(value) => value
            .as_text()
            .ok_or_else(|| missing("`io.modelcontextprotocol/protocolVersion` must be a string"))?,
    };
    let capabilities = match meta.get(CLIENT_CAPABILITIES) {
        None => return Err(missing("`params._meta` lacks `io.modelcontextprotocol/clientCapabilities`")),
        Some(value) if value.kind() == JsonKind::Object => value,
        Some(_) => return Err(missing("`io.modelcontextprotocol/clientCapabilities` must be an object")),
    };
    Ok(ClientMetadata { version, capabilities, client: meta.get(CLIENT_INFO) })
}

/// Reads the requested log level of a modern request.
///
/// # Errors
/// [`Refusal::INVALID_PARAMS`] if there is one and it is not a level.
pub fn read_log_level(meta: Option<&JsonObject>) -> Result<Option<LoggingLevel>, Refusal> {
    let Some(value) = meta.and_then(|meta| meta.get(LOG_LEVEL)) else { return Ok(None) };
    let level = value.as_text().and_then(|name| LoggingLevel::parse(&name));
    level.map(Some).ok_or_else(|| {
        Refusal::INVALID_PARAMS
            .with_message("`io.modelcontextprotocol/logLevel` is not a log level".to_owned())
    })
}

/// Returns the progress token of a request, if it is a string or a number, and no longer than an id may be: it is
/// repeated with every report.
pub fn progress_token(meta: Option<&JsonObject>) -> Option<RawJson> {
    let token = meta?.get(PROGRESS_TOKEN)?;
    crate::RequestId::from_raw(token.clone()).map(|token| token.to_raw())
}
