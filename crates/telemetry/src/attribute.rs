//! Attributes of spans and metrics, named as in the registry of OpenTelemetry.

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AttributeValue {
    Text(String),
    Integer(i64),
    Flag(bool),
}

/// The attributes of a span or of a data point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SpanAttributes(Vec<(&'static str, AttributeValue)>);

/// The longest text of an attribute, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// Cuts a text to the length that is exported.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = MAX_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl SpanAttributes {
    /// Adds a text, which is cut if it is long.
    pub(crate) fn text(&mut self, key: &'static str, value: &str) {
        self.0.push((key, AttributeValue::Text(cut(value).to_owned())));
    }

    /// Adds a text, if there is one.
    pub(crate) fn optional(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(crate) fn integer(&mut self, key: &'static str, value: i64) {
        self.0.push((key, AttributeValue::Integer(value)));
    }

    pub(crate) fn flag(&mut self, key: &'static str) {
        self.0.push((key, AttributeValue::Flag(true)));
    }

    /// Adds what the transport of MCP is known by: `stdio`, `http`, `sse` or `websocket`.
    pub(crate) fn transport(&mut self, transport: Option<&str>) {
        match transport {
            Some("stdio") => self.text("network.transport", "pipe"),
            Some("http" | "sse" | "streamable-http") => {
                self.text("network.transport", "tcp");
                self.text("network.protocol.name", "http");
                self.text("network.protocol.version", "1.1");
            }
            Some("websocket") => {
                self.text("network.transport", "tcp");
                self.text("network.protocol.name", "websocket");
            }
            _ => {}
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &AttributeValue)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Returns the text of an attribute.
    #[cfg(test)]
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == key).and_then(|(_, value)| match value {
            AttributeValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}
