//! JSON-RPC messages, written.
//!
//! See [Messages](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages).

use crate::envelope::{Message, Params};
use crate::json::{JsonWriter, RawJson};
use crate::refusal::Refusal;
use crate::request_id::RequestId;
use crate::revision::Revision;

const OPEN: &str = "{\"jsonrpc\":\"2.0\"";

/// Writes a response with a result object that `fill` writes.
pub fn result(id: &RequestId, hint: usize, fill: impl FnOnce(&mut JsonWriter)) -> String {
    let mut writer = JsonWriter::with_capacity(hint + 64);
    writer.verbatim(r#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut writer);
    writer.verbatim(r#""result":"#);
    fill(&mut writer);
    writer.close_object();
    writer.into_string()
}

/// Writes an error response in the form of a revision.
pub fn error(id: Option<&RequestId>, refusal: &Refusal, revision: Revision) -> String {
    let mut writer = open(64);
    match id {
        Some(id) => {
            writer.plain_key("id");
            id.write(&mut writer);
        }
        None if revision.writes_null_id() => {
            writer.plain_key("id");
            writer.raw(&RawJson::NULL);
        }
        None => {}
    }
    writer.plain_key("error");
    refusal.write(&mut writer, revision.era());
    writer.close_object();
    writer.into_string()
}

/// Writes a notification with parameters that `params` writes.
pub fn notification(method: &str, params: impl FnOnce(&mut JsonWriter)) -> String {
    let mut writer = open(96);
    writer.plain_key("method");
    writer.string(method);
    writer.plain_key("params");
    params(&mut writer);
    writer.close_object();
    writer.into_string()
}

/// Writes a notification without parameters.
pub fn bare_notification(method: &str) -> String {
    let mut writer = open(32);
    writer.plain_key("method");
    writer.string(method);
    writer.close_object();
    writer.into_string()
}

/// Writes a request.
pub fn request(id: &RequestId, method: &str, params: Option<&RawJson>) -> String {
    let mut writer = open(96);
    writer.plain_key("id");
    id.write(&mut writer);
    writer.plain_key("method");
    writer.string(method);
    if let Some(params) = params {
        writer.plain_key("params");
        writer.raw(params);
    }
    writer.close_object();
    writer.into_string()
}

/// Writes a request with a numeric id and parameters that `params` writes.
pub fn numbered_request(id: u64, method: &str, hint: usize, params: impl FnOnce(&mut JsonWriter)) -> String {
    let mut writer = JsonWriter::with_capacity(hint + method.len() + 64);
    writer.verbatim(r#"{"jsonrpc":"2.0","id":"#);
    writer.unsigned(id);
    writer.verbatim(r#""method":"#);
    writer.string(method);
    writer.verbatim(r#""params":"#);
    params(&mut writer);
    writer.close_object();
    writer.into_string()
}

/// Writes a message again from its parts: equal to the one that was read, but for the order of its members.
pub fn message(message: &Message) -> String {
    let mut writer = open(96);
    let id = match message {
        Message::Request(request) => Some(&request.id),
        Message::Response(response) => response.id.as_ref(),
        Message::Notification(_) => None,
    };
    if let Some(id) = id {
        writer.plain_key("id");
        id.write(&mut writer);
    }
    let (method, params) = match message {
        Message::Request(request) => (&request.method, &request.params),
        Message::Notification(notification) => (&notification.method, &notification.params),
        Message::Response(response) => {
            match &response.outcome {
                Ok(result) => writer.member("result", &result.clone().into_raw()),
                Err(error) => writer.member("error", error),
            }
            writer.close_object();
            return writer.into_string();
        }
    };
    writer.plain_key("method");
    writer.string(method);
    let params = whole_params(params);
    if params != RawJson::EMPTY_OBJECT {
        writer.member("params", &params);
    }
    writer.close_object();
    writer.into_string()
}

/// Joins parameters and their `_meta`.
pub fn whole_params(params: &Params) -> RawJson {
    let Some(meta) = &params.meta else { return params.members.to_raw() };
    let mut members = params.members.clone();
    members.set("_meta", meta.to_raw());
    members.to_raw()
}

fn open(hint: usize) -> JsonWriter {
    let mut writer = JsonWriter::with_capacity(hint + 64);
    writer.verbatim(OPEN);
    writer
}
