/// The media types of responses that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptedFormats {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl AcceptedFormats {
    pub(super) const NOTHING: Self = Self { json: false, stream: false };
    pub(super) const ANYTHING: Self = Self { json: true, stream: true };

    /// Adds the media types of one `Accept` header.
    pub(super) fn add(&mut self, value: &[u8]) {
        if value == b"application/json, text/event-stream" {
            // The value that nearly every client sends.
            *self = Self::ANYTHING;
            return;
        }
        for range in value.split(|byte| *byte == b',') {
            self.add_range(range);
        }
    }

    fn add_range(&mut self, range: &[u8]) {
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
            *self = Self::ANYTHING;
        }
    }

    pub(super) fn is_nothing(self) -> bool {
        !self.json && !self.stream
    }
}

fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some(weight) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) else {
        return false;
    };
    !weight.is_empty() && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
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
            let mut accepts = AcceptedFormats::NOTHING;
            accepts.add(value.as_bytes());
            assert_eq!(accepts, AcceptedFormats { json, stream }, "{value}");
        }
    }
}
