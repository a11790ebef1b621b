//! The JSON-RPC messages that the generator sends.

/// The first request id. All ids have nine digits, so that a request can be reused by writing over its id.
pub(crate) const FIRST_ID: u32 = 102_400_000;

/// The era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// A handshake and a session, revision 2025-11-25.
    Legacy,
    /// Every request stands alone, revision 2026-07-28.
    Modern,
}

impl Era {
    /// The revision that the generator names.
    pub(crate) const fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// A call of the tool that echoes.
pub(crate) fn call(era: Era, id: u32, tool: &str, text: &str) -> String {
    let meta = match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(",{}", modern_meta()),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"message":"{text}"}}{meta}}}}}"#
    )
}

/// The first message of a legacy session.
pub(crate) fn initialize(id: u32) -> String {
    let revision = Era::Legacy.revision();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"load","version":"1.0.0"}}}}}}"#
    )
}

/// The notification that ends the legacy handshake.
pub(crate) fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// A modern subscription to changes of the tool list.
pub(crate) fn listen(id: u32) -> String {
    let meta = modern_meta();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{meta}}}}}"#
    )
}

/// Text of `bytes` bytes that JSON carries unescaped and that cannot be taken for a key of the answer.
pub(crate) fn filler(bytes: usize) -> String {
    "abcdefghijklmnopqrstuvwxyz0123456789".chars().cycle().take(bytes).collect()
}

fn modern_meta() -> String {
    let revision = Era::Modern.revision();
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1.0.0"}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_json() {
        for message in [
            call(Era::Legacy, 1, "t", "x"),
            call(Era::Modern, 1, "t", "x"),
            initialize(1),
            initialized(),
            listen(1),
        ] {
            serde_json::from_str::<serde_json::Value>(&message)
                .unwrap_or_else(|error| panic!("{error}: {message}"));
        }
    }

    #[test]
    fn filler_has_the_requested_size() {
        assert_eq!(filler(16).len(), 16);
        assert_eq!(filler(65_536).len(), 65_536);
    }
}
