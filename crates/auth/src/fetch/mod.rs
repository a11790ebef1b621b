//! Fetches metadata documents, key sets and tokens: the only module of this crate that opens connections.
//!
//! A client follows URLs that an MCP server and its authorization server chose, so every request is bounded in time and
//! size, goes over TLS unless the host is this machine, follows no redirect, and may be limited to the addresses of an
//! [`AddressPolicy`](trunkline_transport::dial::AddressPolicy). Of the response only those headers are kept that
//! authorization uses, and no error in it quotes a secret of the request.

mod echo;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request, Response};
use trunkline_http1::client::{
    HeaderLines, HttpClient, HttpClientOptions, HttpError, HttpRequest, ResponseHeaders,
};
use trunkline_http1::{Url, UrlError, UrlScheme};
use trunkline_transport::dial::{DialError, Dialer};

use self::echo::SentSecrets;

/// The header by which a server gives the nonce for the next DPoP proof (RFC 9449 §8).
pub const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The headers of a response that authorization uses; the others are not kept.
const USED_HEADERS: [HeaderName; 6] =
    [CACHE_CONTROL, CONTENT_TYPE, DPOP_NONCE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE];

/// Limits of a [`Fetcher`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FetchLimits {
    /// The timeout from the first byte of the request to the last of the response, beside that of the dialer for the
    /// connection. 5 s.
    pub timeout: Duration,
    /// The longest body of a response, in bytes. 64 KiB.
    pub body_bytes: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), body_bytes: 64 * 1024 }
    }
}

/// Sends single requests to authorization servers.
#[derive(Clone, Debug)]
pub struct Fetcher {
    dialer: Dialer,
    limits: FetchLimits,
}

/// Why there is no response. No part of the request's body or headers is in it, nor the query of its URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL cannot be used.
    #[error("`{url}` is not a usable URL: {source}")]
    Url {
        /// The URL, up to its query.
        url: String,
        /// What is wrong with it.
        source: UrlError,
    },
    /// The URL is neither `https` nor on this machine.
    #[error("`{url}` has to be an https URL: only a host on this machine may be reached without TLS")]
    Insecure {
        /// The URL, up to its query.
        url: String,
    },
    /// The server cannot be reached, or its response cannot be read.
    #[error("`{url}`: {source}")]
    Http {
        /// The URL, up to its query.
        url: String,
        /// The failure.
        source: HttpError<DialError>,
    },
    /// The response is not complete within the timeout.
    #[error("`{url}` did not respond within {timeout:?}")]
    TimedOut {
        /// The URL, up to its query.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
}

impl Fetcher {
    /// Creates a fetcher. The dialer decides on proxies, certificate authorities and allowed addresses.
    pub fn new(dialer: Dialer, limits: FetchLimits) -> Self {
        Self { dialer, limits }
    }

    /// Sends a request and returns the whole response, whatever its status.
    ///
    /// Redirects are responses like any other. Of the headers of the response only those that authorization uses are kept,
    /// and the secrets of the request are removed from an error in its body.
    ///
    /// # Errors
    /// The URL is not allowed, or there is no complete response.
    pub async fn fetch(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let url = allowed_url(&request.uri().to_string())?;
        let shown = url.to_string();
        let client = HttpClient::new(self.dialer.clone(), url.clone(), &HttpClientOptions::default());
        let target = client
            .target(&url)
            .map_err(|_| FetchError::Url { url: shown.clone(), source: UrlError::Path })?;
        let (head, body) = request.into_parts();
        let secrets = SentSecrets::of(&head.headers, &body);
        let headers = HeaderLines::from(head.headers);
        let request = HttpRequest { method: head.method, target, headers, body: body.to_vec() };
        let exchange = async {
            let mut response = client.send(&request).await?;
            let body = response.body.read_all(self.limits.body_bytes).await?;
            let mut whole = Response::new(secrets.remove_from(response.status, body));
            *whole.status_mut() = response.status;
            *whole.headers_mut() = used_headers(&response.headers);
            Ok(whole)
        };
        match tokio::time::timeout(self.limits.timeout, exchange).await {
            Ok(done) => done.map_err(|source| FetchError::Http { url: shown, source }),
            Err(_) => Err(FetchError::TimedOut { url: shown, timeout: self.limits.timeout }),
        }
    }
}

/// Parses a URL that may be fetched: `https`, or `http` on this machine.
///
/// # Errors
/// It is not a URL, or neither of both.
pub fn allowed_url(text: &str) -> Result<Url, FetchError> {
    let without_query = || text.split(['?', '#']).next().unwrap_or_default().to_owned();
    let url: Url = text.parse().map_err(|source| FetchError::Url { url: without_query(), source })?;
    match url.scheme() {
        UrlScheme::Https => Ok(url),
        UrlScheme::Http if url.is_loopback() => Ok(url),
        _ => Err(FetchError::Insecure { url: without_query() }),
    }
}

fn used_headers(headers: &ResponseHeaders) -> HeaderMap {
    let mut used = HeaderMap::new();
    for name in USED_HEADERS {
        for value in headers.get_all(&name).filter_map(|value| HeaderValue::from_bytes(value).ok()) {
            used.append(name.clone(), value);
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use trunkline_transport::dial::AddressPolicy;

    use super::*;

    /// Serves one connection with fixed bytes and returns its port and what it was sent.
    async fn serve_once(response: &'static [u8]) -> (u16, tokio::task::JoinHandle<io::Result<Vec<u8>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let mut received = vec![0; 4096];
            let length = stream.read(&mut received).await?;
            received.truncate(length);
            stream.write_all(response).await?;
            Ok(received)
        });
        (port, serving)
    }

    fn fetcher(policy: AddressPolicy) -> Fetcher {
        Fetcher::new(Dialer::default().with_addresses(policy), FetchLimits::default())
    }

    fn get(url: &str) -> Request<Bytes> {
        Request::get(url).body(Bytes::new()).unwrap()
    }

    #[test]
    fn only_https_and_loopback_urls_are_fetched() {
        let table = [
            ("https://as.example/token", true),
            ("http://127.0.0.1:9/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://as.example/x", false),
            ("http://127.0.0.1.as.example/x", false),
            ("ws://127.0.0.1/x", false),
            ("file:///etc/passwd", false),
            ("https://user:password@as.example/", false),
            ("", false),
        ];
        for (url, expected) in table {
            assert_eq!(allowed_url(url).is_ok(), expected, "{url}");
        }
        let error = allowed_url("http://as.example/token?secret=sentinel").unwrap_err().to_string();
        assert!(error.contains("as.example/token") && !error.contains("sentinel"), "{error}");
    }

    #[tokio::test]
    async fn response_is_returned_with_its_status_and_used_headers() {
        let (port, serving) = serve_once(
            b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nDPoP-Nonce: n1\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}",
        )
        .await;
        let response =
            fetcher(AddressPolicy::ANY).fetch(get(&format!("http://127.0.0.1:{port}/a?b=c"))).await.unwrap();
        assert_eq!((response.status().as_u16(), &response.body()[..]), (302, &b"{}"[..]));
        assert_eq!(response.headers()[DPOP_NONCE], "n1");
        assert_eq!(response.headers()[LOCATION], "/elsewhere");
        assert_eq!(response.headers().len(), 2);
        assert!(serving.await.unwrap().unwrap().starts_with(b"GET /a?b=c HTTP/1.1\r\n"));
    }

    #[tokio::test]
    async fn error_that_quotes_the_request_is_returned_without_its_secrets() {
        let (port, _serving) = serve_once(
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 52\r\n\r\n{\"error\":\"the code sentinel of c1 was used before\"}  ",
        )
        .await;
        let request = Request::post(format!("http://127.0.0.1:{port}/token"));
        let request = request.body(Bytes::from_static(b"code=sentinel&client_id=c1")).unwrap();
        let response = fetcher(AddressPolicy::ANY).fetch(request).await.unwrap();
        assert_eq!(
            response.body().trim_ascii(),
            "{\"error\":\"the code … of c1 was used before\"}".as_bytes()
        );
    }

    #[tokio::test]
    async fn body_over_the_limit_is_an_error() {
        let (port, _serving) = serve_once(b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\nx").await;
        let error =
            fetcher(AddressPolicy::ANY).fetch(get(&format!("http://localhost:{port}/"))).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Http { source: HttpError::TooLong { limit: 65536 }, .. }),
            "{error}"
        );
    }

    #[tokio::test]
    async fn address_outside_of_the_policy_is_never_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            let error = fetcher(AddressPolicy::PUBLIC)
                .fetch(get(&format!("http://{host}:{port}/")))
                .await
                .unwrap_err();
            assert!(
                matches!(
                    error,
                    FetchError::Http { source: HttpError::Dial(DialError::Forbidden { .. }), .. }
                ),
                "{error}"
            );
        }
        let accepted =
            std::future::poll_fn(|cx| std::task::Poll::Ready(listener.poll_accept(cx).is_ready())).await;
        assert!(!accepted, "a connection was opened");
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let error =
            fetcher(AddressPolicy::ANY).fetch(get(&format!("http://127.0.0.1:{port}/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::TimedOut { .. }), "{error}");
    }
}
