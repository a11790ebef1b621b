use serde_json::{Value, json};
use trunkline_server::Host;

use super::{Client, Modern, Peer, legacy};

/// The revision of the legacy callers; any would do.
const LEGACY: &str = "2025-11-25";

/// One way to reach a handler: an era over a kind of transport.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) is_legacy: bool,
    line: Line,
    calls: u64,
}

#[derive(Debug)]
enum Line {
    Channel(Peer),
    Http(Client),
}

/// Opens every way there is to a host.
pub(crate) async fn ways(host: &Host) -> [Way; 4] {
    let way = |name, is_legacy, line| Way { name, is_legacy, line, calls: 0 };
    let peer = Peer::initialized(host, LEGACY).await;
    let client = Client::new(host);
    [
        way("legacy over a channel", true, Line::Channel(peer)),
        way("legacy over HTTP", true, Line::Http(client.clone().initialized(LEGACY).await)),
        way("modern over a channel", false, Line::Channel(Peer::new(host))),
        way("modern over HTTP", false, Line::Http(client)),
    ]
}

impl Way {
    /// Calls a tool that asks nothing, and returns its structured content.
    pub(crate) async fn structured(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let request = match self.is_legacy {
            true => legacy(self.calls, "tools/call", json!({ "name": tool, "arguments": arguments })),
            false => Modern::tool(tool).id(self.calls).arguments(arguments.clone()).value(),
        };
        let answer = match &mut self.line {
            Line::Channel(peer) => peer.call(&request).await,
            Line::Http(client) => client.post(&request).await.answer().await,
        };
        assert_eq!(answer["id"], self.calls, "{}: {answer}", self.name);
        assert_ne!(answer["result"]["isError"], true, "{}: {answer}", self.name);
        answer["result"]["structuredContent"].clone()
    }
}
