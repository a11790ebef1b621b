//! `servers`, `add`, `remove`, `enable`, `disable`, `reconnect`: the file of a configuration, and the hub that runs from it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::process::{Finished, file, folder, run_at_home};

/// Runs a command in a folder, and returns what it said if it succeeded.
#[track_caller]
fn done(words: &[&str], here: &Path) -> String {
    let finished = run_at_home(words, here, &[]);
    assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
    finished.stdout + &finished.stderr
}

#[track_caller]
fn refused(words: &[&str], here: &Path, code: i32) -> String {
    let Finished { code: exit, stdout, stderr } = run_at_home(words, here, &[]);
    assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{words:?}: {stderr}");
    stderr
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn servers_are_added_switched_and_removed_in_a_file_that_is_made() {
    let here = folder("manage_file");
    let config = here.join("trunkline.toml");
    let text = || std::fs::read_to_string(&config).unwrap();
    let told = done(&["add", "files", "--", "npx", "-y", "files", "${HOME}/x y", "--flag"], &here);
    assert_eq!(told, "added `files` to trunkline.toml; no hub runs from it\n");
    let url = "https://wiki.example.com/mcp";
    done(&["add", "wiki", url, "--bearer", "env:WIKI", "--timeout", "30s", "--required"], &here);
    done(&["add", "off", "--disabled", "--env", "A=env:B", "--env", "C", "--cwd", "sub", "--", "x"], &here);
    let files =
        "[servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\", \"${HOME}/x y\", \"--flag\"]\n";
    let wiki = "\n[servers.wiki]\nurl = \"https://wiki.example.com/mcp\"\n\
headers = { authorization = \"Bearer ${WIKI}\" }\nrequired = true\ntimeout = \"30s\"\n";
    let off = "\n[servers.off]\ncommand = \"x\"\nenv = { A = \"${B}\", C = \"${C}\" }\ncwd = \"sub\"\nenabled = false\n";
    assert_eq!(text(), format!("{files}{wiki}{off}"));
    assert_eq!(done(&["enable", "off"], &here), "`off` is enabled in trunkline.toml; no hub runs from it\n");
    assert!(done(&["enable", "off"], &here).starts_with("`off` is enabled already"));
    assert!(text().ends_with("enabled = true\n"));
    assert_eq!(done(&["remove", "off"], &here), "removed `off` from trunkline.toml; no hub runs from it\n");
    assert_eq!(text(), format!("{files}{wiki}"));
    done(&["add", "wiki", "wss://wiki.example.com/ws", "--replace"], &here);
    assert_eq!(text(), format!("{files}\n[servers.wiki]\nurl = \"wss://wiki.example.com/ws\"\n"));
}

#[test]
fn the_file_that_is_found_or_named_is_changed_and_keeps_the_rest() {
    let here = folder("manage_found");
    std::fs::create_dir(here.join(".vscode")).unwrap();
    let theirs = "{\n  // Mine.\n  \"servers\": {\n    \"a\": { \"command\": \"x\", \"odd\": [1] }\n  },\n  \"inputs\": []\n}\n";
    let found = file(&here, ".vscode/mcp.json", theirs, 0o644);
    let told = done(&["add", "b", "https://h.example/mcp"], &here);
    assert!(told.starts_with("added `b` to .vscode/mcp.json"), "{told}");
    let text = std::fs::read_to_string(&found).unwrap();
    assert!(
        text.contains("// Mine.") && text.contains("\"odd\": [1]") && text.contains("\"inputs\": []"),
        "{text}"
    );
    let names: serde_json::Value =
        serde_json::from_str(&done(&["servers", "--json"], &here).replace("no hub", "")).unwrap();
    assert_eq!(names["servers"][1]["reach"], "https://h.example/mcp", "{names}");
    done(&["remove", "b"], &here);
    assert_eq!(std::fs::read_to_string(&found).unwrap(), theirs);
    // One that is named comes first, and is made if it is not there.
    done(&["add", "b", "--config", "sub/other.toml", "--", "y"], &here);
    assert_eq!(
        std::fs::read_to_string(here.join("sub/other.toml")).unwrap(),
        "[servers.b]\ncommand = \"y\"\n"
    );
    assert_eq!(std::fs::read_to_string(&found).unwrap(), theirs);
}

#[test]
fn servers_are_listed_without_starting_any() {
    let here = folder("manage_list");
    let toml = "[servers.a]\ncommand = \"run\"\nargs = [\"--token\", \"canary-canary\"]\n\
[servers.b]\nurl = \"https://h.example/mcp?key=${KEY}\"\nenabled = false\n[servers.c]\ncomand = \"x\"\n";
    file(&here, "trunkline.toml", toml, 0o600);
    let Finished { code, stdout, stderr } = run_at_home(&["servers"], &here, &[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "no hub runs from trunkline.toml; `trunkline serve` starts one\n");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["NAME", "STATE", "HOW", "REASON"],
        "{stdout}"
    );
    assert!(lines[1].starts_with("a     enabled   run --token …"), "{stdout}");
    assert!(lines[2].starts_with("b     disabled  https://h.example/mcp?…"), "{stdout}");
    assert!(lines[3].starts_with("c     invalid"), "{stdout}");
    assert!(!stdout.contains("canary"), "{stdout}");
    let json: serde_json::Value =
        serde_json::from_str(&run_at_home(&["servers", "--json"], &here, &[]).stdout).unwrap();
    assert_eq!((&json["file"], &json["hub"]), (&"trunkline.toml".into(), &serde_json::Value::Null));
    let reason = json["servers"][2]["reason"].as_str().unwrap();
    assert!(reason.contains("did you mean `command`?"), "{reason}");
}

#[test]
fn what_cannot_be_done_is_told_with_what_could() {
    let here = folder("manage_refusals");
    let nothing = refused(&["servers"], &here, 3);
    assert!(nothing.contains("no trunkline.toml here") && nothing.contains("`trunkline add`"), "{nothing}");
    assert!(refused(&["remove", "x"], &here, 3).contains("no trunkline.toml here"));
    let toml = "[servers.github]\ncommand = \"x\"\n";
    file(&here, "trunkline.toml", toml, 0o644);
    for (words, code, told) in [
        (&["remove", "githab"][..], 3, "has no server `githab`; did you mean `github`?"),
        (&["enable", "githab"], 3, "did you mean `github`?"),
        (&["disable", "zzz"], 3, "it has `github`"),
        (&["reconnect", "github"], 4, "no hub runs from trunkline.toml\nhint: `trunkline serve`"),
        (&["add", "github", "--", "y"], 3, "there is a server `github` already\nhint: `--replace`"),
        (&["add"], 2, "there is no name"),
        (&["add", "x"], 2, "nothing says what `x` is"),
        (
            &["add", "x", "y"],
            2,
            "`y` is no address\nhint: a command follows after --: `trunkline add x -- y`",
        ),
        (&["add", "x", "https://h", "y"], 2, "nothing is expected at `y`"),
        (&["add", "x", "ftp://h"], 2, "`ftp://h`"),
        (&["add", "x", "https://h", "--env", "A=b"], 2, "variables and folders are for a program"),
        (&["add", "x", "--header", "A:b", "--", "y"], 2, "headers and transports are for a server"),
        (&["add", "x", "https://h", "--bearer", "@token"], 2, "has variables and no files"),
        (&["add", "x", "--", "${"], 3, "server `x`, key `command`: `${` is not closed"),
        (&["add", " x", "--", "y"], 2, "1 to 64 characters"),
        (&["add", "x", "--transport", "carrier-pigeon", "https://h"], 2, "write http, sse or websocket"),
    ] {
        let stderr = refused(words, &here, code);
        assert!(stderr.contains(told), "{words:?}: {stderr}");
    }
    let json = refused(&["remove", "githab", "--json"], &here, 3);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["exit"], 3, "{json}");
    assert_eq!(std::fs::read_to_string(here.join("trunkline.toml")).unwrap(), toml, "nothing was changed");
}

#[test]
fn a_secret_is_written_only_where_nobody_else_reads_it() {
    let here = folder("manage_secrets");
    let config = here.join("trunkline.toml");
    let secret = ["add", "a", "https://h.example/mcp", "--header", "X-Api-Key: canary-canary"];
    let told = done(&secret, &here);
    assert!(!told.contains("canary"), "{told}");
    assert_eq!(mode(&config), 0o600);
    assert!(std::fs::read_to_string(&config).unwrap().contains("canary-canary"));
    std::fs::write(&config, "").unwrap();
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    let told = refused(&secret, &here, 3);
    assert!(
        told.contains("header x-api-key would be written to trunkline.toml, which others can read"),
        "{told}"
    );
    assert!(told.contains("chmod 600 trunkline.toml") && !told.contains("canary"), "{told}");
    done(&["add", "a", "https://h.example/mcp", "--header", "X-Api-Key: env:KEY"], &here);
    assert_eq!(mode(&config), 0o644);
}
