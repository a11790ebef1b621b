//! Commands that are described in `trunkline.toml`: run, explained and served.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::process::{FinishedCommand, folder, run, run_with};

const FILE: &str = r#"
[commands.greet]
description = "Greets somebody."
argv = ["printf", "%s\n", "Hello {name}", "{loud}"]
read_only = true

[commands.greet.arguments]
name = { description = "Whom to greet." }
loud = { type = "boolean", flag = "--loud" }

[commands.count]
script = "echo \"${ARG_N} lines\" >&2; i=0; while [ $i -lt \"$ARG_N\" ]; do i=$((i+1)); echo \"{\\\"n\\\":$i}\" ; done | tail -n 1"
output = "json"
timeout = "20s"
arguments.n = { type = "integer", min = 1, max = 9 }

[commands.make]
argv = ["touch", "{file}"]
confirm = "Make {file}?"
arguments.file = {}

[commands.fail]
argv = ["sh", "broken.sh", "${SECRET:-none}"]
env = { TOKEN = "sentinel" }

[policy]
commands = ["deny make", "allow *"]

[manifests]
files = ["golem.yaml"]
"#;

/// Writes the file into a folder of its own.
fn described(test: &str, text: &str) -> (PathBuf, String) {
    let folder = folder(test);
    let path = folder.join("trunkline.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

#[track_caller]
fn run_command(args: &[&str], config: &str) -> FinishedCommand {
    run(&[args, &["--config", config]].concat(), "")
}

#[test]
fn run_executes_a_configured_command() {
    let (folder, config) = described("described-run", FILE);
    std::fs::write(folder.join("broken.sh"), "echo half; echo \"no luck $1\" >&2; exit 3\n").unwrap();
    for (args, code, stdout, stderr) in [
        (&["run", "greet", "name=Ann"][..], 0, "Hello Ann\n", ""),
        (&["run", "greet", "name=-x $(reboot)", "loud=true"], 0, "Hello -x $(reboot)\n--loud\n", ""),
        (&["run", "count", "n=3"], 0, "{\"n\":3}\n", "3 lines\n"),
        (&["run", "greet"], 2, "", "error: missing argument `name`"),
        (&["run", "greet", "nam=x"], 2, "", "did you mean `name`?"),
        (&["run", "count", "n=many"], 2, "", "argument `n`"),
        (&["run", "count", "n=99"], 2, "", "argument `n`: 99 is greater than the maximum of 9"),
        (&["run"], 2, "", "missing argument: NAME\nhint: `trunkline explain` lists the commands"),
        (&["run", "gret", "name=x"], 3, "", "did you mean `greet`?"),
        (&["run", "fail"], 1, "", "no luck"),
        (&["run", "make", "file=made"], 1, "", "error: input is required, and there is no terminal"),
        (&["run", "make", "file=made", "--answer", "decline"], 1, "", "the user declined"),
    ] {
        let finished = run_command(args, &config);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(code), stdout), "{args:?}: {finished:?}");
        assert!(finished.stderr.contains(stderr), "{args:?}: {finished:?}");
    }
    // What a variable stands for has no places for values in it, whatever it looks like.
    let braces = run_with(&["run", "fail", "--config", &config], &[("SECRET", "{name}")], "");
    assert!(braces.code == Some(1) && braces.stderr.contains("no luck {name}"), "{braces:?}");
    assert!(!folder.join("made").exists());
    let made = run_command(&["run", "make", "file=made", "--answer", "confirm:=true"], &config);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(folder.join("made").exists(), "it runs in the folder of the file");
    let json = run_command(&["run", "count", "n=2", "--json"], &config);
    let result: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(result["structuredContent"], json!({ "n": 2 }));
    assert_eq!(result["_meta"]["trunkline/stderr"], "2 lines\n");
    assert!(!json.stdout.contains("0.0.0"), "{}", json.stdout);
}

#[test]
fn explain_shows_a_configured_command() {
    let (_, config) = described("described-explain", FILE);
    let plain = run_command(&["explain", "greet", "name=a b"], &config);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    let secret = [("SECRET", "sentinel{x}")];
    let none = run_with(&["explain", "fail", "--config", &config], &secret, "");
    for part in [
        "would run   sh broken.sh '${SECRET:-none}'",
        "env      a minimal environment and TOKEN",
        "hints    none",
    ] {
        assert!(none.stdout.contains(part) && !none.stdout.contains("sentinel"), "{part}:\n{}", none.stdout);
    }
    for part in [
        "hints    read-only",
        "Greets somebody.",
        "runs     printf '%s\\n' 'Hello {name}' {loud}",
        "allowed by `allow *`",
        "would run   printf",
        "'Hello a b'",
        "\"Whom to greet.\"",
    ] {
        assert!(plain.stdout.contains(part), "{part}:\n{}", plain.stdout);
    }
    let json = run_command(&["explain", "make", "file=x", "--json"], &config);
    let told_of: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(told_of["argv"], json!(["touch", "x"]));
    assert_eq!(told_of["asks"], "Make x?");
    assert_eq!(
        (&told_of["environment"], &told_of["annotations"]["readOnlyHint"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!((&told_of["allowed"], &told_of["policy"]), (&json!(false), &json!("denied by `deny make`")));
    assert_eq!(run_command(&["explain", "make", "file=-x"], &config).code, Some(2));
    assert_eq!(run_command(&["explain", "count", "n=0"], &config).code, Some(2));
}

#[test]
fn configured_commands_are_listed_with_the_rules_that_hide_them() {
    let (folder, config) = described("described-list", FILE);
    let listed = run_command(&["explain"], &config);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for part in [
        "greet(name: str, [loud: bool])\n    Greets somebody.\n",
        "count(n: int)\n",
        "make(file: str)\n    hidden: denied by `deny make`\n",
    ] {
        assert!(listed.stdout.contains(part), "{part}:\n{}", listed.stdout);
    }
    let json: Value = serde_json::from_str(&run_command(&["explain", "--json"], &config).stdout).unwrap();
    assert_eq!((&json[2]["name"], &json[2]["allowed"]), (&json!("make"), &json!(false)), "{json}");
    let servers = run_command(&["servers"], &config);
    assert!(servers.stderr.contains("4 commands; `trunkline explain` lists them\n"), "{servers:?}");
    let none = crate::process::run_in(&["explain"], &{
        let empty = folder.join("empty");
        std::fs::create_dir(&empty).unwrap();
        empty
    });
    assert_eq!(none.code, Some(3), "{none:?}");
}

#[test]
fn invalid_command_tables_are_reported_with_the_position() {
    for (text, expected) in [
        (
            "[commands.a]\nargv = [\"p\", \"{x}\"]\n",
            ":2:14: key `commands.a.argv.1`: `{x}` is not an argument",
        ),
        ("[commands.a]\nargs = [\"p\"]\n", ":2:1: key `commands.a.args`"),
        (
            "[commands.a]\nargv = [\"sh\", \"-c\", \"{x}\"]\narguments.x = {}\n",
            "`x` would become part of a program",
        ),
        (
            "[commands.a]\nargv = [\"p\"]\ntimeout = \"soon\"\n",
            ":3:11: key `commands.a.timeout`: expected a duration",
        ),
        (
            "[commands.a]\nargv = [\"p\"]\ntimeout = 5\n",
            ":3:11: key `commands.a.timeout`: expected a duration with a unit, such as \"500ms\", \"30s\", \"2m\" or \
             \"1h\", at most a year, found a number",
        ),
        ("[commands.a]\ndescription = \"x\"\n", "it has neither `argv` nor `script`"),
        ("[commands]\na = 1\n", ":2:5: key `commands.a`: expected a table, found a number"),
        ("[policy]\ncommands = [\"permit a\"]\n", ":2:13: key `policy.commands.0`: rule 1 of the policy"),
        ("[manifests]\nfile = []\n", "key `manifests.file`"),
    ] {
        let (_, config) = described("described-mistakes", text);
        for args in [&["run", "a"][..], &["explain", "a"], &["serve", "--stdio"]] {
            let finished = run_command(args, &config);
            assert_eq!(finished.code, Some(3), "{text}: {finished:?}");
            assert!(finished.stderr.contains(expected), "{text}: {}", finished.stderr);
        }
    }
}

/// Talks to a server over its pipes and returns its answers by their ids.
fn served(args: &[&str], messages: &[Value]) -> Vec<Value> {
    let client = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut input =
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    input += "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    for message in messages {
        input += &format!("{message}\n");
    }
    let finished = run(&[&["serve", "--stdio", "--trust"], args].concat(), &input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut answers: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn described_commands_are_served_beside_the_built_in_servers() {
    let (folder, config) = described("described-serve", FILE);
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::write(folder.join("golem.yaml"), "a: 1\n").unwrap();
    let ask = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let messages = [
        ask(1, "tools/list", json!({})),
        ask(2, "tools/call", json!({ "name": "greet", "arguments": { "name": "Ann" } })),
        ask(3, "tools/call", json!({ "name": "make", "arguments": { "file": "made" } })),
        ask(4, "resources/list", json!({})),
    ];
    let names = |answers: &[Value]| -> Vec<String> {
        let tools = answers[1]["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let answers = served(&["--config", &config], &messages);
    assert_eq!(names(&answers), ["count", "fail", "greet"]);
    assert_eq!(answers[1]["result"]["tools"][2]["annotations"]["readOnlyHint"], true);
    assert_eq!(answers[2]["result"]["content"][0]["text"], "Hello Ann\n");
    assert_eq!(answers[3]["error"]["message"], "Unknown tool: make");
    assert_eq!(answers[4]["result"]["resources"][0]["name"], "golem.yaml");
    assert!(!folder.join("made").exists());
    let both = served(&["--config", &config, "--builtin", "echo"], &messages[..1]);
    assert_eq!(names(&both), ["count", "echo", "fail", "greet"]);
    let none = served(&["--no-config"], &messages[..1]);
    assert!(names(&none).contains(&"echo".to_owned()) && !names(&none).contains(&"greet".to_owned()));
}

#[test]
fn audit_log_names_the_rule_of_a_denied_call() {
    let (folder, config) = described("described-audit", FILE);
    let log = folder.join("log");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "make", "arguments": {} } });
    served(&["--config", &config, "--log-file", log.to_str().unwrap(), "--log-level", "info"], &[call]);
    let log = read(&log);
    assert!(log.contains("refused") && log.contains("denied by `deny make`"), "{log}");
}

#[test]
fn debug_log_has_the_pid_and_no_argument_values() {
    let (folder, config) = described("described-pid", FILE);
    let log = folder.join("log");
    let params = json!({ "name": "greet", "arguments": { "name": "sentinel" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    served(&["--config", &config, "--log-file", log.to_str().unwrap(), "--log-level", "debug"], &[call]);
    let log = read(&log);
    let started = log.lines().find(|line| line.contains("started")).unwrap_or_default();
    assert!(started.contains("greet") && started.contains("pid"), "{log}");
    assert!(!log.contains("sentinel"), "{log}");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn guide_files_are_valid_and_their_commands_are_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    for document in ["docs/commands.md", "README.md"] {
        let text = read(&root.join(document));
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let file: String = blocks.filter(|block| !block.starts_with("[dependencies]")).collect();
        let (_, config) = described("described-guide", &file);
        let names: Vec<&str> = file
            .lines()
            .filter_map(|line| line.strip_prefix("[commands.")?.strip_suffix(']'))
            .filter(|name| !name.contains('.'))
            .collect();
        assert!(!names.is_empty(), "{document} describes commands");
        for name in names {
            let explained = run_command(&["explain", name], &config);
            assert_eq!(explained.code, Some(0), "{document}: {name}: {explained:?}");
        }
    }
}
