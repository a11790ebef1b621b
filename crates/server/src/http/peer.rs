use trunkline_http1::server::RequestHead;
use trunkline_protocol::Refusal;

use super::endpoint::HttpServiceInner;
use crate::env::Env;

/// What a listener knows of a connection, as an extension of each of its requests.
///
/// A program that serves the endpoint by a listener of its own inserts it; where nobody does,
/// [`HttpServerOptions::unknown_peer`](super::HttpServerOptions::unknown_peer) counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// The other end is on this machine.
    pub loopback: bool,
    /// What is sent is encrypted.
    pub tls: bool,
}

impl PeerInfo {
    /// Reports whether nobody on the way can read what is sent.
    pub const fn is_private(self) -> bool {
        self.loopback || self.tls
    }
}

impl HttpServiceInner {
    /// Reads the variables that a request brings, where the operator allows any.
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
