//! The messages of the clients, and what is read from the responses.

use serde_json::{Map, Value, json};

use super::history::CallNumber;

pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";

/// The tool that returns its arguments, and the one with a question to the user.
pub(super) const ECHO: &str = "json_schema_2020_12_tool";
pub(super) const ASK: &str = "test_elicitation";
/// The tool that changes the resource of all subscriptions.
pub(super) const CHANGE: &str = "test_trigger_resource_update";
pub(super) const WATCHED: &str = "test://watched-resource";

/// The text that a call carries.
pub(super) fn mark(call: CallNumber) -> String {
    format!("call-{call}.")
}

/// Returns the number of the call in a text.
pub(super) fn marked(text: &str) -> Option<CallNumber> {
    let (_, rest) = text.split_once("call-")?;
    rest.split_once('.')?.0.parse().ok()
}

pub(super) fn initialize() -> String {
    let client = json!({ "name": "replicas", "version": "1" });
    let params =
        json!({ "protocolVersion": LEGACY, "capabilities": { "elicitation": {} }, "clientInfo": client });
    request("opening", "initialize", params)
}

pub(super) fn initialized() -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()
}

pub(super) fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> String {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params.into() }).to_string()
}

/// Returns the arguments of a tool that carry the number of a call.
pub(super) fn call_params(tool: &str, call: CallNumber) -> Value {
    let argument = if tool == ASK { "message" } else { "email" };
    match tool {
        CHANGE => json!({ "name": tool, "arguments": {} }),
        _ => json!({ "name": tool, "arguments": { argument: mark(call) } }),
    }
}

/// Makes the parameters of a call modern.
pub(super) fn modern(mut params: Value) -> Value {
    let about = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "replicas", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    if let Value::Object(members) = &mut params {
        members.insert("_meta".to_owned(), about);
    }
    params
}

/// Adds the responses and the state of the round before to the parameters of a call.
pub(super) fn retried(mut params: Value, responses: Map<String, Value>, state: Value) -> Value {
    if let Value::Object(members) = &mut params {
        members.insert("inputResponses".to_owned(), Value::Object(responses));
        members.insert("requestState".to_owned(), state);
    }
    params
}

/// Returns the method of a request or notification.
pub(super) fn method(message: &Value) -> Option<&str> {
    message.get("method")?.as_str()
}

/// Returns the user's answer to a question, which carries the number of its call.
pub(super) fn accepted(call: CallNumber) -> Value {
    json!({ "action": "accept", "content": { "username": mark(call), "email": "a@example.com" } })
}

/// Returns the text of a tool's result.
pub(super) fn result_text(message: &Value) -> Option<&str> {
    message.pointer("/result/content/0/text")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_call_is_found_in_its_texts_only() {
        assert_eq!(marked(&format!("received {{\"email\":\"{}\"}}", mark(17))), Some(17));
        assert_eq!(marked(&call_params(ASK, 5).to_string()), Some(5));
        for text in ["", "call-", "call-x.", "call-7"] {
            assert_eq!(marked(text), None, "{text}");
        }
    }
}
