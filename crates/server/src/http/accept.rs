use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// The forms of answer that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl Accepts {
    /// Reads the `Accept` headers; none means anything.
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut accepts = Self { json: false, stream: false };
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Self { json: true, stream: true };
        }
        for value in values {
            for range in value.as_bytes().split(|byte| *byte == b',') {
                accepts.add(range);
            }
        }
        accepts
    }

    fn add(&mut self, range: &[u8]) {
        let mut parts = range.split(|byte| *byte == b';');
        let kind = parts.next().unwrap_or_default().trim_ascii();
        if parts.any(|parameter| is_zero_weight(parameter.trim_ascii())) {
            return;
        }
        if kind.eq_ignore_ascii_case(b"application/json") || kind.eq_ignore_ascii_case(b"application/*") {
            self.json = true;
        } else if kind.eq_ignore_ascii_case(b"text/event-stream") || kind.eq_ignore_ascii_case(b"text/*") {
            self.stream = true;
        } else if kind == b"*/*" {
            *self = Self { json: true, stream: true };
        }
    }

    pub(super) fn nothing(self) -> bool {
        !self.json && !self.stream
    }
}

fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some(weight) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) else {
        return false;
    };
    !weight.is_empty() && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Reports whether the body is JSON by its content type.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let kind = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_table() {
        for (value, json, stream) in [
            ("application/json, text/event-stream", true, true),
            ("text/event-stream, application/json", true, true),
            ("application/json", true, false),
            ("text/event-stream", false, true),
            ("*/*", true, true),
            ("application/*;q=0.5, text/html", true, false),
            ("application/json;q=0, text/event-stream", false, true),
            ("Application/JSON; charset=utf-8", true, false),
            ("text/html", false, false),
            ("", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, value.parse().unwrap());
            assert_eq!(Accepts::read(&headers), Accepts { json, stream }, "{value}");
        }
        assert_eq!(Accepts::read(&HeaderMap::new()), Accepts { json: true, stream: true });
    }

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
            assert_eq!(is_json(&headers), json, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
