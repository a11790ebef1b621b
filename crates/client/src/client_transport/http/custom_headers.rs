use std::fmt;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use trunkline_transport::Secret;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION")));

/// Headers of the HTTP framing or of the protocol itself, which custom headers must not override.
const RESERVED_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The custom headers of every request. Most are credentials, so the values are never printed.
#[derive(Clone, Default)]
pub(crate) struct CustomHeaders {
    map: HeaderMap,
}

/// The reason why a header cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CustomHeaderError {
    /// The name is not a valid header name.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// The value has an invalid character.
    #[error("the value of the header `{0}` has a character that a header cannot have")]
    Value(String),
    /// The header is reserved for the protocol.
    #[error("the header `{0}` is set by the protocol itself")]
    Reserved(String),
}

impl CustomHeaders {
    /// Adds a header; a second one of the same name replaces the first.
    pub(crate) fn add(&mut self, name: &str, value: &Secret) -> Result<(), CustomHeaderError> {
        let key: HeaderName = name.parse().map_err(|_| CustomHeaderError::Name(name.to_owned()))?;
        if RESERVED_HEADERS.contains(&key.as_str())
            || key.as_str().starts_with("mcp-")
            || key.as_str().starts_with("sec-")
        {
            return Err(CustomHeaderError::Reserved(name.to_owned()));
        }
        let mut value =
            HeaderValue::from_str(value.expose()).map_err(|_| CustomHeaderError::Value(name.to_owned()))?;
        value.set_sensitive(true);
        self.map.insert(key, value);
        Ok(())
    }

    /// Returns the headers of a `POST`, which accepts JSON or an event stream.
    pub(super) fn post_headers(&self) -> HeaderMap {
        let mut map = self.common_headers();
        map.insert(CONTENT_TYPE, JSON);
        map.insert(ACCEPT, JSON_OR_EVENTS);
        map
    }

    /// Returns the headers of a request for an event stream.
    pub(super) fn stream_headers(&self) -> HeaderMap {
        let mut map = self.common_headers();
        map.insert(ACCEPT, EVENTS);
        map
    }

    /// Returns the headers of every request.
    pub(crate) fn common_headers(&self) -> HeaderMap {
        let mut map = self.map.clone();
        map.entry(USER_AGENT).or_insert(USER_AGENT_VALUE);
        map
    }
}

impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_headers_reject_protocol_headers() {
        let mut headers = CustomHeaders::default();
        let table = [
            ("X-Api-Key", "k", None),
            ("authorization", "Basic x", None),
            ("Cookie", "a=b", None),
            ("Host", "h", Some("`Host` is set by the protocol itself")),
            ("Mcp-Session-Id", "s", Some("`Mcp-Session-Id` is set")),
            ("Content-Length", "3", Some("`Content-Length` is set")),
            ("Sec-WebSocket-Key", "k", Some("`Sec-WebSocket-Key` is set")),
            ("two words", "v", Some("`two words` is not the name")),
            ("", "v", Some("`` is not the name")),
            ("X-Bad", "sentinel\r\nX-Other: v", Some("the value of the header `X-Bad`")),
        ];
        for (name, value, expected) in table {
            let error = headers.add(name, &Secret::new(value)).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{name}");
            let error = error.unwrap_or_default();
            assert!(error.contains(expected.unwrap_or_default()) && !error.contains("sentinel"), "{error}");
        }
        headers.add("Authorization", &Secret::new("Bearer token")).unwrap();
        assert_eq!(Vec::from_iter(headers.post_headers().get_all("authorization")), ["Bearer token"]);
        assert_eq!(headers.post_headers()["x-api-key"], "k");
    }

    #[test]
    fn custom_header_values_are_never_printed() {
        let mut headers = CustomHeaders::default();
        headers.add("x-key", &Secret::new("sentinel")).unwrap();
        headers.add("Authorization", &Secret::new("Bearer sentinel")).unwrap();
        let printed = format!("{headers:?} {:?} {:?}", headers.post_headers(), headers.stream_headers());
        assert!(printed.contains("x-key") && !printed.contains("sentinel"), "{printed}");
    }
}
