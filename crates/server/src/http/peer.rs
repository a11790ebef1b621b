use http::Request;
use http::request::Parts;
use trunkline_protocol::Refusal;

use super::endpoint::Inner;
use crate::env::Env;

/// What a listener knows of a connection, as an extension of each of its requests.
///
/// A program that serves the endpoint by a listener of its own inserts it; where nobody does,
/// [`HttpOptions::unknown_peer`](super::HttpOptions::unknown_peer) counts.
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

impl Inner {
    /// Reads the variables that a request brings, where the operator allows any.
    pub(super) fn env(&self, parts: &Parts) -> Result<Env, Refusal> {
        let sources = &self.core.env;
        if !sources.reads_headers() {
            return Ok(Env::NONE);
        }
        let peer = parts.extensions.get::<PeerInfo>().copied().unwrap_or(self.options.unknown_peer);
        sources.read(&parts.headers, peer.is_private())
    }
}

/// A service that tells each request of what its connection is.
#[derive(Clone, Debug)]
pub(super) struct Introduced<S> {
    pub(super) service: S,
    /// `None` where nobody would look, since an extension costs every request an allocation.
    pub(super) peer: Option<PeerInfo>,
}

impl<S, B> hyper::service::Service<Request<B>> for Introduced<S>
where
    S: hyper::service::Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<B>) -> Self::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        self.service.call(request)
    }
}
