use schemars::JsonSchema;
use serde::Deserialize;

/// Who shares one connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// The callers of one principal whose clients can do the same and have the same roots. The default.
    #[default]
    Principal,
    /// Nobody: each session of a client has its own.
    Session,
    /// Nobody: each call has its own.
    Call,
    /// Everybody, which is right only for a server that keeps nothing of its callers.
    All,
}

impl Share {
    /// Returns it as a configuration has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Session => "session",
            Self::Call => "call",
            Self::All => "all",
        }
    }
}

/// When a server is started or connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// When it is first needed. The default.
    #[default]
    Lazy,
    /// Together with the hub.
    Eager,
}

impl Start {
    /// Returns it as a configuration has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lazy => "lazy",
            Self::Eager => "eager",
        }
    }
}

/// How a server that has an address is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Whatever it turns out to speak. The default.
    #[default]
    Auto,
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp", alias = "streamable_http")]
    Http,
    /// HTTP with a standing stream of events, as before 2025-03-26.
    Sse,
    /// WebSocket.
    #[serde(alias = "ws")]
    WebSocket,
}

impl Wire {
    /// Returns it as a configuration has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}
