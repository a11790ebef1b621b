use proptest::prelude::*;
use trunkline_protocol::envelope::{Bounds, Incoming, read};
use trunkline_protocol::{Era, Message, emit};

use super::{malformed, message, request};

#[test]
fn ids_come_back_byte_for_byte() {
    for id in [
        "1",
        "-7",
        "1.0",
        "1e3",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""1""#,
        r#""""#,
        r#""ü""#,
        r#""\u00fc\n""#,
    ] {
        let request = request(&format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#));
        assert_eq!(request.id.to_string(), id);
        let answer = emit::result(&request.id, 0, |writer| writer.verbatim("{}"));
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn what_is_not_a_message_is_refused_under_its_own_id_where_that_is_legible() {
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(2000));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}1{}}}"#,
        r#"{"a":"#.repeat(64),
        "}".repeat(64)
    );
    for (text, code, id, says) in [
        ("", -32700, None, "JSON"),
        ("{", -32700, None, "JSON"),
        ("nope", -32700, None, "JSON"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#, -32700, None, "JSON"),
        (r#"{"jsonrpc":"2.0","id":1,"method":1,"#, -32700, None, "JSON"),
        ("\u{feff}{}", -32700, None, "JSON"),
        ("1", -32600, None, "object"),
        ("null", -32600, None, "object"),
        ("[]", -32600, None, "empty"),
        ("{}", -32600, None, "jsonrpc"),
        (r#"{"id":1,"method":"m"}"#, -32600, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, -32600, Some("1"), "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32600, None, "`id`"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, -32600, None, "`id`"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, None, "`id`"),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, -32600, None, "`id`"),
        (&long_id, -32600, None, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some("1"), "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"m"}"#, -32600, Some("1"), "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, Some("1"), "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, -32600, Some("1"), "`params`"),
        (r#"{"jsonrpc":"2.0","method":"m","params":1,"id":1}"#, -32600, Some("1"), "`params`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":7}}"#, -32600, Some("1"), "`_meta`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, -32600, Some("1"), "duplicate"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, -32600, Some("1"), "duplicate"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#, -32600, Some("1"), "duplicate"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#,
            -32600,
            Some("1"),
            "duplicate",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{},"_meta":{}}}"#,
            -32600,
            Some("1"),
            "duplicate",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1,"a":1}}}"#,
            -32600,
            Some("1"),
            "duplicate",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":{"b":1,"b":1}}}}"#,
            -32600,
            Some("1"),
            "duplicate member `b`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"b":1,"b":2}}}"#,
            -32600,
            Some("1"),
            "duplicate member `b`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"a":[{"b":1,"\u0062":2}]}}}"#,
            -32600,
            Some("1"),
            "duplicate member `b`",
        ),
        (r#"{"x":1,"jsonrpc":"2.0","id":1,"method":"a","x":2}"#, -32600, Some("1"), "duplicate member `x`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, -32600, Some("1"), "either"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, Some("1"), "not both"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, None, "`id`"),
        (&deep, -32600, None, "deeper"),
    ] {
        let refused = malformed(text.as_bytes());
        assert_eq!(refused.refusal.code(Era::Modern), code, "{text:.80}: {}", refused.refusal);
        assert_eq!(refused.id.as_ref().map(ToString::to_string).as_deref(), id, "{text:.80}");
        assert!(refused.refusal.message().contains(says), "{text:.80}: {}", refused.refusal);
    }
    assert_eq!(
        malformed(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}").refusal.code(Era::Modern),
        -32700
    );
}

#[test]
fn messages_are_told_apart() {
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#), Message::Request(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","method":"m"}"#), Message::Notification(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","error":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#" {"x":[1,{}],"jsonrpc":"2.0","method":"m"} "#), Message::Notification(_)));
}

#[test]
fn a_batch_is_read_element_by_element_within_its_bound() {
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    match read(format!("[{good},7,{{}}]").into(), Bounds::default()).unwrap() {
        Incoming::Batch(messages) => {
            assert_eq!(messages.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
        }
        other @ Incoming::One(_) => panic!("{other:?}"),
    }
    let many = vec![good; 33].join(",");
    assert!(
        read(format!("[{many}]").into(), Bounds::default()).unwrap_err().refusal.message().contains("32")
    );
}

#[test]
fn params_keep_what_they_do_not_know() {
    let request = request(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1.0,"_meta":{"z": [1]},"a":{"x" : 2}}}"#,
    );
    assert_eq!(request.params.members.to_raw().as_str(), r#"{"b":1.0,"a":{"x" : 2}}"#);
    assert_eq!(request.params.meta.unwrap().to_raw().as_str(), r#"{"z":[1]}"#);
}

proptest! {
    #[test]
    fn any_bytes_are_answered_and_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes.into(), Bounds::default());
    }

    #[test]
    fn a_message_with_a_changed_byte_never_panics(at in 0_usize..120, byte in any::<u8>()) {
        let mut text = br#"{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"x","arguments":{"a":[1,2.5e3,null]}}}"#.to_vec();
        let at = at % text.len();
        text[at] = byte;
        let _ = read(text.into(), Bounds::default());
    }
}
