//! A server definition of `trunkline.toml`. Other dialects are normalized to this form first.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::location::{LocalProgram, RemoteEndpoint, ServerLocation, check_address};
use super::options::{ConnectionSharing, ProtocolEra, ProtocolRevision, RemoteTransport, StartMode};
use super::{ServerAuth, ServerConfig, ServerName, ToolRules};
use crate::call_rate::CallRate;
use crate::de::{self, DecodeError};
use crate::duration::ConfigDuration;
use crate::node::{ConfigNode, NodeKind};
use crate::text::ConfigText;
use crate::variables::VariableExpander;

/// One server of `trunkline.toml`. It has either a `command` or a `url`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["command"] }, { "required": ["url"] }]))]
pub(crate) struct ServerTable {
    /// The program to start.
    command: Option<ConfigText>,
    /// The arguments of the program.
    args: Vec<ConfigText>,
    /// Environment variables of the program.
    env: BTreeMap<String, ConfigText>,
    /// The folder in which the program runs, counted from that of this file.
    cwd: Option<ConfigText>,
    /// The address of a server that runs already.
    url: Option<ConfigText>,
    /// Headers to send with every request to the address.
    headers: BTreeMap<String, ConfigText>,
    /// The transport of the address.
    transport: RemoteTransport,
    /// Whether the tools of this server are exposed.
    enabled: bool,
    /// Whether the hub is ready only while this server is connected.
    required: bool,
    /// The timeout of a call, such as "30s".
    timeout: Option<ConfigDuration>,
    /// When the server is started.
    start: StartMode,
    /// The idle time after which the server is stopped, such as "10m".
    idle: Option<ConfigDuration>,
    /// The calls of all callers together, such as "100/1s". By default there is no limit.
    rate: Option<CallRate>,
    /// Which callers share one connection to the server.
    share: ConnectionSharing,
    /// The protocol era to use if the server supports both; by default that of the client.
    era: Option<ProtocolEra>,
    /// The only protocol revision to use.
    revision: Option<ProtocolRevision>,
    /// How the tokens that the server demands are obtained.
    auth: ServerAuth,
    /// Variables of the caller, allowed with `serve --env`, that the server gets.
    caller_env: Vec<String>,
    /// Which tools are exposed, and how.
    tools: ToolRules,
}

impl Default for ServerTable {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            transport: RemoteTransport::default(),
            enabled: true,
            required: false,
            timeout: None,
            start: StartMode::default(),
            idle: None,
            rate: None,
            share: ConnectionSharing::default(),
            era: None,
            revision: None,
            auth: ServerAuth::default(),
            caller_env: Vec::new(),
            tools: ToolRules::default(),
        }
    }
}

/// The keys of a server, in the order in which they are written to a file.
pub(crate) const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "transport",
    "enabled",
    "required",
    "timeout",
    "start",
    "idle",
    "rate",
    "share",
    "era",
    "revision",
    "auth",
    "caller_env",
    "tools",
];

/// The problem of a server that is neither a program nor an address.
const MISSING_LOCATION: &str = "it has neither a `command` nor a `url`";

impl DecodeError {
    /// Reports whether it is about a server that is neither a program nor an address.
    pub(crate) fn is_missing_location(&self) -> bool {
        self.message == MISSING_LOCATION
    }
}

/// Keys of earlier versions, each with its warning. They are accepted and have no effect.
const OBSOLETE_KEYS: &[(&str, &str)] = &[(
    "attribution",
    "no longer has any effect and can be removed: an input request always reaches the client whose call caused it",
)];

/// Returns the warning about a key of a server that only earlier versions had.
pub(crate) fn obsolete_key_reason(key: &str) -> Option<&'static str> {
    OBSOLETE_KEYS.iter().find(|(removed, _)| *removed == key).map(|(_, what)| *what)
}

/// Reads one server; the node is its table.
pub(crate) fn read(
    name: &str,
    node: &ConfigNode,
    base: &Path,
    expander: &VariableExpander<'_>,
) -> Result<ServerConfig, DecodeError> {
    let name =
        ServerName::parse(name).map_err(|error| DecodeError::new(error.to_string()).with_span(&node.span))?;
    let mut table: ServerTable = de::read(&without_obsolete_keys(node), expander)?;
    // The node has the positions of the keys, for the errors below.
    let wrong = |keys: &[&str], what: &str| {
        let span = node.at(keys).map_or(&node.span, |value| &value.span);
        keys.iter()
            .rev()
            .fold(DecodeError::new(what.to_owned()).with_span(span), |fault, key| fault.within(key))
    };
    if let Some((keys, what)) = table.tools.find_invalid_rule() {
        return Err(wrong(&["tools", keys[0], keys[1]], &what));
    }
    if let Some((key, what)) = table.auth.find_invalid_key() {
        let keys: &[&str] = if key.is_empty() { &["auth"] } else { &["auth", key] };
        return Err(wrong(keys, &what));
    }
    if let (Some(era), Some(revision)) = (table.era, table.revision)
        && revision.era() != era
    {
        let what =
            format!("it is a revision of the {} era, but `era` is {}", revision.era().as_str(), era.as_str());
        return Err(wrong(&["revision"], &what));
    }
    if let Some(index) = table.caller_env.iter().position(|name| !is_variable_name(name)) {
        let what = "a variable that callers may set has only letters, digits and `_` in its name";
        return Err(wrong(&["caller_env", &index.to_string()], what));
    }
    let auth = std::mem::take(&mut table.auth).within(base);
    let config = ServerConfig {
        enabled: table.enabled,
        required: table.required,
        timeout: table.timeout.map(|length| length.0),
        start: table.start,
        idle: table.idle.map(|length| length.0),
        rate: table.rate,
        sharing: table.share,
        era: table.era,
        revision: table.revision,
        auth,
        caller_env: std::mem::take(&mut table.caller_env),
        tools: std::mem::take(&mut table.tools),
        ..ServerConfig::new(name, read_location(table, node, base, expander, &wrong)?)
    };
    match config.auth.find_unsuitable_transport(&config.location) {
        Some((key, what)) => Err(wrong(&[key], what)),
        None => Ok(config),
    }
}

/// Reads how a server is reached: by the keys of a program, or by those of a URL, and never by both.
fn read_location(
    table: ServerTable,
    node: &ConfigNode,
    base: &Path,
    expander: &VariableExpander<'_>,
    wrong: &dyn Fn(&[&str], &str) -> DecodeError,
) -> Result<ServerLocation, DecodeError> {
    let refuse_keys = |keys: &[&str], what: &str| match keys.iter().find(|key| node.get(key).is_some()) {
        Some(key) => Err(wrong(&[key], what)),
        None => Ok(()),
    };
    match (table.command, table.url) {
        (Some(_), Some(_)) => {
            Err(wrong(&["url"], "there is a `command` as well; a server has either of them"))
        }
        (None, None) => Err(wrong(&[], MISSING_LOCATION)),
        (Some(command), None) => {
            let foreign = "it is for a server with a `url`, and this one has a `command`";
            refuse_keys(&["headers", "transport", "auth"], foreign)?;
            let ServerTable { args, env, cwd, .. } = table;
            let program = LocalProgram { command, args, env, cwd, base: base.to_owned() };
            check_program(&program, wrong)?;
            Ok(ServerLocation::Program(program))
        }
        (None, Some(url)) => {
            let foreign = "it is for a server with a `command`, and this one has a `url`";
            refuse_keys(&["args", "env", "cwd"], foreign)?;
            let mut endpoint = RemoteEndpoint { url, headers: table.headers, transport: table.transport };
            check_endpoint(&mut endpoint, expander, wrong)?;
            Ok(ServerLocation::Endpoint(endpoint))
        }
    }
}

/// Reports whether a name is one that a header can carry, as those of callers are.
fn is_variable_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| legal(c) && !c.is_ascii_digit())
        && name.chars().all(legal)
        && name.len() <= 128
}

/// Leaves out the keys that have no effect any more.
fn without_obsolete_keys(node: &ConfigNode) -> ConfigNode {
    let mut node = node.clone();
    if let NodeKind::Table(entries) = &mut node.kind {
        entries.retain(|entry| obsolete_key_reason(&entry.key).is_none());
    }
    node
}

/// Rejects values that no program can be started with: the system ends each of these strings at a NUL.
fn check_program(
    program: &LocalProgram,
    wrong: &dyn Fn(&[&str], &str) -> DecodeError,
) -> Result<(), DecodeError> {
    const NUL: &str = "it has a NUL character in it";
    let has_nul = |text: &ConfigText| text.expose().contains('\0');
    if program.command.expose().trim().is_empty() {
        return Err(wrong(&["command"], "it is empty"));
    }
    if has_nul(&program.command) {
        return Err(wrong(&["command"], NUL));
    }
    if let Some(index) = program.args.iter().position(has_nul) {
        return Err(wrong(&["args", &index.to_string()], NUL));
    }
    for (name, value) in &program.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong(&["env", name], "the name of a variable is not empty and has no `=`"));
        }
        if has_nul(value) {
            return Err(wrong(&["env", name], NUL));
        }
    }
    match &program.cwd {
        Some(cwd) if has_nul(cwd) || cwd.expose().is_empty() => Err(wrong(&["cwd"], "not a valid folder")),
        _ => Ok(()),
    }
}

fn check_endpoint(
    endpoint: &mut RemoteEndpoint,
    expander: &VariableExpander<'_>,
    wrong: &dyn Fn(&[&str], &str) -> DecodeError,
) -> Result<(), DecodeError> {
    // With variables left as they are, an address may not be one yet.
    let is_open = expander.is_disabled() && endpoint.url.as_written().contains("${");
    if let Some(what) = check_address(endpoint.url.expose()).filter(|_| !is_open) {
        return Err(wrong(&["url"], what));
    }
    let is_websocket = endpoint.is_websocket();
    let fits = match endpoint.transport {
        RemoteTransport::Auto => true,
        RemoteTransport::Http | RemoteTransport::Sse => !is_websocket,
        RemoteTransport::WebSocket => is_websocket,
    };
    if !fits && !is_open {
        return Err(wrong(&["transport"], "the address is of another transport"));
    }
    let mut headers = BTreeMap::new();
    for (name, value) in std::mem::take(&mut endpoint.headers) {
        let Ok(lower) = http::HeaderName::try_from(&name) else {
            return Err(wrong(&["headers", &name], "not a valid header name"));
        };
        if http::HeaderValue::from_str(value.expose()).is_err() {
            return Err(wrong(
                &["headers", &name],
                "a header may have only visible ASCII characters and spaces",
            ));
        }
        if headers.insert(lower.as_str().to_owned(), value).is_some() {
            return Err(wrong(&["headers", &name], "the header is set twice, spelled differently"));
        }
    }
    endpoint.headers = headers;
    Ok(())
}
