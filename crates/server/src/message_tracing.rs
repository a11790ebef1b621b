//! Tracing of a message on its path through a channel, at the level `DEBUG`.

use tracing::Span;
use trunkline_protocol::Message;

use crate::call::ensure_trace;

/// Makes the span of a message on a channel, with its trace.
pub(crate) fn message_span(message: &mut Message) -> Span {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return Span::none();
    }
    let Message::Request(request) = message else { return Span::none() };
    let span = tracing::debug_span!("message", trace_id = %ensure_trace(&mut request.params));
    span.in_scope(|| tracing::debug!("received"));
    span
}

/// Logs that the response to a message was given to its channel.
pub(crate) fn log_sent(span: &Span) {
    if !span.is_disabled() {
        span.in_scope(|| tracing::debug!("answered"));
    }
}
