//! The client's transports, behind one trait.
//!
//! A transport knows bytes, ids and streams, but not what a method means. An [edge](crate::edge) encodes a request
//! before it is sent here, and parses its response afterwards.

mod channel;
mod exchange;
mod flood_guard;
mod http;
mod open_requests;
mod outgoing;
mod server_request;
mod stub;
mod unsolicited;

use futures_util::future::BoxFuture;
use trunkline_transport::Secret;
pub(crate) use trunkline_transport::http::RequestDelivery;

pub(crate) use self::channel::{ChannelLimits, ChannelTransport, EXCHANGE_TRANSPORT};
pub(crate) use self::exchange::{
    ExchangeEvent, FailureCause, RawResponse, RequestExchange, TransportFailure, TransportFailureKind,
};
pub(crate) use self::http::{
    AuthorizedHttp, CustomHeaders, HttpLimits, HttpShared, HttpSseChannel, StreamableHttpTransport,
    authorization_headers, status_failure,
};
pub(crate) use self::open_requests::{OpenRequest, OpenRequests};
pub(crate) use self::outgoing::{HeaderMirror, InputRecipient, OutgoingMessage, OutgoingRequest};
pub(crate) use self::server_request::ServerRequest;
pub(crate) use self::stub::StubTransport;
pub(crate) use self::unsolicited::{
    UnsolicitedMessage, UnsolicitedReceiver, UnsolicitedSender, unsolicited_channel,
};

/// Sends requests to one server, and receives its messages.
///
/// Messages within a request are events of its [`RequestExchange`]. Messages that belong to no request go to the
/// [`UnsolicitedSender`] that the transport was created with.
pub(crate) trait ClientTransport: Send + Sync + 'static {
    /// Sends one request; its exchange yields the events within it, the response last.
    ///
    /// Dropping an exchange before its last event cancels the request by the means of the transport, unless
    /// [`OutgoingRequest::is_cancellable`] forbids it. Nothing may be sent before the exchange is first polled.
    fn request(&self, outgoing: OutgoingRequest) -> RequestExchange;

    /// Sends a notification, or the response to an input request.
    ///
    /// The future is ready once the message is sent; a response that cannot be sent is a failure.
    fn post(&self, posted: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>>;

    /// Returns the number of abandoned requests within which the server may still request input, if the transport
    /// does not attribute input requests.
    fn abandoned_requests(&self) -> usize {
        0
    }

    /// Closes the connection gracefully: sessions are deleted, processes are terminated and awaited.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Returns the id of the session, if the transport has one that another client could continue.
    fn session_id(&self) -> Option<Secret> {
        None
    }

    /// Leaves such a session open at the server when the connection is closed.
    fn keep_session(&self) {}

    /// Reports whether the connection is closed for good.
    fn is_closed(&self) -> bool {
        self.close_reason().is_some()
    }

    /// Reports whether a request waits for the user, who authorizes the client: then no timeout is due.
    fn is_waiting_for_user(&self) -> bool {
        false
    }

    /// Returns what the server process printed outside of the protocol, if there is a process and it printed something:
    /// the end of its standard error, and the first line of its standard output that is not a message.
    fn process_output(&self) -> Option<String> {
        None
    }

    /// Returns why the connection is closed, once it is closed for good.
    fn close_reason(&self) -> Option<String> {
        None
    }
}
