//! Results as other servers send them: repaired, or refused, and then valid for the revision of the caller.

use proptest::prelude::*;
use serde_json::{Value, json};
use trunkline_protocol::codec::{Dialect, RelayedResult, ServerResult, write_result};
use trunkline_protocol::{JsonWriter, Method, RawJson, Revision};

use super::mutated;
use super::schemas::assert_valid;

fn definition(method: Method) -> &'static str {
    match method {
        Method::ToolsCall => "CallToolResult",
        Method::PromptsGet => "GetPromptResult",
        Method::ResourcesRead => "ReadResourceResult",
        _ => "CompleteResult",
    }
}

fn written(carried: &RelayedResult, to: Revision) -> String {
    let mut writer = JsonWriter::default();
    let server_info = RawJson::from(json!({ "name": "hub", "version": "1" }));
    write_result(&ServerResult::Relayed(carried.clone()), Dialect::of(to), &server_info, &mut writer);
    writer.into_string()
}

/// Asserts that a relayed result is valid in every revision; returns how it was repaired, and the result for clients of
/// the newest revision get.
#[track_caller]
fn check(method: Method, from: Revision, result: &RawJson) -> (String, Option<Value>) {
    let carried = match RelayedResult::new(method, from, result.clone()) {
        Ok(carried) => carried,
        Err(problem) => return (format!("refused: {problem}"), None),
    };
    for to in Revision::ALL {
        assert_valid(to, definition(method), &written(&carried, to));
    }
    let newest = serde_json::from_str(&written(&carried, Revision::NEWEST)).unwrap();
    let told = match carried.repairs() {
        repairs if repairs.is_empty() => String::new(),
        repairs => format!("repaired: {repairs}"),
    };
    (told, Some(newest))
}

#[track_caller]
fn check_table(method: Method, rows: &[(Value, &str)]) {
    for (result, expected) in rows {
        for from in Revision::ALL {
            assert_eq!(check(method, from, &result.into()).0, *expected, "{from}: {result}");
        }
    }
}

fn content(block: Value) -> Value {
    json!({ "content": Value::Array(vec![block]) })
}

#[test]
fn tool_result_is_repaired_or_rejected() {
    let text = |key: &str, value: Value| {
        let mut block = json!({ "type": "text", "text": "t" });
        block[key] = value;
        content(block)
    };
    check_table(
        Method::ToolsCall,
        &[
            (content(json!({ "type": "text", "text": "t" })), ""),
            (json!({}), "repaired: `content` is missing"),
            (json!({ "content": null }), "repaired: `content` is missing"),
            (json!({ "content": "t" }), "refused: `content` must be an array"),
            (json!({ "content": {} }), "refused: `content` must be an array"),
            (json!({ "content": [], "isError": null }), ""),
            (json!({ "content": [], "isError": "yes" }), "refused: `isError` must be true or false"),
            (content(json!("t")), "refused: `content[0]` must be an object: it is not an object"),
            (content(json!({ "text": "t" })), "refused: `content[0].type` must be a string"),
            (content(json!({ "type": 7 })), "refused: `content[0].type` must be a string"),
            (content(json!({ "type": "text" })), "refused: `content[0].text` is missing"),
            (content(json!({ "type": "text", "text": 7 })), "refused: `content[0].text` must be a string"),
            (content(json!({ "type": "image", "data": "" })), "refused: `content[0].mimeType` is missing"),
            (content(json!({ "type": "audio", "mimeType": "a/b" })), "refused: `content[0].data` is missing"),
            (content(json!({ "type": "resource" })), "refused: `content[0].resource` is missing"),
            (
                content(json!({ "type": "resource", "resource": { "uri": "x:1" } })),
                "refused: `content[0].resource` must have either `text` or `blob`",
            ),
            (
                content(
                    json!({ "type": "resource", "resource": { "uri": "x:1", "text": "t", "mimeType": 7 } }),
                ),
                "repaired: `content[0].resource.mimeType` must be a string",
            ),
            (
                content(json!({ "type": "resource_link", "name": "n" })),
                "refused: `content[0].uri` is missing",
            ),
            (
                content(json!({ "type": "resource_link", "uri": "x:1", "size": -1 })),
                "repaired: `content[0].size` must be an integer that is not negative, `content[0].name` is missing",
            ),
            (
                content(json!({ "type": "hologram", "rays": 7 })),
                "repaired: `content[0].type` is not a kind of content",
            ),
            (text("annotations", json!(null)), ""),
            (text("_meta", json!(null)), ""),
            (text("_meta", json!(7)), "repaired: `content[0]._meta` must be an object: it is not an object"),
            (
                text("annotations", json!({ "lastModified": "yesterday", "priority": 0.5 })),
                "repaired: `content[0].annotations.lastModified` must be a date with a time and its zone",
            ),
            (text("annotations", json!({ "audience": ["user"], "priority": 1 })), ""),
            (json!({ "content": [], "structuredContent": { "a": 1 } }), ""),
            (json!({ "content": [], "structuredContent": [1] }), ""),
            (json!({ "content": [], "structuredContent": null }), ""),
            (json!({ "content": [], "own": { "a": 1 }, "_meta": 7 }), ""),
        ],
    );
}

#[test]
fn other_results_are_repaired_or_rejected() {
    let message = |role: &str, content: Value| json!({ "messages": [{ "role": role, "content": content }] });
    let text = json!({ "type": "text", "text": "t" });
    check_table(
        Method::PromptsGet,
        &[
            (message("user", text.clone()), ""),
            (json!({ "description": 7, "messages": [] }), "repaired: `description` must be a string"),
            (json!({ "description": null, "messages": [] }), ""),
            (json!({}), "refused: `messages` is missing"),
            (json!({ "messages": {} }), "refused: `messages` must be an array"),
            (message("robot", text.clone()), "refused: `messages[0].role` must be `user` or `assistant`"),
            (
                message("user", json!([text])),
                "refused: `messages[0].content` must be an object: it is not an object",
            ),
            (
                message("user", json!({ "type": "tool_use", "id": "1" })),
                "repaired: `messages[0].content.type` is not a kind of content",
            ),
        ],
    );
    let read = |contents: Value| json!({ "contents": [contents], "ttlMs": "soon", "cacheScope": 7 });
    check_table(
        Method::ResourcesRead,
        &[
            (read(json!({ "uri": "x:1", "text": "t" })), ""),
            (read(json!({ "uri": "x:1", "blob": "", "mimeType": null })), ""),
            (json!({}), "refused: `contents` is missing"),
            (read(json!({ "text": "t" })), "refused: `contents[0].uri` is missing"),
            (read(json!({ "uri": "x:1" })), "refused: `contents[0]` must have either `text` or `blob`"),
            (read(json!({ "uri": "x:1", "text": 7 })), "refused: `contents[0].text` must be a string"),
            (read(json!(7)), "refused: `contents[0]` must be an object"),
        ],
    );
    let completion = |completion: Value| json!({ "completion": completion });
    check_table(
        Method::Complete,
        &[
            (completion(json!({ "values": ["a"], "total": 1, "hasMore": false })), ""),
            (json!({}), "refused: `completion` is missing"),
            (completion(json!([])), "refused: `completion` must be an object"),
            (completion(json!({})), "refused: `completion.values` is missing"),
            (
                completion(json!({ "values": ["a", 7], "total": "many", "hasMore": "yes" })),
                "repaired: `completion.values[1]` must be a string, `completion.total` must be an integer that is not \
                 negative, `completion.hasMore` must be true or false",
            ),
            (
                completion(json!({ "values": vec!["a"; 101] })),
                "repaired: `completion.values` has too many elements",
            ),
        ],
    );
}

#[test]
fn repaired_result_keeps_its_content() {
    let got = |method, from, result: &Value| check(method, from, &result.into()).1.unwrap();
    let block = json!({ "type": "hologram", "rays": 7 });
    let result = got(Method::ToolsCall, Revision::NEWEST, &json!({ "content": [block], "isError": true }));
    let said = serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&result["content"][0]["type"], said, &result["isError"]),
        (&json!("text"), block, &json!(true))
    );
    let result = json!({ "content": [], "structuredContent": null });
    assert!(got(Method::ToolsCall, Revision::V2025_11_25, &result).get("structuredContent").is_none());
    assert!(got(Method::ToolsCall, Revision::V2026_07_28, &result)["structuredContent"].is_null());
    let result =
        got(Method::Complete, Revision::NEWEST, &json!({ "completion": { "values": vec!["a"; 101] } }));
    assert_eq!(result["completion"]["values"].as_array().map(Vec::len), Some(100));
    assert_eq!(result["completion"]["hasMore"], true);
}

#[test]
fn result_that_a_parser_would_reject_is_repaired_or_rejected() {
    let deep =
        |levels: usize| format!(r#"{{"content":[],"x":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    for (result, expected) in [
        (
            r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#.to_owned(),
            "repaired: the value has half of a surrogate pair",
        ),
        (r#"{"content":[{"type":"text","text":"\ud83d\ude00"}]}"#.to_owned(), ""),
        (
            r#"{"content":[],"structuredContent":{"a":1e999}}"#.to_owned(),
            "refused: the value has a number that is too large",
        ),
        (
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#.to_owned(),
            "refused: `content[0]` must be an object: duplicate member `text`",
        ),
        (
            r#"{"content":[],"content":[]}"#.to_owned(),
            "refused: the value must be an object: duplicate member `content`",
        ),
        (deep(120), ""),
        (deep(200_000), "refused: the value must be an object: it nests deeper than 127 levels"),
    ] {
        let result = RawJson::parse(result).unwrap();
        assert_eq!(check(Method::ToolsCall, Revision::NEWEST, &result).0, expected, "{result:.80}");
    }
}

/// Servers send content that their own revision does not have, and callers of the same revision would reject it.
#[test]
fn content_of_a_newer_revision_is_converted_for_the_client() {
    let link = json!({ "type": "resource_link", "uri": "x:1", "name": "n" });
    let sound = json!({ "type": "audio", "data": "", "mimeType": "audio/wav" });
    for (block, from, expected) in [
        (&link, Revision::V2024_11_05, "text"),
        (&link, Revision::V2025_03_26, "text"),
        (&link, Revision::V2025_06_18, "resource_link"),
        (&sound, Revision::V2024_11_05, "resource"),
        (&sound, Revision::V2025_03_26, "audio"),
    ] {
        let carried =
            RelayedResult::new(Method::ToolsCall, from, RawJson::from(content(block.clone()))).unwrap();
        let result: Value = serde_json::from_str(&written(&carried, from)).unwrap();
        assert_eq!(result["content"][0]["type"], expected, "{from}: {block}");
    }
}

/// Results with every member that any revision knows.
fn whole() -> Vec<(Method, Value)> {
    let annotations =
        json!({ "audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z" });
    let meta = json!({ "x.example/y": 1 });
    let icons = json!([{ "src": "https://x.example/i.png", "sizes": ["any"], "theme": "light" }]);
    let embedded = json!({ "type": "resource", "annotations": annotations,
        "resource": { "uri": "x:1", "mimeType": "a/b", "text": "t", "_meta": meta } });
    let blocks = json!([
        { "type": "text", "text": "t", "annotations": annotations, "_meta": meta },
        { "type": "image", "data": "UklGRg==", "mimeType": "image/png" },
        { "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "annotations": annotations },
        { "type": "resource_link", "uri": "x:1", "name": "n", "title": "N", "description": "It.", "mimeType": "a/b",
          "size": 12, "icons": icons, "annotations": annotations },
        embedded,
    ]);
    vec![
        (
            Method::ToolsCall,
            json!({ "resultType": "complete", "content": blocks, "structuredContent": { "a": 1 }, "isError": false,
                "_meta": meta }),
        ),
        (Method::ToolsCall, json!({ "content": [{ "type": "text", "text": "t" }], "own": 1 })),
        (
            Method::PromptsGet,
            json!({ "description": "It.", "messages": [{ "role": "user", "content": embedded },
                { "role": "assistant", "content": { "type": "text", "text": "t" } }], "_meta": meta }),
        ),
        (
            Method::ResourcesRead,
            json!({ "contents": [{ "uri": "x:1", "mimeType": "a/b", "text": "t", "_meta": meta },
                { "uri": "x:2", "blob": "UklGRg==" }], "ttlMs": 5, "cacheScope": "public" }),
        ),
        (
            Method::Complete,
            json!({ "completion": { "values": ["a", "b"], "total": 2, "hasMore": false }, "_meta": meta }),
        ),
    ]
}

#[test]
fn valid_results_need_no_repair() {
    for (method, result) in whole() {
        for from in Revision::ALL {
            assert_eq!(check(method, from, &(&result).into()).0, "", "{from}: {result}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn mutated_results_are_repaired_or_rejected(
        which in 0..5_usize,
        from in prop::sample::select(Revision::ALL.to_vec()),
        mutations in prop::collection::vec(mutated::mutation(), 1..4),
    ) {
        let (method, result) = whole().swap_remove(which);
        check(method, from, &mutated::apply(&result, &mutations));
    }
}
