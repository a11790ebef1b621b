//! Which era a message belongs to, and whether a modern request may pass.
//!
//! Both are pure functions of the message and a few headers, so that the whole decision is a table that tests can read.
//! Nothing after these functions asks about the era again.

use crate::envelope::{Message, Notification, Request};
use crate::header;
use crate::json::Raw;
use crate::level::Level;
use crate::meta::{self, Claim};
use crate::method::Method;
use crate::refusal::Refusal;
use crate::revision::{Era, Revision};
use crate::revisions::Revisions;
use crate::shorten::shorten;

/// Where a message goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// To the modern edge, as a request that stands alone.
    Modern,
    /// To nobody: a modern notification over HTTP has no meaning, and is accepted and dropped.
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
/// refused handshake for a server that speaks HTTP+SSE.
pub fn route_http(message: &Message, version_header: Option<&[u8]>, has_session: bool) -> Route {
    let modern_header = || version_header.is_some_and(names_modern);
    match message {
        Message::Request(request) if meta::claims_modern(request.params.meta.as_ref()) => Route::Modern,
        Message::Request(request) if request.method == Method::Initialize.as_str() => Route::Initialize,
        // Answered by the ladder, which names the member that is missing.
        Message::Request(_) if modern_header() => Route::Modern,
        Message::Notification(note) if modern_header() || meta::claims_modern(note.params.meta.as_ref()) => {
            Route::Drop
        }
        Message::Response(_) if !has_session => Route::Refuse(
            Refusal::INVALID_REQUEST.because("a response may only be posted inside a legacy session"),
        ),
        _ if has_session => Route::Session,
        _ => Route::Refuse(Refusal::SESSION_REQUIRED),
    }
}

/// Routes a message that came over a channel such as stdio.
///
/// `initialized` tells whether `initialize` was seen on this channel. Both eras may be spoken on one channel at once.
pub fn route_channel(message: &Message, initialized: bool) -> Route {
    match message {
        Message::Request(request) if meta::claims_modern(request.params.meta.as_ref()) => Route::Modern,
        Message::Request(request) if request.method == Method::Initialize.as_str() => Route::Initialize,
        Message::Request(request) if request.method == Method::Ping.as_str() => Route::Session,
        // A modern client's cancellation carries no claim, so notifications go to whoever knows the request.
        Message::Notification(_) => Route::Session,
        _ if initialized => Route::Session,
        // `server/discover` is how a modern client that forgot its envelope, or a probing one, introduces itself.
        Message::Request(request) if request.method == Method::Discover.as_str() => Route::Modern,
        Message::Request(_) => Route::Refuse(Refusal::INVALID_PARAMS.because(
            "send `initialize` first, or put `io.modelcontextprotocol/protocolVersion` into `params._meta`",
        )),
        Message::Response(_) => Route::Drop,
    }
}

/// Reports whether a version header names the modern era: a date not before its first revision.
fn names_modern(header: &[u8]) -> bool {
    let header = header.trim_ascii();
    let is_date = header.len() == 10
        && header.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && header >= Revision::V2026_07_28.as_str().as_bytes()
}

/// One header, as far as the ladder cares.
#[derive(Clone, Copy, Debug)]
pub enum Mirrored<'a> {
    /// The header is not there.
    Absent,
    /// The header is there once.
    Once(&'a [u8]),
    /// The header is there more than once, so that two readers could disagree.
    Repeated,
}

/// The headers that mirror the body of a modern request.
#[derive(Clone, Copy, Debug)]
pub struct MirrorHeaders<'a> {
    /// `MCP-Protocol-Version`
    pub version: Mirrored<'a>,
    /// `Mcp-Method`
    pub method: Mirrored<'a>,
    /// `Mcp-Name`
    pub name: Mirrored<'a>,
}

/// A modern request that passed the ladder.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The method.
    pub method: Method,
    /// The revision.
    pub revision: Revision,
    /// What the caller says that it can do, as written.
    pub capabilities: Raw,
    /// What the caller says of itself, as written.
    pub client: Option<Raw>,
    /// The mildest log message wanted.
    pub log_level: Option<Level>,
}

/// Checks a modern request against its own envelope, against what is spoken here and, over HTTP, against the headers that
/// mirror it.
///
/// The earliest failure wins, in the order that the specification's own tests expect.
///
/// # Errors
/// The refusal of the first rung that fails.
pub fn admit(
    request: &Request,
    headers: Option<&MirrorHeaders<'_>>,
    spoken: Revisions,
) -> Result<Admitted, Refusal> {
    let claim = meta::read_claim(request.params.meta.as_ref())?;
    if let Some(headers) = headers {
        check_plain("MCP-Protocol-Version", headers.version, &claim.version)?;
    }
    let revision = Revision::parse(&claim.version)
        .filter(|revision| revision.era() == Era::Modern && spoken.has(*revision))
        .ok_or_else(|| Refusal::unsupported_version(&claim.version, spoken))?;
    if let Some(headers) = headers {
        check_plain("Mcp-Method", headers.method, &request.method)?;
    }
    let method = Method::parse(&request.method, revision).ok_or_else(|| unknown_method(&request.method))?;
    if let (Some(headers), Some(member)) = (headers, method.mirrored_name()) {
        check_name(request, headers.name, member)?;
    }
    let log_level = meta::read_log_level(request.params.meta.as_ref())?;
    let Claim { capabilities, client, .. } = claim;
    Ok(Admitted { method, revision, capabilities: capabilities.clone(), client: client.cloned(), log_level })
}

/// Refuses a method that the revision does not have.
#[cold]
pub fn unknown_method(name: &str) -> Refusal {
    Refusal::METHOD_NOT_FOUND.because(format!("method not found: {}", shorten(name)))
}

/// Returns the id that a `notifications/cancelled` names.
pub fn cancelled_request(note: &Notification) -> Option<crate::Id> {
    note.params.get("requestId").cloned().and_then(crate::Id::from_raw)
}

fn check_plain(name: &str, header: Mirrored<'_>, body: &str) -> Result<(), Refusal> {
    match present(name, header)? {
        value if value.trim_ascii() == body.as_bytes() => Ok(()),
        _ => Err(disagrees(name)),
    }
}

fn check_name(request: &Request, header: Mirrored<'_>, member: &str) -> Result<(), Refusal> {
    let value = header::decode_value(present("Mcp-Name", header)?).map_err(|bad| {
        Refusal::HEADER_MISMATCH.because(format!("the header Mcp-Name is malformed: {bad}"))
    })?;
    match request.params.get(member).and_then(Raw::as_text) {
        Some(body) if body == value => Ok(()),
        _ => Err(disagrees("Mcp-Name")),
    }
}

fn present<'a>(name: &str, header: Mirrored<'a>) -> Result<&'a [u8], Refusal> {
    match header {
        Mirrored::Once(value) => Ok(value),
        Mirrored::Absent => Err(Refusal::HEADER_MISMATCH.because(format!("the header {name} is missing"))),
        Mirrored::Repeated => Err(Refusal::HEADER_MISMATCH.because(format!("the header {name} is repeated"))),
    }
}

fn disagrees(name: &str) -> Refusal {
    Refusal::HEADER_MISMATCH.because(format!("the header {name} does not match the request body"))
}
