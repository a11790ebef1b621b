//! What is refused when a peer's objects are read, and what is forgiven.

use trunkline_protocol::model::*;

use super::raw;

#[test]
fn malformed_member_is_named() {
    let tool = |json: &str| Tool::read(&raw(json)).map(|_| ());
    let prompt = |json: &str| Prompt::read(&raw(json)).map(|_| ());
    let resource = |json: &str| Resource::read(&raw(json)).map(|_| ());
    let result = |json: &str| CallToolResult::read(&raw(json)).map(|_| ());
    let read = |json: &str| ReadResourceResult::read(&raw(json)).map(|_| ());
    let complete = |json: &str| CompleteResult::read(&raw(json)).map(|_| ());
    for (outcome, message) in [
        (tool("[]"), "the value must be an object"),
        (tool(r#"{"inputSchema":{}}"#), "`name` is missing"),
        (tool(r#"{"name":null,"inputSchema":{}}"#), "`name` must be a string"),
        (tool(r#"{"name":"t"}"#), "`inputSchema` is missing"),
        (
            tool(r#"{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#),
            "`annotations.readOnlyHint` must be true or false",
        ),
        (tool(r#"{"name":"t","inputSchema":{},"icons":[{"src":"a"},{}]}"#), "`icons[1].src` is missing"),
        (tool(r#"{"name":"t","inputSchema":{},"icons":{}}"#), "`icons` must be an array"),
        (prompt(r#"{"name":"p","arguments":[{"name":1}]}"#), "`arguments[0].name` must be a string"),
        (resource(r#"{"uri":"u","name":"n","size":-1}"#), "`size` must be an integer that is not negative"),
        (
            resource(r#"{"uri":"u","name":"n","annotations":{"audience":["system"]}}"#),
            "`annotations.audience[0]` must be \"user\" or \"assistant\"",
        ),
        (result("{}"), "`content` is missing"),
        (result(r#"{"content":[{"text":"a"}]}"#), "`content[0].type` must be a string"),
        (result(r#"{"content":[{"type":"text"}]}"#), "`content[0].text` is missing"),
        (
            result(r#"{"content":[{"type":"resource","resource":{"uri":"u"}}]}"#),
            "`content[0].resource` must have either `text` or `blob`",
        ),
        (
            read(r#"{"contents":[{"uri":"u","text":"","blob":""}]}"#),
            "`contents[0]` must have either `text` or `blob`",
        ),
        (complete(r#"{"completion":{"values":[1]}}"#), "`completion.values[0]` must be a string"),
    ] {
        assert_eq!(outcome.unwrap_err().to_string(), message);
    }
}

#[test]
fn duplicate_members_are_rejected_at_every_level() {
    for json in [
        r#"{"name":"t","name":"t","inputSchema":{}}"#,
        r#"{"name":"t","inputSchema":{},"annotations":{"title":"a","title":"b"}}"#,
        r#"{"name":"t","inputSchema":{},"_meta":{"a":1,"\u0061":2}}"#,
    ] {
        assert!(Tool::read(&raw(json)).unwrap_err().to_string().contains("duplicate member"), "{json}");
    }
}

#[test]
fn null_reads_as_absent_except_for_structured_content() {
    let tool =
        Tool::read(&raw(r#"{"name":"t","title":null,"inputSchema":{},"icons":null,"_meta":null}"#)).unwrap();
    assert_eq!(tool, Tool::new("t", raw("{}")));
    let result =
        CallToolResult::read(&raw(r#"{"content":[],"structuredContent":null,"isError":null}"#)).unwrap();
    assert_eq!(result.structured, Some(raw("null")));
    assert!(!result.is_error);
}

#[test]
fn sizes_may_be_written_as_floating_numbers() {
    for (size, expected) in
        [("12", Some(12)), ("12.0", Some(12)), ("1e3", Some(1000)), ("1.5", None), ("1e300", None)]
    {
        let resource = Resource::read(&raw(&format!(r#"{{"uri":"u","name":"n","size":{size}}}"#)));
        assert_eq!(resource.ok().and_then(|resource| resource.size), expected, "{size}");
    }
}

#[test]
fn invalid_cache_hints_mean_no_caching() {
    for (hints, ttl_ms, scope) in [
        ("", 0, CacheScope::Private),
        (r#","ttlMs":-5,"cacheScope":"everybody""#, 0, CacheScope::Private),
        (r#","ttlMs":"1","cacheScope":null"#, 0, CacheScope::Private),
        (r#","ttlMs":7,"cacheScope":"public""#, 7, CacheScope::Public),
    ] {
        let result =
            ReadResourceResult::read(&raw(&format!(r#"{{"resultType":"complete","contents":[]{hints}}}"#)))
                .unwrap();
        assert_eq!(
            result,
            ReadResourceResult { cache: CacheHint { ttl_ms, scope }, ..ReadResourceResult::default() }
        );
    }
}
