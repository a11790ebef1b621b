use serde_json::{Value, json};
use trunkline::prelude::*;

use trunkline::server::HostOptions;
use trunkline::session::Principal;
use trunkline::transport::Channel as _;

use crate::support::{DEADLINE, call, only};

/// Adds two integers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Searches the archive.
///
/// Old papers first.
#[tool(name = "search.papers", title = "Search", read_only, idempotent, open_world = false)]
async fn search(
    context: Context,
    /// What to look for.
    query: String,
    #[default(10)]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
    #[default("en")] language: String,
    #[default] deep: bool,
    #[header("Region")] region: Option<String>,
    #[rename("maxAge")] max_age: Option<u32>,
    r#type: Option<String>,
) -> String {
    let revision = context.revision();
    format!("{query} {limit} {language} {deep} {region:?} {max_age:?} {type:?} {revision}", type = r#type)
}

#[tool(destructive, description = "Empties the bin.")]
fn empty() {}

#[tool(destructive = false, replay)]
fn note(mut text: String) -> &'static str {
    text.clear();
    "noted"
}

#[tool(scopes = "files:read files:write")]
fn guarded() -> &'static str {
    "in"
}

/// Calls itself, and has a parameter of its own name.
#[tool]
fn factorial(factorial: u64) -> u64 {
    fn of(number: u64) -> u64 {
        (1..=number).product()
    }
    of(factorial)
}

pub(crate) mod inner {
    use trunkline::prelude::*;

    /// A tool that others see.
    #[tool]
    #[must_use]
    #[expect(clippy::identity_op, reason = "attributes of lints stay")]
    pub(crate) async fn seen() -> i64 {
        1 + 0
    }
}

#[tokio::test]
async fn function_becomes_a_tool_with_its_schema() {
    let server = Server::new("test").with(add);
    let expected = json!({
        "name": "add",
        "description": "Adds two integers.",
        "inputSchema": {
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            "required": ["a", "b"],
            "additionalProperties": false,
        },
        "outputSchema": { "type": "integer" },
    });
    assert_eq!(only(&server, "tools/list", "tools").await, expected);
    assert_eq!(call(&server, "add", json!({ "a": 2, "b": 3 })).await, json!(5));
    let wrong = call(&server, "add", json!({ "a": "two", "b": 3 })).await;
    assert!(wrong.as_str().unwrap().contains("`a`"), "{wrong}");
}

#[tokio::test]
async fn scopes_are_required_of_callers_with_an_identity() {
    let host = Server::new("test").with(guarded).host(HostOptions::default()).unwrap();
    for (principal, expected) in
        [(Principal::Anonymous, json!(["files:read", "files:write"])), (Principal::Process, Value::Null)]
    {
        let (ours, mut theirs) = trunkline::transport::memory(8);
        let host = host.clone();
        tokio::spawn(async move { host.serve_channel(ours, principal).await });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "guarded", "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        theirs.send(&call.to_string());
        let answered = async {
            std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.unwrap();
            std::future::poll_fn(|cx| theirs.poll_receive(cx)).await.unwrap().unwrap()
        };
        let answer = tokio::time::timeout(DEADLINE, answered).await.expect("the server answers");
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["error"]["data"]["requiredScopes"], expected, "{answer}");
    }
}

#[tokio::test]
async fn unknown_argument_is_refused_by_name() {
    let server = Server::new("test").with(add).with(search);
    for (tool, arguments) in
        [("add", json!({ "a": 2, "b": 3, "c": 4 })), ("search.papers", json!({ "query": "x", "c": 4 }))]
    {
        let refused = call(&server, tool, arguments).await;
        let refused = refused.as_str().unwrap_or_default();
        assert!(refused.starts_with("!Invalid arguments: ") && refused.contains("'c'"), "{tool}: {refused}");
    }
}

#[tokio::test]
async fn options_and_parameters_describe_the_tool() {
    let server = Server::new("test").with(search);
    let expected = json!({
        "name": "search.papers",
        "title": "Search",
        "description": "Searches the archive.\n\nOld papers first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What to look for." },
                "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 10 },
                "language": { "type": "string", "default": "en" },
                "deep": { "type": "boolean", "default": false },
                "region": { "type": "string", "x-mcp-header": "Region" },
                "maxAge": { "type": ["integer", "null"], "minimum": 0 },
                "type": { "type": ["string", "null"] },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
    });
    assert_eq!(only(&server, "tools/list", "tools").await, expected);
}

#[tokio::test]
async fn arguments_that_are_left_out_have_their_defaults() {
    let server = Server::new("test").with(search);
    let everything = json!({
        "query": "x", "limit": 5, "language": "de", "deep": true, "region": "eu", "maxAge": 9, "type": "pdf",
    });
    for (arguments, expected) in [
        (json!({ "query": "x" }), r"x 10 en false None None None 2026-07-28"),
        (everything, r#"x 5 de true Some("eu") Some(9) Some("pdf") 2026-07-28"#),
    ] {
        assert_eq!(call(&server, "search.papers", arguments).await, json!(expected));
    }
    let refused = call(&server, "search.papers", json!({ "query": "x", "limit": 51 })).await;
    assert!(refused.as_str().unwrap().starts_with("!Invalid arguments: `limit`"), "{refused}");
}

#[tokio::test]
async fn functions_need_not_be_async_and_may_take_and_return_nothing() {
    let server = Server::new("test").with(empty);
    let expected = json!({
        "name": "empty",
        "description": "Empties the bin.",
        "inputSchema": { "type": "object", "additionalProperties": false },
        "annotations": { "destructiveHint": true },
    });
    assert_eq!(only(&server, "tools/list", "tools").await, expected);
    assert_eq!(call(&server, "empty", json!({})).await, json!(""));

    let server = Server::new("test").with(note);
    let hints = only(&server, "tools/list", "tools").await["annotations"].take();
    assert_eq!(hints, json!({ "destructiveHint": false }));
    assert_eq!(call(&server, "note", json!({ "text": "a" })).await, json!("noted"));
}

#[tokio::test]
async fn tool_builder_has_the_visibility_of_the_function() {
    let server = Server::new("test").with((factorial, inner::seen().title("Seen")));
    assert_eq!(call(&server, "factorial", json!({ "factorial": 5 })).await, json!(120));
    assert_eq!(call(&server, "seen", json!({})).await, json!(1));
    let made: Tool = inner::seen();
    assert_eq!(
        call(&Server::new("test").with(made), "seen", Value::Object(Default::default())).await,
        json!(1)
    );
}
