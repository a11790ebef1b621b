//! What the documents show is what the command prints.
//!
//! With `UPDATE_TRANSCRIPTS` in the environment the documents are brought up to date instead.

use std::path::{Path, PathBuf};

use super::peer::TestPeer;
use super::shop::shop;
use crate::process::{RunningCommand, file, folder, run_together};

/// Stands for the server that `trunkline serve` starts.
const ADDRESS: &str = "127.0.0.1:7411";

#[test]
fn transcripts_are_what_the_command_prints() {
    let shop = TestPeer::serving(&shop());
    let (_clock, clock) = RunningCommand::serve("documented", &[]);
    let home = folder("documented_home");
    let here = home.join("shop");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::create_dir_all(home.join(".cursor")).unwrap();
    let cursor = include_str!("../../../../config/tests/samples/cursor.mcp.json");
    file(&home, ".cursor/mcp.json", cursor, 0o600);
    let json = format!(
        r#"{{ "mcpServers": {{
            "shop": {{ "url": "{}" }},
            "clock": {{ "command": "trunkline", "args": ["serve", "--stdio", "--no-config"] }}
        }} }}"#,
        shop.url()
    );
    file(&here, "mcp.json", &json, 0o600);
    let mut count = 0;
    let document = "docs/command-line.md";
    let path = root().join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let replayed = replay(&text, |command| {
        count += 1;
        let command = command.replace(ADDRESS, &clock.to_string());
        let printed = match command.strip_prefix("curl ") {
            Some(arguments) => run_curl(&words(arguments)),
            None => run_together(&words(command.strip_prefix("trunkline ").unwrap()), &here),
        };
        let printed =
            printed.replace(&clock.to_string(), ADDRESS).replace(&shop.url(), "https://shop.example/mcp");
        let printed = printed.replace(env!("CARGO_BIN_EXE_trunkline"), "/usr/bin/trunkline");
        printed.replace(home.to_str().unwrap(), "/home/ann")
    });
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, replayed).unwrap();
    } else {
        compare(document, &text, &replayed);
    }
    assert!(count >= 15, "only {count} transcripts were found");
    let help = run_together(&words("help call"), &here);
    let example = help.lines().find_map(|line| line.trim().strip_prefix("trunkline call shop order "));
    let example = example.expect("an example with answers");
    let printed = run_together(&words(&format!("call shop order {example}")), &here);
    assert!(printed.starts_with("Ordered: "), "{printed}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs every command of the transcripts in a document, and puts what it printed in place of what is shown, unless that
/// matches.
fn replay(document: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut replayed = String::new();
    let mut lines = document.lines().peekable();
    let mut in_transcript = false;
    while let Some(line) = lines.next() {
        replayed.push_str(line);
        replayed.push('\n');
        if line.starts_with("```") {
            in_transcript = line == "```console";
        }
        let command = line.strip_prefix("$ ").filter(|_| in_transcript);
        let is_known = |command: &&str| command.starts_with("trunkline ") || command.starts_with("curl ");
        let Some(command) = command.filter(is_known) else { continue };
        let mut shown = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("```")) {
            shown.push_str(line);
            shown.push('\n');
        }
        let printed = run(command);
        let kept = printed.trim_end() == shown.trim_end() || matches(shown.trim_end(), printed.trim_end());
        replayed.push_str(if kept { &shown } else { &printed });
    }
    replayed
}

/// Runs curl, and returns what it printed.
#[expect(clippy::disallowed_methods, reason = "the command of a transcript, as a reader types it")]
fn run_curl(arguments: &[String]) -> String {
    let done = std::process::Command::new("curl").args(arguments).output().expect("curl is installed");
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    // A body has no line end of its own.
    format!("{}\n", String::from_utf8(done.stdout).unwrap().replace('\r', ""))
}

/// Compares line by line; `…` in a line stands for anything.
fn matches(shown: &str, printed: &str) -> bool {
    let alike = |(shown, printed): (&str, &str)| {
        let mut parts = shown.split('…');
        let mut rest = printed.strip_prefix(parts.next().unwrap_or_default());
        let parts: Vec<_> = parts.collect();
        for (at, part) in parts.iter().enumerate() {
            let last = at + 1 == parts.len();
            rest = rest.and_then(|rest| match last {
                true => rest.strip_suffix(part).map(|_| ""),
                false => rest.find(part).and_then(|place| rest.get(place + part.len()..)),
            });
        }
        rest == Some("")
    };
    shown.lines().count() == printed.lines().count() && shown.lines().zip(printed.lines()).all(alike)
}

/// Splits a command as a shell would, as far as the documents need it.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[track_caller]
fn compare(document: &str, shown: &str, replayed: &str) {
    for (shown, replayed) in shown.lines().zip(replayed.lines()) {
        assert_eq!(shown, replayed, "{document} shows what is not so; UPDATE_TRANSCRIPTS=1 mends it");
    }
    assert_eq!(shown.lines().count(), replayed.lines().count(), "{document}");
}

#[test]
fn dots_stand_for_anything_in_a_line() {
    for (shown, printed, expected) in [
        ("a", "a", true),
        ("a … c", "a b c", true),
        ("…", "anything", true),
        ("took … ms, … ms", "took 3 ms, 4 ms", true),
        ("a … c", "a b d", false),
        ("a", "a\nb", false),
        ("a…", "b", false),
    ] {
        assert_eq!(matches(shown, printed), expected, "{shown} {printed}");
    }
}
