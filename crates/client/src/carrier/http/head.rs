use std::borrow::Cow;
use std::fmt;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use trunkline_transport::Secret;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const PROGRAM: HeaderValue = HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION")));

/// Headers that say how the bytes travel, or what the protocol itself has to say; nobody else may set them.
const OURS: [&str; 14] = [
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

/// The headers that a program adds to every request, credentials for the most part: they never print.
#[derive(Clone, Default)]
pub(crate) struct Headers {
    map: HeaderMap,
}

/// Why a header cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    /// The name is none.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// The value cannot be sent.
    #[error("the value of the header `{0}` has a character that a header cannot have")]
    Value(String),
    /// The header is not the program's to set.
    #[error("the header `{0}` is set by the protocol itself")]
    Ours(String),
}

impl Headers {
    /// Adds a header.
    pub(crate) fn add(&mut self, name: &str, value: &Secret) -> Result<(), HeaderError> {
        let key: HeaderName = name.parse().map_err(|_| HeaderError::Name(name.to_owned()))?;
        if OURS.contains(&key.as_str())
            || key.as_str().starts_with("mcp-")
            || key.as_str().starts_with("sec-")
        {
            return Err(HeaderError::Ours(name.to_owned()));
        }
        let mut value =
            HeaderValue::from_str(value.expose()).map_err(|_| HeaderError::Value(name.to_owned()))?;
        value.set_sensitive(true);
        self.map.append(key, value);
        Ok(())
    }

    /// Sets the token that is sent as `Authorization: Bearer`.
    pub(crate) fn set_bearer(&mut self, token: &Secret) -> Result<(), HeaderError> {
        self.map.remove(AUTHORIZATION);
        self.add(AUTHORIZATION.as_str(), &Secret::new(format!("Bearer {}", token.expose())))
    }

    /// Returns those of a request that is answered by JSON or events.
    pub(super) fn post(&self) -> HeaderMap {
        let mut map = self.common();
        map.insert(CONTENT_TYPE, JSON);
        map.insert(ACCEPT, EITHER);
        map
    }

    /// Returns those of a request for a stream of events.
    pub(super) fn stream(&self) -> HeaderMap {
        let mut map = self.common();
        map.insert(ACCEPT, EVENTS);
        map
    }

    /// Returns those of every request.
    pub(crate) fn common(&self) -> HeaderMap {
        let mut map = self.map.clone();
        map.entry(USER_AGENT).or_insert(PROGRAM);
        map
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map.keys()).finish()
    }
}

/// Adds the headers that repeat what is in a body.
pub(super) fn mirror(map: &mut HeaderMap, headers: Vec<(Cow<'_, str>, Cow<'_, str>)>) {
    for (name, value) in headers {
        // The names come from schemas that were checked and the values were encoded, so that neither can fail; a server
        // that misses one says so.
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            map.insert(name, value);
        }
    }
}

/// The kinds of body that a server can answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Events,
    Other,
}

/// Reads `Content-Type`, whatever parameters it has.
pub(super) fn media(headers: &HeaderMap) -> Media {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        kind if kind.eq_ignore_ascii_case("application/json") => Media::Json,
        kind if kind.eq_ignore_ascii_case("text/event-stream") => Media::Events,
        _ => Media::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_protocol_are_not_the_programs_to_set() {
        let mut headers = Headers::default();
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
        assert!(headers.set_bearer(&Secret::new("to\nken")).is_err());
        headers.set_bearer(&Secret::new("token")).unwrap();
        assert_eq!(headers.post()[AUTHORIZATION], "Bearer token");
        assert_eq!(headers.post()["x-api-key"], "k");
    }

    #[test]
    fn no_value_is_ever_printed() {
        let mut headers = Headers::default();
        headers.add("x-key", &Secret::new("sentinel")).unwrap();
        headers.set_bearer(&Secret::new("sentinel")).unwrap();
        let printed = format!("{headers:?} {:?} {:?}", headers.post(), headers.stream());
        assert!(printed.contains("x-key") && !printed.contains("sentinel"), "{printed}");
    }

    #[test]
    fn the_kind_of_a_body_is_read_without_its_parameters() {
        for (value, expected) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("text/event-stream;charset=utf-8", Media::Events),
            ("application/json-seq", Media::Other),
            ("text/html", Media::Other),
            ("", Media::Other),
        ] {
            let map = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(media(&map), expected, "{value}");
        }
        assert_eq!(media(&HeaderMap::new()), Media::Other);
    }
}
