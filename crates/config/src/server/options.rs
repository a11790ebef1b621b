use schemars::JsonSchema;
use serde::Deserialize;

/// Which callers share one connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionSharing {
    /// Callers of one principal with the same client capabilities and the same roots. The default.
    #[default]
    Principal,
    /// None: each client session has its own connection.
    Session,
    /// None: each call has its own connection.
    Call,
    /// All callers, which is safe only for a server that stores no state of its callers.
    All,
}

impl ConnectionSharing {
    /// Returns the value in a configuration.
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
pub enum StartMode {
    /// When it is first needed. The default.
    #[default]
    Lazy,
    /// Together with the hub.
    Eager,
}

impl StartMode {
    /// Returns the value in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lazy => "lazy",
            Self::Eager => "eager",
        }
    }
}

/// An era of the protocol, to restrict a server to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolEra {
    /// Revisions up to 2025-11-25, with `initialize` and sessions.
    Legacy,
    /// Revisions from 2026-07-28 on, in which each request is self-contained.
    Modern,
}

impl ProtocolEra {
    /// Returns the value in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A revision of the protocol, to restrict a server to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub enum ProtocolRevision {
    /// The first.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// That of Streamable HTTP.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// That of elicitation.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// The last with sessions.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// The first without sessions.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl ProtocolRevision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// Returns it as a configuration, and the protocol, has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era that it belongs to.
    pub fn era(self) -> ProtocolEra {
        match self {
            Self::V2026_07_28 => ProtocolEra::Modern,
            _ => ProtocolEra::Legacy,
        }
    }
}

/// The transport of a server with a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemoteTransport {
    /// Detected automatically. The default.
    #[default]
    Auto,
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp", alias = "streamable_http")]
    Http,
    /// HTTP+SSE, the transport before 2025-03-26.
    Sse,
    /// WebSocket.
    #[serde(alias = "ws")]
    WebSocket,
}

impl RemoteTransport {
    /// Returns the value in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}
