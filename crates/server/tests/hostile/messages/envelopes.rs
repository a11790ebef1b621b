//! JSON that is not a JSON-RPC message.

use super::{ExpectedReply, MessageCase, NOT_A_MESSAGE};

pub(super) fn rows() -> Vec<MessageCase> {
    [values(), versions(), ids(), twice(), shapes(), responses(), batches()].concat()
}

fn fault(text: &str) -> MessageCase {
    MessageCase::new(format!("not a message: {text:.60}"), text).everywhere(NOT_A_MESSAGE)
}

fn values() -> Vec<MessageCase> {
    ["null", "true", "0", "-1.5e300", "\"ping\"", "{}", "  {}  ", r#"{"a":{}}"#, r#"{"":""}"#]
        .map(fault)
        .into()
}

fn versions() -> Vec<MessageCase> {
    let broken = [
        r#""1.0""#,
        r#""2""#,
        r#""2.00""#,
        r#"" 2.0""#,
        r#""2.0 ""#,
        "2.0",
        "2",
        "null",
        "[\"2.0\"]",
        "{}",
        "true",
        r#""\u0032.0""#,
    ];
    let mut rows: Vec<MessageCase> = broken
        .map(|version| fault(&format!(r#"{{"jsonrpc":{version},"id":1,"method":"ping"}}"#)).id("1"))
        .into();
    rows.extend([
        fault(r#"{"id":1,"method":"ping"}"#).id("1"),
        fault(r#"{"JSONRPC":"2.0","id":1,"method":"ping"}"#).id("1"),
        fault(r#"{"jsonRpc":"2.0","id":1,"method":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc\u0000":"2.0","id":1,"method":"ping"}"#).id("1"),
    ]);
    rows
}

fn ids() -> Vec<MessageCase> {
    let with = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let huge_number = "9".repeat(2000);
    let huge_text = format!("\"{}\"", "x".repeat(1 << 20));
    let mut rows: Vec<MessageCase> =
        ["null", "true", "false", "[]", "[1]", "{}", r#"{"a":1}"#, "1.5", "0.1000", &huge_number, &huge_text]
            .map(|id| fault(&with(id)))
            .into();
    // These are odd and legal; each is echoed as it came.
    let longest = format!("\"{}\"", "y".repeat(1022));
    let odd = [
        "0",
        "-0",
        "-1",
        "1.0",
        "1e2",
        "1E+2",
        "9007199254740993",
        "18446744073709551616",
        "123456789012345678901234567890",
        r#""""#,
        r#""1""#,
        r#"" ""#,
        r#""\u0031""#,
        r#""\n""#,
        r#""\ud83d\ude00""#,
        r#""é""#,
        r#""\/""#,
        &longest,
    ];
    rows.extend(odd.map(|id| {
        MessageCase::new(format!("an odd id: {id:.30}"), with(id))
            .id(id)
            .legacy(ExpectedReply::Answered)
            .channel(ExpectedReply::Answered)
    }));
    rows
}

fn twice() -> Vec<MessageCase> {
    let mut rows = vec![
        fault(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#).id("1"),
    ];
    let inside = [
        r#""name":"echo","name":"wait""#,
        r#""name":"echo","n\u0061me":"wait""#,
        r#""arguments":{},"arguments":{}"#,
        r#""_meta":{},"_meta":{}"#,
        r#""_meta":{"progressToken":1,"progressToken":2}"#,
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#,
        r#""cursor":"a","cursor":"b""#,
    ];
    rows.extend(inside.map(|members| {
        fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{members}}}}}"#)).id("1")
    }));
    rows
}

fn shapes() -> Vec<MessageCase> {
    let method = |token: &str| fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":{token}}}"#)).id("1");
    let params = |token: &str| {
        fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{token}}}"#)).id("1")
    };
    let mut rows: Vec<MessageCase> =
        ["null", "1", "true", "[]", "{}", r#"["ping"]"#, r#""\ud800""#].map(method).into();
    rows.extend(
        ["null", "1", "\"a\"", "true", "[]", "[{}]", r#"{"_meta":[]}"#, r#"{"_meta":"a"}"#, r#"{"_meta":1}"#]
            .map(params),
    );
    rows.extend([
        fault(r#"{"jsonrpc":"2.0","id":1}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"params":{}}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method ":"ping"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","argumentſ":{}}}"#)
            .id("1"),
        fault(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{}}}}}"#,
            many_members(10_001)
        ))
        .id("1"),
        fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"}}"#, "y".repeat(100_000)))
            .id("1"),
    ]);
    rows
}

fn many_members(count: usize) -> String {
    (0..count).map(|n| format!("\"m{n}\":{n}")).collect::<Vec<_>>().join(",")
}

fn responses() -> Vec<MessageCase> {
    let mut rows = vec![
        fault(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":"m"}}"#).id("1"),
        fault(r#"{"jsonrpc":"2.0","result":{}}"#),
        fault(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        fault(r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#).id("1"),
    ];
    // A response to no open request is no error within a session, and is not allowed outside of one.
    let stray = [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"trunkline-1","result":null}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{}}"#,
        r#"{"jsonrpc":"2.0","error":7}"#,
    ];
    rows.extend(stray.map(|text| {
        MessageCase::new(format!("a stray response: {text:.50}"), text)
            .modern(NOT_A_MESSAGE)
            .legacy(ExpectedReply::Accepted)
            .channel(ExpectedReply::Accepted)
    }));
    rows
}

fn batches() -> Vec<MessageCase> {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let many = format!("[{}]", vec![ping; 33].join(","));
    let millions = format!("[{}]", vec!["1"; 1_000_000].join(","));
    let texts = [
        "[]",
        "[1]",
        "[1,2,3]",
        "[[]]",
        "[null]",
        "[{}]",
        &format!("[{ping}]"),
        &format!("[{ping},{ping}]"),
        &format!("[{ping},1]"),
        &format!("[[{ping}]]"),
        &many,
        &millions,
    ]
    .map(fault);
    texts.into()
}
