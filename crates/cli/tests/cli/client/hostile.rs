//! Servers that mean no good, or know no better.

use super::{TRANSPORTS, TestPeer, ask};
use crate::process::{FinishedCommand, run};

/// Characters that a terminal would obey, or that hide or turn other text.
fn controls_terminal(text: &str) -> bool {
    text.chars().any(|c| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}'))
}

#[test]
fn server_output_never_controls_the_terminal() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        for words in [
            &["call", "steer", "-v", "--log-level", "debug"][..],
            &["call", "steer", "--json"],
            &["tools"],
            &["tools", "steer", "--schema"],
            &["tools", "--json"],
        ] {
            let FinishedCommand { code, stdout, stderr } = ask(&peer, way, words);
            assert_eq!(code, Some(0), "{way}: {words:?}: {stderr}");
            assert!(
                !controls_terminal(&stdout) && !controls_terminal(&stderr),
                "{way}: {words:?}: {stdout:?} {stderr:?}"
            );
        }
        let shown = ask(&peer, way, &["call", "steer", "-v", "--log-level", "debug"]);
        assert!(
            shown.stdout.starts_with("\\x1b[31mred\\x1b[0m \\u{202e}drow \\x07\nnext\n"),
            "{way}: {shown:?}"
        );
        assert!(shown.stderr.contains("progress: 1/2 half\\x1b[2J\n"), "{way}: {shown:?}");
        assert!(shown.stderr.contains("warning: log\\x1b]0;title\\x07\n"), "{way}: {shown:?}");
    }
}

/// Runs a command against a legacy server that a shell plays.
#[track_caller]
fn against(script: &str, words: &[&str]) -> FinishedCommand {
    let shake = r#"read -r line
printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"\u001b[31msh","version":"1"}}}'
read -r line
"#;
    let script = format!("{shake}{script}");
    run(&[words, &["--era", "legacy", "--timeout", "5s", "--", "sh", "-c", &script]].concat(), "")
}

#[test]
fn server_exit_during_a_call_is_reported() {
    let finished = against("read -r line; printf '{\"jsonrpc\":'; exit 3", &["tools"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
    assert!(finished.stderr.contains("exited with code 3"), "{finished:?}");
}

#[test]
fn stray_lines_and_unknown_response_ids_are_skipped() {
    let script = r#"read -r line
echo 'Debugger attached.'
printf '%s\n' '{"jsonrpc":"2.0","id":99,"result":{}}'
printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a\u001b[2J","inputSchema":{"type":"object"}},{"nameless":true}]}}'
cat >/dev/null"#;
    let finished = against(script, &["tools"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "a\\x1b[2J()\n");
    assert!(finished.stderr.contains("skipped tool ``: "), "{finished:?}");
}

#[test]
fn cyclic_list_cursors_terminate() {
    let script = r#"n=2
while read -r line; do
printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":"again"}}\n' $n
n=$((n+1))
done"#;
    let finished = against(script, &["tools"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
    assert!(finished.stderr.contains("go round in a circle"), "{finished:?}");
}
