//! The fields of a server definition as they are written, in order and without those at their default.

use std::collections::BTreeMap;
use std::path::Path;

use crate::duration::ConfigDuration;
use crate::server::{
    AuthKind, ConnectionSharing, DpopUse, LocalProgram, NamePattern, RemoteTransport, ServerConfig,
    ServerLocation, StartMode,
};
use crate::text::ConfigText;

/// One field of a server definition.
pub(super) struct ServerField {
    /// The key; a dot separates the key of a nested table.
    pub(super) name: &'static str,
    pub(super) value: FieldValue,
}

pub(super) enum FieldValue {
    Text(String),
    Bool(bool),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

/// Lists the fields of a server for a file in this folder. Variables are written by name.
pub(super) fn fields(server: &ServerConfig, folder: &Path) -> Vec<ServerField> {
    let mut fields = Vec::new();
    let mut add =
        |name, value: Option<FieldValue>| fields.extend(value.map(|value| ServerField { name, value }));
    match &server.location {
        ServerLocation::Program(program) => {
            add("command", Some(text(&program.command)));
            add("args", list(program.args.iter().map(ConfigText::as_written)));
            add("env", table(&program.env));
            add("cwd", cwd(program, folder));
        }
        ServerLocation::Endpoint(endpoint) => {
            add("url", Some(text(&endpoint.url)));
            add("headers", table(&endpoint.headers));
            add(
                "transport",
                word(endpoint.transport.as_str(), endpoint.transport == RemoteTransport::default()),
            );
        }
    }
    add("enabled", (!server.enabled).then_some(FieldValue::Bool(false)));
    add("required", server.required.then_some(FieldValue::Bool(true)));
    add("timeout", server.timeout.map(|time| FieldValue::Text(ConfigDuration(time).to_string())));
    add("start", word(server.start.as_str(), server.start == StartMode::default()));
    add("idle", server.idle.map(|time| FieldValue::Text(ConfigDuration(time).to_string())));
    add("rate", server.rate.map(|rate| FieldValue::Text(rate.to_string())));
    add("share", word(server.sharing.as_str(), server.sharing == ConnectionSharing::default()));
    add("era", server.era.map(|era| FieldValue::Text(era.as_str().to_owned())));
    add("revision", server.revision.map(|revision| FieldValue::Text(revision.as_str().to_owned())));
    add("auth.type", word(server.auth.kind.as_str(), server.auth.kind == AuthKind::default()));
    for (name, (key, value)) in AUTH_TEXTS.into_iter().zip(server.auth.texts()) {
        let is_file = matches!(key, "private_key" | "token_file");
        add(
            name,
            value.map(|value| match is_file {
                true => FieldValue::Text(rebased(value.as_written(), &server.auth.base, folder)),
                false => text(value),
            }),
        );
    }
    add("auth.scopes", list(server.auth.scopes.iter().map(String::as_str)));
    add("auth.dpop", word(server.auth.dpop.as_str(), server.auth.dpop == DpopUse::default()));
    add("caller_env", list(server.caller_env.iter().map(String::as_str)));
    add("tools.allow", list(server.tools.allow.iter().map(NamePattern::as_str)));
    add("tools.deny", list(server.tools.deny.iter().map(NamePattern::as_str)));
    add("tools.rename", plain_table(&server.tools.rename));
    add("tools.describe", plain_table(&server.tools.describe));
    fields
}

/// The texts of [`ServerAuth`](crate::ServerAuth), in its order.
const AUTH_TEXTS: [&str; 11] = [
    "auth.client_id",
    "auth.client_document",
    "auth.client_secret",
    "auth.private_key",
    "auth.issuer",
    "auth.token_file",
    "auth.idp_token_endpoint",
    "auth.idp_client_id",
    "auth.idp_client_secret",
    "auth.token_endpoint",
    "auth.audience",
];

/// Rebases the working folder of a program.
fn cwd(program: &LocalProgram, folder: &Path) -> Option<FieldValue> {
    let written = program.cwd.as_ref()?.as_written();
    Some(FieldValue::Text(rebased(written, &program.base, folder)))
}

/// Rebases a relative path of another configuration file, so that it stays the same file or folder.
fn rebased(written: &str, base: &Path, folder: &Path) -> String {
    let moves = Path::new(written).is_relative() && !written.starts_with("${") && base != folder;
    if !moves || base.as_os_str().is_empty() {
        return written.to_owned();
    }
    let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
    base.join(written).display().to_string()
}

fn text(text: &ConfigText) -> FieldValue {
    FieldValue::Text(text.as_written().to_owned())
}

fn word(word: &str, is_default: bool) -> Option<FieldValue> {
    (!is_default).then(|| FieldValue::Text(word.to_owned()))
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> Option<FieldValue> {
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    (!texts.is_empty()).then_some(FieldValue::List(texts))
}

fn table(pairs: &BTreeMap<String, ConfigText>) -> Option<FieldValue> {
    let pairs: BTreeMap<String, String> =
        pairs.iter().map(|(name, text)| (name.clone(), text.as_written().to_owned())).collect();
    (!pairs.is_empty()).then_some(FieldValue::Table(pairs))
}

fn plain_table(pairs: &BTreeMap<String, String>) -> Option<FieldValue> {
    (!pairs.is_empty()).then(|| FieldValue::Table(pairs.clone()))
}
