use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{Method, RawJson, Refusal, Revision};

use crate::call::{Confirm, Context, Handler, HandlerOutcome, IncomingCall, ask};
use crate::caller_identity::CallerIdentity;
use crate::error::ToolError;
use crate::json::Json;
use crate::server::Server;
use crate::testing::{answer, answer_in, assert_refused, call, call_from, call_text, caller};
use crate::tool::Tool;

#[derive(Deserialize, JsonSchema)]
struct AddArguments {
    /// The first number.
    a: i64,
    b: i64,
}

async fn add(AddArguments { a, b }: AddArguments) -> i64 {
    a + b
}

fn add_tool() -> Tool {
    Tool::new("add").description("Adds two integers.").run(add)
}

#[derive(Deserialize, JsonSchema)]
struct VolumeArguments {
    #[schemars(range(min = 0, max = 10))]
    #[serde(default)]
    level: u8,
    #[schemars(length(max = 3))]
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct SizesArguments {
    deep: Vec<SizeItem>,
}

#[derive(Deserialize, JsonSchema)]
struct SizeItem {
    size: i32,
    from: Option<std::net::Ipv4Addr>,
}

fn handlers_of_every_shape() -> Server {
    Server::new("test")
        .with(add_tool)
        .with(Tool::new("nothing").run(|| async { "nothing" }))
        .with(Tool::new("context").run(|context: Context| async move { context.revision().to_string() }))
        .with(
            Tool::new("both")
                .run(|_: Context, AddArguments { a, .. }: AddArguments| async move { Ok::<_, ToolError>(a) }),
        )
        .with(
            Tool::new("volume")
                .run(|volume: VolumeArguments| async move { format!("{} {:?}", volume.level, volume.label) }),
        )
        .with(
            Tool::new("raw")
                .input_schema(
                    json!({ "type": "object", "required": ["x"], "properties": { "x": { "maximum": 3 } } }),
                )
                .run_raw(|_, arguments| async move { arguments.to_string() }),
        )
        .with(Tool::new("sizes").run(async |sizes: SizesArguments| {
            sizes.deep.iter().map(|size| size.size + i32::from(size.from.is_some())).sum::<i32>()
        }))
        .with(
            Tool::new("even")
                .validator(|value| match value.get("a").and_then(Value::as_i64) {
                    Some(a) if a % 2 == 0 => Ok(()),
                    _ => Err("a must be even".to_owned()),
                })
                .run(add),
        )
}

#[test]
fn handlers_may_take_any_of_context_and_arguments() {
    let server = handlers_of_every_shape();
    for (tool, arguments, expected) in [
        ("add", json!({ "a": 1, "b": 2 }), "3"),
        ("nothing", json!({}), "nothing"),
        ("nothing", json!(null), "nothing"),
        ("context", json!({}), "2026-07-28"),
        ("both", json!({ "a": 7, "b": 0 }), "7"),
        ("volume", json!({ "level": 10 }), "10 None"),
        ("volume", json!({ "level": 0, "label": "abc" }), "0 Some(\"abc\")"),
        ("raw", json!({ "x": 1, "y": [2] }), r#"{"x":1,"y":[2]}"#),
        ("even", json!({ "a": 2, "b": 0 }), "2"),
        // A whole number is an integer to a schema, however it is written.
        ("add", json!({ "a": 1.0, "b": -2e3 }), "-1999"),
        ("sizes", json!({ "deep": [{ "size": 7.0 }] }), "7"),
    ] {
        assert_eq!(call_text(&server, tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn tool_schema_is_generated_once() {
    static MADE: AtomicUsize = AtomicUsize::new(0);

    #[derive(Deserialize)]
    struct CountedSchema {}

    impl JsonSchema for CountedSchema {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Counted".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            MADE.fetch_add(1, Ordering::SeqCst);
            schemars::json_schema!({ "type": "object" })
        }
    }

    let server =
        Server::new("s").with(Tool::new("counted").run(async |_: CountedSchema| "done")).handle().unwrap();
    for revision in Revision::ALL.iter().cycle().take(10_000) {
        answer_in(&server, *revision, Method::ToolsList, &json!({})).unwrap();
    }
    assert_eq!(MADE.load(Ordering::SeqCst), 1);
}

#[test]
fn invalid_tool_arguments_are_reported_by_name() {
    let server = handlers_of_every_shape();
    for (tool, arguments, expected) in [
        ("add", json!({ "a": "x", "b": 2 }), "`a`: the value is not of type \"integer\""),
        ("add", json!({ "a": 1 }), "\"b\" is a required property"),
        ("add", json!({}), "\"a\" is a required property"),
        ("nothing", json!({ "x": 1 }), "no such property: `x`"),
        ("add", json!({ "a": 1, "b": 2, "c": 3 }), "('c' was unexpected)"),
        ("add", json!({ "a": 1, "b": 2, "\u{e9}\n": 3 }), "was unexpected)"),
        ("volume", json!({ "leval": 1 }), "('leval' was unexpected)"),
        ("volume", json!({ "level": 11 }), "`level`: the value is greater than the maximum of 10"),
        ("volume", json!({ "label": "abcd" }), "`label`: "),
        ("volume", json!({ "level": 300 }), "`level`: the value is greater than the maximum"),
        ("raw", json!({}), "\"x\" is a required property"),
        ("raw", json!({ "x": 4 }), "`x`: the value is greater than the maximum of 3"),
        ("even", json!({ "a": 1, "b": 0 }), "a must be even"),
        ("even", json!({ "a": 2, "b": "" }), "`b`: "),
        ("add", json!({ "a": 1.5, "b": 2 }), "`a`: the value is not of type \"integer\""),
        ("add", json!({ "b": 2, "a": 99_999_999_999_999_999_999.0 }), "`a`: invalid type, expected i64"),
        (
            "sizes",
            json!({ "deep": [{ "size": 1 }, { "size": 3_000_000_000_u32 }] }),
            "`deep/1/size`: invalid value",
        ),
        (
            "sizes",
            json!({ "deep": [{ "size": 1, "from": "10.0.0.300" }] }),
            "`deep/0/from`: invalid IPv4 address",
        ),
    ] {
        let said = call_text(&server, tool, &arguments);
        assert!(said.starts_with('!') && said.contains(expected), "{tool} {arguments}: {said}");
        assert!(!said.contains(" line "), "{said}");
    }
}

#[test]
fn unknown_arguments_are_accepted_only_if_the_type_allows_them() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(extend("additionalProperties" = true))]
    struct OpenArguments {
        a: i64,
    }
    #[derive(Deserialize, JsonSchema)]
    struct FlattenedArguments {
        a: i64,
        #[serde(flatten)]
        others: std::collections::BTreeMap<String, Value>,
    }
    let server = Server::new("s")
        .with(Tool::new("open").run(async |OpenArguments { a }: OpenArguments| a))
        .with(Tool::new("rest").run(async |given: FlattenedArguments| given.a + given.others.len() as i64));
    assert_eq!(call_text(&server, "open", &json!({ "a": 1, "b": 2 })), "1");
    assert_eq!(call_text(&server, "rest", &json!({ "a": 1, "b": 2, "c": 3 })), "3");
}

#[test]
fn malformed_tool_calls_are_refused() {
    let server = handlers_of_every_shape();
    let long = "x".repeat(10_000);
    for (params, message) in [
        (json!({ "name": "add", "arguments": [1, 2] }), "`arguments` must be an object"),
        (json!({ "name": "add", "arguments": "{}" }), "`arguments` must be an object"),
        (json!({ "name": "subtract" }), "Unknown tool: subtract"),
        (json!({ "name": "Add" }), "Unknown tool: Add"),
        (json!({ "name": 7 }), "`name` must be a string"),
        (json!({}), "`name` is missing"),
        (json!({ "name": long }), "Unknown tool: xxx"),
    ] {
        let outcome = answer(&server, Method::ToolsCall, &params);
        assert!(outcome.as_ref().unwrap_err().message().len() < 300);
        assert_refused(outcome, &Refusal::INVALID_PARAMS, message);
    }
}

#[test]
fn typed_tool_results_have_structured_content_and_a_schema() {
    let server = Server::new("test").with(add_tool);
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let result = answer(&server, Method::ToolsCall, &params).unwrap();
    assert_eq!(result, json!({ "content": [{ "type": "text", "text": "3" }], "structuredContent": 3 }));
    let list = answer(&server, Method::ToolsList, &json!({})).unwrap();
    let expected = json!({
        "name": "add",
        "description": "Adds two integers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "The first number." },
                "b": { "type": "integer" },
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        },
        "outputSchema": { "type": "integer" },
    });
    assert_eq!(list["tools"], json!([expected]));
}

#[test]
fn tool_list_is_rendered_in_the_revision_of_the_request() {
    let tool = Tool::new("t").title("T").read_only().idempotent().additive().open_world(false).meta("k", 1);
    let handle = Server::new("test").with(tool.run(|| async {})).handle().unwrap();
    let item =
        |revision| answer_in(&handle, revision, Method::ToolsList, &json!({})).unwrap()["tools"][0].clone();
    let hints = json!({
        "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
    });
    for _ in 0..2 {
        assert_eq!(item(Revision::V2024_11_05).get("annotations"), None);
        let newest = item(Revision::NEWEST);
        assert_eq!((&newest["title"], &newest["annotations"]), (&json!("T"), &hints));
        assert_eq!(newest["_meta"], json!({ "k": 1 }));
    }
}

#[test]
fn tool_results_are_validated_against_an_explicit_schema() {
    let schema = json!({ "type": "object", "required": ["ok"] });
    let tool = |name: &str, result: CallToolResult| {
        let tool = Tool::new(name).input_schema(json!({ "type": "object" })).output_schema(schema.clone());
        tool.run_raw(move |_, _| {
            let result = result.clone();
            async move { result }
        })
    };
    let server = Server::new("test")
        .with(tool("good", CallToolResult::structured(json!({ "ok": 1 }).into())))
        .with(tool("wrong", CallToolResult::structured(json!({}).into())))
        .with(tool("none", CallToolResult::text("hi")))
        .with(tool("failed", CallToolResult::error("no")));
    let outcome = |name: &str| answer(&server, Method::ToolsCall, &json!({ "name": name }));
    assert!(outcome("good").is_ok());
    assert_eq!(outcome("failed").unwrap()["isError"], true);
    assert_refused(outcome("wrong"), &Refusal::INTERNAL, "\"ok\" is a required property");
    assert_refused(outcome("none"), &Refusal::INTERNAL, "there is no structured content");
}

#[test]
fn replaced_tool_handler_is_validated_against_the_tools_schemas() {
    let own = || Server::new("test").with(add_tool());
    let other = |tool: Tool| Server::new("test").with(tool);
    let five = |_: Context, _: RawJson| async { Json(5) };
    let list = |server: &Server| answer(server, Method::ToolsList, &json!({})).unwrap();
    assert_eq!(list(&own()), list(&other(add_tool().with_handler(five))), "it is described as before");
    let call = |server: &Server, arguments: &Value| {
        answer(server, Method::ToolsCall, &json!({ "name": "add", "arguments": arguments }))
    };
    let sum = json!({ "a": 1, "b": 1 });
    assert_eq!(call(&own(), &sum).unwrap()["structuredContent"], 2);
    let overridden = other(add_tool().with_handler(five));
    assert_eq!(call(&overridden, &sum).unwrap()["structuredContent"], 5);
    // The last one counts, as with any setting.
    let twice = other(add_tool().with_handler(five).with_handler(|_, _| async { Json(6) }));
    assert_eq!(call(&twice, &sum).unwrap()["structuredContent"], 6);
    for arguments in [json!({}), json!({ "a": "one", "b": 1 }), json!({ "a": 1.5, "b": 1 })] {
        let said = call(&overridden, &arguments).unwrap();
        assert_eq!(said["isError"], true, "{arguments}: {said}");
    }
    let wrong = other(add_tool().with_handler(|_, _| async { Json("five") }));
    assert_refused(call(&wrong, &sum), &Refusal::INTERNAL, "output schema");
    let bare = other(Tool::new("add").input_schema(json!({ "type": "object" })).with_handler(five));
    assert_eq!(call(&bare, &sum).unwrap()["structuredContent"], 5, "a tool that had no handler");
}

#[test]
fn tool_problems_are_reported_when_the_server_is_built() {
    let object = || json!({ "type": "object" });
    let mirrored = || Tool::new("t").run(add);
    for (tool, problem) in [
        (Tool::new("a b").run(add), "tool `a b`: its name has ' '"),
        (Tool::new("").run(add), "tool ``: its name is empty"),
        (Tool::new("t"), "tool `t`: has no handler"),
        (Tool::new("t").run(add).run(add), "has two handlers"),
        (Tool::new("t").run_raw(|_, _| async {}), "has no input schema"),
        (
            Tool::new("t").input_schema(json!([])).run_raw(|_, _| async {}),
            "its input schema is not an object",
        ),
        (Tool::new("t").input_schema(json!({})).run_raw(|_, _| async {}), "`\"type\": \"object\"`"),
        (Tool::new("t").run(|_: String| async {}), "its arguments are not an object"),
        (
            Tool::new("t").input_schema(json!({ "type": "object", "minProperties": -1 })).run(add),
            "its input schema is not valid",
        ),
        (
            Tool::new("t")
                .input_schema(json!({ "type": "object", "$ref": "https://example.com/x" }))
                .run(add),
            "its input schema is not valid",
        ),
        (
            Tool::new("t").input_schema(object()).output_schema(json!({ "type": 1 })).run(add),
            "its output schema is not valid",
        ),
        (mirrored().mirror("c", "C"), "mirrors `c`, which is not one of its arguments"),
        (mirrored().mirror("a", "Not a token"), "is not a header name"),
        (mirrored().mirror("a", "A").mirror("b", "a"), "repeats the name"),
        (mirrored().meta("k", std::collections::BTreeMap::from([((), 1)])), "its `_meta` member `k`"),
    ] {
        let error = Server::new("test").with(tool).handle().unwrap_err();
        assert_eq!(error.problems().len(), 1, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn optional_mirrored_arguments_are_marked_in_the_schema() {
    let tool = Tool::new("t").mirror("label", "Label").run(|_: VolumeArguments| async {});
    let handle = Server::new("test").with(tool).with(add_tool).handle().unwrap();
    let mirrored = handle.mirrored_arguments("t", CallerIdentity::ANONYMOUS).unwrap();
    let headers: Vec<_> =
        mirrored.iter().map(|param| (param.path().join("."), param.header().to_owned())).collect();
    assert_eq!(headers, [("label".to_owned(), "Mcp-Param-Label".to_owned())]);
    assert!(handle.mirrored_arguments("add", CallerIdentity::ANONYMOUS).is_none());
    assert!(handle.mirrored_arguments("none", CallerIdentity::ANONYMOUS).is_none());
}

async fn confirmed(context: Context) -> Result<String, ToolError> {
    let Confirm(first) = context.ask(ask("Sure?")).await?;
    let Confirm(second) = context.ask(ask("Really?").key("again")).await?;
    Ok(format!("{first} {second}"))
}

fn run(server: &Server, call: IncomingCall) -> Option<Result<HandlerOutcome, Refusal>> {
    Handler::call(&server.handle().unwrap(), call).now_or_never()
}

#[test]
fn unsupported_input_request_becomes_a_refusal_through_the_try_operator() {
    let server = Server::new("test").with(Tool::new("book").run(confirmed));
    let caller = caller(Revision::NEWEST, &json!({}));
    let outcome = run(&server, call_from(caller, Method::ToolsCall, &json!({ "name": "book" }))).unwrap();
    assert_refused(outcome, &Refusal::MISSING_CAPABILITY, "elicitation/create");
}

#[test]
fn replayed_tool_gets_the_responses_of_earlier_rounds() {
    let server = Server::new("test").with(Tool::new("book").replay().run(confirmed));
    let request = || call(Revision::NEWEST, Method::ToolsCall, &json!({ "name": "book" }));
    let yes = r#"{"action":"accept","content":{"confirm":true}}"#;

    let mut second = request();
    second.continuation = Some(Bytes::from(format!(r#"[["q1",{yes}]]"#)));
    let shared = second.context.shared().clone();
    assert!(run(&server, second).is_none(), "the second question is open");
    let kept = shared.recorded_responses().unwrap();
    assert_eq!(kept, [("q1".to_owned(), RawJson::parse(yes).unwrap())]);

    let mut third = request();
    third.continuation = Some(Bytes::from(format!(r#"[["q1",{yes}],["again",{yes}]]"#)));
    let Some(Ok(HandlerOutcome::Done(reply))) = run(&server, third) else { panic!("every answer is there") };
    assert!(format!("{reply:?}").contains("true true"), "{reply:?}");

    let mut stale = request();
    stale.continuation = Some(Bytes::from_static(b"{}"));
    assert_refused(run(&server, stale).unwrap(), &Refusal::STALE_STATE, "");
}

#[test]
fn tool_without_replay_keeps_no_responses() {
    let server = Server::new("test").with(Tool::new("book").run(confirmed));
    let request = call(Revision::NEWEST, Method::ToolsCall, &json!({ "name": "book" }));
    let shared = request.context.shared().clone();
    assert!(run(&server, request).is_none());
    assert_eq!(shared.recorded_responses(), None);
}

#[test]
fn validation_schema_can_be_looser_than_the_listed_schema() {
    let listed = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    let held_to = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let tool = Tool::new("t").input_schema(listed.clone()).validation_schema(held_to);
    let server =
        Server::new("test").with(tool.run_raw(|_, arguments| async move { arguments.as_str().to_owned() }));
    let tools = answer(&server, Method::ToolsList, &json!({})).unwrap();
    assert_eq!(tools["tools"][0]["inputSchema"], listed);
    assert_eq!(call_text(&server, "t", &json!({})), "{}");
    assert!(call_text(&server, "t", &json!({ "a": "x" })).contains("`a`"));
}
