//! Resource links that occur in results but on no list, so that a client can read a resource that a server linked to.

use std::collections::{HashMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};

use crate::scope::SharingScope;
use trunkline_config::ServerName;
use trunkline_protocol::codec::RelayedResult;
use trunkline_protocol::{JsonObject, RawJson};

/// The most URIs taken from one result.
const MAX_LINKS_PER_RESULT: usize = 256;
/// The longest URI that is remembered.
const MAX_URI_BYTES: usize = 2048;

/// The servers that linked to a URI, per sharing scope, so that one client's results reveal nothing to another.
#[derive(Debug)]
pub(super) struct LinkOwners {
    state: Mutex<LinkTable>,
    /// The most links that are remembered.
    max_links: usize,
}

#[derive(Debug, Default)]
struct LinkTable {
    /// The servers that linked to a URI.
    servers: HashMap<LinkKey, Vec<ServerName>>,
    /// The URIs that a server linked to, oldest first.
    by_server: HashMap<ServerName, VecDeque<LinkKey>>,
    /// The number of links of all servers.
    count: usize,
}

type LinkKey = (SharingScope, String);

impl LinkOwners {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), max_links: most }
    }

    /// Remembers the links of a server's result.
    pub(super) fn record(&self, scope: &SharingScope, server: &ServerName, result: &RelayedResult) {
        let uris = linked_uris(result.raw());
        if uris.is_empty() {
            return;
        }
        let mut state = self.lock();
        for uri in uris {
            state.record((scope.clone(), uri), server, self.max_links);
        }
    }

    /// Returns the servers that linked to a URI.
    pub(super) fn servers_of(&self, scope: &SharingScope, uri: &str) -> Vec<ServerName> {
        self.lock().servers.get(&(scope.clone(), uri.to_owned())).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, LinkTable> {
        self.state.lock()
    }
}

impl LinkTable {
    fn record(&mut self, key: LinkKey, server: &ServerName, most: usize) {
        let is_known = self.servers.get(&key).is_some_and(|servers| servers.contains(server));
        if is_known || most == 0 {
            return;
        }
        if self.count >= most {
            self.evict_oldest();
        }
        self.by_server.entry(server.clone()).or_default().push_back(key.clone());
        self.servers.entry(key).or_default().push(server.clone());
        self.count += 1;
    }

    /// Evicts the oldest link of the server with the most, so that one server cannot evict another's links.
    fn evict_oldest(&mut self) {
        let Some((server, keys)) = self.by_server.iter_mut().max_by_key(|(_, keys)| keys.len()) else {
            return;
        };
        let Some(oldest) = keys.pop_front() else { return };
        self.count -= 1;
        if let Some(servers) = self.servers.get_mut(&oldest) {
            servers.retain(|known| known != server);
            if servers.is_empty() {
                self.servers.remove(&oldest);
            }
        }
    }
}

/// Finds the URIs of a result: resource links and embedded resources.
fn linked_uris(result: &RawJson) -> Vec<String> {
    let mut uris = Vec::new();
    // Most results have no URI at all.
    let members = if result.as_str().contains("\"uri\"") { result.members() } else { return uris };
    let result = members.unwrap_or_default();
    let mut take = |block: &JsonObject| {
        let within = block.get("resource").and_then(|raw| raw.members().ok());
        let uri = block.text("uri").or_else(|| within.as_ref()?.text("uri"));
        if let Some(uri) = uri.filter(|uri| uri.len() <= MAX_URI_BYTES)
            && uris.len() < MAX_LINKS_PER_RESULT
        {
            uris.push(uri.to_string());
        }
    };
    for key in ["content", "contents"] {
        for_each_object(result.get(key), &mut take);
    }
    for_each_object(result.get("messages"), &mut |message| {
        if let Some(Ok(block)) = message.get("content").map(RawJson::members) {
            take(&block);
        }
    });
    uris
}

/// Calls `look` with every object of a list.
fn for_each_object(list: Option<&RawJson>, look: &mut impl FnMut(&JsonObject)) {
    let Some(list) = list else { return };
    for object in list.elements().unwrap_or_default().iter().filter_map(|raw| raw.members().ok()) {
        look(&object);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::{Method, Revision};

    use super::*;

    fn result(value: &Value) -> RelayedResult {
        RelayedResult::new(Method::ToolsCall, Revision::NEWEST, RawJson::from(value)).unwrap()
    }

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    #[test]
    fn links_and_resources_of_every_kind_of_result_are_found() {
        let link = json!({ "type": "resource_link", "uri": "x:1", "name": "n" });
        let embedded = json!({ "type": "resource", "resource": { "uri": "x:2", "text": "t" } });
        let text = json!({ "type": "text", "text": "\"uri\": \"x:3\"" });
        for (value, expected) in [
            (json!({ "content": [link, text, embedded, 7] }), vec!["x:1", "x:2"]),
            (json!({ "contents": [{ "uri": "x:4", "text": "t" }] }), vec!["x:4"]),
            (
                json!({ "messages": [{ "role": "user", "content": embedded }, { "content": [] }] }),
                vec!["x:2"],
            ),
            (json!({ "content": "\"uri\"", "messages": 7 }), vec![]),
            (json!({ "content": [{ "uri": "x".repeat(MAX_URI_BYTES + 1) }] }), vec![]),
        ] {
            assert_eq!(linked_uris(&RawJson::from(&value)), expected, "{value}");
        }
    }

    #[test]
    fn remembered_links_are_bounded_and_private_to_each_principal() {
        use trunkline_session::Principal;
        let seen = LinkOwners::new(16);
        let [ada, bob] = ["ada", "bob"].map(|who| SharingScope::Principal(Principal::Named(who.into())));
        let pointing =
            |uri: &str| result(&json!({ "content": [{ "type": "resource_link", "uri": uri, "name": "n" }] }));
        seen.record(&ada, &name("a"), &pointing("x:y"));
        seen.record(&ada, &name("a"), &pointing("x:y"));
        assert_eq!(seen.servers_of(&ada, "x:y"), [name("a")]);
        assert!(seen.servers_of(&bob, "x:y").is_empty());
        for server in ["b", "c"] {
            seen.record(&ada, &name(server), &pointing("x:y"));
        }
        assert_eq!(seen.servers_of(&ada, "x:y"), ["a", "b", "c"].map(name));
        for number in 0..40 {
            seen.record(&bob, &name("d"), &pointing(&format!("x:{number}")));
        }
        assert_eq!(seen.servers_of(&ada, "x:y"), ["a", "b", "c"].map(name), "what others pointed at stays");
        assert!(seen.servers_of(&bob, "x:26").is_empty());
        assert_eq!(seen.servers_of(&bob, "x:27"), [name("d")]);
        let state = seen.lock();
        let kept: usize = state.by_server.values().map(VecDeque::len).sum();
        assert_eq!((state.count, kept, state.servers.len()), (16, 16, 14));
    }
}
