use serde_json::{Value, json};
use trunkline_server::Host;

use super::{Client, ModernRequest, Peer, legacy};

/// The revision of the legacy callers; any would do.
const LEGACY: &str = "2025-11-25";

/// One way to reach a handler: an era over a kind of transport.
#[derive(Debug)]
pub(crate) struct CallerRoute {
    pub(crate) name: &'static str,
    pub(crate) is_legacy: bool,
    line: CallerLink,
    calls: u64,
}

#[derive(Debug)]
enum CallerLink {
    Channel(Peer),
    Http(Client),
}

/// Opens every way there is to a host.
pub(crate) async fn ways(host: &Host) -> [CallerRoute; 4] {
    let way = |name, is_legacy, line| CallerRoute { name, is_legacy, line, calls: 0 };
    let peer = Peer::initialized(host, LEGACY).await;
    let client = Client::new(host);
    [
        way("legacy over a channel", true, CallerLink::Channel(peer)),
        way("legacy over HTTP", true, CallerLink::Http(client.clone().initialized(LEGACY).await)),
        way("modern over a channel", false, CallerLink::Channel(Peer::new(host))),
        way("modern over HTTP", false, CallerLink::Http(client)),
    ]
}

impl CallerRoute {
    /// Calls a tool that requests no input, and returns its structured content.
    pub(crate) async fn structured(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let request = match self.is_legacy {
            true => legacy(self.calls, "tools/call", json!({ "name": tool, "arguments": arguments })),
            false => ModernRequest::tool(tool).id(self.calls).arguments(arguments.clone()).value(),
        };
        let answer = match &mut self.line {
            CallerLink::Channel(peer) => peer.call(&request).await,
            CallerLink::Http(client) => client.post(&request).await.answer().await,
        };
        assert_eq!(answer["id"], self.calls, "{}: {answer}", self.name);
        assert_ne!(answer["result"]["isError"], true, "{}: {answer}", self.name);
        answer["result"]["structuredContent"].clone()
    }
}
