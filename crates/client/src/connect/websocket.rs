//! Opening a WebSocket, which from then on is a channel like any other.

use tokio::time::timeout;
use trunkline_transport::dial::{Stream, WebSocketError};
use trunkline_transport::{Url, WebSocketChannel};

use super::{Attempts, Plan};
use crate::carrier::refusal;
use crate::error::Error;

/// Opens the channel.
///
/// # Errors
/// [`Error::Unauthorized`], or [`Error::Unreachable`] with the reason.
pub(super) async fn open(
    url: &Url,
    plan: &Plan,
    attempts: &mut Attempts,
) -> Result<WebSocketChannel<Stream>, Error> {
    let headers = plan.headers()?.common();
    let within = plan.limits.connect_within;
    let opening = plan.dialer.websocket(url, headers, plan.limits.message_bytes);
    let error = match timeout(within, opening).await {
        Ok(Ok(channel)) => return Ok(channel),
        Ok(Err(WebSocketError::Refused { status, headers, excerpt })) => {
            Error::from(refusal(status, &headers, excerpt.as_bytes()))
        }
        Ok(Err(error)) => Error::Closed { cause: error.to_string(), may_have_run: false },
        Err(_) => Error::TimedOut { after: within },
    };
    attempts.note("a WebSocket", error.to_string());
    Err(match error {
        Error::Unauthorized { .. } => error,
        error => attempts.unreachable(url, error.to_string()),
    })
}
