use crate::attribute::SpanAttributes;

/// The role of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanRole {
    /// The hub handles a client's request.
    Server,
    /// The hub calls a server.
    Client,
}

/// A span that has ended. Times are in microseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanRecord {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) parent: Option<u64>,
    /// The `tracestate`.
    pub(crate) state: Option<String>,
    pub(crate) role: SpanRole,
    pub(crate) name: String,
    pub(crate) started_at: i64,
    pub(crate) ended_at: i64,
    pub(crate) attributes: SpanAttributes,
    pub(crate) events: Vec<SpanEvent>,
    pub(crate) is_error: bool,
}

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanEvent {
    pub(crate) at: i64,
    pub(crate) name: &'static str,
    pub(crate) attributes: SpanAttributes,
}
