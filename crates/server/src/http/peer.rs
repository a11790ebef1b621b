use trunkline_http1::server::RequestHead;
use trunkline_protocol::Refusal;

use super::endpoint::HttpServiceInner;
use crate::env::Env;

/// The properties of a connection, as an extension of each of its requests.
///
/// A program that serves the endpoint with a listener of its own inserts it; without one,
/// [`HttpServerOptions::unknown_peer`](super::HttpServerOptions::unknown_peer) applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// The peer is on this machine.
    pub loopback: bool,
    /// The connection is encrypted.
    pub tls: bool,
}

impl PeerInfo {
    /// Reports whether the connection cannot be read by others on the network.
    pub const fn is_private(self) -> bool {
        self.loopback || self.tls
    }
}

impl HttpServiceInner {
    /// Reads the variables that a request carries, where the operator allows any.
    pub(super) fn env(&self, head: &RequestHead) -> Result<Env, Refusal> {
        let sources = &self.core.env;
        if !sources.reads_headers() {
            return Ok(Env::NONE);
        }
        let parts = head.parts();
        let peer = parts.extensions.get::<PeerInfo>().copied().unwrap_or(self.options.unknown_peer);
        sources.read(&parts.headers, peer.is_private())
    }
}
