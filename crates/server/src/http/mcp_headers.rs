use http::HeaderMap;
use trunkline_http1::server::RequestHead;
use trunkline_protocol::Refusal;
use trunkline_protocol::era::HeaderOccurrence;

use super::accept::AcceptedFormats;

/// The headers that decide how a request is handled, collected in one pass.
///
/// Looking up each of them by name would hash a dozen names per request, of which most are absent.
pub(super) struct McpHeaders<'a> {
    pub(super) host: HeaderOccurrence<'a>,
    pub(super) origin: HeaderOccurrence<'a>,
    pub(super) content_type: HeaderOccurrence<'a>,
    pub(super) version: HeaderOccurrence<'a>,
    pub(super) method: HeaderOccurrence<'a>,
    pub(super) name: HeaderOccurrence<'a>,
    pub(super) session: HeaderOccurrence<'a>,
    pub(super) last_event_id: HeaderOccurrence<'a>,
    pub(super) authorization: HeaderOccurrence<'a>,
    accepts: Option<AcceptedFormats>,
    /// Whether the body is encoded in any way, such as compressed.
    pub(super) encoded: bool,
}

impl<'a> McpHeaders<'a> {
    /// Gathers the headers that decide what becomes of a request.
    pub(super) fn of(head: &'a RequestHead) -> Self {
        match head.raw_headers() {
            Some(raw) => Self::read(raw.iter()),
            None => Self::from_map(&head.parts().headers),
        }
    }

    pub(super) fn from_map(headers: &'a HeaderMap) -> Self {
        Self::read(headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())))
    }

    pub(super) fn read(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut parsed = Self {
            host: HeaderOccurrence::Absent,
            origin: HeaderOccurrence::Absent,
            content_type: HeaderOccurrence::Absent,
            version: HeaderOccurrence::Absent,
            method: HeaderOccurrence::Absent,
            name: HeaderOccurrence::Absent,
            session: HeaderOccurrence::Absent,
            last_event_id: HeaderOccurrence::Absent,
            authorization: HeaderOccurrence::Absent,
            accepts: None,
            encoded: false,
        };
        for (name, value) in headers {
            let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
            // The length distinguishes nearly all names.
            let slot = match name.len() {
                4 if is(b"host") => &mut parsed.host,
                6 if is(b"origin") => &mut parsed.origin,
                8 if is(b"mcp-name") => &mut parsed.name,
                10 if is(b"mcp-method") => &mut parsed.method,
                12 if is(b"content-type") => &mut parsed.content_type,
                13 if is(b"authorization") => &mut parsed.authorization,
                13 if is(b"last-event-id") => &mut parsed.last_event_id,
                14 if is(b"mcp-session-id") => &mut parsed.session,
                20 if is(b"mcp-protocol-version") => &mut parsed.version,
                6 if is(b"accept") => {
                    parsed.accepts.get_or_insert(AcceptedFormats::NOTHING).add(value);
                    continue;
                }
                16 if is(b"content-encoding") => {
                    parsed.encoded |= !value.eq_ignore_ascii_case(b"identity");
                    continue;
                }
                _ => continue,
            };
            *slot = match slot {
                HeaderOccurrence::Absent => HeaderOccurrence::Once(value),
                _ => HeaderOccurrence::Repeated,
            };
        }
        parsed
    }

    /// Returns the media types that the client accepts; without an `Accept` header, any.
    pub(super) fn accepts(&self) -> AcceptedFormats {
        self.accepts.unwrap_or(AcceptedFormats::ANYTHING)
    }

    /// Checks by the headers that the body is plain JSON.
    ///
    /// # Errors
    /// [`Refusal::UNSUPPORTED_MEDIA`].
    pub(super) fn check_body(&self) -> Result<(), Refusal> {
        if !self.is_json() {
            return Err(Refusal::UNSUPPORTED_MEDIA);
        }
        if self.encoded {
            // A few compressed bytes could expand up to the limit, and clients gain little by compression.
            return Err(Refusal::UNSUPPORTED_MEDIA.with_message("request bodies must not be compressed"));
        }
        Ok(())
    }

    /// Reports whether the body is JSON by its content type.
    pub(super) fn is_json(&self) -> bool {
        let HeaderOccurrence::Once(value) = self.content_type else { return false };
        if value == b"application/json" {
            // The value that nearly every client sends.
            return true;
        }
        let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, CONTENT_TYPE};

    use super::*;

    #[test]
    fn content_type_table() {
        for (value, json) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("APPLICATION/JSON", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(McpHeaders::from_map(&headers).is_json(), json, "{value}");
        }
        assert!(!McpHeaders::from_map(&HeaderMap::new()).is_json());
    }

    #[test]
    fn repeated_headers_are_detected_and_accept_values_merged() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("mcp-name", "a"), ("Mcp-Name", "b"), ("mcp-method", "m")] {
            headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers.append(ACCEPT, "application/json".parse().unwrap());
        headers.append(ACCEPT, "text/event-stream".parse().unwrap());
        let parsed = McpHeaders::from_map(&headers);
        assert!(matches!(parsed.name, HeaderOccurrence::Repeated));
        assert!(matches!(parsed.method, HeaderOccurrence::Once(b"m")));
        assert_eq!(parsed.accepts(), AcceptedFormats::ANYTHING);
        assert_eq!(McpHeaders::from_map(&HeaderMap::new()).accepts(), AcceptedFormats::ANYTHING);
    }
}
