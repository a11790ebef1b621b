use std::fmt;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use trunkline_protocol::Revision;
use trunkline_protocol::header::encode_value;
use trunkline_transport::Secret;
use trunkline_transport::http::{HeaderLines, ResponseHeaders};

use crate::client_transport::HeaderMirror;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION")));

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

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
pub(crate) enum HeaderError {
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
    pub(crate) fn add(&mut self, name: &str, value: &Secret) -> Result<(), HeaderError> {
        let key: HeaderName = name.parse().map_err(|_| HeaderError::Name(name.to_owned()))?;
        if RESERVED_HEADERS.contains(&key.as_str())
            || key.as_str().starts_with("mcp-")
            || key.as_str().starts_with("sec-")
        {
            return Err(HeaderError::Reserved(name.to_owned()));
        }
        let mut value =
            HeaderValue::from_str(value.expose()).map_err(|_| HeaderError::Value(name.to_owned()))?;
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

/// Adds the headers that mirror parts of a body, and the method if it is a request.
pub(super) fn add_mirrored_headers(lines: &mut HeaderLines, mirror: &HeaderMirror, method: Option<&str>) {
    match mirror {
        HeaderMirror::Nothing => {}
        HeaderMirror::Version(revision) => add_version_header(lines, *revision),
        HeaderMirror::Full { revision, name, params } => {
            add_version_header(lines, *revision);
            if let Some(method) = method {
                lines.add_text(&MCP_METHOD, method);
            }
            if let Some(name) = name {
                lines.add_text(&MCP_NAME, &encode_value(name));
            }
            for (name, value) in params {
                // The names come from validated schemas and the values are encoded, so that neither can fail; the
                // server rejects the call if one is missing.
                if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                    lines.add_text(&name, value);
                }
            }
        }
    }
}

/// Adds the `MCP-Protocol-Version` header.
pub(super) fn add_version_header(lines: &mut HeaderLines, revision: Revision) {
    lines.add_text(&PROTOCOL_VERSION, revision.as_str());
}

/// The media types of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyMedia {
    Json,
    Events,
    Other,
}

/// Parses `Content-Type`, without its parameters.
pub(super) fn body_media(headers: &ResponseHeaders) -> BodyMedia {
    let kind = headers.get(&CONTENT_TYPE).unwrap_or_default();
    // Fast path: what nearly every server sends.
    if kind == JSON.as_bytes() {
        return BodyMedia::Json;
    }
    let kind = headers.get_text(&CONTENT_TYPE).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        kind if kind.eq_ignore_ascii_case("application/json") => BodyMedia::Json,
        kind if kind.eq_ignore_ascii_case("text/event-stream") => BodyMedia::Events,
        _ => BodyMedia::Other,
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

    #[test]
    fn stateless_request_mirrors_its_body_and_session_request_its_version() {
        let revision = Revision::V2026_07_28;
        let params = vec![("Mcp-Param-Region".to_owned(), "us west".to_owned())];
        let whole = |name: Option<&str>| HeaderMirror::Full {
            revision,
            name: name.map(Into::into),
            params: params.clone(),
        };
        let version = ("mcp-protocol-version", "2026-07-28");
        let method = ("mcp-method", "tools/call");
        let param = ("mcp-param-region", "us west");
        type HeaderPairs<'a> = &'a [(&'a str, &'a str)];
        let table: &[(HeaderMirror, Option<&str>, HeaderPairs<'_>)] = &[
            (HeaderMirror::Nothing, Some("initialize"), &[]),
            (
                HeaderMirror::Version(Revision::V2025_06_18),
                Some("tools/call"),
                &[("mcp-protocol-version", "2025-06-18")],
            ),
            (whole(None), None, &[version, param]),
            (whole(Some("add")), Some("tools/call"), &[version, method, ("mcp-name", "add"), param]),
            (whole(Some("")), Some("tools/call"), &[version, method, ("mcp-name", ""), param]),
            (
                whole(Some("gr\u{fc}\u{df}e")),
                Some("tools/call"),
                &[version, method, ("mcp-name", "=?base64?Z3LDvMOfZQ==?="), param],
            ),
        ];
        for (mirrored, method, expected) in table {
            let mut lines = HeaderLines::default();
            add_mirrored_headers(&mut lines, mirrored, *method);
            let found = std::str::from_utf8(lines.as_bytes()).unwrap();
            let expected: String =
                expected.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            assert_eq!(found, expected, "{mirrored:?}");
        }
    }

    #[test]
    fn body_media_ignores_content_type_parameters() {
        for (value, expected) in [
            ("application/json", BodyMedia::Json),
            ("Application/JSON; charset=utf-8", BodyMedia::Json),
            ("text/event-stream;charset=utf-8", BodyMedia::Events),
            ("application/json-seq", BodyMedia::Other),
            ("text/html", BodyMedia::Other),
            ("", BodyMedia::Other),
        ] {
            let map = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(body_media(&(&map).into()), expected, "{value}");
        }
        assert_eq!(body_media(&ResponseHeaders::default()), BodyMedia::Other);
    }
}
