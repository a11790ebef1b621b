//! Opens a WebSocket, which is a channel like any other from then on.

use tokio::time::timeout;
use trunkline_transport::dial::{DialedStream, WebSocketError};
use trunkline_transport::{Url, WebSocketChannel};

use super::{ConnectAttempts, ConnectPlan};
use crate::client_transport::{FailureCause, TransportFailure, status_failure};
use crate::error::Error;

/// Opens a WebSocket channel.
///
/// # Errors
/// [`Error::Unauthorized`], or [`Error::Unreachable`] with the reason.
pub(super) async fn open(
    url: &Url,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<WebSocketChannel<DialedStream>, Error> {
    let headers = plan.custom_headers()?.common_headers();
    let within = plan.limits.handshake_timeout;
    let opening = plan.dialer.websocket(url, headers, plan.limits.message_bytes);
    let error = match timeout(within, opening).await {
        Ok(Ok(channel)) => return Ok(channel),
        Ok(Err(WebSocketError::Refused { status, headers, excerpt })) => {
            Error::from(status_failure(status, &headers, excerpt.as_bytes()))
        }
        Ok(Err(error)) => TransportFailure::not_sent(FailureCause::from_error(error)).into(),
        Err(_) => Error::TimedOut { after: within },
    };
    attempts.record("a WebSocket", error.to_string());
    Err(match error {
        Error::Unauthorized { .. } => error,
        error => attempts.connect_error(url, FailureCause::from_error(error)),
    })
}
