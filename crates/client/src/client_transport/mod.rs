//! How requests travel: one trait, whatever is below it.
//!
//! A carrier knows bytes, ids and streams, and nothing of what a method means. What a request looks like is written by an
//! [edge](crate::edge) before it comes here, and what a response means is read by one afterwards.

mod channel;
mod exchange;
mod http;
mod outgoing;
mod server_request;
mod unsolicited;

use futures_util::future::BoxFuture;

pub(crate) use self::channel::{ChannelLimits, ChannelTransport};
pub(crate) use self::exchange::{
    DeliveryStatus, ExchangeEvent, RequestExchange, TransportFailure, TransportFailureKind,
};
pub(crate) use self::http::{
    CustomHeaders, HttpLimits, HttpSseChannel, StreamableHttpTransport, status_failure,
};
pub(crate) use self::outgoing::{HeaderMirror, InputRecipient, OutgoingMessage, OutgoingRequest};
pub(crate) use self::server_request::ServerRequest;
pub(crate) use self::unsolicited::{
    UnsolicitedMessage, UnsolicitedReceiver, UnsolicitedSender, unsolicited_channel,
};

/// Carries requests to one server, and everything that the server says back.
///
/// What a server says within a request comes through the [`RequestExchange`] of that request. What belongs to no request is given
/// to the [`UnsolicitedSender`] that the carrier was made with.
pub(crate) trait ClientTransport: Send + Sync + 'static {
    /// Sends one request; its exchange gives what the server says within it, the response last.
    ///
    /// An exchange that is dropped before its last word cancels the request by whatever means the carrier has, unless
    /// [`OutgoingRequest::is_cancellable`] says that it must not. Nothing may be sent before the exchange is first polled.
    fn request(&self, outgoing: OutgoingRequest) -> RequestExchange;

    /// Sends a notification, or the answer to a question of the server.
    ///
    /// The future is ready once the message is on its way; an answer that cannot be sent is a loss.
    fn post(&self, posted: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>>;

    /// Returns how many requests were given up within which the server may still ask something, where nothing says to which
    /// request a question belongs.
    fn abandoned_requests(&self) -> usize {
        0
    }

    /// Ends the connection in an orderly way: sessions are deleted, processes are asked to end and waited for.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Reports whether nothing can be sent any more, ever.
    fn is_closed(&self) -> bool {
        self.close_reason().is_some()
    }

    /// Says why nothing can be sent any more, once that is so for good.
    fn close_reason(&self) -> Option<String> {
        None
    }
}
