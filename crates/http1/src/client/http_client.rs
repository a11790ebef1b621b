use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::body::HttpResponseBody;
use super::client_connection::{ClientConnection, ConnectionUse, SendFailure};
use super::connect::ClientConnector;
use super::error::HttpError;
use super::head::ResponseHead;
use super::header_lines::HeaderLines;
use super::pool::ConnectionPool;
use super::response_headers::ResponseHeaders;
use crate::url::Url;

/// How long an idle connection is kept, if its server sends no `Keep-Alive`. Below the five seconds after which several
/// servers close: a request that crosses with that is lost, and may never be sent again.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// How much earlier than the timeout of the server an idle connection is closed, so that no request crosses with its end.
const IDLE_TIMEOUT_MARGIN: Duration = Duration::from_secs(1);

/// The longest that a server is believed to keep a connection.
const MAX_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// How requests are sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpClientOptions {
    /// The number of idle connections that are kept. 1,024, so that as many calls at once find
    /// theirs again; one costs a descriptor and some 20 KB, and goes when it was not used for four seconds, or for as
    /// long as its server announces.
    pub idle_connections: usize,
}

impl Default for HttpClientOptions {
    fn default() -> Self {
        Self { idle_connections: 1024 }
    }
}

/// Sends requests to one origin, on connections that are kept for the next.
///
/// Clones share the connections. Redirects are responses like any other: nothing is followed, so that no body and no
/// credentials end up elsewhere.
#[derive(Debug)]
pub struct HttpClient<C: ClientConnector> {
    connector: C,
    origin: Arc<Url>,
    pool: Arc<ConnectionPool<C::Stream>>,
}

impl<C: ClientConnector + Clone> Clone for HttpClient<C> {
    fn clone(&self) -> Self {
        Self { connector: self.connector.clone(), origin: self.origin.clone(), pool: self.pool.clone() }
    }
}

/// A new connection, or why there is none.
type OpenResult<C> =
    Result<Box<ClientConnection<<C as ClientConnector>::Stream>>, HttpError<<C as ClientConnector>::Error>>;

/// A place at the origin of an [`HttpClient`], which alone can make it. Printed, it shows no query, which may hold a secret.
#[derive(Clone)]
pub struct RequestTarget {
    parts: Arc<(PathAndQuery, HeaderValue)>,
}

impl RequestTarget {
    /// Returns what stands in the first line of a request.
    pub(super) fn path_and_query(&self) -> &[u8] {
        self.parts.0.as_str().as_bytes()
    }

    /// Returns the value of `Host`.
    pub(super) fn host(&self) -> &[u8] {
        self.parts.1.as_bytes()
    }
}

impl fmt::Debug for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestTarget").field(&self.parts.0.path()).finish()
    }
}

/// An address is at another origin than the client's, where none of its requests may be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{other}` is another origin than `{origin}`")]
pub struct OriginMismatch {
    /// The client's own origin.
    pub origin: String,
    /// The other one.
    pub other: String,
}

/// A request; its body is whole, so that its length is known. Debug output shows the length of the body and not its content.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub target: RequestTarget,
    /// The headers, without `Host` and the length.
    pub headers: HeaderLines,
    /// The body.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, target: place, headers, body } = self;
        let mut shown = f.debug_struct("HttpRequest");
        shown.field("method", method).field("target", place).field("headers", headers);
        shown.field("body", &body.len()).finish()
    }
}

/// A response with a body that has not been read.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpResponse<C: ClientConnector> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: ResponseHeaders,
    /// The body.
    pub body: HttpResponseBody<C>,
}

impl<C: ClientConnector> HttpClient<C> {
    /// Makes a client for the origin of an address. Nothing is opened before the first request.
    pub fn new(connector: C, origin: Url, options: &HttpClientOptions) -> Self {
        Self {
            connector,
            origin: Arc::new(origin),
            pool: Arc::new(ConnectionPool::new(options.idle_connections)),
        }
    }

    /// Finds a place at this client's origin.
    ///
    /// # Errors
    /// The address is at another origin.
    pub fn target(&self, url: &Url) -> Result<RequestTarget, OriginMismatch> {
        let other = || OriginMismatch { origin: self.origin.origin(), other: url.origin() };
        if !self.origin.is_same_origin(url) {
            return Err(other());
        }
        let path = url.path_and_query().parse().map_err(|_| other())?;
        let host = HeaderValue::from_str(&url.authority()).map_err(|_| other())?;
        Ok(RequestTarget { parts: Arc::new((path, host)) })
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// A request that met a kept connection at its end, before a byte was written, is sent over a fresh one. Nothing else
    /// is ever sent twice. Dropping the future, or the body before its end, closes the connection.
    ///
    /// # Errors
    /// There is no response; [`HttpError::delivery`] is whether the request may have reached the server.
    pub async fn send(&self, request: &HttpRequest) -> Result<HttpResponse<C>, HttpError<C::Error>> {
        while let Some(mut connection) = self.pool.take() {
            match connection.send(request, ConnectionUse::Reused).await {
                Ok(head) => return Ok(self.receive(head, connection)),
                // As many may have ended as were kept, when their server did.
                Err(SendFailure { is_unsent: true, .. }) => tokio::task::yield_now().await,
                Err(SendFailure { error, .. }) => return Err(error),
            }
        }
        let mut connection = self.open().await?;
        match connection.send(request, ConnectionUse::Fresh).await {
            Ok(head) => Ok(self.receive(head, connection)),
            Err(SendFailure { error, .. }) => Err(error),
        }
    }

    /// Opens a connection, in a box: it is much larger than what is done for a request over one that is there.
    fn open(&self) -> Pin<Box<impl Future<Output = OpenResult<C>> + Send>> {
        Box::pin(ClientConnection::open(&self.connector, &self.origin))
    }

    /// Returns the number of connections that are kept for the next request.
    pub fn idle(&self) -> usize {
        self.pool.len()
    }

    fn receive(&self, head: ResponseHead, connection: Box<ClientConnection<C::Stream>>) -> HttpResponse<C> {
        let ResponseHead { status, headers, framing, keeps_alive } = head;
        let keep = if keeps_alive { idle_timeout(&headers) } else { Duration::ZERO };
        let body = HttpResponseBody::new(framing, connection, self.pool.clone(), keep);
        HttpResponse { status, headers, body }
    }
}

/// Reads how long the server keeps a connection that is not used, from `Keep-Alive: timeout=5`.
fn idle_timeout(headers: &ResponseHeaders) -> Duration {
    let said = headers.get_text(&KEEP_ALIVE).and_then(|value| {
        let mut settings = value.split(',').filter_map(|setting| setting.trim().split_once('='));
        settings.find_map(|(name, value)| {
            name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse().ok())?
        })
    });
    match said {
        Some(seconds) => {
            Duration::from_secs(seconds).saturating_sub(IDLE_TIMEOUT_MARGIN).min(MAX_IDLE_TIMEOUT)
        }
        None => DEFAULT_IDLE_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::super::connect::RequestForm;
    use super::*;

    #[test]
    fn idle_timeout_is_shorter_than_the_servers_keep_alive() {
        let table: &[(&[(&str, &str)], u64)] = &[
            (&[], 4),
            (&[("keep-alive", "timeout=5")], 4),
            (&[("keep-alive", "max=100, Timeout = 31")], 30),
            (&[("keep-alive", "timeout=99999")], 60),
            (&[("keep-alive", "timeout=1")], 0),
            (&[("keep-alive", "timeout=0")], 0),
            (&[("keep-alive", "timeout=x")], 4),
        ];
        for (headers, expected) in table {
            let headers: HeaderMap = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                .collect();
            assert_eq!(idle_timeout(&(&headers).into()), Duration::from_secs(*expected), "{headers:?}");
        }
    }

    /// A connector for tests that send nothing.
    struct NeverConnects;

    impl ClientConnector for NeverConnects {
        type Stream = tokio::io::DuplexStream;
        type Error = std::io::Error;

        async fn connect(&self, _: &Url) -> std::io::Result<(Self::Stream, RequestForm)> {
            Err(std::io::ErrorKind::ConnectionRefused.into())
        }
    }

    #[test]
    fn request_target_must_have_the_clients_origin() {
        let url: Url = "https://example.com/mcp?a=b".parse().unwrap();
        let client = HttpClient::new(NeverConnects, url.clone(), &HttpClientOptions::default());
        let place = client.target(&url).unwrap();
        assert_eq!((place.path_and_query(), place.host()), (&b"/mcp?a=b"[..], &b"example.com"[..]));
        let error = client.target(&"https://evil.example/mcp".parse().unwrap()).unwrap_err().to_string();
        assert_eq!(error, "`https://evil.example` is another origin than `https://example.com`");
    }
}
