use serde_json::Value;
use trunkline_server::Host;

use super::{Client, ModernRequest, Peer};

/// A modern client over either kind of transport, for tests of what both have in common.
#[derive(Debug)]
pub(crate) enum ReceivedLine {
    Http(Client),
    Channel(Peer),
}

/// Returns a line of each kind.
pub(crate) fn lines(host: &Host) -> [ReceivedLine; 2] {
    [ReceivedLine::Http(Client::new(host)), ReceivedLine::Channel(Peer::new(host))]
}

impl ReceivedLine {
    /// Sends a request and returns everything up to its answer, which is the last.
    pub(crate) async fn exchange(&mut self, request: &ModernRequest) -> Vec<Value> {
        match self {
            Self::Http(client) => client.post(&request.value()).await.rest().await,
            Self::Channel(peer) => peer.exchange(&request.value()).await,
        }
    }

    pub(crate) async fn call(&mut self, request: &ModernRequest) -> Value {
        self.exchange(request).await.pop().expect("every request is answered")
    }
}
