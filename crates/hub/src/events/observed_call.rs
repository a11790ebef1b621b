use std::num::NonZeroU64;
use std::time::Instant;

use trunkline_config::ServerName;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{Implementation, InputRequest};
use trunkline_protocol::{Method, Refusal, emit};
use trunkline_server::{Context, HandlerOutcome, IncomingCall};
use trunkline_session::Principal;

use super::body::{CallEndEvent, CallOutcome, CallStartEvent, EventBody, InputAnswerer, InputEvent};
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
        if !events.is_attached() {
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
        let principal = caller.principal;
        events.open_call(number, &principal);
        let bytes_in = emit::whole_params(params).as_str().len();
        let observed = Self {
            events: events.clone(),
            number,
            principal,
            began: Instant::now(),
            bytes_in: u64::try_from(bytes_in).unwrap_or(u64::MAX),
            is_over: false,
        };
        observed.publish(EventBody::CallStarted(event));
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

    fn end_with(&self, outcome: &Result<HandlerOutcome, Refusal>) {
        let (outcome, bytes_out, error) = match outcome {
            Ok(HandlerOutcome::InputRequired(_) | HandlerOutcome::Done(ServerResult::InputRequired(_))) => {
                (CallOutcome::InputRequired, 0, None)
            }
            Ok(HandlerOutcome::Done(ServerResult::Relayed(result))) => {
                let outcome = if result.is_error() { CallOutcome::ToolError } else { CallOutcome::Ok };
                (outcome, result.raw().as_str().len(), None)
            }
            Ok(HandlerOutcome::Done(ServerResult::Tool(result))) if result.is_error => {
                (CallOutcome::ToolError, 0, None)
            }
            Ok(_) => (CallOutcome::Ok, 0, None),
            Err(refusal) => (CallOutcome::Error, 0, Some(bounded(&masked(&refusal.to_string())))),
        };
        self.end(outcome, bytes_out, error);
    }

    fn end(&self, outcome: CallOutcome, bytes_out: usize, error: Option<String>) {
        let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.publish(EventBody::CallEnded(CallEndEvent {
            call: call_name(self.number),
            outcome,
            micros,
            server_micros: None,
            bytes_in: self.bytes_in,
            bytes_out: u64::try_from(bytes_out).unwrap_or(u64::MAX),
            error,
        }));
    }

    fn publish(&self, body: EventBody) {
        self.events.publish(body, EventAudience::Owner(self.principal.clone()));
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(CallOutcome::Cancelled, 0, None);
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
        let Some(number) = context.call_number().filter(|_| self.is_attached()) else { return };
        let method = method.map(str::to_owned);
        let by = match context.is_operator_answer(key) {
            true => InputAnswerer::Operator,
            false => InputAnswerer::Client,
        };
        let event = InputEvent { call: call_name(number), method, key: bounded(key), by: Some(by) };
        self.publish(kind(event), EventAudience::Owner(context.principal()));
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
