use std::net::IpAddr;
use std::sync::Arc;

use trunkline_session::{EventLimits, EventStore, MemoryEvents, MemorySessions, SessionLimits, SessionStore};

use super::auth::{Anonymous, Authenticator};
use super::cookie::CookieSessions;
use super::guard::AllowList;
use super::peer::PeerInfo;
use super::tls::Tls;

/// How an endpoint is served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The path of the endpoint. Default `/mcp`.
    pub path: String,
    /// The hosts that requests may name. Default the loopback names.
    pub hosts: AllowList,
    /// The origins whose pages may call. Default the loopback ones; requests without an origin always may.
    pub origins: AllowList,
    /// Where HTTP+SSE is served, the transport of revision 2024-11-05. Default `/sse` and `/messages`; `None` is nowhere.
    pub legacy_sse: Option<SsePaths>,
    /// Where WebSockets are served. Default `/ws`; `None` is nowhere.
    pub websocket: Option<String>,
    /// The certificate with which our own listener speaks TLS. Default none: plain HTTP.
    pub tls: Option<Tls>,
    /// Whether clients of HTTP+SSE get a cookie that names what is kept for them. Default no.
    pub cookie_sessions: Option<CookieSessions>,
    /// Who a request belongs to. Default everybody is anonymous.
    pub authenticator: Arc<dyn Authenticator>,
    /// Whether answers are event streams even where a plain one would do, for scripts that want that. Default no.
    pub always_stream: bool,
    /// What a connection is taken for whose listener does not say, such as that of a program which mounts the endpoint.
    /// Default neither local nor encrypted, so that `X-Env-*` headers are ignored.
    pub unknown_peer: PeerInfo,
    /// The bounds of legacy sessions.
    pub session_limits: SessionLimits,
    /// Where legacy sessions are kept; `None` is in memory, within [`HttpOptions::session_limits`].
    pub sessions: Option<Arc<dyn SessionStore>>,
    /// Where the events of resumable streams are kept; `None` is in memory, within [`EventLimits`]'s defaults.
    pub events: Option<Arc<dyn EventStore>>,
}

/// The two paths of HTTP+SSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsePaths {
    /// The path that is read as a stream. Default `/sse`.
    pub stream: String,
    /// The path to which messages are posted. Default `/messages`.
    pub messages: String,
}

impl Default for SsePaths {
    fn default() -> Self {
        Self { stream: "/sse".to_owned(), messages: "/messages".to_owned() }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            hosts: AllowList::loopback(),
            origins: AllowList::loopback(),
            legacy_sse: Some(SsePaths::default()),
            websocket: Some("/ws".to_owned()),
            tls: None,
            cookie_sessions: None,
            authenticator: Arc::new(Anonymous),
            always_stream: false,
            unknown_peer: PeerInfo::default(),
            session_limits: SessionLimits::default(),
            sessions: None,
            events: None,
        }
    }
}

impl HttpOptions {
    /// Returns the defaults for an endpoint that listens on an address.
    ///
    /// Off the loopback any `Host` is accepted, since the names of the machine are not known here; an `Origin` must
    /// still be on the list.
    pub fn for_address(address: IpAddr) -> Self {
        let hosts = if address.is_loopback() { AllowList::loopback() } else { AllowList::any() };
        Self { hosts, ..Self::default() }
    }

    pub(super) fn session_store(&self) -> Arc<dyn SessionStore> {
        self.sessions.clone().unwrap_or_else(|| Arc::new(MemorySessions::new(self.session_limits.clone())))
    }

    pub(super) fn event_store(&self) -> Arc<dyn EventStore> {
        self.events.clone().unwrap_or_else(|| Arc::new(MemoryEvents::new(EventLimits::default())))
    }
}
