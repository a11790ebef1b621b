use http::HeaderMap;
use trunkline_protocol::Refusal;
use trunkline_protocol::era::Mirrored;

use super::accept::Accepts;

/// The headers that decide what becomes of a request, gathered in one pass.
///
/// Looking each of them up by name would hash a dozen names a request, of which most are not there.
pub(super) struct Heads<'a> {
    pub(super) host: Mirrored<'a>,
    pub(super) origin: Mirrored<'a>,
    pub(super) content_type: Mirrored<'a>,
    pub(super) version: Mirrored<'a>,
    pub(super) method: Mirrored<'a>,
    pub(super) name: Mirrored<'a>,
    pub(super) session: Mirrored<'a>,
    pub(super) last_event_id: Mirrored<'a>,
    accepts: Option<Accepts>,
    /// Whether the body is encoded in any way, such as compressed.
    pub(super) encoded: bool,
}

impl<'a> Heads<'a> {
    pub(super) fn read(headers: &'a HeaderMap) -> Self {
        let mut heads = Self {
            host: Mirrored::Absent,
            origin: Mirrored::Absent,
            content_type: Mirrored::Absent,
            version: Mirrored::Absent,
            method: Mirrored::Absent,
            name: Mirrored::Absent,
            session: Mirrored::Absent,
            last_event_id: Mirrored::Absent,
            accepts: None,
            encoded: false,
        };
        for (name, value) in headers {
            let slot = match name.as_str() {
                "host" => &mut heads.host,
                "origin" => &mut heads.origin,
                "content-type" => &mut heads.content_type,
                "mcp-protocol-version" => &mut heads.version,
                "mcp-method" => &mut heads.method,
                "mcp-name" => &mut heads.name,
                "mcp-session-id" => &mut heads.session,
                "last-event-id" => &mut heads.last_event_id,
                "accept" => {
                    heads.accepts.get_or_insert(Accepts::NOTHING).add(value.as_bytes());
                    continue;
                }
                "content-encoding" => {
                    heads.encoded |= !value.as_bytes().eq_ignore_ascii_case(b"identity");
                    continue;
                }
                _ => continue,
            };
            *slot = match slot {
                Mirrored::Absent => Mirrored::Once(value.as_bytes()),
                _ => Mirrored::Repeated,
            };
        }
        heads
    }

    /// Returns the forms of answer that the client takes; one that names none takes any.
    pub(super) fn accepts(&self) -> Accepts {
        self.accepts.unwrap_or(Accepts::ANYTHING)
    }

    /// Checks that the body is plain JSON by what the headers say.
    ///
    /// # Errors
    /// [`Refusal::UNSUPPORTED_MEDIA`].
    pub(super) fn check_body(&self) -> Result<(), Refusal> {
        if !self.is_json() {
            return Err(Refusal::UNSUPPORTED_MEDIA);
        }
        if self.encoded {
            // A few bytes could stand for as many as the limit allows, and clients gain little by it.
            return Err(Refusal::UNSUPPORTED_MEDIA.because("request bodies must not be compressed"));
        }
        Ok(())
    }

    /// Reports whether the body is JSON by its content type.
    pub(super) fn is_json(&self) -> bool {
        let Mirrored::Once(value) = self.content_type else { return false };
        if value == b"application/json" {
            // What nearly every client sends.
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
            assert_eq!(Heads::read(&headers).is_json(), json, "{value}");
        }
        assert!(!Heads::read(&HeaderMap::new()).is_json());
    }

    #[test]
    fn repeated_headers_are_seen_as_such_and_accept_is_a_list() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("mcp-name", "a"), ("Mcp-Name", "b"), ("mcp-method", "m")] {
            headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers.append(ACCEPT, "application/json".parse().unwrap());
        headers.append(ACCEPT, "text/event-stream".parse().unwrap());
        let heads = Heads::read(&headers);
        assert!(matches!(heads.name, Mirrored::Repeated));
        assert!(matches!(heads.method, Mirrored::Once(b"m")));
        assert_eq!(heads.accepts(), Accepts::ANYTHING);
        assert_eq!(Heads::read(&HeaderMap::new()).accepts(), Accepts::ANYTHING);
    }
}
