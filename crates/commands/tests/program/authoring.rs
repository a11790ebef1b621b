use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::support::{RunningProgram, command, example, folder, post, serve, store};

/// Talks to a program over its pipes.
fn talk(program: &str, arguments: &[&str], messages: &[Value]) -> Vec<Value> {
    let mut command = command(example(program));
    command.args(arguments);
    let mut running = RunningProgram::start(command, &folder("stdio"));
    let mut input = running.child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = BufReader::new(running.child.stdout.take().unwrap());
    let answers = output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(running.child.wait().unwrap().success());
    answers
}

fn session(calls: &[Value]) -> Vec<Value> {
    let client = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut messages = vec![
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    messages.extend(calls.iter().enumerate().map(
        |(at, params)| json!({ "jsonrpc": "2.0", "id": at + 1, "method": "tools/call", "params": params }),
    ));
    messages
}

#[test]
fn derived_clap_program_serves_with_one_line() {
    let calls = [
        json!({ "name": "hello", "arguments": { "name": "--serve", "times": 2 } }),
        json!({ "name": "goodbye" }),
        json!({ "name": "hello", "arguments": { "name": "Ann", "times": 256 } }),
    ];
    // The old way to ask for it is the same as the new one.
    for flag in ["--serve", "--serve-stdio"] {
        let mut answers = talk("greet", &[flag], &session(&calls));
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let text = |at: usize| answers[at]["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert_eq!(text(1), "Hello --serve\nHello --serve\n");
        assert_eq!(text(2), "Goodbye\n");
        assert!(text(3).contains("times") && answers[3]["result"]["isError"] == true, "{}", text(3));
    }
    let plain = command(example("greet")).args(["hello", "Ann"]).output().unwrap();
    assert_eq!(plain.stdout, b"Hello Ann\n");
}

#[test]
fn operator_prefix_precedes_every_command() {
    let folder = folder("prefix");
    let (_store, service) = store();
    std::fs::write(folder.join("policy"), "# only what is needed\nallow component *\n").unwrap();
    let policy = folder.join("policy");
    let arguments = ["--format=json", "--service", &service, "--serve-policy", policy.to_str().unwrap()];
    let (_server, address) = serve(&folder, &arguments);
    let headers = |tool: &'static str| {
        [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
            ("Accept", "application/json"),
        ]
    };
    let call = |tool: &'static str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answer = post(address, &headers(tool), &message);
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    assert_eq!(call("component_list")["result"]["content"][0]["text"], "[]\n");
    for hidden in ["worker_list", "profile_list"] {
        let expected = format!("Unknown tool: {hidden}");
        assert_eq!(call(hidden)["error"]["message"], expected);
    }
}

#[test]
fn serve_list_prints_every_command_with_its_policy_rule() {
    let output = command(example("depot")).arg("--serve-list").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    for line in [
        "component_list\tcomponent list\tallowed, since no rule denies it",
        "cloud_token_list\tcloud token list\tdenied by `deny cloud token * (preset golem)`",
        "version\t--version\tallowed, since no rule denies it",
    ] {
        assert!(listed.lines().any(|listed| listed == line), "{line} in\n{listed}");
    }
    assert!(!listed.contains("store\t"), "what is hidden in the help is no command for others");
}
