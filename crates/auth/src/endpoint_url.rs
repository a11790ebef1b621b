//! Which URLs of peers may be fetched or opened.
//!
//! Endpoints use TLS, except on the loopback
//! ([RFC 9700 §2.6](https://www.rfc-editor.org/rfc/rfc9700#section-2.6), MCP Security Best Practices). A URL is only
//! checked here: what is sent or compared is the text that the peer sent.

use trunkline_http1::{Url, UrlError, UrlScheme};

/// Where plain HTTP is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttpPolicy {
    /// On the loopback only.
    #[default]
    LoopbackOnly,
    /// Everywhere. For development: codes and tokens can be read on the way.
    Anywhere,
}

/// The reason why a URL is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The text is not a URL.
    #[error("it is not a usable URL: {0}")]
    Url(#[from] UrlError),
    /// The scheme is neither HTTP nor HTTPS.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// The URL would be reached without TLS.
    #[error("it uses plain HTTP, which is accepted on the loopback only")]
    PlainHttp,
    /// The URL has a fragment (RFC 6749 §3.1).
    #[error("it has a fragment")]
    Fragment,
}

/// Parses the URL of an endpoint and checks its scheme.
///
/// # Errors
/// See [`EndpointError`].
pub fn check_endpoint(text: &str, policy: PlainHttpPolicy) -> Result<Url, EndpointError> {
    let url: Url = text.parse()?;
    if text.contains('#') {
        return Err(EndpointError::Fragment);
    }
    match url.scheme() {
        UrlScheme::Https => Ok(url),
        UrlScheme::Http if policy == PlainHttpPolicy::Anywhere || url.is_loopback() => Ok(url),
        UrlScheme::Http => Err(EndpointError::PlainHttp),
        UrlScheme::Ws | UrlScheme::Wss => Err(EndpointError::Scheme),
    }
}

/// Returns a URL without its query for an error or a log; a text that is not a URL is replaced.
pub(crate) fn redacted(text: &str) -> String {
    text.parse::<Url>().map_or_else(|_| "an unusable URL".to_owned(), |url| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_use_tls_except_on_the_loopback() {
        let loopback = PlainHttpPolicy::LoopbackOnly;
        let table = [
            ("https://as.example/token", loopback, Ok(())),
            ("http://localhost:1/token", loopback, Ok(())),
            ("http://127.0.0.1:1/token?x=y", loopback, Ok(())),
            ("http://as.example/token", loopback, Err(EndpointError::PlainHttp)),
            ("http://as.example/token", PlainHttpPolicy::Anywhere, Ok(())),
            ("wss://as.example/token", loopback, Err(EndpointError::Scheme)),
            ("javascript:alert(1)", loopback, Err(EndpointError::Url(UrlError::Scheme))),
            ("https://a:b@as.example/", loopback, Err(EndpointError::Url(UrlError::Credentials))),
            ("https://as.example/token#x", loopback, Err(EndpointError::Fragment)),
        ];
        for (text, policy, expected) in table {
            assert_eq!(check_endpoint(text, policy).map(|_| ()), expected, "{text}");
        }
    }

    #[test]
    fn redacted_urls_have_no_query() {
        assert_eq!(redacted("https://h/a?code=sentinel"), "https://h/a?…");
        assert_eq!(redacted("sentinel"), "an unusable URL");
    }
}
