//! Opens a WebSocket, which is a channel like any other from then on.

use http::{HeaderMap, Method, Uri};
use tokio::time::timeout;
use trunkline_auth::authorizer::AuthorizedAttempt;
use trunkline_transport::dial::{DialedStream, WebSocketError};
use trunkline_transport::{Url, WebSocketChannel};

use super::{ConnectAttempts, ConnectPlan, refuse_token_exchange};
use crate::client_transport::{FailureCause, TransportFailure, authorization_headers, status_failure};
use crate::error::Error;

/// Opens a WebSocket channel. The handshake is authorized like any request over HTTP.
///
/// # Errors
/// [`Error::InvalidOptions`], [`Error::Unauthorized`], [`Error::Authorization`], or [`Error::Unreachable`] with the reason.
pub(super) async fn open(
    url: &Url,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<WebSocketChannel<DialedStream>, Error> {
    let authorizer = plan.authorizer(url);
    refuse_token_exchange(authorizer.as_ref())?;
    let mut attempt = authorizer.as_ref().map(|authorizer| authorizer.begin("websocket"));
    let uri = ConnectPlan::http_url(url).to_full_string().parse().unwrap_or_default();
    loop {
        let mut headers = plan.custom_headers()?.common_headers();
        add_credentials(attempt.as_mut(), &uri, &mut headers).await?;
        let within = plan.limits.handshake_timeout;
        let opening = plan.dialer.websocket(url, headers, plan.limits.message_bytes);
        let error = match timeout(within, opening).await {
            Ok(Ok(channel)) => return Ok(channel),
            Ok(Err(WebSocketError::Refused { status, headers, excerpt })) => {
                if let Some(attempt) = &mut attempt {
                    let headers = authorization_headers(status, &headers);
                    if attempt.is_refused(status, &headers).await.map_err(Error::Authorization)? {
                        continue;
                    }
                }
                Error::from(status_failure(status, &headers, excerpt.as_bytes()))
            }
            Ok(Err(error)) => TransportFailure::not_sent(FailureCause::from_error(error)).into(),
            Err(_) => Error::TimedOut { after: within },
        };
        attempts.record("a WebSocket", error.to_string());
        return Err(match error {
            Error::Unauthorized { .. } => error,
            error => attempts.connect_error(url, FailureCause::from_error(error)),
        });
    }
}

async fn add_credentials(
    attempt: Option<&mut AuthorizedAttempt<'_>>,
    uri: &Uri,
    headers: &mut HeaderMap,
) -> Result<(), Error> {
    if let Some(attempt) = attempt {
        headers.extend(attempt.headers(&Method::GET, uri).await.map_err(Error::Authorization)?);
    }
    Ok(())
}
