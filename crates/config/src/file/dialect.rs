//! The dialects of clients: the keys of each client, normalized to ours.

use super::containers::CONTAINERS;
use crate::de::{DecodeError, unknown_key};
use crate::node::{ConfigNode, NodeKind, TableEntry};
use crate::server::{RemoteTransport, obsolete_key_reason};
use crate::suggestion::nearest;

/// A key of a client's file that has no effect here, with its position.
pub(super) struct IgnoredKey {
    pub(super) offset: usize,
    pub(super) server: Option<String>,
    pub(super) key: String,
    pub(super) reason: String,
}

/// The keys that locate a server.
pub(super) const LOCATION_KEYS: [&str; 6] = ["command", "cmd", "url", "uri", "serverUrl", "httpUrl"];

/// Keys that only affect the client's own behaviour: nothing is lost without them.
const CLIENT_ONLY_KEYS: &[&str] = &[
    "$schema",
    "description",
    "gallery",
    "name",
    "version",
    "autoApprove",
    "alwaysAllow",
    "trust",
    "dev",
    "source",
    "type",
    "bundled",
    "display_name",
    "startup_timeout_sec",
    "startup_timeout_ms",
];

/// Reports a mistake in a client's file by the keys and kinds that the file has, where ours are called otherwise.
pub(super) fn in_words_of_the_client(mut fault: DecodeError, server: &ConfigNode) -> DecodeError {
    if fault.is_missing_location() {
        return misspelled_location(server).unwrap_or(fault);
    }
    let original = original_key(server, &fault).map(str::to_owned);
    fault.message = fault.message.replace("a table", "an object");
    match original {
        Some(key) => fault.with_outermost_key(&key),
        None => fault,
    }
}

/// Finds the key of a server that was probably meant to locate it.
fn misspelled_location(server: &ConfigNode) -> Option<DecodeError> {
    server.entries().unwrap_or_default().iter().find_map(|entry| {
        let meant = nearest(&entry.key, LOCATION_KEYS.iter().copied()).filter(|meant| *meant != entry.key)?;
        let fault = DecodeError::new(unknown_key(&entry.key, std::iter::once(meant)));
        Some(fault.with_span(&entry.key_span).within(&entry.key))
    })
}

/// Returns the key of a client's file that a mistake is under, where ours has another name.
fn original_key<'e>(server: &'e ConfigNode, fault: &DecodeError) -> Option<&'e str> {
    let start = fault.span.as_ref()?.start;
    let entries = server.entries().unwrap_or_default().iter();
    let mut around = entries.filter(|entry| entry.key_span.start <= start && start < entry.value.span.end);
    around.next().map(|entry| &*entry.key)
}

/// Lists the keys beside the servers that are ignored.
pub(super) fn ignored_root_keys(root: &ConfigNode) -> Vec<IgnoredKey> {
    let mut remarks = Vec::new();
    for entry in root.entries().unwrap_or_default() {
        let remark = |what: &str| IgnoredKey {
            offset: entry.key_span.start,
            server: None,
            key: entry.key.clone(),
            reason: what.to_owned(),
        };
        match &*entry.key {
            "inputs" if entry.value.is_empty_list() => {}
            "inputs" => remarks.push(remark(
                "questions to the user of an editor are not supported; use variables like `${NAME}` instead",
            )),
            key if CONTAINERS.contains(&key) || key == "mcp" || CLIENT_ONLY_KEYS.contains(&key) => {}
            _ => remarks.push(remark("is ignored")),
        }
    }
    remarks
}

/// Lists the obsolete keys of a server in `trunkline.toml`.
pub(super) fn ignored_server_keys(name: &str, server: &ConfigNode) -> Vec<IgnoredKey> {
    let entries = server.entries().unwrap_or_default().iter();
    let remarks = entries.filter_map(|entry| {
        let what = obsolete_key_reason(&entry.key)?.to_owned();
        Some(IgnoredKey {
            offset: entry.key_span.start,
            server: Some(name.to_owned()),
            key: entry.key.clone(),
            reason: what,
        })
    });
    remarks.collect()
}

/// Normalizes one server, and lists the keys that are ignored.
pub(super) fn normalized(name: &str, server: &ConfigNode) -> (ConfigNode, Vec<IgnoredKey>) {
    let Some(entries) = server.entries() else { return (server.clone(), Vec::new()) };
    let mut made = DialectNormalizer {
        name,
        is_remote: is_remote(server),
        is_auto_transport: is_auto_transport(server),
        entries: Vec::new(),
        ignored_keys: Vec::new(),
    };
    for entry in entries {
        made.take(entry);
    }
    (ConfigNode { span: server.span.clone(), kind: NodeKind::Table(made.entries) }, made.ignored_keys)
}

fn is_remote(server: &ConfigNode) -> bool {
    ["url", "uri", "serverUrl", "httpUrl"].iter().any(|key| server.get(key).is_some_and(ConfigNode::is_set))
}

/// Reports whether the transport is detected automatically, whatever `type` is for other clients.
fn is_auto_transport(server: &ConfigNode) -> bool {
    server.get("transport").and_then(ConfigNode::text) == Some(RemoteTransport::Auto.as_str())
}

struct DialectNormalizer<'a> {
    name: &'a str,
    is_remote: bool,
    is_auto_transport: bool,
    entries: Vec<TableEntry>,
    ignored_keys: Vec<IgnoredKey>,
}

impl DialectNormalizer<'_> {
    fn take(&mut self, entry: &TableEntry) {
        match &*entry.key {
            // Programs that generate such files write unused keys as null or empty.
            _ if !entry.value.is_set() => {}
            "serverUrl" | "httpUrl" | "uri" => self.set("url", entry.value.clone(), entry),
            "cmd" => self.set("command", entry.value.clone(), entry),
            "command" if matches!(entry.value.kind, NodeKind::Array(_)) => self.take_words(entry),
            "environment" | "envs" if !self.is_remote => self.set("env", entry.value.clone(), entry),
            "env_vars" if !self.is_remote => self.take_inherited(entry),
            "env_keys" => {
                self.ignore(entry, "is ignored: secrets of the keyring are not read; set them in `env`");
            }
            "http_headers" => self.add_headers(&entry.value, entry),
            "requestOptions" => {
                if let Some(headers) = entry.value.get("headers") {
                    self.add_headers(headers, entry);
                }
            }
            "env_http_headers" => self.add_headers(&from_variables(&entry.value), entry),
            "bearer_token_env_var" => self.take_bearer(entry),
            "tool_timeout_sec" => self.take_seconds(entry),
            "type" | "transport" | "transportType" => self.take_transport(entry),
            "disabled" => self.take_disabled(entry),
            "tools" if matches!(entry.value.kind, NodeKind::Array(_)) => self.add_rule("allow", entry),
            "includeTools" | "enabled_tools" | "available_tools" => self.add_rule("allow", entry),
            "disabledTools" | "excludeTools" | "disabled_tools" => self.add_rule("deny", entry),
            "timeout" | "idle" if matches!(entry.value.kind, NodeKind::Integer(_) | NodeKind::Float(_)) => {
                self.ignore(entry, "is ignored: clients disagree about its unit; write it like \"30s\"");
            }
            "args" | "env" | "cwd" if self.is_remote => {
                self.ignore(entry, "is ignored: the server has an address");
            }
            "headers" | "auth" | "oauth" if !self.is_remote => {
                self.ignore(entry, "is ignored: the server is a program");
            }
            "auth" | "oauth" if !matches!(entry.value.kind, NodeKind::Text(_)) => self.take_auth(entry),
            key if crate::server::KEYS.contains(&key) => self.set(key, entry.value.clone(), entry),
            key if CLIENT_ONLY_KEYS.contains(&key) => {}
            key => {
                let obsolete = obsolete_key_reason(key).map(str::to_owned);
                let reason =
                    obsolete.unwrap_or_else(|| match nearest(key, crate::server::KEYS.iter().copied()) {
                        Some(meant) => format!("is ignored; did you mean `{meant}`?"),
                        None => "is ignored".to_owned(),
                    });
                self.ignore(entry, &reason);
            }
        }
    }

    fn set(&mut self, key: &str, value: ConfigNode, from: &TableEntry) {
        // Of two keys with one meaning the first counts, and the other is reported.
        if self.entries.iter().any(|entry| entry.key == key) {
            return self.ignore(from, &format!("is ignored: `{key}` is already set"));
        }
        self.entries.push(TableEntry { key: key.to_owned(), key_span: from.key_span.clone(), value });
    }

    /// Normalizes the transport: clients write `stdio` beside a command, and have several names for Streamable HTTP.
    fn take_transport(&mut self, entry: &TableEntry) {
        let word = entry.value.text().map(str::to_ascii_lowercase);
        match word.as_deref() {
            Some("stdio" | "local") if !self.is_remote => {}
            Some("remote") if self.is_remote => {}
            _ if self.is_auto_transport && entry.key != "transport" => {}
            _ if self.is_remote => {
                let value = match word.as_deref() {
                    Some("streamable-http" | "streamablehttp" | "streamable_http") => {
                        ConfigNode { span: entry.value.span.clone(), kind: NodeKind::Text("http".to_owned()) }
                    }
                    _ => entry.value.clone(),
                };
                self.set("transport", value, entry);
            }
            _ => self.ignore(entry, "is ignored: it does not apply to a `command`"),
        }
    }

    /// Normalizes how a client logs in: clients have the same few keys under `oauth` or `auth`, spelled differently.
    fn take_auth(&mut self, entry: &TableEntry) {
        let table = |entries| ConfigNode { span: entry.value.span.clone(), kind: NodeKind::Table(entries) };
        let entries = match &entry.value.kind {
            NodeKind::Bool(true) => return,
            NodeKind::Bool(false) => {
                let off =
                    ConfigNode { span: entry.value.span.clone(), kind: NodeKind::Text("none".to_owned()) };
                let off = TableEntry { key: "type".to_owned(), key_span: entry.key_span.clone(), value: off };
                return self.set("auth", table(vec![off]), entry);
            }
            NodeKind::Table(entries) => entries,
            _ => return self.set("auth", entry.value.clone(), entry),
        };
        let mut kept: Vec<TableEntry> = Vec::new();
        for inner in entries.iter().filter(|inner| inner.value.is_set()) {
            let key = match &*inner.key {
                "clientId" | "CLIENT_ID" => "client_id",
                "clientSecret" | "CLIENT_SECRET" => "client_secret",
                "scopes" | "scope" => "scopes",
                key if entry.key == "auth" || key == "issuer" => key,
                _ => {
                    self.ignore(inner, "is ignored: the server names it itself");
                    continue;
                }
            };
            let value = match (&inner.value.kind, key) {
                // A list of scopes as OAuth writes it.
                (NodeKind::Text(scopes), "scopes") => {
                    let scope = |text: &str| ConfigNode {
                        span: inner.value.span.clone(),
                        kind: NodeKind::Text(text.to_owned()),
                    };
                    let scopes = scopes.split_ascii_whitespace().map(scope).collect();
                    ConfigNode { span: inner.value.span.clone(), kind: NodeKind::Array(scopes) }
                }
                _ => inner.value.clone(),
            };
            kept.push(TableEntry { key: key.to_owned(), key_span: inner.key_span.clone(), value });
        }
        if !kept.is_empty() {
            self.set("auth", table(kept), entry);
        }
    }

    /// Takes a program and its arguments from one list.
    fn take_words(&mut self, entry: &TableEntry) {
        let NodeKind::Array(words) = &entry.value.kind else { return };
        let mut words = words.iter().cloned();
        if let Some(program) = words.next() {
            self.set("command", program, entry);
        }
        let rest: Vec<ConfigNode> = words.collect();
        if !rest.is_empty() {
            self.set(
                "args",
                ConfigNode { span: entry.value.span.clone(), kind: NodeKind::Array(rest) },
                entry,
            );
        }
    }

    /// Takes the names of variables that a program gets of the client's own environment.
    fn take_inherited(&mut self, entry: &TableEntry) {
        let NodeKind::Array(names) = &entry.value.kind else { return };
        let variables = names.iter().filter_map(|name| {
            let text = name.text().or_else(|| name.get("name").and_then(ConfigNode::text))?;
            let kind = NodeKind::Text(format!("${{{text}}}"));
            let value = ConfigNode { span: name.span.clone(), kind };
            Some(TableEntry { key: text.to_owned(), key_span: name.span.clone(), value })
        });
        self.extend_table("env", variables.collect(), entry);
    }

    /// Takes the name of the variable that has a token.
    fn take_bearer(&mut self, entry: &TableEntry) {
        let Some(name) = entry.value.text() else { return };
        let kind = NodeKind::Text(format!("Bearer ${{{name}}}"));
        let value = ConfigNode { span: entry.value.span.clone(), kind };
        let header = TableEntry { key: "Authorization".to_owned(), key_span: entry.key_span.clone(), value };
        self.extend_table("headers", vec![header], entry);
    }

    /// Takes a time in seconds.
    fn take_seconds(&mut self, entry: &TableEntry) {
        let kind = match entry.value.kind {
            NodeKind::Integer(seconds) => NodeKind::Text(format!("{seconds}s")),
            NodeKind::Float(seconds) => NodeKind::Text(format!("{:.0}ms", seconds * 1000.0)),
            ref other => other.clone(),
        };
        self.set("timeout", ConfigNode { span: entry.value.span.clone(), kind }, entry);
    }

    fn add_headers(&mut self, headers: &ConfigNode, entry: &TableEntry) {
        self.extend_table("headers", headers.entries().unwrap_or_default().to_vec(), entry);
    }

    /// Adds members to a table of the server, which may be there already.
    fn extend_table(&mut self, key: &str, members: Vec<TableEntry>, from: &TableEntry) {
        match self.entries.iter_mut().find(|known| known.key == key).map(|known| &mut known.value.kind) {
            Some(NodeKind::Table(known)) => {
                let new = members.into_iter().filter(|member| known.iter().all(|own| own.key != member.key));
                let new: Vec<TableEntry> = new.collect();
                known.extend(new);
            }
            Some(_) => {}
            None => {
                let value = ConfigNode { span: from.value.span.clone(), kind: NodeKind::Table(members) };
                self.set(key, value, from);
            }
        }
    }

    fn take_disabled(&mut self, entry: &TableEntry) {
        let kind = match entry.value.kind {
            NodeKind::Bool(disabled) => NodeKind::Bool(!disabled),
            ref other => other.clone(),
        };
        self.set("enabled", ConfigNode { span: entry.value.span.clone(), kind }, entry);
    }

    /// Adds a list of names to the rules for tools.
    fn add_rule(&mut self, rule: &str, entry: &TableEntry) {
        let added = TableEntry { key: rule.to_owned(), ..entry.clone() };
        match self.entries.iter_mut().find(|known| known.key == "tools").map(|known| &mut known.value.kind) {
            Some(NodeKind::Table(rules)) if rules.iter().all(|known| known.key != rule) => rules.push(added),
            Some(_) => self.ignore(entry, "is ignored: such rules are already set"),
            None => {
                let value = ConfigNode { span: entry.value.span.clone(), kind: NodeKind::Table(vec![added]) };
                self.set("tools", value, entry);
            }
        }
    }

    fn ignore(&mut self, entry: &TableEntry, what: &str) {
        self.ignored_keys.push(IgnoredKey {
            offset: entry.key_span.start,
            server: Some(self.name.to_owned()),
            key: entry.key.clone(),
            reason: what.to_owned(),
        });
    }
}

/// Returns a table of names of variables as a table of their values.
fn from_variables(table: &ConfigNode) -> ConfigNode {
    let entries = table.entries().unwrap_or_default().iter().map(|entry| {
        let kind = match entry.value.text() {
            Some(name) => NodeKind::Text(format!("${{{name}}}")),
            None => entry.value.kind.clone(),
        };
        TableEntry { value: ConfigNode { span: entry.value.span.clone(), kind }, ..entry.clone() }
    });
    ConfigNode { span: table.span.clone(), kind: NodeKind::Table(entries.collect()) }
}

impl ConfigNode {
    fn is_empty_list(&self) -> bool {
        matches!(&self.kind, NodeKind::Array(elements) if elements.is_empty())
    }

    /// Reports whether a value is set: null and empty lists and tables are not.
    fn is_set(&self) -> bool {
        match &self.kind {
            NodeKind::Null => false,
            NodeKind::Array(elements) => !elements.is_empty(),
            NodeKind::Table(entries) => !entries.is_empty(),
            _ => true,
        }
    }
}
