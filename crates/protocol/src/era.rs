//! The era of each message, and the validation of modern requests.
//!
//! Both are pure functions of the message and a few headers, so that the whole decision is a table that tests can read.
//! No later code checks the era again.
//!
//! See [Versioning, Terminology](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology).

use crate::envelope::{Message, Notification, Request};
use crate::header;
use crate::json::RawJson;
use crate::logging_level::LoggingLevel;
use crate::meta::{self, ClientMetadata};
use crate::method::Method;
use crate::refusal::Refusal;
use crate::revision::{Era, Revision};
use crate::revision_set::RevisionSet;
use crate::shorten::shorten;

/// The route of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageRoute {
    /// To the modern edge, as a self-contained request.
    Modern,
    /// Dropped: a modern notification over HTTP has no meaning, and is accepted and ignored.
    Drop,
    /// To the legacy edge, as the start of a session.
    Initialize,
    /// To the legacy edge, inside a session.
    Session,
    /// Back to the sender.
    Refuse(Refusal),
}

/// Routes a message that was posted over HTTP.
///
/// The body decides; the version header is only a cross-check, and never one on `initialize`, because clients take a
/// rejected handshake for a server of the HTTP+SSE transport.
///
/// See [Streamable HTTP, Backward Compatibility](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility).
pub fn route_http(message: &Message, version_header: Option<&[u8]>, has_session: bool) -> MessageRoute {
    let modern_header = || version_header.is_some_and(is_modern_version);
    match message {
        Message::Request(request) if meta::has_modern_meta(request.params.meta.as_ref()) => {
            MessageRoute::Modern
        }
        Message::Request(request) if request.method == Method::Initialize.as_str() => {
            MessageRoute::Initialize
        }
        // Request validation rejects it, and names the missing member.
        Message::Request(_) if modern_header() => MessageRoute::Modern,
        Message::Notification(note)
            if modern_header() || meta::has_modern_meta(note.params.meta.as_ref()) =>
        {
            MessageRoute::Drop
        }
        Message::Response(_) if !has_session => MessageRoute::Refuse(
            Refusal::INVALID_REQUEST.with_message("a response may only be posted inside a legacy session"),
        ),
        _ if has_session => MessageRoute::Session,
        _ => MessageRoute::Refuse(Refusal::SESSION_REQUIRED),
    }
}

/// Routes a message of a channel such as stdio.
///
/// `initialized` is whether `initialize` was received on this channel. Both eras may share one channel.
///
/// See [stdio, Backward Compatibility](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility).
pub fn route_channel(message: &Message, initialized: bool) -> MessageRoute {
    match message {
        Message::Request(request) if meta::has_modern_meta(request.params.meta.as_ref()) => {
            MessageRoute::Modern
        }
        Message::Request(request) if request.method == Method::Initialize.as_str() => {
            MessageRoute::Initialize
        }
        Message::Request(request) if request.method == Method::Ping.as_str() => MessageRoute::Session,
        // A modern client's cancellation has no version in its `_meta`, so every notification takes this route; the
        // receiver matches it to its request.
        Message::Notification(_) => MessageRoute::Session,
        _ if initialized => MessageRoute::Session,
        // `server/discover` is how a modern client that forgot its envelope, or a probing one, introduces itself.
        Message::Request(request) if request.method == Method::Discover.as_str() => MessageRoute::Modern,
        Message::Request(_) => MessageRoute::Refuse(Refusal::INVALID_PARAMS.with_message(
            "send `initialize` first, or put `io.modelcontextprotocol/protocolVersion` into `params._meta`",
        )),
        Message::Response(_) => MessageRoute::Drop,
    }
}

/// Reports whether a version header names the modern era: a date not before its first revision.
fn is_modern_version(header: &[u8]) -> bool {
    let header = header.trim_ascii();
    let is_date = header.len() == 10
        && header.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && header >= Revision::V2026_07_28.as_str().as_bytes()
}

/// How often a header occurs, for request validation.
#[derive(Clone, Copy, Debug)]
pub enum HeaderOccurrence<'a> {
    /// The header is absent.
    Absent,
    /// The header occurs once.
    Once(&'a [u8]),
    /// The header occurs more than once, so that two readers could disagree.
    Repeated,
}

/// The headers that mirror the body of a modern request.
///
/// See [Standard Request Headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#standard-request-headers).
#[derive(Clone, Copy, Debug)]
pub struct MirrorHeaders<'a> {
    /// `MCP-Protocol-Version`
    pub version: HeaderOccurrence<'a>,
    /// `Mcp-Method`
    pub method: HeaderOccurrence<'a>,
    /// `Mcp-Name`
    pub name: HeaderOccurrence<'a>,
}

/// A modern request that passed validation.
#[derive(Clone, Debug)]
pub struct ValidatedRequest {
    /// The method.
    pub method: Method,
    /// The revision.
    pub revision: Revision,
    /// The client's declared capabilities, as written.
    pub capabilities: RawJson,
    /// The client's `Implementation`, as written.
    pub client: Option<RawJson>,
    /// The lowest log level that the client requests.
    pub log_level: Option<LoggingLevel>,
}

/// Checks a modern request against its own envelope, against the supported revisions and, over HTTP, against the
/// headers that mirror it.
///
/// The earliest failure wins, in the order that the specification's own tests expect.
///
/// See [Server Validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation).
///
/// # Errors
/// The refusal of the first check that fails.
pub fn validate_request(
    request: &Request,
    headers: Option<&MirrorHeaders<'_>>,
    supported: RevisionSet,
) -> Result<ValidatedRequest, Refusal> {
    let claim = meta::read_client_metadata(request.params.meta.as_ref())?;
    if let Some(headers) = headers {
        check_header("MCP-Protocol-Version", headers.version, &claim.version)?;
    }
    let revision = Revision::parse(&claim.version)
        .filter(|revision| revision.era() == Era::Modern && supported.contains(*revision))
        .ok_or_else(|| Refusal::unsupported_version(&claim.version, supported))?;
    if let Some(headers) = headers {
        check_header("Mcp-Method", headers.method, &request.method)?;
    }
    let method = Method::parse(&request.method, revision).ok_or_else(|| unknown_method(&request.method))?;
    if let (Some(headers), Some(member)) = (headers, method.name_header_param()) {
        check_name_header(request, headers.name, member)?;
    }
    let log_level = meta::read_log_level(request.params.meta.as_ref())?;
    let ClientMetadata { capabilities, client, .. } = claim;
    Ok(ValidatedRequest {
        method,
        revision,
        capabilities: capabilities.clone(),
        client: client.cloned(),
        log_level,
    })
}

/// Refuses a method that the revision does not have.
#[cold]
pub fn unknown_method(name: &str) -> Refusal {
    Refusal::METHOD_NOT_FOUND.with_message(format!("method not found: {}", shorten(name)))
}

/// Returns the id that a `notifications/cancelled` names.
///
/// See [Cancellation Flow](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation#cancellation-flow).
pub fn cancelled_request(note: &Notification) -> Option<crate::RequestId> {
    note.params.get("requestId").cloned().and_then(crate::RequestId::from_raw)
}

fn check_header(name: &str, header: HeaderOccurrence<'_>, body: &str) -> Result<(), Refusal> {
    match require_single_header(name, header)? {
        value if value.trim_ascii() == body.as_bytes() => Ok(()),
        _ => Err(header_mismatch(name)),
    }
}

fn check_name_header(request: &Request, header: HeaderOccurrence<'_>, member: &str) -> Result<(), Refusal> {
    let value = header::decode_value(require_single_header("Mcp-Name", header)?).map_err(|bad| {
        Refusal::HEADER_MISMATCH.with_message(format!("the header Mcp-Name is malformed: {bad}"))
    })?;
    match request.params.get(member).and_then(RawJson::as_text) {
        Some(body) if body == value => Ok(()),
        _ => Err(header_mismatch("Mcp-Name")),
    }
}

fn require_single_header<'a>(name: &str, header: HeaderOccurrence<'a>) -> Result<&'a [u8], Refusal> {
    match header {
        HeaderOccurrence::Once(value) => Ok(value),
        HeaderOccurrence::Absent => {
            Err(Refusal::HEADER_MISMATCH.with_message(format!("the header {name} is missing")))
        }
        HeaderOccurrence::Repeated => {
            Err(Refusal::HEADER_MISMATCH.with_message(format!("the header {name} is repeated")))
        }
    }
}

fn header_mismatch(name: &str) -> Refusal {
    Refusal::HEADER_MISMATCH.with_message(format!("the header {name} does not match the request body"))
}
