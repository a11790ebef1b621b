//! The observers of both wires, which publish messages.

use trunkline_client::{ServerInfo, ServerWireObserver};
use trunkline_config::ServerName;
use trunkline_protocol::JsonWriter;
use trunkline_server::{ClientWireObserver, ObservedClient};
use trunkline_transport::{WireDirection, WireMessage, WireObserver};

use super::body::{ClientEvent, EventBody, EventDirection, EventWire, MessageEvent, ServerConnectionEvent};
use super::event_text::{bounded, prefix};
use super::masking::masked;
use super::ring::EventAudience;
use super::stream::HubEvents;

/// The most bytes that are shown of a message that is too long.
const MAX_PREFIX_BYTES: usize = 1024;

/// Observes the wire of the clients.
pub(super) struct ClientWireTap(HubEvents);

/// Observes one connection to a server.
struct ServerWireTap {
    events: HubEvents,
    server: ServerName,
    connection: u64,
}

impl HubEvents {
    /// Returns the observer for the wire of the clients, for `HostOptions::observer`.
    pub fn client_observer(&self) -> ClientWireObserver {
        ClientWireObserver::new(ClientWireTap::new(self))
    }

    /// Returns the observer for a connection to a server.
    pub(crate) fn server_observer(&self, server: &ServerName) -> ServerWireObserver {
        let connection = self.number_connection();
        ServerWireObserver::new(ServerWireTap { events: self.clone(), server: server.clone(), connection })
    }

    /// Makes the event of a message: only now, after masking, does its text get anywhere.
    fn message_event(&self, wire: EventWire, message: &WireMessage) -> MessageEvent {
        let WireMessage { direction, call, revision, text } = message;
        let is_whole = text.len() <= self.message_bytes();
        let shown = masked(if is_whole { text } else { prefix(text, MAX_PREFIX_BYTES) });
        let (whole, beginning) = match is_whole {
            true => {
                let mut writer = JsonWriter::with_capacity(shown.len());
                writer.verbatim(&shown);
                (Some(writer.into_raw()), None)
            }
            false => (None, Some(shown.into_owned())),
        };
        MessageEvent {
            wire,
            direction: match direction {
                WireDirection::Received => EventDirection::Received,
                WireDirection::Sent => EventDirection::Sent,
            },
            call: call.map(call_name),
            client: None,
            server: None,
            connection: None,
            revision: revision.map(|revision| revision.as_str().to_owned()),
            transport: None,
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            message: whole,
            message_prefix: beginning,
        }
    }
}

impl WireObserver<ObservedClient> for ClientWireTap {
    fn is_attached(&self) -> bool {
        self.0.is_attached()
    }

    fn numbers_calls(&self) -> bool {
        self.0.is_followed()
    }

    fn message(&self, client: &ObservedClient, message: WireMessage) {
        let event = MessageEvent {
            client: client.id.map(|id| id.short().to_string()),
            transport: Some(client.transport.to_owned()),
            ..self.0.message_event(EventWire::Client, &message)
        };
        let audience = EventAudience::Owner(client.principal.clone());
        self.0.publish(EventBody::Message(Box::new(event)), audience);
    }

    fn connected(&self, client: &ObservedClient) {
        self.publish_client(client, EventBody::ClientConnected);
    }

    fn disconnected(&self, client: &ObservedClient) {
        self.publish_client(client, EventBody::ClientGone);
    }
}

impl ClientWireTap {
    pub(super) fn new(events: &HubEvents) -> Self {
        Self(events.clone())
    }

    fn publish_client(&self, client: &ObservedClient, kind: impl FnOnce(ClientEvent) -> EventBody) {
        let Some(id) = client.id else { return };
        let description = client.description.as_ref().and_then(|raw| raw.members().ok()).unwrap_or_default();
        let text = |key: &str| description.text(key).map(|text| bounded(&text));
        let event = ClientEvent {
            client: id.short().to_string(),
            name: text("name"),
            version: text("version"),
            principal: client.principal.to_string(),
            revision: Some(client.revision.as_str().to_owned()),
            transport: Some(client.transport.to_owned()),
        };
        self.0.publish(kind(event), EventAudience::Owner(client.principal.clone()));
    }
}

impl WireObserver<ServerInfo> for ServerWireTap {
    fn is_attached(&self) -> bool {
        self.events.is_attached()
    }

    fn message(&self, server: &ServerInfo, message: WireMessage) {
        let event = MessageEvent {
            server: Some(self.server.to_string()),
            connection: Some(self.connection),
            transport: Some(transport_name(server.transport).to_owned()),
            ..self.events.message_event(EventWire::Server, &message)
        };
        let audience = self.events.audience_of_call(message.call);
        self.events.publish(EventBody::Message(Box::new(event)), audience);
    }

    fn connected(&self, server: &ServerInfo) {
        self.publish_connection(server, EventBody::ServerConnected);
    }

    fn disconnected(&self, server: &ServerInfo) {
        self.publish_connection(server, EventBody::ServerGone);
    }
}

impl ServerWireTap {
    fn publish_connection(&self, info: &ServerInfo, kind: impl FnOnce(ServerConnectionEvent) -> EventBody) {
        let event = ServerConnectionEvent {
            server: self.server.to_string(),
            connection: self.connection,
            revision: Some(info.revision.as_str().to_owned()),
            transport: Some(transport_name(info.transport).to_owned()),
        };
        self.events.publish(kind(event), EventAudience::Operators);
    }
}

impl HubEvents {
    /// Returns the name that a call has in events, by its number.
    pub fn call_name(number: std::num::NonZeroU64) -> String {
        call_name(number)
    }
}

/// Returns the name of a call in events.
pub(super) fn call_name(number: std::num::NonZeroU64) -> String {
    format!("c{number}")
}

/// Returns the name of a transport in events: that of the server's side, which does not distinguish the kinds of HTTP.
pub(crate) fn transport_name(name: &str) -> &str {
    if name == "streamable-http" { "http" } else { name }
}
