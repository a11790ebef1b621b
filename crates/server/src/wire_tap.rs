//! Copies of the messages on the wire of the clients, for an observer.
//!
//! Both edges call these functions with what they received or are about to send. Without an attached observer each is
//! one check.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::{Message, RawJson, Request, RequestId, Revision, emit};
use trunkline_session::{Principal, SessionId, SessionRecord};
use trunkline_transport::{WireDirection, WireMessage, WireObserver};

use crate::call::CallState;
use crate::edge::CallEvent;
use crate::edge::legacy::LiveSession;
use crate::server_core::ServerCore;

/// A client, as an observer of its wire knows it.
#[derive(Clone, Debug)]
pub struct ObservedClient {
    /// The principal that its requests belong to.
    pub principal: Principal,
    /// Its session or connection, if it has one that outlives the request.
    pub id: Option<SessionId>,
    /// Its description of itself, as declared.
    pub description: Option<RawJson>,
    /// The transport: `stdio`, `http`, `sse`, `websocket` or `channel`.
    pub transport: &'static str,
    /// The revision that it uses.
    pub revision: Revision,
}

impl ObservedClient {
    /// Describes the client of a session.
    pub(crate) fn of_record(record: &SessionRecord, transport: &'static str) -> Self {
        Self {
            principal: record.principal.clone(),
            id: Some(record.id),
            description: record.client.clone(),
            transport,
            revision: record.revision,
        }
    }
}

/// An observer of the wire of the clients; [`HostOptions::observer`](crate::HostOptions::observer) has it.
#[derive(Clone)]
pub struct ClientWireObserver {
    observer: Arc<dyn WireObserver<ObservedClient>>,
    calls: Arc<AtomicU64>,
}

impl ClientWireObserver {
    /// Wraps an observer.
    pub fn new(observer: impl WireObserver<ObservedClient> + 'static) -> Self {
        Self { observer: Arc::new(observer), calls: Arc::new(AtomicU64::new(1)) }
    }

    fn number_call(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.calls.fetch_add(1, Ordering::Relaxed))
    }

    fn send(
        &self,
        client: &ObservedClient,
        direction: WireDirection,
        call: Option<NonZeroU64>,
        text: impl Into<String>,
    ) {
        let revision = Some(client.revision);
        self.observer.message(client, WireMessage { direction, call, revision, text: text.into() });
    }

    pub(crate) fn connected(&self, session: &LiveSession) {
        self.observer.connected(&session.observed());
    }

    pub(crate) fn disconnected(&self, session: &LiveSession) {
        self.observer.disconnected(&session.observed());
    }
}

impl fmt::Debug for ClientWireObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientWireObserver").finish_non_exhaustive()
    }
}

impl ServerCore {
    /// Returns the observer, if it is attached.
    pub(crate) fn attached_observer(&self) -> Option<&ClientWireObserver> {
        self.observer.as_ref().filter(|observer| observer.observer.is_attached())
    }

    /// Reports whether an observer follows calls.
    pub(crate) fn numbers_calls(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.observer.numbers_calls())
    }

    /// Observes the request of a call, and gives the call its number.
    pub(crate) fn observe_call(&self, call: &CallState, id: &RequestId) {
        if let Some(observer) = self.observer.as_ref().filter(|_| self.numbers_calls()) {
            observe_call(observer, call, id);
        }
    }

    /// Observes a message of a session that is no call.
    pub(crate) fn observe_session_message(&self, session: &LiveSession, message: &Message) {
        if let Some(observer) = self.attached_observer() {
            observer.send(&session.observed(), WireDirection::Received, None, emit::message(message));
        }
    }

    /// Observes a request that opens a stream.
    pub(crate) fn observe_received(&self, client: &ObservedClient, request: &Request) {
        if let Some(observer) = self.attached_observer() {
            let request = emit::message(&Message::Request(request.clone()));
            observer.send(client, WireDirection::Received, None, request);
        }
    }

    /// Observes a request that is answered by the edge itself, or was refused before it became a call.
    pub(crate) fn observe_answered(
        &self,
        client: impl FnOnce() -> ObservedClient,
        request: &Request,
        response: &str,
    ) {
        if let Some(observer) = self.attached_observer() {
            let client = client();
            let request = emit::message(&Message::Request(request.clone()));
            observer.send(&client, WireDirection::Received, None, request);
            observer.send(&client, WireDirection::Sent, None, response);
        }
    }

    /// Observes a message to a client that belongs to no call.
    pub(crate) fn observe_sent(&self, client: impl FnOnce() -> ObservedClient, message: &str) {
        if let Some(observer) = self.attached_observer() {
            observer.send(&client(), WireDirection::Sent, None, message);
        }
    }

    /// Observes what a call sends.
    pub(crate) fn observe_event(&self, call: &CallState, event: &CallEvent) {
        let Some(observer) = self.attached_observer() else { return };
        let text = match event {
            CallEvent::Message(message) => message,
            CallEvent::Response(response) => &response.message,
            CallEvent::ReleaseStream(_) | CallEvent::NoResponse => return,
        };
        observer.send(&observed_caller(call), WireDirection::Sent, call.number(), text.as_str());
    }
}

#[cold]
fn observe_call(observer: &ClientWireObserver, call: &CallState, id: &RequestId) {
    // A call that continues after input keeps its number.
    if call.number().is_none()
        && let Some(number) = observer.number_call()
    {
        call.set_number(number);
    }
    if !observer.observer.is_attached() {
        return;
    }
    let text = emit::request(id, call.method().as_str(), Some(&emit::whole_params(call.params())));
    observer.send(&observed_caller(call), WireDirection::Received, call.number(), text);
}

/// Describes the caller of a call.
pub(crate) fn observed_caller(call: &CallState) -> ObservedClient {
    call.with_caller(|caller| ObservedClient {
        principal: caller.principal.clone(),
        id: caller.client_id(),
        description: caller.client.clone(),
        transport: caller.transport,
        revision: caller.revision,
    })
}
