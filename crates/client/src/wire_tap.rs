//! Copies of the messages on the wire of the server, for an observer.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use trunkline_protocol::{Message, RequestId, Response, emit};
use trunkline_transport::{WireDirection, WireMessage, WireObserver};

use crate::client::{ClientInner, CurrentSession, ServerInfo};
use crate::client_transport::{ExchangeEvent, OutgoingMessage, OutgoingRequest};

/// An observer of the wire of a server; [`ClientBuilder::observer`](crate::ClientBuilder::observer) takes it.
#[derive(Clone)]
pub struct ServerWireObserver(Arc<dyn WireObserver<ServerInfo>>);

impl ServerWireObserver {
    /// Wraps an observer.
    pub fn new(observer: impl WireObserver<ServerInfo> + 'static) -> Self {
        Self(Arc::new(observer))
    }

    /// Returns the observer, if it is attached.
    pub(crate) fn attached(&self) -> Option<&Self> {
        self.0.is_attached().then_some(self)
    }

    /// Observes that the server is connected.
    pub(crate) fn connected(&self, info: &ServerInfo) {
        self.0.connected(info);
    }

    /// Observes the end of the connection.
    pub(crate) fn disconnected(&self, info: &ServerInfo) {
        self.0.disconnected(info);
    }

    /// Observes a message to the server.
    pub(crate) fn sent(&self, info: &ServerInfo, call: Option<NonZeroU64>, body: &str) {
        self.observe(info, WireDirection::Sent, call, body.to_owned());
    }

    /// Observes a message of the server that belongs to no request.
    pub(crate) fn received(&self, info: &ServerInfo, message: &Message) {
        self.observe(info, WireDirection::Received, None, emit::message(message));
    }

    fn observe(&self, info: &ServerInfo, direction: WireDirection, call: Option<NonZeroU64>, text: String) {
        self.0.message(info, WireMessage { direction, call, revision: Some(info.revision), text });
    }
}

/// A request that is observed from its begin to its end.
#[derive(Debug)]
pub(crate) struct ObservedRequest {
    observer: ServerWireObserver,
    info: Arc<ServerInfo>,
    id: u64,
    call: Option<NonZeroU64>,
}

impl ObservedRequest {
    /// Observes a request that is about to be sent, if an observer is attached.
    pub(crate) fn begin(
        observer: Option<&ServerWireObserver>,
        info: &Arc<ServerInfo>,
        outgoing: &OutgoingRequest,
        call: Option<NonZeroU64>,
    ) -> Option<Box<Self>> {
        let observer = observer?.attached()?;
        observer.sent(info, call, &outgoing.body);
        Some(Box::new(Self { observer: observer.clone(), info: info.clone(), id: outgoing.id, call }))
    }

    /// Observes an event of the request.
    pub(crate) fn received(&self, event: &ExchangeEvent) {
        let message = match event {
            ExchangeEvent::Notification(notification) => Message::Notification(notification.clone()),
            ExchangeEvent::Request(request) => match request.request() {
                Some(request) => Message::Request(request.clone()),
                None => return,
            },
            ExchangeEvent::Response(outcome) => {
                let id = Some(RequestId::from_number(self.id));
                Message::Response(Response { id, outcome: outcome.clone() })
            }
            ExchangeEvent::Skipped | ExchangeEvent::Failed(_) => return,
        };
        self.observer.observe(&self.info, WireDirection::Received, self.call, emit::message(&message));
    }
}

impl ClientInner {
    /// Observes a notification or a response that is about to be sent.
    pub(crate) fn observe_posted(
        &self,
        session: &CurrentSession,
        call: Option<NonZeroU64>,
        posted: &OutgoingMessage,
    ) {
        if let Some(observer) = self.plan.observer.as_ref().and_then(ServerWireObserver::attached) {
            observer.sent(&session.info, call, &posted.body);
        }
    }

    /// Observes a message that belongs to no request.
    pub(crate) fn observe_received(&self, message: impl FnOnce() -> Message) {
        if let Some(observer) = self.plan.observer.as_ref().and_then(ServerWireObserver::attached) {
            observer.received(&self.session.load().info, &message());
        }
    }
}

impl fmt::Debug for ServerWireObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerWireObserver").finish_non_exhaustive()
    }
}
