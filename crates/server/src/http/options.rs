use std::net::IpAddr;
use std::sync::Arc;

use http::Request;
use trunkline_session::{EventLimits, EventStore, MemoryEvents, MemorySessions, SessionLimits, SessionStore};

use super::allow_list::AllowList;
use super::auth::{AnonymousAuthenticator, AuthenticationResult, Authenticator};
use super::cookie::CookieSessions;
use super::peer::PeerInfo;
use super::protected_resource::ProtectedResource;
use super::tls::ServerTls;

/// How an endpoint is served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpServerOptions {
    /// The path of the endpoint. Default `/mcp`.
    pub path: String,
    /// The hosts that requests may name. Default the loopback names.
    pub hosts: AllowList,
    /// The origins of pages that may call. Default the loopback ones; requests without an origin always may.
    pub origins: AllowList,
    /// The paths of HTTP+SSE, the transport of revision 2024-11-05. Default `/sse` and `/messages`; `None` disables
    /// it.
    pub legacy_sse: Option<SsePaths>,
    /// The path of WebSockets. Default `/ws`; `None` disables them.
    pub websocket: Option<String>,
    /// The TLS certificate of our own listener. Default none: plain HTTP.
    pub tls: Option<ServerTls>,
    /// Whether clients of HTTP+SSE get a session cookie that names their state. Default no.
    pub cookie_sessions: Option<CookieSessions>,
    /// The authenticator of requests. Default every request is anonymous.
    pub authenticator: Arc<dyn Authenticator>,
    /// The description of the endpoint for clients that need an OAuth token. Default none.
    pub protected_resource: Option<ProtectedResource>,
    /// Paths of health checks, which the service of the listener answers. Default none; with one, connections beyond
    /// [`ServerLimits::connections`](crate::ServerLimits::connections) and
    /// [`ServerLimits::connections_per_address`](crate::ServerLimits::connections_per_address) are accepted for one
    /// request to such a path, and other requests on them are refused.
    pub probe_paths: Vec<String>,
    /// Whether responses are event streams even where plain JSON would do, for scripts that want that. Default no.
    pub always_stream: bool,
    /// The peer of a connection without a [`PeerInfo`], such as that of a program which mounts the endpoint. Default
    /// neither local nor encrypted, so that `X-Env-*` headers are ignored.
    pub unknown_peer: PeerInfo,
    /// The bounds of legacy sessions.
    pub session_limits: SessionLimits,
    /// The store of legacy sessions; `None` is in memory, within [`HttpServerOptions::session_limits`].
    pub sessions: Option<Arc<dyn SessionStore>>,
    /// The store of events of resumable streams; `None` is in memory, within [`EventLimits`]'s defaults.
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

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            hosts: AllowList::loopback(),
            origins: AllowList::loopback(),
            legacy_sse: Some(SsePaths::default()),
            websocket: Some("/ws".to_owned()),
            tls: None,
            cookie_sessions: None,
            authenticator: Arc::new(AnonymousAuthenticator),
            protected_resource: None,
            probe_paths: Vec::new(),
            always_stream: false,
            unknown_peer: PeerInfo::default(),
            session_limits: SessionLimits::default(),
            sessions: None,
            events: None,
        }
    }
}

impl HttpServerOptions {
    /// Reports whether a path is that of the endpoint; a slash behind it makes no difference.
    pub(super) fn is_endpoint(&self, path: &str) -> bool {
        path == self.path || path.strip_suffix('/') == Some(&*self.path)
    }

    /// Returns the defaults for an endpoint that listens on an address.
    ///
    /// Off the loopback any `Host` is accepted, since the names of the machine are not known here; an `Origin` must
    /// still be on the list.
    pub fn for_address(address: IpAddr) -> Self {
        let hosts = if address.is_loopback() { AllowList::loopback() } else { AllowList::any() };
        Self { hosts, ..Self::default() }
    }

    /// Returns a warning about listening on an address with these options, if there is one.
    pub fn warning(&self, address: IpAddr) -> Option<&'static str> {
        if address.is_loopback() {
            return None;
        }
        let (anonymous, ()) = Request::new(()).into_parts();
        match self.authenticator.authenticate(&anonymous) {
            AuthenticationResult::Ready(Ok(_)) => {
                Some("anybody who can reach this server may call every tool: it asks for no credential")
            }
            _ if self.tls.is_none() => Some(
                "credentials cross the network in plain text: serve TLS, or stand behind a proxy that does",
            ),
            _ => None,
        }
    }

    pub(super) fn session_store(&self) -> Arc<dyn SessionStore> {
        self.sessions.clone().unwrap_or_else(|| Arc::new(MemorySessions::new(self.session_limits.clone())))
    }

    pub(super) fn event_store(&self) -> Arc<dyn EventStore> {
        self.events.clone().unwrap_or_else(|| Arc::new(MemoryEvents::new(EventLimits::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::auth::BearerTokens;
    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn listening_off_loopback_warns_about_missing_auth_and_tls() {
        let folder = TestFolder::new("warned");
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["certificate", "key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, signed.cert.pem()).unwrap();
        std::fs::write(&key, signed.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let tls = ServerTls::from_pem_files(&certificate, &key).unwrap();
        let tokens: Arc<dyn Authenticator> = Arc::new(BearerTokens::new([("ann", "ann-token-0123456")]));
        let anonymous: Arc<dyn Authenticator> = Arc::new(AnonymousAuthenticator);
        for (address, authenticator, tls, expected) in [
            ("127.0.0.1", &anonymous, None, ""),
            ("::1", &tokens, None, ""),
            ("0.0.0.0", &anonymous, None, "anybody"),
            ("0.0.0.0", &anonymous, Some(&tls), "anybody"),
            ("192.0.2.1", &tokens, None, "plain text"),
            ("192.0.2.1", &tokens, Some(&tls), ""),
        ] {
            let options = HttpServerOptions {
                authenticator: authenticator.clone(),
                tls: tls.cloned(),
                ..HttpServerOptions::default()
            };
            let warning = options.warning(address.parse().unwrap()).unwrap_or_default();
            assert_eq!(warning.is_empty(), expected.is_empty(), "{address}: {warning}");
            assert!(warning.contains(expected), "{address}: {warning}");
        }
    }
}
