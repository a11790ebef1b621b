use std::fmt;

use trunkline_session::{SessionRecord, Timestamp};

/// A legacy session, for operators.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The session as it is stored. That of a channel is in no store, and has no capabilities here.
    pub record: SessionRecord,
    /// When it was last used, if it was on this node; `None` for a channel that nothing counts, such as stdio.
    pub last_used: Option<Timestamp>,
    /// Whether a call runs or a stream is open on this node.
    pub is_busy: bool,
    /// How its client is connected.
    pub transport: SessionTransport,
}

/// How the client of a legacy session is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionTransport {
    /// By requests over Streamable HTTP; the session is in the store.
    StreamableHttp,
    /// By a stream of HTTP+SSE, with which the session ends.
    HttpSse,
    /// By a WebSocket, with which the session ends.
    WebSocket,
    /// By standard input and output.
    Stdio,
    /// By another channel, with which the session ends.
    Channel,
}

impl SessionTransport {
    /// Returns a lower-case word, such as `http`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StreamableHttp => "http",
            Self::HttpSse => "sse",
            Self::WebSocket => "websocket",
            Self::Stdio => "stdio",
            Self::Channel => "channel",
        }
    }
}

/// Writes its name.
impl fmt::Display for SessionTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
