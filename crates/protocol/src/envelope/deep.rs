//! Responses that exceed the depth limit of messages.

use bytestring::ByteString;

use crate::codec::RawResult;
use crate::json::{JsonScanner, ScanError};
use crate::request_id::RequestId;

use super::{MessageLimits, Response};

/// Reads a response that fails on its depth alone, if it names its request.
pub(super) fn read_response(text: &ByteString, bounds: MessageLimits) -> Option<Response> {
    let mut scanner = JsonScanner::new(text, bounds.depth);
    scanner.skip();
    if scanner.outcome() != Err(ScanError::TooDeep) {
        return None;
    }
    let mut members = crate::json::JsonObject::parse_shallow(text).ok()?;
    let is_response = members.text("jsonrpc").as_deref() == Some("2.0") && members.get("method").is_none();
    let id = members.take("id").and_then(RequestId::from_raw).filter(|_| is_response)?;
    let outcome = match (members.take("result"), members.take("error")) {
        (Some(result), None) => Ok(RawResult::from(result)),
        (None, Some(error)) => Err(error),
        _ => return None,
    };
    Some(Response { id: Some(id), outcome })
}

#[cfg(test)]
mod tests {
    use super::super::{Message, MessageOrBatch, read, read_from_server};
    use super::*;

    #[test]
    fn server_response_may_exceed_the_depth_limit() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (message, is_response) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{deep}}}}}"#), true),
            (format!(r#"{{"result":{{"a":{deep}}},"id":7,"jsonrpc":"2.0"}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"data":{deep}}}}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{deep}}}}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{deep}}},"error":{{}}}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":{deep},"result":{{}}}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{deep}"#), false),
            (deep, false),
        ] {
            assert!(read(message.clone().into(), MessageLimits::default()).is_err());
            let response = match read_from_server(&message.clone().into(), MessageLimits::default()) {
                Ok(MessageOrBatch::One(Message::Response(response))) => Some(response),
                _ => None,
            };
            let id = response.as_ref().and_then(|response| response.id.clone());
            assert_eq!(id, is_response.then(|| RequestId::from_number(7)), "{message:.80}");
        }
    }
}
