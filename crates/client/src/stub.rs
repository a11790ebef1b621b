use std::sync::Arc;

use trunkline_protocol::Revision;
use trunkline_protocol::model::ServerCapabilities;

use crate::client::{Client, ClientInner, CurrentSession, ServerInfo};
use crate::client_transport::{OpenRequests, StubTransport};
use crate::connect::SupportedEras;
use crate::edge::{ModernEdge, ProtocolEdge};

impl Client {
    /// Creates a client without a server: every call fails with [`Error::Closed`](crate::Error::Closed) and this
    /// reason, and nothing is sent.
    ///
    /// For programs in which MCP may be off, and for tests of code that takes a client. A test that needs responses
    /// connects to a `Server` in the same process instead.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use trunkline_client::Client;
    ///
    /// let client = Client::stub("MCP is not configured");
    /// let error = client.call("add", serde_json::json!({ "a": 1 })).await.unwrap_err();
    /// assert_eq!(error.to_string(), "MCP is not configured");
    /// assert!(client.is_closed() && !error.may_have_run());
    /// # }
    /// ```
    pub fn stub(reason: impl Into<String>) -> Self {
        let (plan, input, logs, _) = Self::builder().take_plan();
        let revision = Revision::NEWEST;
        let edge = ProtocolEdge::Modern(ModernEdge::new(revision, &plan.identity, &plan.capabilities));
        let info = Arc::new(ServerInfo {
            revision,
            identity: None,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            eras: SupportedEras::default(),
            transport: "none",
            attempts: Vec::new(),
        });
        let transport = Arc::new(StubTransport::new(reason.into()));
        let (session, open_requests) = (CurrentSession { edge, info }, Arc::<OpenRequests>::default());
        Self::from_inner(ClientInner::new(transport, session, plan, input, logs, open_requests))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ChangeFilter, Error};

    #[tokio::test]
    async fn every_use_of_a_stub_fails_with_its_reason() {
        let client = Client::stub("MCP is not configured");
        let call = client.call("add", json!({})).await.map(drop);
        let results = [
            call,
            client.tools().await.map(drop),
            client.resources().await.map(drop),
            client.read("a://b").await.map(drop),
            client.get_prompt("p", json!({})).await.map(drop),
        ];
        for result in results {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Closed { .. }), "{error:?}");
            assert_eq!((error.to_string().as_str(), error.may_have_run()), ("MCP is not configured", false));
        }
        assert!(client.subscribe(ChangeFilter::default()).await.is_err());
        assert_eq!(client.closed().await, "MCP is not configured");
        client.close().await;
    }
}
