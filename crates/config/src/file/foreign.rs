//! Files of other clients, and in other formats, where their name promises something else.

use std::path::Path;

use super::SECTIONS;
use super::containers::{CODEX, OPENCODE, containers, has_opencode_servers};
use super::dialect::LOCATION_KEYS;
use crate::find::ClientApp;
use crate::node::ConfigNode;
use crate::problem::ConfigProblem;
use crate::syntax::{self, ConfigFormat};

/// Returns the client that writes such keys, if only one does.
pub(super) fn client_of(root: &ConfigNode, format: ConfigFormat) -> Option<ClientApp> {
    let has_servers = |key: &str| {
        let servers = root.get(key).and_then(ConfigNode::entries).unwrap_or_default();
        servers.iter().any(|server| LOCATION_KEYS.iter().any(|key| server.value.get(key).is_some()))
    };
    let keys: &[(&str, ClientApp)] = match format {
        ConfigFormat::Toml | ConfigFormat::ClientToml => &[(CODEX, ClientApp::Codex)],
        ConfigFormat::Yaml => &[("extensions", ClientApp::Goose), ("mcpServers", ClientApp::Continue)],
        ConfigFormat::Json => &[
            ("context_servers", ClientApp::Zed),
            ("amp.mcpServers", ClientApp::Amp),
            ("servers", ClientApp::VsCode),
        ],
    };
    let is_opencode = || format == ConfigFormat::Json && root.get(OPENCODE).is_some_and(has_opencode_servers);
    let by_key = keys.iter().find(|(key, _)| has_servers(key)).map(|(_, client)| *client);
    by_key.or_else(|| is_opencode().then_some(ClientApp::OpenCode))
}

/// Returns the problem of a file that has a text in another format than its name promises.
pub(super) fn other_format(path: &Path, named: ConfigFormat, text: &str) -> Option<ConfigProblem> {
    let is_object = text.trim_start().starts_with(['{', '/']);
    let others = [ConfigFormat::Json, ConfigFormat::Yaml, ConfigFormat::Toml];
    others.into_iter().filter(|other| name_of(*other) != name_of(named)).find_map(|other| {
        // Objects are YAML too, and no file of another kind begins with a brace.
        if is_object != (other == ConfigFormat::Json) {
            return None;
        }
        let root = syntax::parse(other, text).ok()?;
        let client = client_of(&root, other);
        let is_ours = other == ConfigFormat::Toml && SECTIONS.iter().any(|name| root.get(name).is_some());
        let has_servers = other == ConfigFormat::Json && containers(&root, other).next().is_some();
        (client.is_some() || is_ours || has_servers).then(|| problem(path, other, client, named))
    })
}

/// Returns the problem of a file of another client, or in another format.
pub(super) fn problem(
    path: &Path,
    format: ConfigFormat,
    client: Option<ClientApp>,
    named: ConfigFormat,
) -> ConfigProblem {
    let (found, expected) = (name_of(format), name_of(named));
    let what = match client {
        Some(client) if found == expected => format!("is a file of {client}"),
        Some(client) => format!("is a file of {client}, in {found} and not in {expected}"),
        None => format!("is in {found} and not in {expected}"),
    };
    let renamed = path.with_extension(found.to_lowercase());
    let rename = format!("rename it to `{}`", renamed.file_name().unwrap_or_default().display());
    let import =
        client.map(|client| format!("import its servers with `trunkline import {}`", client.as_str()));
    let hint = match import {
        // Only its own path shows that a file is that of Codex.
        Some(import) if client == Some(ClientApp::Codex) => import,
        Some(import) => format!("{rename}, or {import}"),
        None => rename,
    };
    ConfigProblem::new(path, what).hint(hint)
}

fn name_of(format: ConfigFormat) -> &'static str {
    match format {
        ConfigFormat::Json => "JSON",
        ConfigFormat::Yaml => "YAML",
        ConfigFormat::Toml | ConfigFormat::ClientToml => "TOML",
    }
}
