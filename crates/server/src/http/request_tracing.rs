//! Tracing of a request on its path through the endpoint, at the level `DEBUG`.

use http::header::CONTENT_TYPE;
use http::{Method, Response};
use tracing::Span;
use tracing::field::{Empty, display};
use trunkline_protocol::era::MessageRoute;
use trunkline_protocol::{Message, TraceContext};

use super::body::McpResponseBody;

/// Makes the span of a request; of the peer's text it repeats only values that are known here.
pub(super) fn request_span(method: &Method) -> Span {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return Span::none();
    }
    let verb = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    };
    let span = tracing::debug_span!("http", verb, trace_id = Empty);
    span.in_scope(|| tracing::debug!("received"));
    span
}

/// Logs the route of a message, and adds its trace context to the span of the request.
pub(super) fn log_route(message: &Message, route: &MessageRoute) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    if let Message::Request(request) = message
        && let Some(trace) = TraceContext::read(request.params.meta.as_ref())
    {
        Span::current().record("trace_id", display(trace.trace));
    }
    let route = match route {
        MessageRoute::Modern => "modern",
        MessageRoute::Initialize => "initialize",
        MessageRoute::Session => "session",
        _ => "none",
    };
    tracing::debug!(route, "routed");
}

/// Logs the response; where it is a stream, its events are still to come.
pub(super) fn log_response(span: &Span, response: &Response<McpResponseBody>) {
    if span.is_disabled() {
        return;
    }
    let stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), stream, "answered"));
}
