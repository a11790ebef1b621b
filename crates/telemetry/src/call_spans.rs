use std::collections::{HashMap, VecDeque};

use trunkline_hub::events::{
    CallEndEvent, CallOutcome, CallStartEvent, CallTraceEvent, ClientEvent, EventBody, HubEvent, InputEvent,
    ServerCallEvent, ServerConnectionEvent,
};
use trunkline_protocol::{Era, Revision};

use crate::attribute::{SpanAttributes, cut};
use crate::metrics::{CallMetrics, DropReason, DurationMetric};
use crate::span::{SpanEvent, SpanRecord, SpanRole};

/// The most calls that are followed at once; the server has as many that run, and as many that wait for input.
const MAX_OPEN_CALLS: usize = 8192;

/// The most calls that wait for input between two requests of the hub's handler.
const MAX_SUSPENDED: usize = 4096;

/// The most clients and connections that are timed.
const MAX_SESSIONS: usize = 20_000;

/// The most events of a span.
const MAX_SPAN_EVENTS: usize = 32;

/// The codes of errors that are the caller's own, so that the hub's span does not count as failed.
const CALLER_ERRORS: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

/// Makes spans and metrics of the events of a hub.
#[derive(Debug, Default)]
pub(crate) struct CallSpans {
    open: HashMap<String, OpenCall>,
    /// The calls that ended with an input request and go on under the same name, the oldest first.
    suspended: VecDeque<String>,
    /// When clients and connections to servers began.
    sessions: HashMap<SessionKey, i64>,
    /// When events were lost last: what began before may have ended since.
    lost_at: Option<i64>,
}

/// A call that has not ended.
#[derive(Debug)]
struct OpenCall {
    start: CallStartEvent,
    started_at: i64,
    trace: Option<CallTraceEvent>,
    events: Vec<SpanEvent>,
    is_suspended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SessionKey {
    Client(String),
    Connection(u64),
}

/// Takes the spans that have ended.
pub(crate) type SpanSink<'a> = &'a mut dyn FnMut(SpanRecord);

impl CallSpans {
    /// Takes over an event.
    pub(crate) fn apply(&mut self, event: &HubEvent, metrics: &mut CallMetrics, sink: SpanSink<'_>) {
        let at = event.time.as_micros();
        match &event.body {
            EventBody::CallStarted(start) => self.begin(start, at, metrics),
            EventBody::CallTraced(trace) => {
                if let Some(call) = self.open.get_mut(&trace.call) {
                    call.trace.get_or_insert_with(|| (**trace).clone());
                }
            }
            EventBody::ServerCall(server_call) => self.server_call(server_call, at, metrics, sink),
            EventBody::InputRequested(input) => self.add_event(input, at, "input_requested"),
            EventBody::InputAnswered(input) => self.add_event(input, at, "input_answered"),
            EventBody::CallEnded(end) => self.end(end, at, metrics, sink),
            EventBody::ClientConnected(client) => {
                self.begin_session(SessionKey::Client(client.client.clone()), at);
            }
            EventBody::ClientGone(client) => self.end_client(client, at, metrics),
            EventBody::ServerConnected(connection) => {
                self.begin_session(SessionKey::Connection(connection.connection), at);
            }
            EventBody::ServerGone(connection) => self.end_connection(connection, at, metrics),
            EventBody::Dropped { count } => {
                self.lost_at = Some(at);
                metrics.count_dropped(DropReason::EventsLost, *count);
            }
            _ => {}
        }
    }

    fn begin(&mut self, start: &CallStartEvent, at: i64, metrics: &mut CallMetrics) {
        if let Some(call) = self.open.get_mut(&start.call).filter(|call| call.is_suspended) {
            call.is_suspended = false;
            self.suspended.retain(|name| *name != start.call);
            return;
        }
        if self.open.len() >= MAX_OPEN_CALLS {
            self.forget_lost();
        }
        if self.open.len() >= MAX_OPEN_CALLS {
            metrics.count_dropped(DropReason::EventsLost, 1);
            return;
        }
        let call = OpenCall {
            start: start.clone(),
            started_at: at,
            trace: None,
            events: Vec::new(),
            is_suspended: false,
        };
        self.open.insert(start.call.clone(), call);
    }

    /// Makes room by forgetting what began before events were lost: its end may have been among them.
    fn forget_lost(&mut self) {
        let Some(lost_at) = self.lost_at.take() else { return };
        self.open.retain(|_, call| call.started_at > lost_at);
        self.suspended.retain(|name| self.open.contains_key(name));
        self.sessions.retain(|_, began| *began > lost_at);
    }

    fn add_event(&mut self, input: &InputEvent, at: i64, name: &'static str) {
        let Some(call) = self.open.get_mut(&input.call) else { return };
        if call.events.len() < MAX_SPAN_EVENTS {
            let mut attributes = SpanAttributes::default();
            attributes.optional("mcp.method.name", input.method.as_deref());
            call.events.push(SpanEvent { at, name, attributes });
        }
    }

    fn end(&mut self, end: &CallEndEvent, at: i64, metrics: &mut CallMetrics, sink: SpanSink<'_>) {
        let Some(call) = self.open.get_mut(&end.call) else { return };
        if end.outcome == CallOutcome::InputRequired && call.is_one_request() {
            call.is_suspended = true;
            self.suspended.push_back(end.call.clone());
            if self.suspended.len() > MAX_SUSPENDED
                && let Some(oldest) = self.suspended.pop_front()
                && let Some(call) = self.open.remove(&oldest)
            {
                call.finish(CallOutcome::Cancelled, None, at, metrics, sink);
            }
            return;
        }
        if let Some(call) = self.open.remove(&end.call) {
            call.finish(end.outcome, end.code, at, metrics, sink);
        }
    }

    fn server_call(&self, event: &ServerCallEvent, at: i64, metrics: &mut CallMetrics, sink: SpanSink<'_>) {
        let failure = match (event.outcome, event.code) {
            (CallOutcome::Ok | CallOutcome::InputRequired, _) => None,
            (CallOutcome::ToolError, _) => Some("tool_error".to_owned()),
            (CallOutcome::Cancelled, _) => Some("cancelled".to_owned()),
            (CallOutcome::Error, Some(code)) => Some(code.to_string()),
            (CallOutcome::Error, None) => Some(event.failure.clone().unwrap_or_else(|| "_OTHER".to_owned())),
        };
        let mut shared = SpanAttributes::default();
        shared.text("mcp.method.name", &event.method);
        add_item(&mut shared, &event.method, event.item.as_deref());
        add_failure(&mut shared, failure.as_deref(), event.code);
        shared.optional("mcp.protocol.version", event.revision.as_deref());
        shared.transport(event.transport.as_deref());
        shared.optional("server.address", event.address.as_deref());
        if let Some(port) = event.port.filter(|_| event.address.is_some()) {
            shared.integer("server.port", i64::from(port));
        }
        shared.text("trunkline.server", &event.server);
        metrics.record(DurationMetric::ClientOperation, shared.clone(), seconds(event.micros));
        let trace =
            self.open.get(&event.call).and_then(|call| call.trace.as_ref()).filter(|trace| trace.sampled);
        let (Some(trace), Some(span)) = (trace, event.span.as_deref().and_then(parse_span)) else { return };
        let mut attributes = shared;
        add_uri(&mut attributes, &event.method, event.item.as_deref());
        if event.outcome == CallOutcome::InputRequired {
            attributes.flag("trunkline.input_required");
        }
        let Some(ids) = SpanIds::of(trace) else { return };
        sink(SpanRecord {
            trace: ids.trace,
            span,
            parent: Some(ids.span),
            state: trace.state.clone(),
            role: SpanRole::Client,
            name: span_name(&event.method, event.item.as_deref()),
            started_at: at.saturating_sub(i64::try_from(event.micros).unwrap_or(0)),
            ended_at: at,
            attributes,
            events: Vec::new(),
            is_error: failure.is_some(),
        });
    }

    fn begin_session(&mut self, key: SessionKey, at: i64) {
        if self.sessions.len() >= MAX_SESSIONS {
            self.forget_lost();
        }
        if self.sessions.len() < MAX_SESSIONS {
            self.sessions.insert(key, at);
        }
    }

    fn end_client(&mut self, client: &ClientEvent, at: i64, metrics: &mut CallMetrics) {
        let Some(began) = self.sessions.remove(&SessionKey::Client(client.client.clone())) else { return };
        let mut with = SpanAttributes::default();
        with.optional("mcp.protocol.version", client.revision.as_deref());
        with.transport(client.transport.as_deref());
        metrics.record(DurationMetric::ServerSession, with, elapsed(began, at));
    }

    fn end_connection(&mut self, event: &ServerConnectionEvent, at: i64, metrics: &mut CallMetrics) {
        let Some(began) = self.sessions.remove(&SessionKey::Connection(event.connection)) else { return };
        let mut with = SpanAttributes::default();
        with.optional("mcp.protocol.version", event.revision.as_deref());
        with.transport(event.transport.as_deref());
        with.text("trunkline.server", &event.server);
        metrics.record(DurationMetric::ClientSession, with, elapsed(began, at));
    }
}

impl OpenCall {
    /// Reports whether the client sends one request, whatever the number of input requests in between. In the modern era a
    /// call goes on in a further request, with a span of its own.
    fn is_one_request(&self) -> bool {
        let revision = self.trace.as_ref().and_then(|trace| trace.revision.as_deref());
        let revision = revision.and_then(Revision::parse);
        revision.is_some_and(|revision| revision.era() == Era::Legacy)
    }

    /// Makes the span of the client's request.
    fn finish(
        self,
        outcome: CallOutcome,
        code: Option<i64>,
        at: i64,
        metrics: &mut CallMetrics,
        sink: SpanSink<'_>,
    ) {
        let failure = match (outcome, code) {
            (CallOutcome::Ok | CallOutcome::InputRequired, _) => None,
            (CallOutcome::ToolError, _) => Some("tool_error".to_owned()),
            (CallOutcome::Cancelled, _) => Some("cancelled".to_owned()),
            (CallOutcome::Error, Some(code)) if CALLER_ERRORS.contains(&code) => None,
            (CallOutcome::Error, Some(code)) => Some(code.to_string()),
            (CallOutcome::Error, None) => Some("_OTHER".to_owned()),
        };
        let Self { start, started_at, trace, events, .. } = self;
        let mut shared = SpanAttributes::default();
        shared.text("mcp.method.name", &start.method);
        add_item(&mut shared, &start.method, start.name.as_deref());
        add_failure(&mut shared, failure.as_deref(), code);
        if let Some(trace) = &trace {
            shared.optional("mcp.protocol.version", trace.revision.as_deref());
            shared.transport(trace.transport.as_deref());
        }
        metrics.record(DurationMetric::ServerOperation, shared.clone(), elapsed(started_at, at));
        let Some(trace) = trace.filter(|trace| trace.sampled) else { return };
        let Some(ids) = SpanIds::of(&trace) else { return };
        let mut attributes = shared;
        add_uri(&mut attributes, &start.method, start.name.as_deref());
        attributes.optional("jsonrpc.request.id", trace.request.as_deref());
        attributes.optional("mcp.session.id", start.client.as_deref());
        attributes.optional("client.address", trace.address.as_deref());
        attributes.text("trunkline.server", &start.server);
        attributes.optional("trunkline.client", start.client_name.as_deref());
        if outcome == CallOutcome::InputRequired {
            attributes.flag("trunkline.input_required");
        }
        sink(SpanRecord {
            trace: ids.trace,
            span: ids.span,
            parent: trace.parent.as_deref().and_then(parse_span),
            state: trace.state.clone(),
            role: SpanRole::Server,
            name: span_name(&start.method, start.name.as_deref()),
            started_at,
            ended_at: at,
            attributes,
            events,
            is_error: failure.is_some(),
        });
    }
}

/// The ids of a call's own span.
struct SpanIds {
    trace: u128,
    span: u64,
}

impl SpanIds {
    fn of(trace: &CallTraceEvent) -> Option<Self> {
        Some(Self { trace: u128::from_str_radix(&trace.trace, 16).ok()?, span: parse_span(&trace.span)? })
    }
}

fn parse_span(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Returns the name of a span: tools and prompts are few, resources are not.
fn span_name(method: &str, item: Option<&str>) -> String {
    match item.filter(|_| matches!(method, "tools/call" | "prompts/get")) {
        Some(item) => format!("{method} {}", cut(item)),
        None => method.to_owned(),
    }
}

fn add_item(attributes: &mut SpanAttributes, method: &str, item: Option<&str>) {
    match method {
        "tools/call" => {
            attributes.text("gen_ai.operation.name", "execute_tool");
            attributes.optional("gen_ai.tool.name", item);
        }
        "prompts/get" => attributes.optional("gen_ai.prompt.name", item),
        _ => {}
    }
}

/// Adds the URI of a resource, without its query, which may have a secret.
fn add_uri(attributes: &mut SpanAttributes, method: &str, item: Option<&str>) {
    if method == "resources/read" {
        let uri = item.map(|uri| uri.split(['?', '#']).next().unwrap_or_default());
        attributes.optional("mcp.resource.uri", uri);
    }
}

fn add_failure(attributes: &mut SpanAttributes, failure: Option<&str>, code: Option<i64>) {
    attributes.optional("error.type", failure);
    attributes.optional("rpc.response.status_code", code.map(|code| code.to_string()).as_deref());
}

fn elapsed(began: i64, at: i64) -> f64 {
    seconds(u64::try_from(at.saturating_sub(began)).unwrap_or(0))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "after 285 years of microseconds the last one does not matter"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests;
