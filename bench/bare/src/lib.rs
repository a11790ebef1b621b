//! The physical limit: the least that a server can do for one call.
//!
//! Both binaries parse the message into a typed struct, find the era, and write the answer that a complete server
//! would write. They check nothing, store nothing and route nothing. What a real server costs above them is the price
//! of the protocol and of its own structure.

mod answer;
mod request;

use request::Request;

/// What the transport has to do with a message that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is in the buffer.
    Answered,
    /// The answer is in the buffer and opens a legacy session.
    Opened,
    /// The buffer holds the acknowledgement of a stream that stays open.
    Listening,
    /// The message was a notification; nothing is sent back.
    Silent,
}

/// Parses one message and appends its answer to `out`.
///
/// # Errors
/// The message is not a JSON-RPC request of the shape that the load generator sends.
pub fn answer(message: &[u8], out: &mut Vec<u8>) -> serde_json::Result<Outcome> {
    let request: Request<'_> = serde_json::from_slice(message)?;
    let Some(id) = request.id else { return Ok(Outcome::Silent) };
    match request.method.as_ref() {
        "initialize" => {
            answer::push_opening(out, id);
            Ok(Outcome::Opened)
        }
        "subscriptions/listen" => {
            answer::push_acknowledgement(out, id);
            Ok(Outcome::Listening)
        }
        _ => {
            let text = request.params.arguments.as_ref().map_or("", |arguments| arguments.message.as_ref());
            answer::push_tool_result(out, id, text, request.params.is_modern())?;
            Ok(Outcome::Answered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, outcome: Outcome, expected: &str) {
        let mut out = Vec::new();
        assert_eq!(answer(message.as_bytes(), &mut out).unwrap(), outcome);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn legacy_response_has_no_result_type() {
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"a\"b"}}}"#,
            Outcome::Answered,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\"b"}]}}"#,
        );
    }

    #[test]
    fn modern_response_has_result_type_and_server_info() {
        check(
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
            Outcome::Answered,
            r#"{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[{"type":"text","text":"hi"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1.0.0"}}}}"#,
        );
    }

    #[test]
    fn notification_gets_no_response() {
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Outcome::Silent, "");
    }

    #[test]
    fn initialize_opens_a_session() {
        let mut out = Vec::new();
        let message =
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
        assert_eq!(answer(message, &mut out).unwrap(), Outcome::Opened);
        assert!(String::from_utf8(out).unwrap().contains(r#""protocolVersion":"2025-11-25""#));
    }

    #[test]
    fn listen_is_acknowledged_under_its_own_id() {
        let mut out = Vec::new();
        let message =
            br#"{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{}}}"#;
        assert_eq!(answer(message, &mut out).unwrap(), Outcome::Listening);
        let event = String::from_utf8(out).unwrap();
        let data = event.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap();
        let notification: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 4);
    }
}
