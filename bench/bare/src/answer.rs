//! The answers. All that does not change from call to call is a constant; only the text is serialized.

use serde_json::value::RawValue;

const ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const LEGACY_TEXT: &[u8] = br#","result":{"content":[{"type":"text","text":"#;
const LEGACY_END: &[u8] = br#"}]}}"#;
const MODERN_TEXT: &[u8] = br#","result":{"resultType":"complete","content":[{"type":"text","text":"#;
const MODERN_END: &[u8] =
    br#"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1.0.0"}}}}"#;
const OPENING: &[u8] = br#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0.0"}}}"#;
const ACKNOWLEDGEMENT: &[u8] = br#"data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;
const ACKNOWLEDGEMENT_END: &[u8] = b"},\"notifications\":{\"toolsListChanged\":true}}}\n\n";

/// Appends the result of `tools/call` in the caller's era.
pub(crate) fn push_tool_result(
    out: &mut Vec<u8>,
    id: &RawValue,
    text: &str,
    modern: bool,
) -> serde_json::Result<()> {
    let (before, after) = if modern { (MODERN_TEXT, MODERN_END) } else { (LEGACY_TEXT, LEGACY_END) };
    push(out, &[ID, id.get().as_bytes(), before]);
    serde_json::to_writer(&mut *out, text)?;
    out.extend_from_slice(after);
    Ok(())
}

/// Appends the result of `initialize`.
pub(crate) fn push_opening(out: &mut Vec<u8>, id: &RawValue) {
    push(out, &[ID, id.get().as_bytes(), OPENING]);
}

/// Appends the event with which a modern server acknowledges a subscription.
pub(crate) fn push_acknowledgement(out: &mut Vec<u8>, id: &RawValue) {
    push(out, &[ACKNOWLEDGEMENT, id.get().as_bytes(), ACKNOWLEDGEMENT_END]);
}

fn push(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}
