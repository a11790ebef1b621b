use proptest::prelude::*;
use trunkline_protocol::envelope::{MessageLimits, MessageOrBatch, read};
use trunkline_protocol::{Era, Message, Refusal, emit};

use super::{malformed, message, request};

#[test]
fn request_ids_are_echoed_byte_for_byte() {
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
fn invalid_message_is_rejected_with_its_id_if_readable() {
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
fn members_that_differ_only_in_case_are_rejected() {
    let with = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
    for (text, says) in [
        (with(r#"{"name":"a","Name":"b"}"#), "`Name` differs from `name` only in case"),
        (with(r#"{"Name":"b","name":"a"}"#), "`Name` differs from `name` only in case"),
        (with(r#"{"NAME":"b"}"#), "`NAME` differs from `name`"),
        (with(r#"{"n\u0041me":"b"}"#), "`nAme` differs from `name`"),
        (with(r#"{"argumentſ":{}}"#), "`argumentſ` differs from `arguments`"),
        (with(r#"{"argument\u017f":{}}"#), "`argumentſ` differs from `arguments`"),
        (with("{\"tas\u{212a}\":{}}"), "differs from `task`"),
        (with(r#"{"URI":"x:y"}"#), "`URI` differs from `uri`"),
        (with(r#"{"requeststate":"s"}"#), "`requeststate` differs from `requestState`"),
        (with(r#"{"_META":{}}"#), "`_META` differs from `_meta`"),
        (with(r#"{"_meta":{"progresstoken":1}}"#), "`progresstoken` differs from `progressToken`"),
        (
            with(r#"{"_meta":{"IO.modelcontextprotocol/protocolVersion":"x"}}"#),
            "differs from `io.modelcontextprotocol/protocolVersion`",
        ),
        (with(r#"{"ref":{"type":"ref/prompt","name":"a","Name":"b"}}"#), "`Name` differs from `name`"),
        (with(r#"{"ref":{"Type":"ref/prompt"}}"#), "`Type` differs from `type`"),
        (with(r#"{"\u0072ef":{"URI":"x:y"}}"#), "`URI` differs from `uri`"),
        (with(r#"{"argument":{"name":"a","value":"b","Value":"c"}}"#), "`Value` differs from `value`"),
        (with(r#"{"context":{"Arguments":{}}}"#), "`Arguments` differs from `arguments`"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#.to_owned(),
            "`Method` differs from `method`",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","paramſ":{}}"#.to_owned(), "`paramſ` differs from `params`"),
        (r#"{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#.to_owned(), "`JSONRPC` differs"),
    ] {
        let refused = malformed(text.as_bytes());
        assert!(refused.refusal.is_same_kind(&Refusal::AMBIGUOUS_MEMBER), "{text}: {}", refused.refusal);
        assert_eq!((refused.refusal.code(Era::Legacy), refused.refusal.status(Era::Modern)), (-32600, 400));
        assert_eq!(refused.id.unwrap().to_string(), "1", "{text}");
        assert!(refused.refusal.message().contains(says), "{text}: {}", refused.refusal);
    }
    let notification = malformed(br#"{"jsonrpc":"2.0","method":"a","ID":1}"#);
    assert!(notification.refusal.is_same_kind(&Refusal::AMBIGUOUS_MEMBER) && notification.id.is_none());
    let long =
        malformed(with(&format!(r#"{{"_meta":{{}},"Name{}":1,"Name":1}}"#, "x".repeat(5000))).as_bytes());
    assert!(long.refusal.message().contains("`Name` differs"), "{}", long.refusal);
}

#[test]
fn unknown_members_arguments_and_responses_may_have_any_case() {
    for params in [
        r#"{"name":"t","arguments":{"Name":1,"name":2,"NAME":3,"Arguments":4,"_META":5}}"#,
        r#"{"name":"t","names":1,"Naming":2,"namé":3,"x-Name":4}"#,
        r#"{"name":"t","_meta":{"Name":1,"Traceparent":2,"example.com/ProgressToken":3}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"p","Title":1},"argument":{"name":"a","value":"","Uri":2}}"#,
        r#"{"context":{"arguments":{"Arguments":"a","arguments":"b"}}}"#,
        r#"{"ref":"Name","capabilities":{"Roots":{}},"clientInfo":{"Name":1}}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert!(matches!(message(&text), Message::Request(_)), "{text}");
    }
    // A response is not passed on as it came.
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}"#), Message::Response(_)));
}

#[test]
fn requests_notifications_and_responses_are_distinguished() {
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#), Message::Request(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","method":"m"}"#), Message::Notification(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#"{"jsonrpc":"2.0","error":{}}"#), Message::Response(_)));
    assert!(matches!(message(r#" {"x":[1,{}],"jsonrpc":"2.0","method":"m"} "#), Message::Notification(_)));
}

#[test]
fn batch_is_read_per_element_up_to_its_limit() {
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    match read(format!("[{good},7,{{}}]").into(), MessageLimits::default()).unwrap() {
        MessageOrBatch::Batch(messages) => {
            assert_eq!(messages.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
        }
        other @ MessageOrBatch::One(_) => panic!("{other:?}"),
    }
    let many = vec![good; 33].join(",");
    assert!(
        read(format!("[{many}]").into(), MessageLimits::default())
            .unwrap_err()
            .refusal
            .message()
            .contains("32")
    );
}

#[test]
fn params_keep_unknown_members() {
    let request = request(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1.0,"_meta":{"z": [1]},"a":{"x" : 2}}}"#,
    );
    assert_eq!(request.params.members.to_raw().as_str(), r#"{"b":1.0,"a":{"x" : 2}}"#);
    assert_eq!(request.params.meta.unwrap().to_raw().as_str(), r#"{"z":[1]}"#);
}

proptest! {
    #[test]
    fn any_bytes_are_answered_and_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes.into(), MessageLimits::default());
    }

    #[test]
    fn message_with_a_changed_byte_never_panics(at in 0_usize..120, byte in any::<u8>()) {
        let mut text = br#"{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"x","arguments":{"a":[1,2.5e3,null]}}}"#.to_vec();
        let at = at % text.len();
        text[at] = byte;
        let _ = read(text.into(), MessageLimits::default());
    }
}
