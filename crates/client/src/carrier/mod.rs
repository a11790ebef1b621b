//! How requests travel: one trait, whatever is below it.
//!
//! A carrier knows bytes, ids and streams, and nothing of what a method means. What a request looks like is written by an
//! [edge](crate::edge) before it comes here, and what a response means is read by one afterwards.

mod aside;
mod asked;
mod channel;
mod exchange;
mod http;
mod outgoing;

use futures_util::future::BoxFuture;

pub(crate) use self::aside::{Aside, AsideEvent, AsideReceiver, aside};
pub(crate) use self::asked::Asked;
pub(crate) use self::channel::{ChannelCarrier, ChannelLimits};
pub(crate) use self::exchange::{Arrived, Exchange, Loss, LossKind, Reach};
pub(crate) use self::http::{Headers, HttpCarrier, HttpLimits, SsePair, refusal};
pub(crate) use self::outgoing::{Answerer, Mirror, Outgoing, Posted};

/// Carries requests to one server, and everything that the server says back.
///
/// What a server says within a request comes through the [`Exchange`] of that request. What belongs to no request is given
/// to the [`Aside`] that the carrier was made with.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// Sends one request; its exchange gives what the server says within it, the response last.
    ///
    /// An exchange that is dropped before its last word cancels the request by whatever means the carrier has, unless
    /// [`Outgoing::is_cancellable`] says that it must not. Nothing may be sent before the exchange is first polled.
    fn request(&self, outgoing: Outgoing) -> Exchange;

    /// Sends a notification, or the answer to a question of the server.
    ///
    /// The future is ready once the message is on its way; an answer that cannot be sent is a loss.
    fn post(&self, posted: Posted) -> BoxFuture<'static, Result<(), Loss>>;

    /// Returns how many requests were given up within which the server may still ask something, where nothing says to which
    /// request a question belongs.
    fn abandoned(&self) -> usize {
        0
    }

    /// Ends the connection in an orderly way: sessions are deleted, processes are asked to end and waited for.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Reports whether nothing can be sent any more, ever.
    fn is_over(&self) -> bool {
        self.epitaph().is_some()
    }

    /// Says why nothing can be sent any more, once that is so for good.
    fn epitaph(&self) -> Option<String> {
        None
    }
}
