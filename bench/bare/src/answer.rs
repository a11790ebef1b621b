//! The answers, serialized in one pass into one buffer.

use serde::Serialize;
use serde_json::value::RawValue;

/// Appends a JSON-RPC answer.
pub(crate) fn write(out: &mut Vec<u8>, id: &RawValue, result: impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(out, &Answer { jsonrpc: "2.0", id, result })
}

/// Appends the event with which a modern server acknowledges a subscription.
pub(crate) fn write_acknowledgement(out: &mut Vec<u8>, id: &RawValue) -> serde_json::Result<()> {
    let params = Acknowledged {
        meta: SubscriptionMeta { subscription_id: id },
        notifications: Honoured { tools_list_changed: true },
    };
    let method = "notifications/subscriptions/acknowledged";
    out.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *out, &Notification { jsonrpc: "2.0", method, params })?;
    out.extend_from_slice(b"\n\n");
    Ok(())
}

#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

/// The result of `tools/call` in either era.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Content<'a>; 1],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}

impl<'a> ToolResult<'a> {
    pub(crate) fn new(text: &'a str, modern: bool) -> Self {
        Self {
            result_type: modern.then_some("complete"),
            content: [Content { kind: "text", text }],
            meta: modern.then_some(ResultMeta { server_info: SERVER_INFO }),
        }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Implementation,
}

#[derive(Serialize)]
struct Implementation {
    name: &'static str,
    version: &'static str,
}

const SERVER_INFO: Implementation = Implementation { name: "echo", version: "1.0.0" };

/// The result of `initialize`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opening {
    protocol_version: &'static str,
    capabilities: Capabilities,
    server_info: Implementation,
}

impl Opening {
    pub(crate) fn new() -> Self {
        Self {
            protocol_version: "2025-11-25",
            capabilities: Capabilities { tools: Tools {} },
            server_info: SERVER_INFO,
        }
    }
}

#[derive(Serialize)]
struct Capabilities {
    tools: Tools,
}

#[derive(Serialize)]
struct Tools {}

#[derive(Serialize)]
struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct Acknowledged<'a> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
    notifications: Honoured,
}

#[derive(Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription_id: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Honoured {
    tools_list_changed: bool,
}
