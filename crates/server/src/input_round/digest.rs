use sha2::{Digest as _, Sha256};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Params, RawJson};

/// Identifies the arguments of a call in every round: a hash that does not depend on the order of keys.
///
/// Members of the protocol rather than of the call (`_meta`, the input responses, the state) are left out. Numbers
/// are hashed as text, so that two numbers which a parser would round to one stay different.
pub(crate) fn params_digest(params: &Params) -> [u8; 32] {
    let mut hash = Sha256::new();
    let own = params.members.iter().filter(|(key, _)| !matches!(&***key, "inputResponses" | "requestState"));
    object(&mut hash, own.map(|(key, value)| (key.to_string(), value.clone())).collect());
    hash.finalize().into()
}

fn value(hash: &mut Sha256, raw: &RawJson) {
    match raw.kind() {
        JsonKind::Object => match raw.members() {
            Ok(members) => object(hash, members.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()),
            // Duplicate keys cannot be ordered, so the text itself is hashed.
            Err(_) => tagged(hash, b"?", raw.as_str()),
        },
        JsonKind::Array => match raw.elements() {
            Ok(elements) => {
                tagged(hash, b"[", &elements.len().to_string());
                elements.iter().for_each(|element| value(hash, element));
            }
            Err(_) => tagged(hash, b"?", raw.as_str()),
        },
        JsonKind::String => tagged(hash, b"s", &raw.as_text().unwrap_or_default()),
        _ => tagged(hash, b"v", raw.as_str()),
    }
}

fn object(hash: &mut Sha256, mut members: Vec<(String, RawJson)>) {
    members.sort_by(|(left, _), (right, _)| left.cmp(right));
    tagged(hash, b"{", &members.len().to_string());
    for (key, member) in &members {
        tagged(hash, b"k", key);
        value(hash, member);
    }
}

/// Feeds a tag, a length and a text, so that no two different structures feed the same bytes.
fn tagged(hash: &mut Sha256, tag: &[u8], text: &str) {
    hash.update(tag);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_protocol::envelope::{self, MessageLimits, MessageOrBatch};
    use trunkline_protocol::{ByteString, Message};

    fn of(params: &str) -> [u8; 32] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        match envelope::read_text(&ByteString::from(text), MessageLimits::default()).unwrap() {
            MessageOrBatch::One(Message::Request(request)) => params_digest(&request.params),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn params_digest_ignores_key_order_spelling_and_protocol_members() {
        let plain = of(r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]}}"#);
        for same in [
            r#"{"arguments":{"b":[ "x" , {"c":null}],"a":1},"name":"t"}"#,
            r#"{"name":"t","arguments":{"a":1,"b":["\u0078",{"c":null}]},"_meta":{"x":1}}"#,
            r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]},"inputResponses":{},"requestState":"s"}"#,
        ] {
            assert_eq!(of(same), plain, "{same}");
        }
    }

    #[test]
    fn params_digest_differs_for_different_arguments() {
        let texts = [
            r#"{"name":"t","arguments":{"a":1}}"#,
            r#"{"name":"u","arguments":{"a":1}}"#,
            r#"{"name":"t","arguments":{"a":"1"}}"#,
            r#"{"name":"t","arguments":{"a":1.0}}"#,
            r#"{"name":"t","arguments":{"a":9007199254740993}}"#,
            r#"{"name":"t","arguments":{"a":9007199254740992}}"#,
            r#"{"name":"t","arguments":{"a":[1,[2]]}}"#,
            r#"{"name":"t","arguments":{"a":[[1],2]}}"#,
            r#"{"name":"t"}"#,
        ];
        let digests: std::collections::HashSet<_> = texts.iter().map(|text| of(text)).collect();
        assert_eq!(digests.len(), texts.len());
    }
}
