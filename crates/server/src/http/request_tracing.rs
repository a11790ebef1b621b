//! Tracing of a request on its path through the server, at the level `DEBUG`.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Response};
use tracing::Span;
use tracing::field::{Empty, display};
use trunkline_http1::server::RequestHead;
use trunkline_protocol::era::MessageRoute;
use trunkline_protocol::trace::{TRACEPARENT, TRACESTATE};
use trunkline_protocol::{ByteString, JsonObject, Message, Params, RawJson, TraceContext};

use super::body::McpResponseBody;
use super::endpoint::HttpServiceInner;
use crate::call::{ensure_trace, set_trace};

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

impl HttpServiceInner {
    /// Continues the trace of the HTTP request in a message without one, if an observer follows calls.
    pub(super) fn continue_trace(&self, head: &RequestHead, message: &mut Message) {
        if let Message::Request(request) = message
            && self.core.numbers_calls()
            && TraceContext::read(request.params.meta.as_ref()).is_none()
            && let Some(context) = header_trace(head)
        {
            set_trace(&mut request.params, &context);
        }
    }
}

/// Reads the trace of an HTTP request; one that is repeated or malformed counts as none.
fn header_trace(head: &RequestHead) -> Option<TraceContext> {
    let found: Vec<(&[u8], &[u8])> = match head.raw_headers() {
        Some(raw) => raw.iter().filter(|(name, _)| is_trace_header(name)).collect(),
        None => {
            let headers = head.parts().headers.iter();
            let headers = headers.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
            headers.filter(|(name, _)| is_trace_header(name)).collect()
        }
    };
    let only = |wanted: &str| {
        let mut values = found.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        let value = std::str::from_utf8(values.next()?.1).ok()?;
        values.next().is_none().then_some(value)
    };
    TraceContext::from_texts(only(TRACEPARENT)?, only(TRACESTATE))
}

fn is_trace_header(name: &[u8]) -> bool {
    [TRACEPARENT, TRACESTATE].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Logs the route of a message, and adds its trace to the span of the request.
pub(super) fn log_route(message: &mut Message, route: &MessageRoute) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    if let Message::Request(request) = message {
        Span::current().record("trace_id", display(ensure_trace(&mut request.params)));
    }
    let route = match route {
        MessageRoute::Modern => "modern",
        MessageRoute::Initialize => "initialize",
        MessageRoute::Session => "session",
        _ => "none",
    };
    tracing::debug!(route, "routed");
}

/// Adds the trace of a message of HTTP+SSE to the span of the request, and to the message: its stream reads it from
/// there. `most` is the most bytes that a message may have.
pub(super) fn trace_posted(message: Bytes, most: usize) -> Bytes {
    /// The bytes that a trace adds to a message, at most.
    const ADDED: usize = 128;
    if !tracing::enabled!(tracing::Level::DEBUG) || message.len().saturating_add(ADDED) > most {
        return message;
    }
    with_trace(&message).unwrap_or(message)
}

fn with_trace(message: &Bytes) -> Option<Bytes> {
    let mut members = JsonObject::parse(&ByteString::try_from(message.clone()).ok()?).ok()?;
    members.get("id").and(members.get("method"))?;
    let mut sent = members.get("params").map_or(Ok(JsonObject::new()), RawJson::members).ok()?;
    let meta = sent.take("_meta").map(|meta| meta.members()).transpose().ok()?;
    let mut params = Params { members: sent, meta };
    Span::current().record("trace_id", display(ensure_trace(&mut params)));
    let Params { members: mut sent, meta } = params;
    sent.set("_meta", meta?.to_raw());
    members.set("params", sent.to_raw());
    Some(Bytes::copy_from_slice(members.to_raw().as_str().as_bytes()))
}

/// Logs the response; where it is a stream, its events are still to come.
pub(super) fn log_response(span: &Span, response: &Response<McpResponseBody>) {
    if span.is_disabled() {
        return;
    }
    let stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), stream, "answered"));
}
