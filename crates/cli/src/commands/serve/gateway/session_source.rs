use trunkline_server::Host;
use trunkline_server::http::HttpService;

/// What has the legacy sessions of a hub.
#[derive(Debug)]
pub(in crate::commands::serve) enum SessionSource {
    /// An endpoint: its sessions are in a store, or end with their channels.
    Http(HttpService),
    /// A hub over stdio: its only session ends with it.
    Stdio(Host),
}
