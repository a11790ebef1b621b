use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Arg, Command};
use serde_json::{Map, Value, json};
use trunkline_commands::{Policy, Program};

use crate::peer::{LegacyPeer, text};
use crate::support::{host, program, store};

async fn tools(peer: &mut LegacyPeer) -> Vec<Value> {
    let answer = peer.request("tools/list", json!({})).await;
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn example_program_lists_the_expected_tools() {
    let host = host(&program());
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let listed = tools(&mut peer).await;
    let expected: Vec<&str> = include_str!("tools.txt").lines().collect();
    assert_eq!(names(&listed), expected, "if that is meant, tools.txt has to say the same");
    assert!(listed.len() >= 70);
    let list = listed.iter().find(|tool| tool["name"] == "api_definition_list").unwrap();
    assert_eq!(list["title"], "api definition list");
    assert_eq!(list["description"], "Lists all of a kind (api definition)");
    assert_eq!(list["annotations"]["readOnlyHint"], true);
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 1000, "description": "At most so many" });
    assert_eq!(list["inputSchema"]["properties"]["limit"], limit);
    let delete = listed.iter().find(|tool| tool["name"] == "component_delete").unwrap();
    assert_eq!(delete["annotations"]["destructiveHint"], true);
    let convert = listed.iter().find(|tool| tool["name"] == "convert").unwrap();
    let about =
        "Converts files from one form to another.\n\nIt says what it would do, as JSON, and does nothing.";
    assert_eq!(convert["description"], about);
}

#[tokio::test]
async fn tool_schemas_have_no_arguments_of_parent_commands() {
    let host = host(&program());
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    for tool in tools(&mut peer).await {
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        for above in ["profile", "config_dir", "format", "service", "serve", "help", "version"] {
            assert!(!properties.contains_key(above), "{above} in {tool}");
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    let refused = peer.call("component_list", json!({ "profile": "admin" })).await;
    assert!(refused["isError"] == true && text(&refused).contains("profile"), "{refused}");
}

/// Makes the least that a schema takes.
fn least(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().unwrap();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let arguments: Map<String, Value> = required
        .iter()
        .map(|name| {
            let name = name.as_str().unwrap();
            let value = match properties[name]["type"].as_str().unwrap() {
                "integer" => json!(properties[name]["minimum"].as_u64().unwrap_or(0)),
                _ => json!("thing"),
            };
            (name.to_owned(), value)
        })
        .collect();
    arguments.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_tool_runs_its_command() {
    let (_store, service) = store();
    let host = host(&program().env("DEPOT_SERVICE", service));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let listed = tools(&mut peer).await;
    let first = |name: &str| name.ends_with("_add");
    let mut ordered: Vec<&Value> =
        listed.iter().filter(|tool| first(tool["name"].as_str().unwrap())).collect();
    ordered.extend(listed.iter().filter(|tool| !first(tool["name"].as_str().unwrap())));
    let mut ran = 0;
    for tool in ordered {
        let name = tool["name"].as_str().unwrap();
        if matches!(name, "debug_wait" | "debug_fail") {
            continue;
        }
        let result = peer.call(name, least(&tool["inputSchema"])).await;
        let said = text(&result);
        // What was deleted or renamed before is missing; that is an answer of the store, not of the parser.
        let failed = result["isError"] == true && !said.contains("nothing called thing");
        assert!(!failed && !said.contains("Usage:"), "{name}: {said}");
        ran += 1;
    }
    assert!(ran >= 70, "{ran}");
}

#[tokio::test]
async fn tools_are_built_once_and_listed_many_times() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    // The schema gets the range of a number by trying its parser.
    let parse = move |text: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        text.parse::<u8>()
    };
    let leaf = Command::new("leaf").arg(Arg::new("n").value_parser(parse));
    let command = Command::new("p").subcommand(Command::new("group").subcommand(leaf));
    let host = host(&Program::new(command).executable("/bin/true"));
    let before = made.load(Ordering::SeqCst);
    assert!(before > 0, "the schema was made");
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let first = peer.request("tools/list", json!({})).await;
    for _ in 0..10_000 {
        let again = peer.request("tools/list", json!({})).await;
        assert_eq!(again["result"], first["result"]);
    }
    assert_eq!(made.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn added_subcommand_becomes_a_tool() {
    let with = |command: Command| async move {
        let host = host(&Program::new(command).executable("/bin/true"));
        let mut peer = LegacyPeer::legacy(&host, json!({})).await;
        names(&tools(&mut peer).await).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let command = Command::new("p").subcommand(Command::new("a"));
    assert_eq!(with(command.clone()).await, ["a"]);
    let deep = Command::new("b")
        .subcommand(Command::new("c").subcommand(Command::new("d").subcommand(Command::new("e"))));
    assert_eq!(with(command.subcommand(deep)).await, ["a", "b_c_d_e"]);
}

#[tokio::test]
async fn hidden_tool_call_is_answered_like_an_unknown_tool() {
    let only = Policy::from_rules(["deny component delete", "allow component *", "allow --version"]).unwrap();
    let host = host(&program().policy(only));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let listed = tools(&mut peer).await;
    let expected = [
        "component_add",
        "component_get",
        "component_list",
        "component_rename",
        "component_update",
        "version",
    ];
    assert_eq!(names(&listed), expected);
    let mut refusals = Vec::new();
    for hidden in
        ["component_delete", "component delete", "worker_list", "store", "debug_wait", "no_such_tool"]
    {
        let params = json!({ "name": hidden, "arguments": {} });
        let answer = peer.request("tools/call", params).await;
        let error = answer["error"].clone();
        refusals.push(error["message"].as_str().unwrap().replace(hidden, "X"));
        assert_eq!(error["code"], -32602, "{answer}");
    }
    assert!(refusals.iter().all(|refusal| refusal == "Unknown tool: X"), "{refusals:?}");
}

#[tokio::test]
async fn argument_values_are_never_parsed_as_serve_flags() {
    // Before the `--` that the last values need, this value can only stand bare.
    let command = Command::new("p")
        .arg(Arg::new("file").required(true).allow_hyphen_values(true))
        .arg(Arg::new("rest").num_args(1..).last(true));
    let server = Program::new(command.clone()).server().unwrap();
    let call = |file: &str| server.call("p", json!({ "file": file, "rest": ["x"] }));
    let refused = call("--serve=0").await.unwrap();
    let said = refused.content[0].as_text().unwrap();
    assert!(refused.is_error && said.contains("required arguments were not provided"), "{said}");
    // A program that is not a server of ours has no such flag.
    let other = Program::new(command).executable("/bin/echo").server().unwrap();
    let echoed = other.call("p", json!({ "file": "--serve=0", "rest": ["x"] })).await.unwrap();
    assert_eq!(echoed.content[0].as_text(), Some("--serve=0 -- x\n"));
}
