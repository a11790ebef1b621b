use serde_json::Value;
use trunkline_server::Host;

use super::{Client, Modern, Peer};

/// A modern client over either kind of transport, for tests of what both have in common.
#[derive(Debug)]
pub(crate) enum Line {
    Http(Client),
    Channel(Peer),
}

/// Returns a line of each kind.
pub(crate) fn lines(host: &Host) -> [Line; 2] {
    [Line::Http(Client::new(host)), Line::Channel(Peer::new(host))]
}

impl Line {
    /// Sends a request and returns everything up to its answer, which is the last.
    pub(crate) async fn exchange(&mut self, request: &Modern) -> Vec<Value> {
        match self {
            Self::Http(client) => client.post(&request.value()).await.rest().await,
            Self::Channel(peer) => peer.exchange(&request.value()).await,
        }
    }

    pub(crate) async fn call(&mut self, request: &Modern) -> Value {
        self.exchange(request).await.pop().expect("every request is answered")
    }
}
