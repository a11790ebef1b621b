//! What is said of a server when it is written, in order; what is at its default is left out.

use std::collections::BTreeMap;
use std::path::Path;

use crate::duration::Length;
use crate::server::{Pattern, Program, Reach, ServerConfig, Share, Start, Wire};
use crate::text::Text;

/// One thing that is said of a server.
pub(super) struct Field {
    /// Its key, with a dot in it where it is within a table.
    pub(super) name: &'static str,
    pub(super) value: Value,
}

pub(super) enum Value {
    Text(String),
    Bool(bool),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

/// Lists what is said of a server in a file of this folder. Variables are written by name.
pub(super) fn fields(server: &ServerConfig, folder: &Path) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut say = |name, value: Option<Value>| fields.extend(value.map(|value| Field { name, value }));
    match &server.reach {
        Reach::Program(program) => {
            say("command", Some(text(&program.command)));
            say("args", list(program.args.iter().map(Text::as_written)));
            say("env", table(&program.env));
            say("cwd", cwd(program, folder));
        }
        Reach::Endpoint(endpoint) => {
            say("url", Some(text(&endpoint.url)));
            say("headers", table(&endpoint.headers));
            say("transport", word(endpoint.wire.as_str(), endpoint.wire == Wire::default()));
        }
    }
    say("enabled", (!server.enabled).then_some(Value::Bool(false)));
    say("required", server.required.then_some(Value::Bool(true)));
    say("timeout", server.timeout.map(|time| Value::Text(Length(time).to_string())));
    say("start", word(server.start.as_str(), server.start == Start::default()));
    say("idle", server.idle.map(|time| Value::Text(Length(time).to_string())));
    say("share", word(server.share.as_str(), server.share == Share::default()));
    say("era", server.era.map(|era| Value::Text(era.as_str().to_owned())));
    say("revision", server.revision.map(|revision| Value::Text(revision.as_str().to_owned())));
    say("tools.allow", list(server.tools.allow.iter().map(Pattern::as_str)));
    say("tools.deny", list(server.tools.deny.iter().map(Pattern::as_str)));
    say("tools.rename", plain_table(&server.tools.rename));
    say("tools.describe", plain_table(&server.tools.describe));
    fields
}

/// A folder that counts from another configuration's is written so that it stays the same one.
fn cwd(program: &Program, folder: &Path) -> Option<Value> {
    let written = program.cwd.as_ref()?.as_written();
    let moves = Path::new(written).is_relative() && !written.starts_with("${") && program.base != folder;
    if !moves || program.base.as_os_str().is_empty() {
        return Some(Value::Text(written.to_owned()));
    }
    let base = std::path::absolute(&program.base).unwrap_or_else(|_| program.base.clone());
    Some(Value::Text(base.join(written).display().to_string()))
}

fn text(text: &Text) -> Value {
    Value::Text(text.as_written().to_owned())
}

fn word(word: &str, is_default: bool) -> Option<Value> {
    (!is_default).then(|| Value::Text(word.to_owned()))
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Value> {
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    (!texts.is_empty()).then_some(Value::List(texts))
}

fn table(pairs: &BTreeMap<String, Text>) -> Option<Value> {
    let pairs: BTreeMap<String, String> =
        pairs.iter().map(|(name, text)| (name.clone(), text.as_written().to_owned())).collect();
    (!pairs.is_empty()).then_some(Value::Table(pairs))
}

fn plain_table(pairs: &BTreeMap<String, String>) -> Option<Value> {
    (!pairs.is_empty()).then(|| Value::Table(pairs.clone()))
}
