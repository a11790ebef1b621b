//! The dialects of `mcp.json`: what the clients call the same things, brought into our form.

use crate::node::{Entry, Kind, Node};
use crate::server::{Wire, without_effect};

/// Something in a client's file that has no effect here, with its place.
pub(super) struct Remark {
    pub(super) offset: usize,
    pub(super) server: Option<String>,
    pub(super) key: String,
    pub(super) what: String,
}

/// Under which keys the clients keep their servers.
const CONTAINERS: [&str; 2] = ["mcpServers", "servers"];

/// Keys of other clients that say how the client treats the server, or the user: nothing is lost without them.
const HARMLESS: &[&str] = &[
    "$schema",
    "description",
    "gallery",
    "name",
    "version",
    "autoApprove",
    "alwaysAllow",
    "trust",
    "dev",
    "type",
];

/// Finds the tables of servers, in the order of the file.
///
/// Settings of VS Code have the whole under `mcp`.
pub(crate) fn containers(root: &Node) -> impl Iterator<Item = &Entry> {
    let settings = root.get("mcp").filter(|_| CONTAINERS.iter().all(|key| root.get(key).is_none()));
    let root = settings.unwrap_or(root);
    root.entries().unwrap_or_default().iter().filter(|entry| CONTAINERS.contains(&&*entry.key))
}

/// Names what stands beside the servers and is not read.
pub(super) fn remarks_on_root(root: &Node) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for entry in root.entries().unwrap_or_default() {
        let remark = |what: &str| Remark {
            offset: entry.key_span.start,
            server: None,
            key: entry.key.clone(),
            what: what.to_owned(),
        };
        match &*entry.key {
            "inputs" if entry.value.kind_is_empty_list() => {}
            "inputs" => remarks.push(remark(
                "questions to the user of an editor are not supported; use variables like `${NAME}` instead",
            )),
            key if CONTAINERS.contains(&key) || key == "mcp" || HARMLESS.contains(&key) => {}
            _ => remarks.push(remark("is not read")),
        }
    }
    remarks
}

/// Names what a server of `trunkline.toml` has of earlier versions that has no effect any more.
pub(super) fn remarks_on_server(name: &str, server: &Node) -> Vec<Remark> {
    let entries = server.entries().unwrap_or_default().iter();
    let remarks = entries.filter_map(|entry| {
        let what = without_effect(&entry.key)?.to_owned();
        Some(Remark {
            offset: entry.key_span.start,
            server: Some(name.to_owned()),
            key: entry.key.clone(),
            what,
        })
    });
    remarks.collect()
}

/// Brings one server into our form, and names what is left out.
pub(super) fn normalized(name: &str, server: &Node) -> (Node, Vec<Remark>) {
    let Some(entries) = server.entries() else { return (server.clone(), Vec::new()) };
    let mut made = Normalizer {
        name,
        is_remote: is_remote(server),
        is_open: is_open(server),
        entries: Vec::new(),
        remarks: Vec::new(),
    };
    for entry in entries {
        made.take(entry);
    }
    (Node { span: server.span.clone(), kind: Kind::Table(made.entries) }, made.remarks)
}

fn is_remote(server: &Node) -> bool {
    ["url", "serverUrl", "httpUrl"].iter().any(|key| server.get(key).is_some_and(Node::kind_is_set))
}

/// Reports whether it is to be found out how an address is spoken to, whatever other clients are told beside that.
fn is_open(server: &Node) -> bool {
    server.get("transport").and_then(Node::text) == Some(Wire::Auto.as_str())
}

struct Normalizer<'a> {
    name: &'a str,
    is_remote: bool,
    is_open: bool,
    entries: Vec<Entry>,
    remarks: Vec<Remark>,
}

impl Normalizer<'_> {
    fn take(&mut self, entry: &Entry) {
        match &*entry.key {
            // Programs that write such files put in what does not apply as null or empty.
            _ if !entry.value.kind_is_set() => {}
            "serverUrl" | "httpUrl" => self.put("url", entry.value.clone(), entry),
            "type" | "transport" | "transportType" => self.take_transport(entry),
            "disabled" => self.take_disabled(entry),
            "tools" if matches!(entry.value.kind, Kind::Array(_)) => self.put_rule("allow", entry),
            "includeTools" => self.put_rule("allow", entry),
            "disabledTools" | "excludeTools" => self.put_rule("deny", entry),
            "timeout" | "idle" if matches!(entry.value.kind, Kind::Integer(_) | Kind::Float(_)) => {
                self.remark(entry, "is not read: clients disagree about its unit; write it like \"30s\"");
            }
            "args" | "env" | "cwd" if self.is_remote => {
                self.remark(entry, "is not read: the server has an address");
            }
            "headers" if !self.is_remote => self.remark(entry, "is not read: the server is a program"),
            key if crate::server::KEYS.contains(&key) => self.put(key, entry.value.clone(), entry),
            key if HARMLESS.contains(&key) => {}
            key => self.remark(entry, without_effect(key).unwrap_or("is not read")),
        }
    }

    fn put(&mut self, key: &str, value: Node, from: &Entry) {
        // Of two keys for the same thing the first counts, and the other is remarked on.
        if self.entries.iter().any(|entry| entry.key == key) {
            return self.remark(from, &format!("is not read: `{key}` is said already"));
        }
        self.entries.push(Entry { key: key.to_owned(), key_span: from.key_span.clone(), value });
    }

    /// A client says `stdio` where we see a command, and has more than one word for Streamable HTTP.
    fn take_transport(&mut self, entry: &Entry) {
        let word = entry.value.text().map(str::to_ascii_lowercase);
        match word.as_deref() {
            Some("stdio" | "local") if !self.is_remote => {}
            Some("remote") if self.is_remote => {}
            _ if self.is_open && entry.key != "transport" => {}
            _ if self.is_remote => {
                let value = match word.as_deref() {
                    Some("streamable-http" | "streamablehttp" | "streamable_http") => {
                        Node { span: entry.value.span.clone(), kind: Kind::Text("http".to_owned()) }
                    }
                    _ => entry.value.clone(),
                };
                self.put("transport", value, entry);
            }
            _ => self.remark(entry, "does not go with a `command`, and is not read"),
        }
    }

    fn take_disabled(&mut self, entry: &Entry) {
        let kind = match entry.value.kind {
            Kind::Bool(disabled) => Kind::Bool(!disabled),
            ref other => other.clone(),
        };
        self.put("enabled", Node { span: entry.value.span.clone(), kind }, entry);
    }

    /// Adds a list of names to the rules for tools.
    fn put_rule(&mut self, rule: &str, entry: &Entry) {
        let added = Entry { key: rule.to_owned(), ..entry.clone() };
        match self.entries.iter_mut().find(|known| known.key == "tools").map(|known| &mut known.value.kind) {
            Some(Kind::Table(rules)) if rules.iter().all(|known| known.key != rule) => rules.push(added),
            Some(_) => self.remark(entry, "is not read: there are such rules already"),
            None => {
                let value = Node { span: entry.value.span.clone(), kind: Kind::Table(vec![added]) };
                self.put("tools", value, entry);
            }
        }
    }

    fn remark(&mut self, entry: &Entry, what: &str) {
        self.remarks.push(Remark {
            offset: entry.key_span.start,
            server: Some(self.name.to_owned()),
            key: entry.key.clone(),
            what: what.to_owned(),
        });
    }
}

impl Node {
    fn kind_is_empty_list(&self) -> bool {
        matches!(&self.kind, Kind::Array(elements) if elements.is_empty())
    }

    /// Tells whether a value says anything: null and empty lists and tables do not.
    fn kind_is_set(&self) -> bool {
        match &self.kind {
            Kind::Null => false,
            Kind::Array(elements) => !elements.is_empty(),
            Kind::Table(entries) => !entries.is_empty(),
            _ => true,
        }
    }
}
