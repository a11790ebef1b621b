//! Programs that others have written are servers by one line, and nothing of them was changed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Calls methods one after the other over the pipes of a program.
fn served(program: &str, folder: &Path, requests: &[(&str, Value)]) -> Vec<Value> {
    let mut child = Command::new(program)
        .arg("--serve-stdio")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let mut answers = Vec::new();
    for (id, (method, params)) in std::iter::once(&("initialize", hello)).chain(requests).enumerate() {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
        answers.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
        if id == 0 {
            writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers.split_off(1)
}

fn call(tool: &str, arguments: Value) -> (&'static str, Value) {
    ("tools/call", json!({ "name": tool, "arguments": arguments }))
}

fn text(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    blocks.map(|block| block["text"].as_str().unwrap()).collect()
}

#[test]
fn sea_orm_migrations_are_tools() {
    let folder = folder("sea");
    let answers = served(
        env!("CARGO_BIN_EXE_sea"),
        &folder,
        &[
            ("tools/list", json!({})),
            call("migrate_init", json!({})),
            call("migrate generate", json!({ "migration_name": "create cake table" })),
            call("migrate_generate", json!({ "migration_name": "--help", "universal_time": true, "local_time": true })),
            call("migrate_up", json!({ "num": 2 })),
            call("version", json!({})),
        ],
    );
    let tools = answers[0]["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "generate_entity", "migrate_down", "migrate_fresh", "migrate_generate", "migrate_init",
            "migrate_refresh", "migrate_reset", "migrate_status", "migrate_up", "version"
        ]
    );
    let down = tools.iter().find(|tool| tool["name"] == "migrate_down").unwrap();
    assert_eq!(down["inputSchema"]["properties"]["num"]["type"], "integer", "{down}");
    assert!(folder.join("migration/Cargo.toml").exists(), "{}", text(&answers[1]));
    let made = std::fs::read_dir(folder.join("migration/src")).unwrap().flatten();
    let made: Vec<String> = made.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(made.iter().any(|name| name.ends_with("create_cake_table.rs")), "{made:?}");
    // The error of clap is returned verbatim, and so is the failure of the program.
    assert!(answers[3]["result"]["isError"] == true && text(&answers[3]).contains("cannot be used with"), "{}", answers[3]);
    assert_eq!(answers[4]["result"]["isError"], true, "{}", answers[4]);
    assert!(text(&answers[5]).contains("1.1"), "{}", answers[5]);
}

#[test]
fn uutils_sort_is_a_tool() {
    let folder = folder("sort");
    std::fs::write(folder.join("numbers"), "10\n9\n-3\n9\n").unwrap();
    let answers = served(
        env!("CARGO_BIN_EXE_sort"),
        &folder,
        &[
            ("tools/list", json!({})),
            call("sort", json!({ "files": ["numbers"] })),
            call("sort", json!({ "files": ["numbers"], "numeric-sort": true, "reverse": true, "unique": true })),
            call("sort", json!({ "files": ["--numeric-sort"] })),
        ],
    );
    let schema = &answers[0]["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["properties"]["reverse"]["type"], "boolean", "{schema}");
    assert_eq!(text(&answers[1]).lines().count(), 4, "{}", answers[1]);
    assert_eq!(text(&answers[2]), "10\n9\n-3\n", "{}", answers[2]);
    assert!(answers[3]["result"]["isError"] == true, "a file of that name is not there: {}", answers[3]);
}
