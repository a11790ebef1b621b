//! Whole results: what every result of a dialect has, and what legacy ones must not have.

use trunkline_protocol::RawJson;
use trunkline_protocol::codec::{InputRequiredResult, ListPageResult, ServerResult, write_result};
use trunkline_protocol::model::*;

use super::{check, raw};

const INFO: &str = r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#;

/// Checks a reply that all legacy dialects write alike; `$INFO` stands for the server's name in `_meta`.
#[track_caller]
fn check_reply(reply: &ServerResult, legacy: &str, modern: &str) {
    let info: RawJson = raw(r#"{"name":"s","version":"1"}"#);
    check(
        |dialect, writer| write_result(reply, dialect, &info, writer),
        [legacy, "", "", "", &modern.replace("$INFO", INFO)],
    );
}

#[test]
fn empty_result_is_an_empty_object() {
    check_reply(&ServerResult::Empty, "{}", r#"{"resultType":"complete","_meta":{$INFO}}"#);
}

#[test]
fn tool_error_result_has_a_result_type() {
    check_reply(
        &ServerResult::Tool(CallToolResult::text("hi")),
        r#"{"content":[{"type":"text","text":"hi"}]}"#,
        r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}],"_meta":{$INFO}}"#,
    );
    check_reply(
        &ServerResult::Tool(CallToolResult::error("no")),
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,
        r#"{"resultType":"complete","content":[{"type":"text","text":"no"}],"isError":true,"_meta":{$INFO}}"#,
    );
}

#[test]
fn result_meta_keeps_its_members_and_gains_server_info() {
    let theirs = r#"{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"upstream"},"b": 2}"#;
    for (meta, legacy, modern) in [
        (theirs, r#"{"messages":[],"_meta":{"a":1,"b":2}}"#, r#"{"a":1,"b":2,$INFO}"#),
        (r#"{"io.modelcontextprotocol/serverInfo":{}}"#, r#"{"messages":[]}"#, "{$INFO}"),
        ("{}", r#"{"messages":[],"_meta":{}}"#, "{$INFO}"),
    ] {
        let meta = Some(raw(meta).members().unwrap());
        check_reply(
            &ServerResult::Prompt(GetPromptResult { meta, ..GetPromptResult::default() }),
            legacy,
            &format!(r#"{{"resultType":"complete","messages":[],"_meta":{modern}}}"#),
        );
    }
}

#[test]
fn read_and_list_results_have_cache_hints() {
    let read = ReadResourceResult {
        cache: CacheHint { ttl_ms: 1500, scope: CacheScope::Public },
        ..ReadResourceResult::new(vec![ResourceContents::text("u:", "x")])
    };
    check_reply(
        &ServerResult::Read(read),
        r#"{"contents":[{"uri":"u:","text":"x"}]}"#,
        r#"{"resultType":"complete","contents":[{"uri":"u:","text":"x"}],"ttlMs":1500,"cacheScope":"public","_meta":{$INFO}}"#,
    );
    let page = ListPageResult {
        key: "tools",
        items: vec![raw(r#"{ "name":"a" }"#), raw(r#"{"name":"b"}"#)],
        next_cursor: Some(String::new()),
        cache: CacheHint::default(),
    };
    check_reply(
        &ServerResult::List(page),
        r#"{"tools":[{ "name":"a" },{"name":"b"}],"nextCursor":""}"#,
        r#"{"resultType":"complete","tools":[{ "name":"a" },{"name":"b"}],"nextCursor":"","ttlMs":0,"cacheScope":"private","_meta":{$INFO}}"#,
    );
}

#[test]
fn completions_are_truncated_to_one_hundred_values() {
    let values = |n: usize| vec!["v".to_owned(); n];
    for (count, has_more, shown, more) in [
        (0, None, 0, ""),
        (100, Some(false), 100, r#","hasMore":false"#),
        (101, Some(false), 100, r#","hasMore":true"#),
        (500, None, 100, r#","hasMore":true"#),
    ] {
        let list = vec![r#""v""#; shown].join(",");
        let completion = format!(r#""completion":{{"values":[{list}],"total":500{more}}}"#);
        check_reply(
            &ServerResult::Complete(CompleteResult {
                total: Some(500),
                has_more,
                ..CompleteResult::new(values(count))
            }),
            &format!("{{{completion}}}"),
            &format!(r#"{{"resultType":"complete",{completion},"_meta":{{$INFO}}}}"#),
        );
    }
}

#[test]
fn carried_objects_keep_their_members_in_order() {
    check_reply(
        &ServerResult::Object(
            raw(r#"{"b":1.0,"_meta":{"x":1},"a":[ ],"ttlMs":5,"cacheScope":"public"}"#).members().unwrap(),
        ),
        r#"{"b":1.0,"a":[ ],"_meta":{"x":1}}"#,
        r#"{"resultType":"complete","b":1.0,"a":[ ],"ttlMs":5,"cacheScope":"public","_meta":{"x":1,$INFO}}"#,
    );
    check_reply(
        &ServerResult::Object(raw(r#"{"taskId":"t","resultType":"task"}"#).members().unwrap()),
        r#"{"taskId":"t"}"#,
        r#"{"resultType":"task","taskId":"t","_meta":{$INFO}}"#,
    );
}

#[test]
fn input_requests_are_written_under_their_keys() {
    let round = InputRequiredResult {
        input_requests: vec![
            ("q\"1".to_owned(), InputRequest::Roots),
            ("q2".to_owned(), InputRequest::url("m", "https://x")),
        ],
        request_state: Some("s".into()),
    };
    let asked = r#""inputRequests":{"q\"1":{"method":"roots/list","params":{}},"q2":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x"}}},"requestState":"s""#;
    check_reply(
        &ServerResult::InputRequired(round),
        &format!("{{{asked}}}"),
        &format!(r#"{{"resultType":"input_required",{asked},"_meta":{{$INFO}}}}"#),
    );
    check_reply(
        &ServerResult::InputRequired(InputRequiredResult {
            input_requests: vec![],
            request_state: Some("s".into()),
        }),
        r#"{"requestState":"s"}"#,
        r#"{"resultType":"input_required","requestState":"s","_meta":{$INFO}}"#,
    );
}

#[test]
fn successful_result_has_is_error_only_if_set_explicitly() {
    let mut result = CallToolResult::text("x");
    result.rest.set("isError", raw("false"));
    check_reply(
        &ServerResult::Tool(result.clone()),
        r#"{"content":[{"type":"text","text":"x"}],"isError":false}"#,
        r#"{"resultType":"complete","content":[{"type":"text","text":"x"}],"isError":false,"_meta":{$INFO}}"#,
    );
    result.is_error = true;
    check_reply(
        &ServerResult::Tool(result),
        r#"{"content":[{"type":"text","text":"x"}],"isError":true}"#,
        r#"{"resultType":"complete","content":[{"type":"text","text":"x"}],"isError":true,"_meta":{$INFO}}"#,
    );
}
