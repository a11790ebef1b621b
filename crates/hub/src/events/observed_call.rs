use std::num::NonZeroU64;
use std::time::Instant;

use trunkline_config::ServerName;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{Implementation, InputRequest};
use trunkline_protocol::{Era, Method, Refusal, emit};
use trunkline_server::{Caller, Context, HandlerOutcome, IncomingCall};
use trunkline_session::Principal;

use super::body::{
    CallEndEvent, CallOutcome, CallStartEvent, CallTraceEvent, EventBody, InputAnswerer, InputEvent,
};
use super::call_trace::CallTrace;
use super::event_text::bounded;
use super::masking::masked;
use super::ring::EventAudience;
use super::stream::HubEvents;
use super::wire_taps::call_name;

/// A call that is relayed while there is a subscription. Dropped without an outcome, it was cancelled.
#[derive(Debug)]
pub(crate) struct ObservedCall {
    events: HubEvents,
    number: NonZeroU64,
    principal: Principal,
    began: Instant,
    bytes_in: u64,
    era: Era,
    /// Its place in a trace, if calls are traced.
    trace: Option<CallTrace>,
    is_over: bool,
}

impl ObservedCall {
    /// Publishes the begin of a call to a server, and to an item of it; `None` without a subscription.
    pub(crate) fn begin(
        events: &HubEvents,
        call: &IncomingCall,
        server: &ServerName,
        item: impl FnOnce() -> Option<String>,
    ) -> Option<Box<Self>> {
        if !events.is_followed() {
            return None;
        }
        let number = call.context.call_number()?;
        let params = call.params();
        let name =
            item_key(call.method).and_then(|key| params.get(key)?.as_text().map(|text| bounded(&text)));
        let caller = call.context.caller();
        let client_name = caller.client.as_ref().and_then(|raw| Implementation::read(raw).ok());
        let event = CallStartEvent {
            call: call_name(number),
            client: caller.client_id().map(|id| id.short().to_string()),
            client_name: client_name.map(|client| bounded(&client.name)),
            method: call.method.as_str().to_owned(),
            name,
            server: server.to_string(),
            item: item().map(|item| bounded(&item)),
        };
        let bytes_in = emit::whole_params(params).as_str().len();
        let trace = events.tracer().map(|tracer| tracer.trace(number, call.context.trace()));
        let traced = trace.as_ref().map(|trace| trace_event(number, trace, &caller));
        let era = caller.revision.era();
        let principal = caller.principal;
        events.open_call(number, &principal);
        let observed = Self {
            events: events.clone(),
            number,
            principal,
            began: Instant::now(),
            bytes_in: u64::try_from(bytes_in).unwrap_or(u64::MAX),
            era,
            trace,
            is_over: false,
        };
        observed.publish(EventBody::CallStarted(event));
        if let Some(traced) = traced {
            observed.publish(EventBody::CallTraced(Box::new(traced)));
        }
        Some(Box::new(observed))
    }

    /// Publishes the end of a call, if it is observed, and returns its answer.
    pub(crate) fn finish(
        observed: Option<Box<Self>>,
        answer: Result<HandlerOutcome, Refusal>,
    ) -> Result<HandlerOutcome, Refusal> {
        if let Some(mut observed) = observed {
            observed.is_over = true;
            observed.end_with(&answer);
        }
        answer
    }

    fn end_with(&self, answer: &Result<HandlerOutcome, Refusal>) {
        match answer {
            Ok(outcome) => {
                let bytes_out = match outcome {
                    HandlerOutcome::Done(ServerResult::Relayed(result)) => result.raw().as_str().len(),
                    _ => 0,
                };
                self.end(CallOutcome::of_answer(outcome), bytes_out, None, None);
            }
            Err(refusal) => {
                let error = bounded(&masked(&refusal.to_string()));
                self.end(CallOutcome::Error, 0, Some(error), Some(refusal.code(self.era)));
            }
        }
    }

    fn end(&self, outcome: CallOutcome, bytes_out: usize, error: Option<String>, code: Option<i64>) {
        let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.publish(EventBody::CallEnded(CallEndEvent {
            call: call_name(self.number),
            outcome,
            micros,
            server_micros: None,
            bytes_in: self.bytes_in,
            bytes_out: u64::try_from(bytes_out).unwrap_or(u64::MAX),
            error,
            code,
        }));
    }

    pub(super) fn events(&self) -> &HubEvents {
        &self.events
    }

    pub(super) fn number(&self) -> NonZeroU64 {
        self.number
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn trace(&self) -> Option<&CallTrace> {
        self.trace.as_ref()
    }

    fn publish(&self, body: EventBody) {
        self.events.publish(body, EventAudience::Owner(self.principal.clone()));
    }
}

impl CallOutcome {
    /// Returns the outcome of a call with an answer.
    pub(crate) fn of_answer(answer: &HandlerOutcome) -> Self {
        let is_error = match answer {
            HandlerOutcome::InputRequired(_) | HandlerOutcome::Done(ServerResult::InputRequired(_)) => {
                return Self::InputRequired;
            }
            HandlerOutcome::Done(ServerResult::Relayed(result)) => result.is_error(),
            HandlerOutcome::Done(ServerResult::Tool(result)) => result.is_error,
            _ => false,
        };
        if is_error { Self::ToolError } else { Self::Ok }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(CallOutcome::Cancelled, 0, None, None);
        }
        self.events.close_call(self.number);
    }
}

impl HubEvents {
    /// Publishes that a server requests input of a call's client.
    pub(crate) fn input_requested(&self, context: &Context, key: &str, request: &InputRequest) {
        self.publish_input(context, key, Some(request.method()), |event| {
            EventBody::InputRequested(InputEvent { by: None, ..event })
        });
    }

    /// Publishes that an input request was answered, by the client of the call or an operator.
    pub(crate) fn input_answered(&self, context: &Context, key: &str, method: Option<&str>) {
        self.publish_input(context, key, method, EventBody::InputAnswered);
    }

    fn publish_input(
        &self,
        context: &Context,
        key: &str,
        method: Option<&str>,
        kind: impl FnOnce(InputEvent) -> EventBody,
    ) {
        let Some(number) = context.call_number().filter(|_| self.is_followed()) else { return };
        let method = method.map(str::to_owned);
        let by = match context.is_operator_answer(key) {
            true => InputAnswerer::Operator,
            false => InputAnswerer::Client,
        };
        let event = InputEvent { call: call_name(number), method, key: bounded(key), by: Some(by) };
        self.publish(kind(event), EventAudience::Owner(context.principal()));
    }
}

/// Describes the trace of a call.
fn trace_event(number: NonZeroU64, trace: &CallTrace, caller: &Caller) -> CallTraceEvent {
    CallTraceEvent {
        call: call_name(number),
        trace: trace.trace.to_string(),
        span: trace.span.to_string(),
        parent: trace.parent.map(|parent| parent.to_string()),
        state: trace.state.clone(),
        sampled: trace.sampled,
        request: caller.request_id.as_ref().map(|id| bounded(&id.to_string())),
        revision: Some(caller.revision.as_str().to_owned()),
        transport: Some(caller.transport.to_owned()),
        address: caller.remote_address.map(|address| address.to_string()),
    }
}

/// Returns the parameter that names the item of a request.
fn item_key(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead => Some("uri"),
        _ => None,
    }
}
