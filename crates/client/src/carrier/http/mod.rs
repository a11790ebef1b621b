//! Requests over Streamable HTTP, in both eras: each is a `POST` of its own, answered by JSON or by a stream of events.
//!
//! What differs between the eras is in the request: one that mirrors its whole body stands alone, and closing its stream
//! cancels it. Any other belongs to a session: its stream may be taken up again where it broke, and it is cancelled by a
//! notification.

mod answer;
mod closing;
mod endpoint;
mod events;
mod head;
mod reply;
mod resumption;
mod session;
mod shared;
mod sse_pair;
mod standing;

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use trunkline_protocol::envelope::Bounds;
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::OtherOrigin;

pub(crate) use self::answer::refusal;
pub(crate) use self::head::Headers;
pub(super) use self::reply::Replies;
use self::shared::Shared;
pub(crate) use self::sse_pair::SsePair;
use super::{Aside, Carrier, Exchange, Loss, Outgoing, Posted};

/// Why nothing is sent any more.
const CLOSED: &str = "the connection was closed";

/// The bounds of what comes over HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpLimits {
    /// How messages may be nested and batched.
    pub(crate) bounds: Bounds,
    /// The bytes of one message.
    pub(crate) message_bytes: usize,
    /// Requests at one time; beyond it they wait.
    pub(crate) in_flight: usize,
    /// Messages of one stream that make no sense before it is given up.
    pub(crate) noise: usize,
}

/// Carries requests over Streamable HTTP.
pub(crate) struct HttpCarrier {
    shared: Arc<Shared>,
}

impl HttpCarrier {
    /// Makes a carrier; nothing is opened before the first request.
    ///
    /// # Errors
    /// Never for an address that was read; the type cannot say so.
    pub(crate) fn new(
        dialer: Dialer,
        url: &Url,
        headers: &Headers,
        limits: HttpLimits,
        aside: Aside,
    ) -> Result<Self, OtherOrigin> {
        Ok(Self { shared: Arc::new(Shared::new(dialer, url, headers, limits, aside)?) })
    }
}

impl Carrier for HttpCarrier {
    fn request(&self, outgoing: Outgoing) -> Exchange {
        Exchange::over_http(Replies::new(self.shared.clone(), outgoing))
    }

    fn post(&self, posted: Posted) -> BoxFuture<'static, Result<(), Loss>> {
        let shared = self.shared.clone();
        async move {
            if shared.is_over() {
                return Err(Loss::not_reached(CLOSED));
            }
            if posted.is_for_channels {
                return Ok(());
            }
            shared.post(posted).await?;
            standing::begin(&shared);
            Ok(())
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let shared = self.shared.clone();
        async move { shared.close().await }.boxed()
    }

    fn is_over(&self) -> bool {
        self.shared.is_over()
    }
}

impl Drop for HttpCarrier {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl fmt::Debug for HttpCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCarrier").field("shared", &self.shared).finish()
    }
}
