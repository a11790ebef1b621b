use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::watch;
use trunkline_http1::client::{
    HeaderLines, HttpClient, HttpClientOptions, HttpError, HttpRequest, RequestTarget, ResponseHeaders,
};
use trunkline_transport::dial::{DialError, Dialer};

use crate::settings::{TelemetryEndpoint, TelemetryError};

/// The delay before the first further attempt; it doubles with each.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay between two attempts, also if the collector wants a longer one.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The most attempts for one request.
const MAX_ATTEMPTS: u32 = 5;

/// The longest answer that is read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Sends requests of OTLP to one endpoint.
#[derive(Debug)]
pub(crate) struct OtlpExporter {
    client: HttpClient<Dialer>,
    target: RequestTarget,
    headers: HeaderLines,
    timeout: Duration,
    /// The collector and what is exported, for the log.
    origin: String,
    what: &'static str,
    has_failed: bool,
}

/// Why a request was not accepted.
#[derive(Debug, thiserror::Error)]
enum ExportFailure {
    /// It may be accepted later, after a delay that the collector may have named.
    #[error("{reason}")]
    Temporary { reason: String, after: Option<Duration> },
    /// It would be refused again.
    #[error("{0}")]
    Permanent(String),
}

impl OtlpExporter {
    pub(crate) fn new(
        endpoint: &TelemetryEndpoint,
        dialer: Dialer,
        timeout: Duration,
        what: &'static str,
    ) -> Result<Self, TelemetryError> {
        let mut options = HttpClientOptions::default();
        options.idle_connections = 1;
        let client = HttpClient::new(dialer, endpoint.url.clone(), &options);
        let target = client.target(&endpoint.url).map_err(|_| TelemetryError::Url)?;
        let mut headers = HeaderMap::new();
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION"))));
        headers.extend(endpoint.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (origin, headers) = (endpoint.url.origin(), HeaderLines::from(headers));
        Ok(Self { client, target, headers, timeout, origin, what, has_failed: false })
    }

    /// Sends a request, and repeats it with growing delays while that may help; once `stopping` has a value, no longer.
    /// Returns whether it was accepted.
    ///
    /// The first failure is logged, and the first success after it.
    pub(crate) async fn export(&mut self, body: Vec<u8>, stopping: &mut watch::Receiver<bool>) -> bool {
        let request = HttpRequest {
            method: Method::POST,
            target: self.target.clone(),
            headers: self.headers.clone(),
            body,
        };
        let mut delay = FIRST_DELAY;
        for attempt in 1..=MAX_ATTEMPTS {
            let failure = match self.send(&request).await {
                Ok(()) => {
                    if std::mem::take(&mut self.has_failed) {
                        tracing::info!("the collector accepts {} again", self.what);
                    }
                    return true;
                }
                Err(failure) => failure,
            };
            if !std::mem::replace(&mut self.has_failed, true) {
                let (what, origin) = (self.what, &self.origin);
                tracing::warn!("cannot export {what} to {origin}: {failure}; what is lost is counted");
            }
            match failure {
                ExportFailure::Temporary { after, .. } if attempt < MAX_ATTEMPTS && !*stopping.borrow() => {
                    let wait = tokio::time::sleep(after.unwrap_or(delay).min(MAX_DELAY));
                    tokio::select! {
                        () = wait => {}
                        // There is one more attempt.
                        _ = stopping.wait_for(|stopping| *stopping) => {}
                    }
                    delay *= 2;
                }
                _ => break,
            }
        }
        false
    }

    async fn send(&self, request: &HttpRequest) -> Result<(), ExportFailure> {
        let sending = async {
            let mut response = self.client.send(request).await?;
            let after = retry_after(&response.headers);
            let status = response.status;
            // Read to its end, so that the connection can be used again.
            response.body.read_all(MAX_RESPONSE_BYTES).await?;
            Ok::<_, HttpError<DialError>>((status, after))
        };
        let answer = tokio::time::timeout(self.timeout, sending).await;
        let temporary = |reason: String, after| Err(ExportFailure::Temporary { reason, after });
        match answer {
            Err(_) => temporary(format!("no answer within {:?}", self.timeout), None),
            Ok(Err(error)) => temporary(error.to_string(), None),
            Ok(Ok((status, _))) if status.is_success() => Ok(()),
            Ok(Ok((status, after))) if is_temporary(status) => temporary(format!("HTTP {status}"), after),
            Ok(Ok((status, _))) => Err(ExportFailure::Permanent(format!("HTTP {status}"))),
        }
    }
}

/// Reports whether OTLP lets a request with this answer be repeated.
fn is_temporary(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn retry_after(headers: &ResponseHeaders) -> Option<Duration> {
    let value = headers.get_all(&RETRY_AFTER).next()?;
    let seconds = std::str::from_utf8(value).ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
