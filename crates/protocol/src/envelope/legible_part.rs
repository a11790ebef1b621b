//! What can still be read of a response that is not a valid message: which request it answers.

use super::member_search::MemberSearch;
use crate::request_id::RequestId;

/// The legible part of a malformed or truncated response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegiblePart {
    /// The id, if it was found.
    pub id: Option<RequestId>,
    /// Whether it has another id than our client writes, so that it answers none of its requests.
    pub has_foreign_id: bool,
}

/// Reports whether the end of a JSON object or array is missing.
pub fn is_cut_off(bytes: &[u8]) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(bytes, at + 1),
            _ => {}
        }
        at += 1;
    }
    depth > 0
}

/// Reads the outermost members of a message of which the rest may be missing, not UTF-8 or not JSON; `None` if it does not
/// look like a response.
///
/// Only ids that are whole numbers are found, such as our client writes them.
pub fn find_legible_part(bytes: &[u8]) -> Option<LegiblePart> {
    let mut search = MemberSearch::default();
    search.push(bytes);
    let found = search.members;
    let part = LegiblePart { has_foreign_id: found.has_id && found.id.is_none(), id: found.id };
    let is_response = found.has_outcome || (found.has_version && part.id.is_some());
    (is_response && !found.has_method).then_some(part)
}

/// Returns the index of the quote that ends a string, or the end of the bytes.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_malformed_response_is_found_among_its_outermost_members() {
        let with_id = |id| Some(LegiblePart { id: Some(RequestId::from_number(id)), has_foreign_id: false });
        let without_id = Some(LegiblePart { id: None, has_foreign_id: false });
        let foreign_id = Some(LegiblePart { id: None, has_foreign_id: true });
        for (bytes, expected) in [
            (&b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}"[..], with_id(7)),
            (b"{\"result\":{\"a\":\"\xff\",\"id\":9},\"jsonrpc\":\"2.0\",\"id\" : 7 }", with_id(7)),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"text\":\"cut off", with_id(7)),
            (b"  {\"result\":{\"text\":\"\\\"}\\\",\\\"id\\\":9\"},\"id\":7}", with_id(7)),
            (b"{\"result\":{\"id\":9}", without_id),
            (b"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":NaN}", foreign_id.clone()),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7", None),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7.5,\"result\":NaN}", foreign_id),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":NaN}", None),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"nothing\":1}", with_id(7)),
            (b"{\"level\":\"info\",\"id\":7}", None),
            (b"listening on port 7", None),
            (b"[{\"jsonrpc\":\"2.0\",\"id\":7}]", None),
            (b"", None),
        ] {
            assert_eq!(find_legible_part(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn any_prefix_and_any_changed_byte_are_read_without_panic() {
        let message = br#"{"jsonrpc":"2.0","id":7,"result":{"a":["\\",{"id":1}]}}"#;
        for at in 0..message.len() {
            let _ = find_legible_part(&message[..at]);
            for byte in [0, b'"', b'\\', b'{', b'}', 0xff] {
                let mut changed = message.to_vec();
                changed[at] = byte;
                let _ = find_legible_part(&changed);
            }
            assert_eq!(is_cut_off(&message[..at]), at > 0, "{at}");
        }
        assert!(!is_cut_off(message));
    }
}
